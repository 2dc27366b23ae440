"""Books are looked through on a schedule, by one at a time, and settle nothing by that."""

import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from actions import times
from actions.connectors import registry
from actions.connectors.http_json.example import EXAMPLE
from actions.models import Breaker, Downstream, Evidence, Intent, Line
from actions.statuses import Status
from reconciliation import look_back
from reconciliation import sweep as reconciliation_sweep
from reconciliation.models import Choice, LedgerEntry, LookBack, Match, MatchRole, Review
from tests import factories
from tests.flow.test_finding_the_truth import add_entry, unknown
from tests.flow.test_sending import in_threads
from tests.flow.world import World
from tests.ledger.books import case_of, decide, look_through, make_entry
from tests.pages.cases import log_in, text_of


def row(world: World) -> LookBack:
    return LookBack.objects.get(downstream=world.downstream)


def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that looks back ask from now on."""
    urls: list[str] = []
    send = look_back.transport.send

    def noting(call: Any, limits: Any) -> Any:
        urls.append(call.url)
        return send(call, limits)

    monkeypatch.setattr("reconciliation.look_back.transport.send", noting)
    return urls


def test_an_orphan_in_the_book_becomes_a_case_and_not_ours_ends_it(world: World) -> None:
    add_entry(world, "order-1", amount_minor=7_000, idempotency_key="nobody's")
    add_entry(world, "order-1", type="fee")
    assert look_through() == 1
    entry = LedgerEntry.objects.get(key="nobody's")
    assert LedgerEntry.objects.count() == 2
    world.sweep()
    assert case_of(entry) is None, "its intent may still come"
    world.later(11 * 60)
    world.sweep()
    (review,) = Review.objects.filter(closed_at=None)
    assert review.entry == entry
    decide(review, factories.make_person(), Choice.NOT_OURS)
    world.later(61)
    look_through()
    world.sweep()
    assert not Review.objects.filter(closed_at=None).exists()


def test_what_landed_did_itself_is_no_orphan(world: World) -> None:
    for number in range(3):
        world.propose(f"order-{number}")
    world.send()
    look_through()
    world.later(11 * 60)
    world.sweep()
    assert LedgerEntry.objects.count() == 3
    assert not Review.objects.exists()


def test_it_settles_nothing_and_asks_for_a_look_at_whom_it_concerns(world: World) -> None:
    intent = unknown(world, "order-2", booked=True)
    Intent.objects.filter(pk=intent.pk).update(next_check_at=times.now() + timedelta(hours=1))
    look_through()
    found = world.read(intent)
    assert (found.status, found.version) == (Status.UNKNOWN, intent.version)
    assert found.next_check_at is not None
    assert found.next_check_at <= times.now()
    assert not Match.objects.exists()
    world.check(intent)
    assert world.read(intent).status == Status.CONFIRMED


def test_a_second_effect_under_a_settled_ones_key_leads_to_a_look_and_a_dispute(world: World) -> None:
    intent = world.propose("order-3")
    world.send()
    look_through()
    assert world.read(intent).next_check_at is None, "what is known already is no reason to look"
    add_entry(world, "order-3", idempotency_key=intent.idempotency_key)
    world.later(61)
    look_through()
    assert world.read(intent).next_check_at is not None
    world.check(intent)
    assert world.read(intent).disputed is True


def test_an_entry_under_a_settled_ones_key_is_looked_at_before_anybody_is_asked(world: World) -> None:
    """The downstream's answer names another id than its book: only a look can tie the two."""
    intent = world.propose("order-9")
    world.send()
    (booked,) = world.booked(intent)
    store_by_hand(world, booked["id"] + "-booked", key=intent.idempotency_key)
    world.later(11 * 60)
    world.sweep()
    assert not Review.objects.exists()
    assert world.read(intent).next_check_at is not None
    world.check(intent)
    entry = LedgerEntry.objects.get(entry_id=booked["id"] + "-booked")
    world.later(6 * 60)
    world.sweep()
    assert Review.objects.get(closed_at=None).entry == entry, "the look showed another entry than this one"


def store_by_hand(world: World, entry_id: str, **columns: Any) -> None:
    now = times.now()
    make_entry(
        world.downstream,
        entry_id=entry_id,
        first_seen_at=now,
        last_seen_at=now,
        explain_at=now,
        **({"subject": "order-9"} | columns),
    )


def test_it_is_made_as_often_as_the_downstream_says_and_begins_behind_the_last_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = asked(monkeypatch)
    assert reconciliation_sweep.sweep().due_to_check is True
    look_through()
    first = row(world)
    assert (first.problem, first.through is not None, first.finished_at is not None) == ("", True, True)
    assert (look_through(), reconciliation_sweep.sweep().due_to_check) == (0, False)
    world.later(59)
    assert look_through() == 0
    world.later(2)
    assert look_through() == 1
    assert first.through is not None
    since = (first.through - timedelta(hours=1, seconds=world.downstream.lag_s)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert f"since={since.replace(':', '%3A')}" in urls[-1]
    second = row(world)
    assert second.through is not None
    assert second.through > first.through


@pytest.mark.parametrize("times_seen", [1, 3])
def test_the_same_pages_are_kept_as_evidence_once(world: World, times_seen: int) -> None:
    add_entry(world, "order-4")
    for _ in range(times_seen):
        look_through()
        world.later(61)
    kept = Evidence.objects.filter(kind="page")
    assert kept.count() == 1
    assert kept.get().intent is None
    entry = LedgerEntry.objects.get()
    assert entry.evidence == kept.get()
    assert entry.last_seen_at > entry.first_seen_at or times_seen == 1


def test_all_pages_are_followed(world: World) -> None:
    world.sandbox.configure(page_size=3)
    for number in range(8):
        add_entry(world, f"order-5/{number}")
    look_through()
    assert LedgerEntry.objects.count() == 8


def test_a_look_that_is_not_complete_moves_nothing_on_and_says_why(world: World) -> None:
    look_through()
    before = row(world).through
    Downstream.objects.update(base_url="http://127.0.0.1:9")
    world.later(61)
    look_through()
    found = row(world)
    assert found.through == before
    assert found.problem.startswith("connect_refused")
    assert found.next_at > times.now()
    assert Breaker.objects.get(line=Line.LOOKING).unanswered == 1
    Downstream.objects.update(base_url=world.sandbox.url)
    world.later(61)
    look_through()
    assert (row(world).problem, Breaker.objects.get(line=Line.LOOKING).unanswered) == ("", 0)


def test_what_was_seen_before_it_broke_is_kept(world: World) -> None:
    world.sandbox.configure(page_size=1)
    Downstream.objects.update(config=_config(max_pages=1))
    for number in range(12):
        add_entry(world, f"order-6/{number}")
    began = times.now()
    look_through()
    assert LedgerEntry.objects.count() == 10, "more pages than a look for one intent follows, and no end of them"
    found = row(world)
    assert found.problem == "catching_up: 10 pages read so far; the next look goes on behind them."
    assert found.through is not None
    assert found.through - began < timedelta(seconds=30)
    assert found.finished_at is None
    assert not Breaker.objects.exists(), "that is no fault of the books"


def test_first_looks_that_fail_let_nothing_that_was_booked_meanwhile_slip(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    Downstream.objects.update(base_url="http://127.0.0.1:9", breaker_after=100)
    look_through()
    began = row(world).through
    assert began is not None
    world.later(3 * 3_600)
    look_through()
    assert row(world).through == began
    Downstream.objects.update(base_url=world.sandbox.url)
    world.later(61)
    (claimed,) = look_back.claim(limit=1)
    assert claimed.since == began - timedelta(hours=1, seconds=world.downstream.lag_s)


def test_one_that_was_cut_off_gets_more_time_the_next_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def takes(seconds: float, look: Any) -> Any:
        """Looks while each reading of the clock finds so much of it gone."""
        clock = iter(seconds * turn for turn in range(1_000))
        with monkeypatch.context() as patch:
            patch.setattr(look_back.time, "monotonic", lambda: next(clock))
            patch.setattr(look_back.transport, "send", lambda *_: (_ for _ in ()).throw(StopIteration))
            return look_back.look(look)

    (claimed,) = look_back.claim(limit=1)
    cut = takes(90, claimed)
    assert cut.problem.startswith("too_many_pages: After 60 s")
    look_back.save(claimed, cut)
    world.later(61)
    (again,) = look_back.claim(limit=1)
    assert not takes(90, again).problem.startswith("too_many_pages")
    assert takes(130, again).problem.startswith("too_many_pages: After 120 s")
    assert again.until - again.started_at > timedelta(seconds=120)
    look_back.save(again, look_back.look(again))
    assert (row(world).problem, row(world).through) == ("", again.started_at)


def test_the_ledger_page_says_which_books_were_not_looked_through_for_long(world: World) -> None:
    def warnings() -> list[LookBack]:
        client, _ = log_in("auditor")
        response: Any = client.get("/ledger/")
        found: list[LookBack] = response.context["behind"]
        assert (f"The books of {world.downstream.title} are looked through only up to" in text_of(response)) is bool(
            found
        )
        return found

    look_through()
    now = times.now()
    LookBack.objects.update(through=now - timedelta(hours=1, seconds=100), problem="connect_refused: no")
    assert warnings() == []
    LookBack.objects.update(through=now - timedelta(hours=1, seconds=181))
    assert [found.downstream for found in warnings()] == [world.downstream]
    Downstream.objects.update(look_back_s=None)
    assert warnings() == []


def _config(**look_up: Any) -> dict[str, Any]:
    config = dict(EXAMPLE.target.config)
    return config | {"look_up": {**config["look_up"], **look_up}}


@pytest.mark.parametrize("how", ["no configuration", "no such connector part"])
def test_whoever_can_t_look_back_says_so_and_is_asked_again(world: World, how: str) -> None:
    if how == "no configuration":
        config = _config()
        del config["look_up"]["recent"]
        Downstream.objects.update(config=config)
    else:
        Downstream.objects.update(connector="stripe")
    look_through()
    assert row(world).problem.startswith("not_offered")
    assert not Breaker.objects.exists()


def test_behind_an_open_breaker_only_a_probe_is_made(world: World) -> None:
    world.downstream.breaker_after = 1
    world.downstream.save()
    Downstream.objects.update(base_url="http://127.0.0.1:9")
    look_through()
    assert Breaker.objects.get().opened_at is not None
    LookBack.objects.update(next_at=times.now())
    assert look_through() == 0, "not before its probe is due"
    world.later(6)
    assert look_through() == 1
    assert Breaker.objects.get().probes == 1


def test_books_that_nobody_asked_to_look_through_are_left_alone(world: World) -> None:
    Downstream.objects.update(look_back_s=None)
    assert (look_through(), LookBack.objects.exists()) == (0, False)


def test_a_connector_that_breaks_is_a_problem_and_no_more(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("bug")

    monkeypatch.setattr(type(registry.get("http_json")), "look_back", broken)
    look_through()
    assert row(world).problem == "connector_error: RuntimeError('bug')"


def test_who_claimed_it_and_never_came_back_has_lost_it(world: World) -> None:
    (claimed,) = look_back.claim(limit=5)
    assert look_back.claim(limit=5) == []
    world.later(121)
    (again,) = look_back.claim(limit=5)
    look_back.save(again, look_back.look(again))
    after = row(world)
    look_back.save(claimed, look_back.look(claimed))
    assert row(world).next_at == after.next_at, "the plan is whose claim it is"


def test_any_number_of_workers_at_once_look_once(world: World) -> None:
    claimed: list[look_back.Claimed] = []
    in_threads(4, lambda: claimed.extend(look_back.claim(limit=5)))
    assert len(claimed) == 1


def test_workers_that_both_saw_it_due_claim_it_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has one writer at a time")
    LookBack.objects.create(downstream=world.downstream, next_at=times.now())
    read, both_read = LookBack.objects.get_or_create, threading.Barrier(2)

    def then_wait(**columns: Any) -> tuple[LookBack, bool]:
        found = read(**columns)
        both_read.wait(timeout=10)
        return found

    monkeypatch.setattr(LookBack.objects, "get_or_create", then_wait)
    claimed: list[look_back.Claimed] = []
    in_threads(2, lambda: claimed.extend(look_back.claim(limit=5)))
    assert len(claimed) == 1


def test_two_looks_at_once_store_each_entry_once(world: World) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has one writer at a time")
    for number in range(20):
        add_entry(world, f"order-7/{number}")
    (claimed,) = look_back.claim(limit=5)
    looked = look_back.look(claimed)
    in_threads(3, lambda: look_back.save(claimed, looked))
    assert LedgerEntry.objects.count() == 20
    assert row(world).problem == ""


def test_a_reversal_that_nobody_asked_for_is_linked_to_what_it_took_back(world: World) -> None:
    intent = world.propose("order-8")
    world.send()
    add_entry(world, "order-8", type="reversal")
    look_through()
    world.later(11 * 60)
    world.sweep()
    (review,) = Review.objects.filter(closed_at=None)
    decide(review, factories.make_person(), Choice.LINK, intent)
    assert Match.objects.get(entry=review.entry_id).role == MatchRole.KNOWN
    assert world.read(intent).differences.get().what == "send"


def test_a_page_that_can_t_be_stored_is_a_problem(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    (claimed,) = look_back.claim(limit=5)
    looked = look_back.look(claimed)
    wrong = replace(looked, pages=tuple(replace(page, entries=(None,)) for page in looked.pages))  # type: ignore[arg-type]
    look_back._save_or_leave(claimed, wrong)
    assert row(world).problem.startswith("not_storable")


def test_a_row_that_can_not_be_read_hides_no_other_and_is_counted(world: World) -> None:
    add_entry(world, "order-1", idempotency_key="somebody-elses")
    add_entry(world, "\u202ekcits", idempotency_key="somebody-elses-2")
    add_entry(world, "order-2", idempotency_key="somebody-elses-3")
    look_through()
    assert sorted(LedgerEntry.objects.values_list("subject", flat=True)) == ["order-1", "order-2"]
    found = row(world)
    assert found.problem == "unreadable_entry: 1 could not be read and were left out"
    assert found.finished_at is not None
    assert not Breaker.objects.exists()
