"""The chain over everything that was written about an intent: whoever rewrites it is found."""

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction

from actions import history, times
from actions.models import Chained, Evidence, Intent, Observation, Observed, PolicySnapshot, Transition
from reconciliation import erasing
from reconciliation.models import Check, Comment, CommentKind, Decision
from reconciliation.reviews import commenting, verifying
from tests.core.life import add_check, whole_life
from tests.core.steps import faults_after, read
from tests.factories import make_intent
from tests.flushing import without_triggers

pytestmark = pytest.mark.django_db

MODELS: list[type[Chained]] = [Transition, Check, Decision, Comment, Observation]

# Other values that the constraints take, so that the forgery is as good as it can be.
OTHER: dict[str, Any] = {
    "from_status": "submitted",
    "to_status": "failed",
    "actor": "caller",
    "verdict": "pending",
    "choice": "fail",
    "reason": "other",
    "recommended": "fail",
    "seen_verdict": "absent",
    "what": "late",
    "evidence": '[[1,"x"]]',
    "grounds": "{}",
    "settled_currency": "USD",
}


def row_to_forge(intent: Intent, model: type[Chained], name: str) -> Chained:
    rows = model._default_manager.filter(intent=intent).order_by("position")
    if model is Transition and name == "from_status":
        found = rows.filter(to_status="confirmed").first()  # unknown → confirmed, forged to submitted → confirmed
    elif model is Transition and name == "to_status":
        found = rows.filter(from_status="unknown").first()
    elif name == "intent_id":
        found = rows.last()  # the other intent has no row at this place yet
    elif name == "about_id":
        found = rows.filter(choice="effect").first()
    elif name == "by" and model is Comment:
        with transaction.atomic():
            found = commenting.say(commenting.locked(intent.reviews.get().pk), by="clock", text="Back.")
    elif model is Transition and name == "evidence":
        found = rows.exclude(evidence="[]").first()
    else:
        found = rows.first()
    assert found is not None
    return found


def other_value(row: Chained, name: str) -> Any:
    value = getattr(row, name)
    if name == "linked_id":
        return make_intent().pk
    if name == "kind":
        return CommentKind.TAKEN.value
    if name in OTHER and OTHER[name] != value:
        return OTHER[name]
    if isinstance(value, bool):
        return not value
    if isinstance(value, datetime):
        return value + timedelta(microseconds=1_000)
    if isinstance(value, UUID):
        return make_intent().pk
    if isinstance(value, int):
        return value + 1_000
    if value is None:
        return times.now() if name == "takes_effect_at" else 1
    return f"{value}x"[-64:]


def test_the_chain_holds_over_every_sort_of_row() -> None:
    intent = whole_life()
    rows = history.rows_of(intent.pk)
    assert [type(row).__name__ for row in rows] == [
        "Transition",
        "Transition",
        "Transition",
        "Check",
        "Comment",
        "Observation",
        "Decision",
        "Transition",
        "Decision",
    ]
    assert [row.position for row in rows] == list(range(1, 10))
    assert (intent.chain_length, intent.chain_head) == (9, rows[-1].digest)
    assert history.faults(intent) == []


def test_every_table_of_history_is_in_the_chain() -> None:
    assert set(history.chained_models()) == set(MODELS)


@pytest.mark.parametrize("model", MODELS)
def test_the_digest_covers_every_column_but_its_own(model: type[Chained]) -> None:
    """One that is added later and not covered could be forged."""
    columns = {field.attname for field in model._meta.concrete_fields}
    assert columns - {"id", "previous", "digest"} == {
        "position",
        "at",
        *model.CHAINED,
        *model.CHAINED_IF_SET,
    }


@pytest.mark.parametrize("model", MODELS)
def test_a_changed_field_is_found(model: type[Chained]) -> None:
    """Whichever it is, each alone. One life is enough: every forgery is undone."""
    intent, missed = whole_life(), []
    for name in ("position", "at", *model.CHAINED, *model.CHAINED_IF_SET):
        row = row_to_forge(intent, model, name)
        changed = {name: other_value(row, name)}
        if not faults_after(intent, lambda: rewrite(row, changed)):  # noqa: B023  it is called at once
            missed.append(name)
        assert history.faults(read(intent)) == [], "the forgery was undone"
    assert missed == []


def rewrite(row: Chained, changed: dict[str, Any]) -> None:
    assert type(row)._default_manager.filter(pk=row.pk).update(**changed) == 1


@pytest.mark.parametrize("model", MODELS)
def test_a_changed_field_with_a_fitting_digest_is_found(model: type[Chained]) -> None:
    """The forger reckons the row's digest anew: the row after it, or the intent's head, doesn't follow."""
    intent = whole_life()
    row = model._default_manager.filter(intent=intent).order_by("position").first()
    assert row is not None

    def forge() -> None:
        row.at += timedelta(seconds=1)
        model._default_manager.filter(pk=row.pk).update(at=row.at, digest=history.link_digest(row))

    assert faults_after(intent, forge)


def test_a_changed_row_with_a_fitting_digest_is_found_although_the_next_row_was_made_to_follow_it() -> None:
    """Each digest covers the one before: whoever changes a row has to rewrite every row after it."""
    intent = whole_life()
    row, after = Transition.objects.filter(intent=intent, position__in=[2, 3])

    def forge() -> None:
        row.actor_id = "worker:other/1"
        row.digest = history.link_digest(row)
        Transition.objects.filter(pk=row.pk).update(actor_id=row.actor_id, digest=row.digest)
        Transition.objects.filter(pk=after.pk).update(previous=row.digest)

    assert faults_after(intent, forge)


def test_a_deleted_row_is_found() -> None:
    """The last one too: that is a truncated tail."""
    intent = whole_life()
    rows = history.rows_of(intent.pk)
    assert [row.position for row in rows if not faults_after(intent, lambda: delete(row))] == []  # noqa: B023
    assert len(rows) == 9


def delete(row: Chained) -> None:
    found = type(row)._default_manager.filter(pk=row.pk)
    found._raw_delete(found.db)


def test_a_cut_off_tail_of_several_rows_is_found() -> None:
    intent = whole_life()

    def forge() -> None:
        for model in MODELS:
            found = model._default_manager.filter(intent=intent, position__gt=4)
            found._raw_delete(found.db)

    assert faults_after(intent, forge)


def test_a_row_put_in_at_the_end_is_found() -> None:
    intent = whole_life()

    def forge() -> None:
        check = Check.objects.get(intent=intent)
        check.pk, check._state.adding = None, True
        history.link(check, length=intent.chain_length, head=intent.chain_head, at=times.now())
        check.save(force_insert=True)

    assert faults_after(intent, forge)


def test_a_row_put_in_between_is_found() -> None:
    intent = whole_life()
    rows = history.rows_of(intent.pk)

    def forge() -> None:
        for row in reversed(rows[4:]):
            type(row)._default_manager.filter(pk=row.pk).update(position=row.position + 1)
        check = Check.objects.get(intent=intent)
        check.pk, check._state.adding = None, True
        history.link(check, length=4, head=rows[3].digest, at=times.now())
        check.save(force_insert=True)
        Intent.objects.filter(pk=intent.pk).update(chain_length=9)

    assert faults_after(intent, forge)


def test_two_rows_in_the_other_order_are_found() -> None:
    intent = whole_life()
    first, second = Transition.objects.filter(intent=intent, position__in=[2, 3])

    def forge() -> None:
        rows = Transition.objects
        rows.filter(pk=first.pk).update(position=99)
        rows.filter(pk=second.pk).update(position=2)
        rows.filter(pk=first.pk).update(position=3)

    assert faults_after(intent, forge)


def test_another_intents_history_under_this_one_is_found() -> None:
    """Two intents with equal lives: their rows can't be exchanged."""
    one, other = make_intent(), make_intent()
    mine, theirs = one.transitions.get(), other.transitions.get()

    def forge() -> None:
        Transition.objects.filter(pk=mine.pk).update(previous=theirs.previous, digest=theirs.digest, at=theirs.at)
        Intent.objects.filter(pk=one.pk).update(chain_head=other.chain_head)

    assert faults_after(one, forge)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("payload_digest", "0" * 64),
        ("idempotency_key", "another-key"),
        ("request_key", "another-request"),
        ("executor", "caller"),
        ("chain_head", "0" * 64),
        ("chain_length", 7),
    ],
)
def test_an_intent_exchanged_under_its_history_is_found(name: str, value: Any) -> None:
    intent = whole_life()
    assert faults_after(intent, lambda: Intent.objects.filter(pk=intent.pk).update(**{name: value}))


@pytest.mark.parametrize("name", ["agent_id", "kind_id", "downstream_id", "policy_id"])
def test_an_intent_given_to_somebody_else_is_found(name: str) -> None:
    intent, other = whole_life(), make_intent()
    value = getattr(other, name)
    assert faults_after(intent, lambda: Intent.objects.filter(pk=intent.pk).update(**{name: value}))


@pytest.mark.parametrize("name", ["text", "salt", "digest"])
def test_changed_evidence_is_found(name: str) -> None:
    intent = whole_life()
    for found in Evidence.objects.filter(intent=intent):
        assert faults_after(
            intent,
            lambda pk=found.pk: Evidence.objects.filter(pk=pk).update(**{name: "x"}),  # type: ignore[misc]
        )


def test_erased_evidence_leaves_the_chain_valid() -> None:
    """Rule 11: erasing a person erases evidence text, not history."""
    intent = whole_life()
    before = [row.digest for row in history.rows_of(intent.pk)]
    erased = erasing.erase(intent.subject, reason="asked").texts
    assert erased >= 3
    assert history.faults(read(intent)) == []
    assert [row.digest for row in history.rows_of(intent.pk)[:-1]] == before, "one more, which says so"


def test_no_personal_text_stands_in_history_itself() -> None:
    intent = whole_life()
    for row in history.rows_of(intent.pk):
        assert "Statement of" not in str(row.chained())
        assert "bank." not in str(row.chained())


def test_two_equal_lives_have_different_chains() -> None:
    one, other = make_intent(), make_intent()
    assert history.genesis(one) != history.genesis(other)
    assert one.chain_head != other.chain_head


def test_the_verifier_reads_times_as_the_database_gives_them_back() -> None:
    intent = make_intent()
    for _ in range(3):
        add_check(intent, started_at=times.now() - timedelta(microseconds=1))
    assert history.faults(read(intent)) == []


@pytest.mark.parametrize(
    "forge",
    [
        lambda one: Transition.objects.filter(intent=one).update(evidence="no JSON"),
        lambda one: Transition.objects.filter(intent=one).update(evidence="[1]"),
        lambda one: Decision.objects.filter(intent=one).update(evidence="{}"),
        lambda one: PolicySnapshot.objects.filter(pk=one.policy_id).update(text="no JSON"),
        lambda one: PolicySnapshot.objects.filter(pk=one.policy_id).update(text="{}"),
        lambda one: Intent.objects.filter(pk=one.pk).update(policy=10**9),
    ],
    ids=["evidence", "its form", "a decision's", "the policy", "its keys", "no policy"],
)
def test_what_can_t_even_be_read_is_found_and_keeps_nobody_from_reading_on(forge: Any) -> None:
    one, other, found = whole_life(), make_intent(), {}
    with suppress(InterruptedError), without_triggers():
        forge(one)
        found = dict(verifying.everything())
        raise InterruptedError  # undoes the forgery
    assert set(found) == {f"intent {one.pk}", f"intent {other.pk}"}
    assert found[f"intent {one.pk}"]
    assert found[f"intent {other.pk}"] == []


def test_what_was_read_before_somebody_wrote_is_not_taken_for_broken() -> None:
    as_read = make_intent()
    with transaction.atomic():
        history.observe(as_read.pk, Observed.AGAIN, by="checker", at=times.now())
    assert history.faults(as_read) != []
    assert verifying.intent_faults(as_read) == []
