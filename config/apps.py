"""Wiring that needs the app registry."""

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class LandedConfig(AppConfig):
    name = "config"
    label = "landed"
    verbose_name = "Landed"

    def ready(self) -> None:
        from config import boot  # noqa: PLC0415  models must be loaded first

        boot.register_checks()


class LandedAdminConfig(AdminConfig):
    default_site = "config.admin_site.LandedAdminSite"
