"""`manage.py worker`: answers rings by sending and checking what is due."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from actions.jobs import send_due
from config import boot
from config.worker import Runner
from reconciliation.jobs import check_due


class Command(BaseCommand):
    help = "Sends and checks what is due, until SIGTERM. Losing Redis delays it and stops nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--burst", action="store_true", help="end when the queues are empty")
        parser.add_argument("--beat", type=Path, metavar="FILE", help="touched while all is well")

    def handle(self, *args: Any, burst: bool, beat: Path | None, **options: Any) -> None:
        boot.refuse_unsafe()
        runner = Runner([send_due, check_due], beat=beat)
        runner.obey_signals()
        runner.run(burst=burst)
