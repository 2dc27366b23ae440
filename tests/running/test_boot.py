"""Landed refuses to run on what could lose money or history."""

from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connection

from actions import triggers
from config import boot

GOOD = {
    "MODE": "production",
    "DEBUG": False,
    "SECRET_KEY": "k9Vb2mZq7Xw4Lr8Tn3Pc6Yd1Hf5Jg0SaQeUiOoWxCvBnMlKjHgFd",
    "ALLOWED_HOSTS": ["landed.example"],
    "SESSION_COOKIE_SECURE": True,
    "CSRF_COOKIE_SECURE": True,
}


@pytest.fixture
def production(settings: Any) -> Any:
    for name, value in GOOD.items():
        setattr(settings, name, value)
    return settings


def test_safe_production_settings_are_not_complained_about(production: Any) -> None:
    assert list(boot.settings_problems()) == []


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("DEBUG", True, "DEBUG is on"),
        ("SECRET_KEY", "", "SECRET_KEY is missing"),
        ("SECRET_KEY", "short", "SECRET_KEY is too short"),
        ("SECRET_KEY", "ab" * 40, "SECRET_KEY is too short or too simple"),
        ("SECRET_KEY", "django-insecure-" + "k9Vb2mZq7X" * 6, "everybody knows"),
        ("SECRET_KEY", "only-for-demo-and-tests-" + "x" * 40, "everybody knows"),
        ("ALLOWED_HOSTS", [], "ALLOWED_HOSTS is empty"),
        ("ALLOWED_HOSTS", ["landed.example", "*"], "ALLOWED_HOSTS holds '*'"),
        ("SESSION_COOKIE_SECURE", False, "SESSION_COOKIE_SECURE is off"),
        ("CSRF_COOKIE_SECURE", False, "CSRF_COOKIE_SECURE is off"),
    ],
)
@pytest.mark.django_db
def test_one_unsafe_setting_is_enough(production: Any, name: str, value: object, says: str) -> None:
    setattr(production, name, value)
    with pytest.raises(boot.Unsafe, match=says):
        boot.refuse_unsafe()


@pytest.mark.django_db
@pytest.mark.parametrize("mode", ["demo", "test"])
def test_a_demo_may_run_on_made_up_secrets(settings: Any, mode: str) -> None:
    settings.MODE, settings.SECRET_KEY = mode, "short"
    boot.refuse_unsafe()


@pytest.mark.django_db
def test_a_misspelt_mode_is_refused_and_not_taken_for_a_lenient_one(settings: Any) -> None:
    settings.MODE = "prod"
    with pytest.raises(boot.Unsafe, match="LANDED_MODE is 'prod'") as refused:
        boot.refuse_unsafe()
    assert "SECRET_KEY" in str(refused.value)


@pytest.mark.django_db
def test_every_problem_is_told_at_once(production: Any) -> None:
    production.DEBUG, production.ALLOWED_HOSTS = True, ["*"]
    with pytest.raises(boot.Unsafe, match=r"DEBUG(.|\n)*ALLOWED_HOSTS"):
        boot.refuse_unsafe()


@pytest.mark.django_db
def test_a_database_without_its_triggers_is_refused() -> None:
    on = ' ON "actions_transition"' if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        cursor.execute(f'DROP TRIGGER "actions_transition_no_delete"{on}')
    with pytest.raises(boot.Unsafe, match=r"actions_transition_no_delete.*manage.py migrate"):
        boot.refuse_unsafe()
    triggers.install()
    boot.refuse_unsafe()


@pytest.mark.django_db
def test_a_trigger_that_is_switched_off_counts_as_missing() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite can't switch triggers off")
    with connection.cursor() as cursor:
        cursor.execute('ALTER TABLE "actions_transition" DISABLE TRIGGER "actions_transition_no_update"')
    with pytest.raises(boot.Unsafe, match="actions_transition_no_update"):
        boot.refuse_unsafe()


@pytest.mark.django_db
def test_unapplied_migrations_are_refused() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'reconciliation'")
    with pytest.raises(boot.Unsafe, match=r"Migrations are not applied \(reconciliation\."):
        boot.refuse_unsafe()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("weaken", "says"),
    [
        ("PRAGMA synchronous=NORMAL", "synchronous is below FULL"),
        ("PRAGMA recursive_triggers=OFF", "recursive_triggers is off"),
    ],
)
def test_a_sqlite_that_could_lose_commits_is_refused(weaken: str, says: str) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("about SQLite")
    with connection.cursor() as cursor:
        cursor.execute(weaken)
    try:
        with pytest.raises(boot.Unsafe, match=says):
            boot.refuse_unsafe()
    finally:
        connection.close()  # the next connection is made as settings say


@pytest.mark.django_db
def test_a_sqlite_without_wal_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("about SQLite")
    # Told, not done: leaving WAL needs the file to itself, and threads of other tests may still hold it.
    ask = boot._ask
    monkeypatch.setattr(boot, "_ask", lambda query: "delete" if "journal_mode" in query else ask(query))
    with pytest.raises(boot.Unsafe, match="journal_mode is not WAL"):
        boot.refuse_unsafe()


@pytest.mark.django_db
def test_a_postgresql_that_could_lose_commits_is_refused() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("about PostgreSQL")
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = off")
    with pytest.raises(boot.Unsafe, match="synchronous_commit is off"):
        boot.refuse_unsafe()


@pytest.mark.django_db
def test_the_database_under_test_is_accepted() -> None:
    boot.refuse_unsafe()


def test_manage_py_check_shows_a_wrong_mode_and_check_deploy_the_rest(settings: Any) -> None:
    call_command("check")
    settings.ALLOWED_HOSTS = ["*"]
    with pytest.raises(SystemCheckError, match=r"landed\.E002.*ALLOWED_HOSTS"):
        call_command("check", deploy=True)
    settings.MODE = "prod"
    with pytest.raises(SystemCheckError, match=r"landed\.E001.*LANDED_MODE"):
        call_command("check")
