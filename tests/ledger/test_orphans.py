"""Entries that no intent explains become cases, once, and stop being ones when something explains them."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from actions import times
from actions.models import Kind
from actions.statuses import Status
from reconciliation import orphans
from reconciliation.entries import EXPLAINED_WITHIN
from reconciliation.models import ClosedHow, LedgerEntry, Match, MatchRole, ReasonCode, Review
from tests import factories
from tests.ledger.books import case_of, confirmed, failed, make_entry, sweep
from tests.pages.cases import make_unknown

pytestmark = pytest.mark.django_db


@pytest.fixture
def kind() -> Kind:
    return factories.make_kind(review_due_s=1_800)


def tie(entry: LedgerEntry, intent: Any, role: MatchRole, **columns: Any) -> Match:
    given: dict[str, Any] = {"entry_state": entry.state, "by": "person:1", "at": times.now()}
    return Match.objects.create(entry=entry, intent=intent, role=role, **(given | columns))


def test_an_orphan_gets_one_case_with_its_amount_its_grounds_and_a_due_time(kind: Kind) -> None:
    entry = make_entry(kind.downstream, amount_minor=4_200)
    sweep()
    sweep()
    review = Review.objects.get(entry=entry)
    assert (review.intent, review.purpose, review.amount_minor, review.currency) == (None, "entry", 4_200, "EUR")
    assert [reason.code for reason in review.reasons.all()] == [ReasonCode.ORPHAN]
    assert review.due_at - review.opened_at == timedelta(minutes=30)
    assert review.grounds.startswith("No intent explains this entry. The ledger shows 42.00 EUR.")


@pytest.mark.parametrize("columns", [{"role": "fee"}, {"role": "unknown"}, {"state": "failed"}], ids=str)
def test_what_moved_nothing_is_no_orphan(kind: Kind, columns: dict[str, str]) -> None:
    entry = make_entry(kind.downstream, **columns)
    sweep()
    assert case_of(entry) is None
    entry.refresh_from_db()
    assert entry.explain_at is None, "and is not looked at again"


def test_a_reversal_that_nothing_explains_is_one(kind: Kind) -> None:
    entry = make_entry(kind.downstream, role="reversal")
    sweep()
    found = case_of(entry)
    assert found is not None
    assert "takes back" in found.grounds


def test_before_the_lag_and_ten_minutes_are_over_it_is_too_early(kind: Kind) -> None:
    seen = times.now()
    entry = make_entry(kind.downstream, first_seen_at=seen, explain_at=seen)
    sweep()
    assert case_of(entry) is None
    entry.refresh_from_db()
    assert entry.explain_at == seen + timedelta(seconds=kind.downstream.lag_s) + EXPLAINED_WITHIN


@pytest.mark.parametrize("role", MatchRole.values)
def test_a_tie_explains_it(kind: Kind, role: MatchRole) -> None:
    intent = None if role == MatchRole.NOT_OURS else confirmed(kind)
    entry = make_entry(kind.downstream)
    tie(entry, intent, role)
    sweep()
    assert case_of(entry) is None


def test_a_tie_that_was_released_explains_nothing(kind: Kind) -> None:
    entry = make_entry(kind.downstream)
    tie(entry, confirmed(kind), MatchRole.SETTLES, released_at=times.now(), released_by="person:1")
    sweep()
    assert case_of(entry) is not None


def test_the_id_that_the_downstream_gave_an_intent_explains_it_but_not_another_downstreams(kind: Kind) -> None:
    ours, theirs = make_entry(kind.downstream), make_entry(factories.make_downstream(), entry_id="re_theirs")
    confirmed(kind, external_id=ours.entry_id)
    confirmed(kind, external_id=theirs.entry_id)
    sweep()
    assert case_of(ours) is None
    assert case_of(theirs) is not None


def test_the_key_of_an_intent_in_question_explains_it_for_now_and_of_a_settled_one_it_does_not(kind: Kind) -> None:
    unknown, done = make_unknown(kind), confirmed(kind)
    disputed = confirmed(kind)
    type(disputed).objects.filter(pk=disputed.pk).update(disputed=True)
    for_now = [make_entry(kind.downstream, key=one.idempotency_key) for one in (unknown, disputed)]
    orphan = make_entry(kind.downstream, key=done.idempotency_key)
    sweep()
    assert [case_of(entry) for entry in for_now] == [None, None]
    assert LedgerEntry.objects.filter(pk__in=[e.pk for e in for_now], explain_at__gt=times.now()).count() == 2
    found = case_of(orphan)
    assert found is not None
    assert "the key of an intent that is settled" in found.grounds


def test_an_entry_that_is_explained_later_ends_its_case(kind: Kind) -> None:
    entry = make_entry(kind.downstream)
    sweep()
    review = case_of(entry)
    assert review is not None
    tie(entry, confirmed(kind), MatchRole.SETTLES)
    sweep()
    review.refresh_from_db()
    assert review.closed_how == ClosedHow.EVIDENCE
    sweep()
    assert Review.objects.filter(entry=entry).count() == 1


def test_an_entry_that_fails_after_all_ends_its_case(kind: Kind) -> None:
    entry = make_entry(kind.downstream, state="pending")
    sweep()
    LedgerEntry.objects.filter(pk=entry.pk).update(state="failed")
    sweep()
    assert case_of(entry) is None


def test_an_entry_whose_intent_is_in_question_only_for_a_while_is_an_orphan_again_afterwards(kind: Kind) -> None:
    done = failed(kind)
    entry = make_entry(kind.downstream, key=done.idempotency_key)
    sweep()
    assert case_of(entry) is not None
    type(done).objects.filter(pk=done.pk).update(disputed=True)
    sweep()
    assert case_of(entry) is None
    type(done).objects.filter(pk=done.pk).update(disputed=False)
    LedgerEntry.objects.filter(pk=entry.pk).update(explain_at=times.now())
    sweep()
    assert case_of(entry) is not None


def test_judged_it_stays_judged_in_that_state_and_is_looked_at_again_in_another(kind: Kind) -> None:
    entry = make_entry(kind.downstream, state="pending")
    tie(entry, None, MatchRole.NOT_OURS)
    sweep()
    assert case_of(entry) is None
    LedgerEntry.objects.filter(pk=entry.pk).update(state="final", explain_at=times.now())
    sweep()
    assert case_of(entry) is not None


def test_what_settles_an_intent_goes_on_explaining_when_it_becomes_final(kind: Kind) -> None:
    entry = make_entry(kind.downstream, state="pending")
    tie(entry, confirmed(kind), MatchRole.SETTLES)
    LedgerEntry.objects.filter(pk=entry.pk).update(state="final")
    sweep()
    assert case_of(entry) is None


def test_a_pass_reads_no_table_from_end_to_end(kind: Kind) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL reads small tables as it likes")
    make_entry(kind.downstream)
    with CaptureQueriesContext(connection) as queries:
        sweep()
    about_entries = ("explain_at", "nothing_moved")
    asked = [query["sql"] for query in queries if any(word in query["sql"] for word in about_entries)]
    plans: list[str] = []
    with connection.cursor() as cursor:
        for sql in asked:
            if sql.startswith("SELECT"):
                cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
                plans += [row[3] for row in cursor.fetchall()]
    assert any("entry_to_explain" in plan for plan in plans)
    assert any("intent_external_id" in plan for plan in plans)
    assert [plan for plan in plans if plan.startswith("SCAN") and "INDEX" not in plan] == []


def test_open_cases_are_looked_at_in_turn_and_so_many_at_a_time(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphans, "_AT_LEAST", 3)
    made = [make_entry(kind.downstream) for _ in range(8)]
    for _ in range(2):
        sweep()
    assert Review.objects.filter(closed_at=None).count() == 8
    LedgerEntry.objects.update(state="failed")
    monkeypatch.setattr(orphans._Turn, "after", made[3].pk)
    reviews = {review.entry_id: review.pk for review in Review.objects.all()}
    turns = [set(orphans.explained_since()) for _ in range(3)]
    order = [reviews[entry.pk] for entry in (*made[4:], *made[:4])]
    assert turns == [set(order[:3]), set(order[3:6]), {*order[6:], order[0]}], "round and round"
    monkeypatch.setattr(orphans, "_AT_LEAST", 50)
    assert len(orphans.explained_since()) == 8
    monkeypatch.setattr(orphans, "BATCH", 2)
    assert len(orphans.explained_since()) == 2, "however many there are"


def test_a_pass_costs_the_same_however_many_entries_were_ever_booked(kind: Kind) -> None:
    def cost() -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            sweep()
        return len(queries)

    intent = confirmed(kind)
    for _ in range(2):
        make_entry(kind.downstream, key="k", role="fee")
    sweep()
    few = cost()
    for _ in range(50):
        make_entry(kind.downstream, role="fee", explain_at=None)
    assert cost() == few
    assert intent.status == Status.CONFIRMED
