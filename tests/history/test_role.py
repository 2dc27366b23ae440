"""docs/operations.md gives a PostgreSQL role that can't rewrite history. This runs that SQL, as it stands there."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.utils import ProgrammingError

from actions import history, triggers
from actions.models import Downstream, Intent
from reconciliation import checks, erasing
from reconciliation.models import Choice, DecisionReason, Review
from reconciliation.reviews import commenting, deciding, verifying
from tests.factories import make_person
from tests.flow.world import World

DOCUMENT = Path(__file__).parents[2] / "docs" / "operations.md"


def statements() -> list[str]:
    return re.findall(r"```sql\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)


def tables_in(sql: str, revoked: str) -> set[str]:
    (found,) = re.findall(rf"REVOKE {revoked} ON\s+([a-z_,\s]+?)\s+FROM landed_app", sql)
    return set(re.split(r",\s*", found))


def test_the_sql_names_every_table_that_is_protected() -> None:
    sql = "\n".join(statements())
    once = {triggers.table_of(rule) for rule in triggers.rules() if rule.fixed is None}
    assert tables_in(sql, "UPDATE, DELETE, TRUNCATE") == once
    assert tables_in(sql, "DELETE, TRUNCATE") == {triggers.table_of(rule) for rule in triggers.rules()} - once


def run(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


@pytest.fixture
def as_landed_app(world: World) -> Iterator[None]:
    """The rest of the test logs in as that role."""
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no roles")
    for sql in statements():
        run(sql)
    owner = connection.settings_dict["USER"]
    connection.close()
    connection.settings_dict["USER"] = "landed_app"
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["USER"] = owner
        run("DROP OWNED BY landed_app")
        run("DROP ROLE landed_app")


def denied(sql: str) -> bool:
    """Whether PostgreSQL itself says no, before any trigger is asked."""
    try:
        with transaction.atomic():
            run(sql)
    except ProgrammingError as refused:
        return getattr(refused.__cause__, "sqlstate", "") == "42501"  # insufficient_privilege
    except DatabaseError:
        return False
    return False


@pytest.mark.usefixtures("as_landed_app")
def test_everything_works_under_the_role_and_history_can_t_be_rewritten(world: World) -> None:
    _main_path(world)
    for rule in triggers.rules():
        table = triggers.table_of(rule)
        assert denied(f'DELETE FROM "{table}"'), table
        assert denied(f'TRUNCATE "{table}" CASCADE'), table
        assert denied(f'DROP TABLE "{table}" CASCADE'), table
        assert denied(f'ALTER TABLE "{table}" DISABLE TRIGGER ALL'), table
        assert denied(f'DROP TRIGGER "{table}_no_update" ON "{table}"'), table
        if rule.fixed is None:
            assert denied(
                f'UPDATE "{table}" SET id = id' if "policy" not in table else f'UPDATE "{table}" SET text = text'
            )
    assert denied("SET session_replication_role = replica")
    assert denied("CREATE OR REPLACE FUNCTION landed_append_only() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN END'")
    assert denied("UPDATE django_migrations SET name = name")
    assert denied("SET ROLE postgres")


def _main_path(world: World) -> None:
    """Recorded, sent, unknown, looked up, decided by a person, erased."""
    # However busy the machine is, the sandbox's answer is waited for.
    Downstream.objects.update(deadline_ms=20_000, connect_timeout_ms=10_000, lease_margin_ms=20_000)
    answered = world.propose("order-1")
    world.sandbox.order_fault("order-2", "error_500_not_booked")
    lost = world.propose("order-2", note="Jane")
    world.send()
    sent = [(one.status, one.status_reason) for one in map(world.read, (answered, lost))]
    assert [status for status, _ in sent] == ["confirmed", "unknown"], sent
    world.check(lost)
    world.later(1_000)  # "review after" and the time that the sweep leaves to checks
    world.sweep()
    review, person = world.review(lost), make_person("supervisor")
    checks.check_by_person(lost.pk, person=person)
    commenting.comment(review.pk, person=person, text="I asked.")
    deciding.decide(
        review.pk,
        person=person,
        choice=Choice.FAIL,
        reason=DecisionReason.LEDGER,
        note="Not there.",
        seen=deciding.seen(Review.objects.select_related("intent").get(pk=review.pk)),
    )
    world.sweep()
    settled = world.read(lost)
    assert settled.status == "failed"
    assert history.faults(settled) == []
    Intent.objects.filter(pk=lost.pk).update(next_check_at=None)
    assert erasing.erase("order-2", reason="asked").intents == 1
    assert world.read(lost).note == ""
    assert [faults for _, faults in verifying.everything() if faults] == []
