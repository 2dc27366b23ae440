"""`manage.py sweep`: what the clock does, once."""

from typing import Any

from django.core.management.base import BaseCommand

from actions.notifying import running
from config import boot, clockwork
from reconciliation import mailing


class Command(BaseCommand):
    help = "Looks once for what is due or stuck, and says what it changed."

    def handle(self, *args: Any, **options: Any) -> None:
        boot.refuse_unsafe()
        done = clockwork.tick()
        self.stdout.write(f"actions: {done.actions} changed")
        self.stdout.write(f"reconciliation: {done.reconciliation} changed")
        self.stdout.write(f"e-mail: {mailing.run()} notices sent")
        self.stdout.write(f"webhooks: {running.deliver_due()} tried")
        self.stdout.write(f"rung: {', '.join(done.rung) or 'nothing'}")
