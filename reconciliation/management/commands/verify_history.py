"""`manage.py verify_history`: reads everything that was ever written and says what was tampered with."""

from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from actions import snapshot
from reconciliation import counting_on
from reconciliation.anchoring import files, keys
from reconciliation.anchoring.files import CASE, INTENT, Anchor
from reconciliation.reviews import verifying
from reconciliation.reviews.verifying import Verified


class Command(BaseCommand):
    help = (
        "Checks the history of every intent and case, evidence and files included; with --anchor, also that nothing "
        "was cut off or written anew since. Ends with 1 when something is broken."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--anchor", type=Path, metavar="FILE", help="that anchor_history wrote")
        parser.add_argument(
            "--key",
            type=Path,
            metavar="FILE",
            action="append",
            help="a public key that it may be signed with; else LANDED_ANCHOR_KEY's and LANDED_ANCHOR_PUBLIC_KEYS",
        )
        parser.add_argument("--most", type=int, default=100, metavar="N", help="list so many faults (100)")

    def handle(self, *args: Any, anchor: Path | None, key: list[Path] | None, most: int, **options: Any) -> None:
        against = None if anchor is None else self._read(anchor, key)
        with snapshot.one_moment():
            total = verifying.count()
            with counting_on.progress(total, unit="rows", err=self.stderr) as advance:
                self._tell(_counted(_stream(against), advance), most)

    def _read(self, path: Path, given: list[Path] | None) -> Anchor:
        own = [settings.LANDED_ANCHOR_KEY] if settings.LANDED_ANCHOR_KEY else []
        trusted = given or [Path(name) for name in [*own, *settings.LANDED_ANCHOR_PUBLIC_KEYS]]
        try:
            found = files.check(path, keys.public_keys(trusted))
            files.check_previous(found)
        except (files.BadAnchor, keys.BadKey) as wrong:
            raise CommandError(str(wrong)) from None
        self.stderr.write(f"Against the anchor of {found.head['made_at']}, {found.head['intents']} intents.")
        return found

    def _tell(self, looked_at: Iterator[Verified], most: int) -> None:
        number = broken = told = left = 0
        first = ""
        for one in looked_at:
            number += 1
            broken += bool(one.faults)
            for fault in one.faults:
                first = first or f"{one.name}: {fault}"
                if told < most:
                    self.stdout.write(f"{one.name}: {fault}")
                    told += 1
                else:
                    left += 1
        if left:
            self.stdout.write(f"… and {left} more (--most)")
        if broken:
            raise CommandError(f"{broken} of {number} histories don't hold. The first: {first}")
        self.stdout.write(f"All {number} histories hold.")


def _stream(against: Anchor | None) -> Iterator[Verified]:
    if against is None:
        return verifying.stream()
    return verifying.stream(files.chains(against, INTENT), files.chains(against, CASE))


def _counted(looked_at: Iterator[Verified], advance: Any) -> Iterator[Verified]:
    for one in looked_at:
        yield one
        advance(one.rows)
