"""Faults that a reviewer found in what is stored, judged and asked when somebody tells of the books."""

import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from actions import evidence, times
from actions.connectors import registry
from actions.connectors.base import Entry, LookupFailed, Notice
from actions.connectors.paging import document_of
from actions.models import EvidenceKind
from actions.statuses import Status
from actions.transport import Phase, Reason, Reply
from reconciliation import entries
from reconciliation.entries import Telling
from reconciliation.models import Delivery, LedgerEntry
from reconciliation.webhooks import applying
from tests.api.calling import Api, make_api
from tests.core.steps import settle
from tests.factories import make_downstream, make_intent
from tests.flow.test_sending import in_threads
from tests.flow.world import Clock
from tests.hooks.hooking import Hooks, Says, make_hooks
from tests.hooks.test_services import ROWS, claim, row, said


@pytest.fixture
def books(db: None, clock: Clock) -> Hooks:
    return make_hooks(clock, look_up="service", absence_conclusive=True)


@pytest.fixture
def service(books: Hooks) -> Api:
    return make_api(books.kind, token=ROWS)


def entry(entry_id: str, state: Any = "final", **more: Any) -> Entry:
    found = Entry(entry_id, "effect", state, "k", "order-1", 5_000, "EUR", times.now(), {"id": entry_id})
    return replace(found, **more)


def telling(*told: Entry) -> Telling:
    seen = evidence.store(
        intent_id=None, kind=EvidenceKind.PAGE, source="x", content=f"{told!r}", now=times.now(), secrets=[]
    )
    return Telling(told, "x", seen)


# --- storing at once


def test_who_loses_the_race_to_store_a_new_entry_still_says_its_state(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process stores it between the reading of what is known and the insert."""
    downstream, began = make_downstream(), times.now()
    first, insert = telling(entry("re_1", "pending")), LedgerEntry.objects.bulk_create

    def after_another(*args: Any, **more: Any) -> Any:
        monkeypatch.setattr(LedgerEntry.objects, "bulk_create", insert)
        entries.store(downstream, [first], now=began, as_of=began)
        return insert(*args, **more)

    monkeypatch.setattr(LedgerEntry.objects, "bulk_create", after_another)
    later = began + timedelta(seconds=1)
    (told,) = entries.store(downstream, [telling(entry("re_1", "final"))], now=later, as_of=later)
    stored = LedgerEntry.objects.get()
    assert (told.state, stored.state, stored.last_seen_at) == ("final", "final", later)


@pytest.mark.django_db(transaction=True)
def test_any_number_that_store_the_same_in_any_order_wait_in_no_circle() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has one writer at a time")
    downstream, now = make_downstream(), times.now()
    names = [f"re_{number:03}" for number in range(400)]
    orders = [names, names[::-1], names[200:] + names[:200], names[::2] + names[1::2]]
    tellings = [telling(*(entry(name) for name in order)) for order in orders]
    numbers, together, broken = iter(range(4)), threading.Barrier(4), []

    def store() -> None:
        mine = tellings[next(numbers)]
        try:
            for turn in range(6):
                together.wait(timeout=10)
                at = now + timedelta(seconds=turn)
                with transaction.atomic():
                    state: Any = "pending" if turn < 3 else "final"
                    told = [replace(one, state=state, entry_id=f"{turn % 3}{one.entry_id}") for one in mine.entries]
                    entries.store(downstream, [replace(mine, entries=told)], now=at, as_of=at)
        except BaseException as wrong:
            broken.append(wrong)
            raise

    in_threads(4, store)
    assert broken == []
    assert LedgerEntry.objects.filter(state="final").count() == 1_200


def test_rows_are_inserted_and_locked_in_one_order(db: None) -> None:
    downstream, now = make_downstream(), times.now()
    entries.store(downstream, [telling(entry("b"), entry("c"), entry("a"))], now=now, as_of=now)
    assert list(LedgerEntry.objects.order_by("pk").values_list("entry_id", flat=True)) == ["a", "b", "c"]
    with CaptureQueriesContext(connection) as queries:
        entries.store(downstream, [telling(entry("c"), entry("a"))], now=now, as_of=now + timedelta(seconds=1))
    asked = [query["sql"] for query in queries if '"reconciliation_ledgerentry"' in query["sql"]]
    change = next(number for number, sql in enumerate(asked) if sql.startswith("UPDATE"))
    assert 'ORDER BY "reconciliation_ledgerentry"."id" ASC' in asked[change - 1]
    if connection.vendor == "postgresql":
        assert "FOR NO KEY UPDATE" in asked[change - 1]


# --- a clock behind ours


@pytest.mark.parametrize("news", [{"status": "failed"}, {"amount_minor": 4_000}], ids=str)
@pytest.mark.parametrize("from_the_sweep", [False, True])
def test_news_that_passes_for_old_is_a_reason_to_look(
    watched: Hooks, news: dict[str, Any], from_the_sweep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    intent = make_intent(watched.kind)
    settle(intent, Status.CONFIRMED, external_id=f"re_{intent.pk}")
    assert watched.tell(intent).outcome == "known"
    LedgerEntry.objects.update(last_seen_at=times.now() + timedelta(seconds=90))  # a look stored it, by our clock
    with monkeypatch.context() as patch:
        if from_the_sweep:
            patch.setattr(applying, "apply", lambda *_, **__: False)
        delivery = watched.tell(intent, **news)
    if from_the_sweep:
        watched.sweep()
        delivery.refresh_from_db()
    assert delivery.outcome == "look_asked"
    assert watched.sound(intent, Status.CONFIRMED).next_check_at is not None
    stored = LedgerEntry.objects.get()
    assert (stored.state, stored.amount_minor) == ("final", 5_000), "nothing goes backwards by it"


def test_that_it_was_pending_before_is_no_reason_to_look(watched: Hooks) -> None:
    intent = make_intent(watched.kind)
    settle(intent, Status.CONFIRMED, external_id=f"re_{intent.pk}")
    watched.tell(intent)
    earlier = times.now() - timedelta(seconds=60)
    assert watched.tell(intent, status="pending", at=earlier).outcome == "known"
    assert watched.read(intent).next_check_at is None


# --- what a service may say


def test_a_service_plants_no_entry_about_another_intent(books: Hooks, service: Api) -> None:
    asked, other = books.unknown(), books.unknown()
    done = make_intent(books.kind)
    settle(done, Status.CONFIRMED, external_id="re_done")
    planted = [
        row(other, entry_id="re_a"),
        row(other, entry_id="re_b", key=...),
        row(asked, entry_id="re_c", key=other.idempotency_key),
        row(asked, entry_id="re_done", key=..., state="failed"),
        row(asked, entry_id="re_d", key="a-clerk-did-it"),
    ]
    said(service, asked, *planted)
    assert not LedgerEntry.objects.exists()
    kept = asked.evidence.get(kind="page")
    assert all(name in kept.text for name in ("re_a", "re_b", "re_c", "re_done", "re_d"))


def test_it_changes_no_entry_that_is_another_ones_and_by_that_makes_no_absence(books: Hooks, service: Api) -> None:
    asked, other = books.unknown(), books.unknown()
    said(service, other, row(other, entry_id="re_theirs", amount="1.00"))
    books.later(100)
    claimed = claim(books, service, asked)["check"]
    body = said(service, asked, row(asked, entry_id="re_theirs", state="failed"), check=claimed)
    stored = LedgerEntry.objects.get()
    assert (stored.key, stored.state) == (other.idempotency_key, "final")
    assert body["counts_as_absence"] is False


@pytest.mark.parametrize("more", [{}, {"subject": "another-order"}, {"subject": ...}, {"key": ...}], ids=str)
def test_what_bears_its_key_or_its_subject_is_stored(books: Hooks, service: Api, more: dict[str, Any]) -> None:
    asked = books.unknown()
    said(service, asked, row(asked, **more))
    assert LedgerEntry.objects.count() == 1


# --- what names nothing of ours


def test_a_delivery_that_names_nothing_of_ours_and_shows_no_entry_is_over_at_once(
    watched: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    notice = Notice("evt_1", times.now(), keys=("a-clerk",), external_ids=("pi_1",), subjects=("order-z",))
    monkeypatch.setattr(registry, "get", lambda _: Says(notice))
    assert watched.deliver({}).status_code == 204
    delivery = Delivery.objects.get()
    assert (delivery.outcome, delivery.next_try_at, delivery.tries) == ("nothing_of_ours", None, 1)


# --- the index on external ids


def test_an_external_id_is_asked_for_in_its_own_index(watched: Hooks) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL reads small tables as it likes")
    intent = make_intent(watched.kind)
    stored = entries.store(watched.downstream, [telling(entry("re_1"))], now=times.now(), as_of=times.now())
    with CaptureQueriesContext(connection) as queries:
        entries.candidates_for(intent, stored)
        applying.concerned(watched.downstream.pk, {"keys": ["k"], "external_ids": ["re_1"]})
    about_intents = [q["sql"] for q in queries if "external_id" in q["sql"].split("WHERE")[-1] and "FROM" in q["sql"]]
    about_intents = [sql for sql in about_intents if sql.split("FROM")[1].startswith(' "actions_intent"')]
    assert len(about_intents) == 2
    for sql in about_intents:
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            plan = [found[3] for found in cursor.fetchall()]
        assert any("intent_external_id" in step for step in plan), plan


# --- what an HTTP status says


@pytest.mark.parametrize(
    ("status", "reason"),
    [(400, "bad_question"), (404, "bad_question"), (422, "bad_question")]
    + [(status, "http_error") for status in (401, 403, 408, 429, 206, 302, 500, 503)],
)
def test_a_question_that_is_refused_says_nothing_about_the_books(status: int, reason: str) -> None:
    reply = Reply(Phase.DONE, Reason.OK, status, {}, b"{}", 1)
    with pytest.raises(LookupFailed) as failed:
        document_of(reply)
    assert failed.value.reason == reason
