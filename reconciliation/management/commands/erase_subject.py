"""`manage.py erase_subject SUBJECT --reason …`: erases what is stored about the people behind an order."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from actions.errors import Invalid, LandedError
from reconciliation.erasing import subject as erasing
from reconciliation.erasing.finding import find


class Command(BaseCommand):
    help = (
        "Erases what a subject's intents and cases say about people, for good. Keys, ids, amounts and history stay, "
        "and history still holds. Refused while any of it is still needed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("subject", help="As its intents bear it: order-4812, or order-4812/line-2.")
        parser.add_argument("--reason", required=True, choices=[reason.value for reason in erasing.REASONS])
        parser.add_argument("--family", action="store_true", help="with everything of its family: order-4812/…")
        parser.add_argument("--by", metavar="USERNAME", help="who does it, for the history; else: the console")
        parser.add_argument("--dry-run", action="store_true", help="only say what would be erased")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._run(options)
        except Invalid as refused:
            said = [f"- {error['message']}" for error in refused.details.get("errors", ())]
            raise CommandError("\n".join(["Nothing was erased:", *said])) from None
        except LandedError as refused:
            raise CommandError(refused.message) from None

    def _run(self, options: dict[str, Any]) -> None:
        found = find(options["subject"], family=options["family"])
        for line in erasing.tell(found):
            self.stdout.write(line)
        if options["dry_run"]:
            self._say_what_speaks_against(found.against)
            return
        done = erasing.erase(
            options["subject"], reason=options["reason"], family=options["family"], person=_person(options["by"])
        )
        self.stdout.write(
            f"Erased: {done.intents} intents, {done.cases} cases, {done.texts} texts, {done.files} files, "
            f"{done.stops} lifted stops."
        )

    def _say_what_speaks_against(self, against: tuple[str, ...]) -> None:
        if against:
            raise CommandError("\n".join(["It would be refused:", *(f"- {why}" for why in against)]))
        self.stdout.write("Nothing was erased: this was a dry run.")


def _person(name: str | None) -> User | None:
    if name is None:
        return None
    found = User.objects.filter(username=name, is_active=True).first()
    if found is None:
        raise CommandError(f"There is nobody called {name!r}.")
    return found
