"""`manage.py verify_history`: reads everything that was ever written and says what was tampered with."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from reconciliation.reviews import verifying


class Command(BaseCommand):
    help = "Checks the history of every intent and case, evidence and files included. Ends with 1 when one is broken."

    def handle(self, *args: Any, **options: Any) -> None:
        looked_at = broken = 0
        for name, faults in verifying.everything():
            looked_at += 1
            broken += bool(faults)
            for fault in faults:
                self.stdout.write(f"{name}: {fault}")
        if broken:
            raise CommandError(f"{broken} of {looked_at} histories don't hold.")
        self.stdout.write(f"All {looked_at} histories hold.")
