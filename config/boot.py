"""Refuses to run on unsafe settings or an unsafe database.

Each rule is one function that yields problems in plain words, naming the setting and the remedy.
`manage.py check` shows the rules about settings as system checks; worker, clock, web and `up` refuse to start
over any of them.
"""

from collections.abc import Iterator
from typing import Any, Final

from django.conf import settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from actions import triggers
from reconciliation.anchoring import keys, writing

MODES: Final = ("production", "demo", "test")
_SHORTEST_KEY = 50  # what Django's own check asks for
_FEWEST_CHARACTERS = 5


class Unsafe(CommandError):
    """Landed will not run like this; the message says what to change."""


def mode_problems() -> Iterator[str]:
    if settings.MODE not in MODES:
        yield f"LANDED_MODE is {settings.MODE!r}. Use one of {', '.join(MODES)}; the default is production."


def settings_problems() -> Iterator[str]:
    """What a demo or a test run may do without."""
    if settings.DEBUG:
        yield "DEBUG is on: error pages would show settings and personal data. Turn it off."
    yield from _secret_key_problems(_secret_key())
    if not settings.ALLOWED_HOSTS:
        yield "ALLOWED_HOSTS is empty. Set it to the names that this service goes by, with commas between."
    if any(host.strip() in ("*", ".") for host in settings.ALLOWED_HOSTS):
        yield "ALLOWED_HOSTS holds '*': any Host header would be believed. Name the hosts."
    if settings.LANDED_PRIVATE_RECEIVERS:
        yield (
            "LANDED_PRIVATE_RECEIVERS is set: webhooks could reach what only this side of the firewall can. It is "
            "for demos and tests; empty it."
        )
    for name in ("SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE"):
        if not getattr(settings, name):
            yield f"{name} is off: the cookie would travel in the clear. Turn it on and serve over TLS."


def mail_problems() -> Iterator[str]:
    """What keeps people from being told by e-mail. The desk works without, so nothing refuses to start over it."""
    if not settings.LANDED_MAIL:
        yield (
            "EMAIL_URL is not set: nobody is told by e-mail of cases that are due or of incidents. Set it, as in "
            "smtp://user:password@mail.example:25 or submission://… for STARTTLS."
        )
    elif not settings.LANDED_PUBLIC_URL:
        yield "LANDED_PUBLIC_URL is not set: e-mails can't link to the desk. Set it, as in https://landed.example."


def _secret_key() -> str:
    try:
        return str(settings.SECRET_KEY)
    except ImproperlyConfigured:  # Django's way to say that it is empty
        return ""


def _secret_key_problems(key: str) -> Iterator[str]:
    remedy = (
        "Set SECRET_KEY to at least 50 random characters, as from: "
        "python -c 'import secrets; print(secrets.token_urlsafe(50))'"
    )
    if not key:
        yield f"SECRET_KEY is missing. {remedy}"
    elif key.startswith(("django-insecure-", "only-for-demo-and-tests-")):
        yield f"SECRET_KEY is one that everybody knows. {remedy}"
    elif len(key) < _SHORTEST_KEY or len(set(key)) < _FEWEST_CHARACTERS:
        yield f"SECRET_KEY is too short or too simple. {remedy}"


def database_problems() -> Iterator[str]:
    """What the database must promise in every mode. Asks it; raises its errors when it is away."""
    yield from (_sqlite_problems() if connection.vendor == "sqlite" else _postgresql_problems())
    waiting = unapplied_migrations()
    if waiting:
        yield f"Migrations are not applied ({', '.join(waiting[:5])}). Run: manage.py migrate"
        return
    gone = triggers.missing()
    if gone:
        yield f"History is unprotected: triggers are missing ({', '.join(gone[:5])}). Run: manage.py migrate"


def _ask(query: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchone()[0]


def _sqlite_problems() -> Iterator[str]:
    where = "Leave DATABASES['default']['OPTIONS']['init_command'] as config/settings.py has it"
    if int(_ask("PRAGMA synchronous")) < 2:
        yield f"SQLite's synchronous is below FULL: a power cut could lose what was promised. {where}."
    if str(_ask("PRAGMA journal_mode")).lower() != "wal":
        yield f"SQLite's journal_mode is not WAL: readers and writers would block each other. {where}."
    if not int(_ask("PRAGMA recursive_triggers")):
        yield f"SQLite's recursive_triggers is off: REPLACE would slip past append-only history. {where}."


def _postgresql_problems() -> Iterator[str]:
    promise = "an acknowledged commit could be lost, and with it the record of something that was sent"
    if _ask("SHOW synchronous_commit") == "off":
        yield f"PostgreSQL's synchronous_commit is off: {promise}. Turn it on for this role or database."
    for name in ("fsync", "full_page_writes"):
        if _ask(f"SHOW {name}") == "off":
            yield f"PostgreSQL's {name} is off: {promise}. Turn it on in postgresql.conf."


def unapplied_migrations() -> list[str]:
    """Migrations of this code that the database lacks, as `app.name`."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


def problems() -> list[str]:
    """Everything that speaks against starting now."""
    found = list(mode_problems())
    if settings.MODE not in ("demo", "test"):
        found += settings_problems()
    return found + list(database_problems())


def refuse_unsafe() -> None:
    """Raises Unsafe with every problem and its remedy."""
    found = problems()
    if found:
        raise Unsafe("Landed refuses to start:\n" + "\n".join(f"- {problem}" for problem in found))


def refuse_to_anchor_unsigned() -> None:
    """For whoever writes anchors, which is the clock: web and workers need no key. Raises Unsafe."""
    if not settings.LANDED_ANCHORS:
        return
    try:
        keys.private_key(writing.own_key())
    except keys.BadKey as wrong:
        raise Unsafe(f"Anchors of histories are on (LANDED_ANCHORS), and can't be signed. {wrong}") from None


def anchor_problems() -> Iterator[str]:
    """What keeps it from showing that a history was cut off. Landed runs without all the same."""
    if not settings.LANDED_ANCHORS:
        yield (
            "LANDED_ANCHORS is not set: nothing outside the database says how long histories are. Set it to a "
            "folder, and LANDED_ANCHOR_KEY to a key from: manage.py anchor_history --new-key FILE"
        )


def _errors(found: Iterator[str], number: str) -> list[checks.CheckMessage]:
    return [checks.Error(problem, id=f"landed.{number}") for problem in found]


def register_checks() -> None:
    """Makes `check` (the mode), `check --deploy` (settings) and `check --database default` say the same."""

    def check_mode(**_: Any) -> list[checks.CheckMessage]:
        return _errors(mode_problems(), "E001")

    def check_settings(**_: Any) -> list[checks.CheckMessage]:
        return _errors(settings_problems(), "E002")

    def check_mail(**_: Any) -> list[checks.CheckMessage]:
        return [checks.Warning(problem, id="landed.W001") for problem in mail_problems()]

    def check_anchors(**_: Any) -> list[checks.CheckMessage]:
        return [checks.Warning(problem, id="landed.W002") for problem in anchor_problems()]

    def check_database(databases: Any = None, **_: Any) -> list[checks.CheckMessage]:
        # `migrate` runs this too, before the tables exist: only what holds without them is looked at.
        if not databases or "default" not in databases:
            return []
        return _errors(_sqlite_problems() if connection.vendor == "sqlite" else _postgresql_problems(), "E003")

    checks.register(check_mode, checks.Tags.security)
    checks.register(check_settings, checks.Tags.security, deploy=True)
    checks.register(check_mail, checks.Tags.security, deploy=True)
    checks.register(check_anchors, checks.Tags.security, deploy=True)
    checks.register(check_database, checks.Tags.database)
