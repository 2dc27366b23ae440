from django.contrib.admin import AdminSite


class LandedAdminSite(AdminSite):
    site_header = "Landed"
