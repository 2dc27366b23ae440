"""`manage.py apply_policy FILE`: shows what a policy file changes, then applies it. See docs/policy.md."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from actions import visible
from actions.policy_files import applying, reading, shown
from actions.policy_files.planning import Plan, make_plan
from actions.policy_files.tables import PolicyRefused

DIFFERS = 3  # the exit code of --check


class Command(BaseCommand):
    help = (
        "Applies a TOML file with downstreams, kinds and agents: prints every difference, then changes all or "
        "nothing. What the file doesn't name is left alone."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", help="The policy file; see docs/policy.md.")
        either = parser.add_mutually_exclusive_group()
        either.add_argument("--dry-run", action="store_true", help="Only print what would change.")
        either.add_argument(
            "--check", action="store_true", help=f"Like --dry-run, but exit with {DIFFERS} if something would change."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        file = options["file"]
        try:
            document = reading.read(_text(file))
            if options["dry_run"] or options["check"]:
                plan = make_plan(document, lock=False)
                self._show(plan)
                self._end_dry(file, plan, check=options["check"])
                return
            applied = applying.apply(document, reason=f"apply_policy {file}", show=self._show)
        except PolicyRefused as refused:
            raise CommandError(_problems(file, refused)) from None
        self.stdout.write("Applied." if applied.pending else "Nothing to change.")

    def _show(self, plan: Plan) -> None:
        self.stdout.write("\n".join(shown.lines_of(plan)))

    def _end_dry(self, file: str, plan: Plan, *, check: bool) -> None:
        if check and plan.pending:
            raise CommandError(f"The database differs from {file}; nothing was changed.", returncode=DIFFERS)
        self.stdout.write("Nothing was changed." if plan.pending else "Nothing to change.")


def _text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except OSError as wrong:
        raise CommandError(f"{file} can't be read: {wrong.strerror}.") from None
    except UnicodeDecodeError:
        raise CommandError(f"{file} is not UTF-8.") from None


def _problems(file: str, refused: PolicyRefused) -> str:
    count = len(refused.faults)
    lines = [f"{file}: {count} problem{'' if count == 1 else 's'}; nothing was changed."]
    lines += ["  " + " ".join(visible.plain(str(fault)).split()) for fault in refused.faults]
    return "\n".join(lines)
