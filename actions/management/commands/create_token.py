"""`manage.py create_token AGENT`: makes a token and prints it, once."""

import argparse
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from actions import times, tokens
from actions.errors import Invalid
from actions.models import Agent


class Command(BaseCommand):
    help = "Makes a token for an agent and prints it to standard output. It can't be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        switch = argparse.BooleanOptionalAction
        parser.add_argument("agent", help="The agent's name.")
        parser.add_argument("--label", default="", help="What the token is for.")
        parser.add_argument("--propose", action=switch, help="May propose (the default, unless --evidence).")
        parser.add_argument("--report", action=switch, default=False, help="May report outcomes.")
        parser.add_argument("--read", action=switch, default=True, help="May read.")
        parser.add_argument("--evidence", action=switch, default=False, help="May give evidence.")
        parser.add_argument("--expires-days", type=int, metavar="N", help="Valid for N days.")

    def handle(self, *args: Any, **options: Any) -> None:
        agent = _find_agent(options["agent"])
        days = options["expires_days"]
        if days is not None and not 1 <= days <= 36_500:
            raise CommandError("--expires-days: a number of days from 1 to 36500.")
        propose = options["propose"]
        try:
            token, text = tokens.create(
                agent,
                label=options["label"][:100],
                may_propose=not options["evidence"] if propose is None else propose,
                may_report=options["report"],
                may_read=options["read"],
                may_give_evidence=options["evidence"],
                expires_at=None if days is None else times.now() + timedelta(days=days),
            )
        except Invalid as wrong:
            raise CommandError(wrong.message) from None
        until = f"until {token.expires_at:%Y-%m-%d}" if token.expires_at else "until it is revoked"
        # Standard output holds the token alone, so that a script can take it.
        self.stderr.write(f"Token of {agent.name} for {', '.join(sorted(token.scopes))}, valid {until}; shown once:")
        self.stdout.write(text)


def _find_agent(name: str) -> Agent:
    try:
        return Agent.objects.get(name=name)
    except Agent.DoesNotExist:
        known = ", ".join(Agent.objects.values_list("name", flat=True)[:50]) or "none yet"
        raise CommandError(f"There is no agent {name!r}. Known agents: {known}.") from None
