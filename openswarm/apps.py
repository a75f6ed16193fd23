"""Django's admin app with our own site in the place of the default one."""

from __future__ import annotations

from django.contrib.admin.apps import AdminConfig as DjangoAdminConfig


class AdminConfig(DjangoAdminConfig):
    default_site = "openswarm.admin.InspectionSite"
