"""`manage.py anchor_history`: writes down, signed and outside the database, how long every history is and where it
ends."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from reconciliation.anchoring import keys, writing


class Command(BaseCommand):
    help = "Writes a signed anchor over all histories, to a file outside the database. verify_history reads it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--to", type=Path, metavar="FILE", help="a new file; else one in LANDED_ANCHORS")
        parser.add_argument(
            "--new-key", type=Path, metavar="FILE", help="only make a key, and its public one beside it"
        )

    def handle(self, *args: Any, to: Path | None, new_key: Path | None, **options: Any) -> None:
        try:
            if new_key is not None:
                self._make_key(new_key)
                return
            if to is None and not settings.LANDED_ANCHORS:
                raise CommandError("LANDED_ANCHORS names no folder: say where to, with --to FILE.")
            done = writing.write(to) if to is not None else writing.write_into(Path(settings.LANDED_ANCHORS))
        except (keys.BadKey, OSError) as wrong:
            raise CommandError(str(wrong)) from None
        self.stdout.write(
            f"{done.path}: {done.intents} intents and {done.cases} cases anchored, digest {done.digest}"
        )

    def _make_key(self, path: Path) -> None:
        public = keys.make(path)
        (number,) = keys.public_keys([public])
        self.stdout.write(f"Private key: {path} (name it in LANDED_ANCHOR_KEY)")
        self.stdout.write(f"Public key:  {public}, id {number} (give it to whoever verifies)")
