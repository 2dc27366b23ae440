"""The admin alone, at its place: these tests don't need the desk."""

from django.contrib import admin
from django.urls import path

urlpatterns = [path("admin/", admin.site.urls)]
