"""`actions`: what we meant to do, and what became of it."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


def _after_migrate(**_: Any) -> None:
    from actions import triggers  # noqa: PLC0415  needs loaded models

    triggers.install()


class ActionsConfig(AppConfig):
    name = "actions"

    def ready(self) -> None:
        post_migrate.connect(_after_migrate, sender=self, dispatch_uid="landed-append-only")
