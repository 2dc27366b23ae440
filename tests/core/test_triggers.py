"""Append-only, by the database itself: through the ORM, by hand, and after a table was rebuilt."""

from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.core.management.sql import emit_post_migrate_signal
from django.db import DatabaseError, connection, models, transaction
from django.db.models import F

from actions import triggers
from actions.models import (
    Attempt,
    DeliveryTry,
    Endpoint,
    Event,
    EventDelivery,
    Evidence,
    Intent,
    Observation,
    PolicySnapshot,
    Stop,
    Transition,
)
from reconciliation.models import (
    Attachment,
    Check,
    Comment,
    Decision,
    Delivery,
    Difference,
    LedgerEntry,
    Match,
    Review,
    ReviewReason,
)
from tests.core.life import whole_life
from tests.core.test_constraints import entry, match
from tests.factories import make_intent, make_person

pytestmark = pytest.mark.django_db

# By the design: written once and never touched again ...
NEVER_CHANGED: list[type[models.Model]] = [
    Transition,
    Check,
    Decision,
    Comment,
    Observation,
    PolicySnapshot,
    ReviewReason,
    DeliveryTry,
]
# ... and these, of which some columns live on, but no row ever goes.
NEVER_DELETED = [
    *(*NEVER_CHANGED, Intent, Attempt, Evidence, LedgerEntry, Match, Review, Stop, Delivery, Difference),
    Attachment,
    Event,
    EventDelivery,
]


def refused(act: Callable[[], object]) -> bool:
    try:
        with transaction.atomic():
            act()
    except DatabaseError as raised:
        if "append-only" not in str(raised):
            raise
        return True
    return False


def run(sql: str, *params: Any) -> Callable[[], object]:
    def act() -> None:
        with connection.cursor() as cursor:
            cursor.execute(sql, params)

    return act


def one_of_each() -> Intent:
    intent = whole_life()
    match(entry(downstream=intent.downstream), intent, "duplicate")
    Stop.objects.create(
        scope="customer", value="c-5", key="c-5", reason="x", placed_by="person:1", placed_at=intent.created_at
    )
    Delivery.objects.create(
        downstream=intent.downstream,
        delivery_id="evt_1",
        received_at=intent.created_at,
        evidence=intent.evidence.all()[0],
        next_try_at=intent.created_at,
    )
    told = EventDelivery.objects.create(
        endpoint=Endpoint.objects.create(agent=intent.agent, url="https://a.example/"),
        event=intent.events.all()[0],
        created_at=intent.created_at,
        next_at=intent.created_at,
        give_up_at=intent.created_at,
    )
    DeliveryTry.objects.create(delivery=told, at=intent.created_at, result="lost")
    Difference.objects.create(
        intent=intent, what="recover", amount_minor=100, currency="EUR", opened_at=intent.created_at
    )
    Attachment.objects.create(
        review=intent.reviews.all()[0],
        intent=intent,
        person=make_person(),
        name="statement.txt",
        media_type="text/plain",
        size=1,
        digest="x",
        content=b"x",
        at=intent.created_at,
    )
    return intent


@pytest.mark.parametrize("model", NEVER_CHANGED)
def test_a_row_of_history_can_t_be_updated(model: type[models.Model]) -> None:
    one_of_each()
    rows, table = model._default_manager, model._meta.db_table
    column = next(f.attname for f in model._meta.concrete_fields if not f.primary_key)
    row = rows.first()
    assert row is not None
    assert refused(lambda: rows.update(**{column: F(column)})), "not even to what it is"
    assert refused(row.save)
    assert refused(lambda: rows.bulk_update([row], [column.removesuffix("_id")]))
    assert refused(run(f'UPDATE "{table}" SET "{column}" = "{column}"'))


@pytest.mark.parametrize("model", NEVER_DELETED)
def test_no_row_can_be_deleted(model: type[models.Model]) -> None:
    one_of_each()
    rows, table = model._default_manager, model._meta.db_table
    before = rows.count()
    assert before
    assert refused(lambda: rows.all()._raw_delete(rows.db))
    assert refused(run(f'DELETE FROM "{table}"'))
    assert rows.count() == before


@pytest.mark.parametrize("model", [Decision, Comment, Match])
def test_no_row_can_be_deleted_through_a_model(model: type[models.Model]) -> None:
    one_of_each()
    row = model._default_manager.order_by("-pk").first()
    assert row is not None
    assert refused(row.delete)


@pytest.mark.parametrize("model", NEVER_DELETED)
def test_no_table_can_be_emptied(model: type[models.Model]) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no TRUNCATE")
    one_of_each()
    run("SET CONSTRAINTS ALL IMMEDIATE")()  # else PostgreSQL refuses for what is still to be checked
    assert refused(run(f'TRUNCATE "{model._meta.db_table}" CASCADE'))


@pytest.mark.parametrize("model", NEVER_DELETED)
def test_no_row_can_be_replaced_by_another_with_its_key(model: type[models.Model]) -> None:
    """SQLite's REPLACE deletes without a DELETE, unless recursive triggers are on."""
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL has no REPLACE")
    one_of_each()
    table = model._meta.db_table
    assert refused(run(f'INSERT OR REPLACE INTO "{table}" SELECT * FROM "{table}"'))
    assert refused(run(f'REPLACE INTO "{table}" SELECT * FROM "{table}" LIMIT 1'))


FIXED = {
    Intent: [
        ("executor", "caller"),
        ("amount_minor", 1),
        ("amount_minor", None),
        ("currency", "USD"),
        ("payload_salt", "x"),
        ("payload_digest", "x"),
        ("request_key", "x"),
        ("idempotency_key", "x"),
        ("created_at", "2020-01-01T00:00:00Z"),
    ],
    Attempt: [
        ("number", 9),
        ("fence", 9),
        ("executor", "caller"),
        ("claimed_at", "2020-01-01T00:00:00Z"),
    ],
    Evidence: [
        ("kind", "report"),
        ("source", "elsewhere"),
        ("digest", "x"),
        ("intent", None),
        ("created_at", "2020-01-01T00:00:00Z"),
    ],
    LedgerEntry: [("book", "bank"), ("entry_id", "x")],
    Attachment: [
        ("name", "other.txt"),
        ("media_type", "text/html"),
        ("size", 2),
        ("digest", "y"),
        ("content", b"y"),
        ("intent", None),
    ],
    Event: [("intent", None), ("type", "intent.held"), ("sequence", 9), ("intent_status", "held")],
    EventDelivery: [("created_at", "2020-01-01T00:00:00Z")],
    Match: [
        ("role", "not_ours"),
        ("entry_state", "pending"),
        ("by", "person:1"),
        ("intent", None),
        ("at", "2020-01-01T00:00:00Z"),
    ],
}


@pytest.mark.parametrize(
    ("model", "column", "value"),
    [(model, column, value) for model, cells in FIXED.items() for column, value in cells],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_fixed_column_can_t_change(model: type[models.Model], column: str, value: Any) -> None:
    one_of_each()
    row = model._default_manager.order_by("pk").first()
    assert row is not None
    found = model._default_manager.filter(pk=row.pk)
    assert refused(lambda: found.update(**{column: value}))
    field = model._meta.get_field(column)
    raw = field.get_db_prep_save(field.to_python(value), connection) if column != "intent" else None
    pk = model._meta.pk.get_db_prep_value(row.pk, connection)
    key = model._meta.pk.column
    assert refused(run(f'UPDATE "{model._meta.db_table}" SET "{field.column}" = %s WHERE "{key}" = %s', raw, pk))


@pytest.mark.parametrize("name", ["agent", "kind", "policy", "downstream"])
def test_an_intent_can_t_be_given_to_somebody_else(name: str) -> None:
    intent, other = make_intent(), make_intent()
    assert refused(lambda: Intent.objects.filter(pk=intent.pk).update(**{name: getattr(other, name)}))


def test_what_lives_on_can_change() -> None:
    intent = one_of_each()
    assert not refused(lambda: Intent.objects.filter(pk=intent.pk).update(external_id="re_1", disputed=True))
    assert not refused(lambda: intent.attempts.update(worker="x"))
    assert not refused(lambda: Evidence.objects.update(text="", erased_at=F("created_at")))
    assert not refused(lambda: LedgerEntry.objects.update(state="final", last_seen_at=F("first_seen_at")))
    assert not refused(lambda: Match.objects.update(released_at=F("at"), released_by="person:1"))
    assert not refused(lambda: Attachment.objects.update(content=None, erased_at=F("at")))


def test_every_protected_table_has_its_triggers() -> None:
    assert triggers.missing() == []
    assert {apps.get_model(rule.model) for rule in triggers._RULES} == set(NEVER_DELETED)
    assert {apps.get_model(rule.model) for rule in triggers._RULES if rule.fixed is None} == set(NEVER_CHANGED)


@pytest.mark.parametrize("model", NEVER_DELETED)
def test_a_trigger_that_is_gone_is_named_and_put_back(model: type[models.Model]) -> None:
    table = model._meta.db_table
    on = f' ON "{table}"' if connection.vendor == "postgresql" else ""
    run(f'DROP TRIGGER "{table}_no_delete"{on}')()
    assert triggers.missing() == [f"{table}_no_delete"]
    triggers.install()
    triggers.install()
    assert triggers.missing() == []


def test_a_trigger_that_is_switched_off_counts_as_gone() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite can't switch triggers off")
    run('ALTER TABLE "actions_transition" DISABLE TRIGGER "actions_transition_no_update"')()
    assert triggers.missing() == ["actions_transition_no_update"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("model", [Transition, Decision, Intent])
def test_a_rebuilt_table_has_its_triggers_again_after_migrate(model: type[models.Model]) -> None:
    """Django changes a table on SQLite by copying it into a new one, which has no triggers."""
    make_intent()
    before = triggers.missing()
    name = {Transition: "actor_id", Decision: "seen_digest", Intent: "hold_reasons"}[model]  # type: ignore[index]
    old = model._meta.get_field(name)
    new = type(old)(max_length=old.max_length + 1, blank=True)  # type: ignore[union-attr, operator]
    new.set_attributes_from_name(name)
    new.model = model
    with connection.schema_editor() as editor:
        editor.alter_field(model, old, new)  # type: ignore[arg-type]
        if connection.vendor == "sqlite":
            editor._remake_table(model)  # type: ignore[attr-defined]
    table = model._meta.db_table
    if connection.vendor == "sqlite":
        assert triggers.missing() == [f"{table}_no_update", f"{table}_no_delete"]
    emit_post_migrate_signal(verbosity=0, interactive=False, db="default")
    assert before == triggers.missing() == []
    if model is Transition:
        assert refused(lambda: Transition.objects.update(reason="x"))
    with connection.schema_editor() as editor:
        editor.alter_field(model, new, old)  # type: ignore[arg-type]
    emit_post_migrate_signal(verbosity=0, interactive=False, db="default")
