"""A backlog that is more than one look reads is read to its end over several, wherever they are cut off."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError

from actions import times
from actions.connectors import registry
from actions.connectors.base import Page
from actions.connectors.http_json.example import EXAMPLE
from actions.models import Breaker, Downstream, Evidence, Line
from actions.statuses import Status
from reconciliation import entries, look_back, progress
from reconciliation.models import LedgerEntry, LookBack
from tests.flow.book import Book, row
from tests.flow.test_finding_the_truth import unknown
from tests.flow.world import World
from tests.ledger.books import look_through
from tests.pages.cases import log_in, text_of


@pytest.fixture
def book(world: World) -> Iterator[Book]:
    """73 entries, a page each, of which a look reads ten."""
    with Book([row(number) for number in range(1, 74)], page_size=1) as found:
        at(found, max_pages=1)
        yield found


def at(book: Book, **look_up: Any) -> None:
    """Looks ask this book from now on."""
    config = dict(EXAMPLE.target.config)
    config |= {"look_up": {**config["look_up"], **look_up}}
    Downstream.objects.update(base_url=book.url, config=config)


def state(world: World) -> LookBack:
    return LookBack.objects.get(downstream=world.downstream)


def looks(world: World, times_: int) -> None:
    for _ in range(times_):
        assert look_through() == 1
        world.later(61)


def cursors(book: Book) -> list[str]:
    return [question.get("starting_after", "") for question in book.questions]


def seen() -> list[str]:
    return sorted(LedgerEntry.objects.values_list("entry_id", flat=True))


def everything(book: Book) -> list[str]:
    return sorted(row["id"] for row in book.rows)


def test_a_backlog_of_many_more_pages_than_one_look_reads_is_read_to_its_end_each_page_once(
    world: World, book: Book
) -> None:
    began = times.now()
    looks(world, 7)
    found = state(world)
    assert (found.pages, found.finished_at, LedgerEntry.objects.count()) == (70, None, 70)
    assert found.through is not None
    assert found.through < began + timedelta(seconds=30), "not through yet"
    looks(world, 1)
    assert seen() == everything(book)
    assert cursors(book) == ["", *(f"re_{number}" for number in range(1, 73))], "each page once, in order"
    assert len({question["since"] for question in book.questions}) == 1, "one question all the way"
    found = state(world)
    assert (found.problem, found.cursor, found.pages, found.finished_at is not None) == ("", "", 0, True)
    assert found.through is not None
    assert began <= found.through < began + timedelta(seconds=30), "as far as the books were when the way began"
    assert Evidence.objects.filter(kind="page").count() == 73
    assert not Breaker.objects.exists()


def test_it_goes_on_soon_while_there_is_more_and_as_usual_afterwards(world: World, book: Book) -> None:
    Downstream.objects.update(look_back_s=3_600)
    for _ in range(7):
        look_through()
        assert timedelta(0) < state(world).next_at - times.now() <= timedelta(seconds=10)
        world.later(11)
    look_through()
    assert state(world).next_at - times.now() > timedelta(seconds=3_590)


def test_what_is_booked_meanwhile_is_seen_by_the_next_way_with_the_overlap(world: World, book: Book) -> None:
    looks(world, 3)
    # In front of where it is by now: booked late, and with an older time.
    book.rows.insert(5, row(1_000))
    looks(world, 5)
    assert "re_1000" not in seen()
    began = state(world).through
    assert began is not None
    book.questions.clear()
    looks(world, 1)
    since = began - timedelta(hours=1, seconds=world.downstream.lag_s)
    assert book.questions[0]["since"] == since.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert "re_1000" in seen()


def test_a_look_that_breaks_half_way_is_gone_on_with_behind_what_it_read(world: World, book: Book) -> None:
    book.odd = lambda query: (500, "{}") if query.get("starting_after") == "re_4" else None
    looks(world, 1)
    found = state(world)
    assert found.problem == "http_error: HTTP 500. (4 pages read so far; the next look goes on behind them.)"
    assert seen() == ["re_1", "re_2", "re_3", "re_4"]
    assert Breaker.objects.get(line=Line.LOOKING).unanswered == 1
    book.odd = lambda _: None
    looks(world, 7)
    assert (seen(), state(world).problem) == (everything(book), "")
    assert [number for number, count in Counter(cursors(book)).items() if count > 1] == ["re_4"]


def test_of_a_look_that_died_before_it_was_stored_nothing_is_left_out(
    world: World, book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks(world, 1)
    (claimed,) = look_back.claim(limit=1)
    look_back.look(claimed)  # and the worker is gone
    assert look_through() == 0, "its claim is not over"
    world.later(181)
    looks(world, 7)
    assert (seen(), state(world).problem) == (everything(book), "")


def test_of_a_look_that_dies_while_it_is_stored_no_page_is_lost_or_read_twice(
    world: World, book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look_back, "_AT_ONCE", 3)
    store, calls = entries.store_pages, iter(range(100))

    def dying(*args: Any, **more: Any) -> Any:
        if next(calls) == 2:
            raise OperationalError("the database went away")
        return store(*args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(entries, "store_pages", dying)
        look_through()
    assert (len(seen()), state(world).cursor) == (6, "re_6")
    world.later(181)
    looks(world, 7)
    assert (seen(), state(world).problem) == (everything(book), "")
    assert Evidence.objects.filter(kind="page").count() == 73


@pytest.mark.parametrize("status", [400, 404, 410])
def test_a_cursor_that_is_refused_is_given_up_and_the_next_look_begins_anew(
    world: World, book: Book, status: int
) -> None:
    looks(world, 2)
    book.odd = lambda query: (status, "{}") if query.get("starting_after") == "re_20" else None
    looks(world, 1)
    found = state(world)
    assert found.problem.startswith("cursor_refused: Nothing more came from where the last look ended")
    assert f"HTTP {status}" in found.problem
    assert (found.cursor, found.pages, found.finished_at) == ("", 0, None)
    assert not Breaker.objects.exists()
    book.odd = lambda _: None
    book.questions.clear()
    looks(world, 8)
    assert cursors(book)[0] == ""
    assert (seen(), state(world).problem) == (everything(book), "")


def test_no_such_thing_said_to_a_cursor_is_not_the_end_of_the_book(world: World, book: Book) -> None:
    """Where a 404 means that the book shows nothing, it still says nothing about what is behind a cursor."""
    recent = EXAMPLE.target.config["look_up"]["recent"] | {"absent": {"status": 404, "when": "error == 'none'"}}
    at(book, max_pages=1, recent=recent)
    looks(world, 1)
    book.odd = lambda query: (404, '{"error": "none"}') if "starting_after" in query else None
    looks(world, 1)
    assert state(world).finished_at is None
    assert state(world).problem.startswith("cursor_refused")


@pytest.mark.parametrize("status", [429, 500])
def test_books_that_only_refuse_for_now_are_gone_on_with_at_the_same_place(
    world: World, book: Book, status: int
) -> None:
    Downstream.objects.update(breaker_after=100)
    looks(world, 2)
    book.odd = lambda _: (status, "{}")
    looks(world, 9)
    assert (state(world).cursor, state(world).stuck) == ("re_20", 9)
    book.odd = lambda _: None
    looks(world, 6)
    assert (seen(), state(world).problem) == (everything(book), "")


def test_a_place_from_which_nothing_ever_comes_is_given_up(world: World, book: Book) -> None:
    """Some answer an old cursor with a 500."""
    Downstream.objects.update(breaker_after=100)
    looks(world, 2)
    book.odd = lambda query: (500, "{}") if query.get("starting_after") == "re_20" else None
    looks(world, 10)
    assert state(world).problem.startswith("cursor_refused")
    book.odd = lambda _: None
    looks(world, 8)
    assert (seen(), state(world).problem) == (everything(book), "")


def test_pages_that_go_in_a_circle_longer_than_a_look_are_no_progress_for_ever(world: World, book: Book) -> None:
    page = book.answer

    def in_a_circle(query: dict[str, str]) -> tuple[int, str]:
        status, text = page(query)
        return status, text if query.get("starting_after") != "re_44" else json.dumps(
            {"data": [row(30)], "has_more": True}
        )

    book.answer = in_a_circle  # type: ignore[method-assign]
    looks(world, 1)
    for _ in range(30):
        looks(world, 1)
        if not state(world).problem.startswith("catching_up"):
            break
    assert state(world).problem == "repeated_cursor: The pages go in a circle."
    assert (state(world).cursor, state(world).finished_at) == ("", None)


def test_another_address_is_not_asked_with_the_cursors_of_the_one_before(world: World, book: Book) -> None:
    looks(world, 2)
    with Book([row(number) for number in range(500, 505)]) as other:
        at(other)
        looks(world, 1)
        assert cursors(other) == [""]
        assert state(world).problem == ""


def test_a_connector_that_gives_no_cursors_begins_anew_and_says_that_it_was_cut_off(
    world: World, book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    connector: Any = type(registry.get("http_json"))
    whole = connector.look_back

    def without(self: Any, target: Any, fetch: Any, *, since: Any) -> Any:
        for page in whole(self, target, fetch, since=since):
            yield replace(page, after=None)

    monkeypatch.setattr(connector, "look_back", without)
    looks(world, 2)
    assert state(world).problem == "too_many_pages: There are more than 10 pages."
    assert Counter(cursors(book))[""] == 2


@pytest.mark.parametrize("twins", [(5, 6), (10, 11), (10, 11, 12), (20, 21), (72, 73)])
def test_entries_without_ids_are_counted_over_the_place_where_it_was_cut_off(
    world: World, book: Book, twins: tuple[int, ...]
) -> None:
    """Two that are alike are two, also when one is the last of a look and the other the first of the next."""
    plain = [
        row(number, id=None, order="order-t" if number in twins else f"order-{number}") for number in range(1, 74)
    ]
    for one in plain:
        one["idempotency_key"] = f"of-{one['order']}"
    positions = iter(range(10_000))
    book.rows = [{"at": str(next(positions)), "row": one} for one in plain]

    def page(query: dict[str, str]) -> tuple[int, str]:
        begin = int(query.get("starting_after", "-1")) + 1
        found = {"data": [plain[begin]], "next": str(begin) if begin < len(plain) - 1 else None}
        return 200, json.dumps(found)

    book.odd = page
    config = dict(EXAMPLE.target.config)
    spec = {**config["look_up"], "max_pages": 1, "cursor": "next"}
    del spec["more"]
    Downstream.objects.update(config=config | {"look_up": spec})
    for _ in range(12):
        looks(world, 1)
        if state(world).finished_at:
            break
    assert state(world).problem == ""
    assert LedgerEntry.objects.count() == 73
    assert LedgerEntry.objects.filter(subject="order-t").count() == len(twins)


def test_rows_that_can_not_be_read_are_counted_over_the_whole_way(world: World, book: Book) -> None:
    for number in (3, 25, 70):
        book.rows[number]["amount_minor"] = "much"
    looks(world, 8)
    assert state(world).problem == "unreadable_entry: 3 could not be read and were left out"
    assert LedgerEntry.objects.count() == 70


def test_intents_whose_key_shows_up_are_looked_at_while_it_is_still_catching_up(world: World, book: Book) -> None:
    Downstream.objects.update(base_url=world.sandbox.url)
    intent = unknown(world, "order-77")
    at(book, max_pages=1)
    book.rows[14] |= {"idempotency_key": intent.idempotency_key, "order": "order-77"}
    looks(world, 2)
    assert state(world).problem.startswith("catching_up")
    found = world.read(intent)
    assert found.next_check_at is not None
    assert found.next_check_at <= times.now()
    world.check(intent)
    assert world.read(intent).status == Status.CONFIRMED


def test_a_worker_that_lost_its_claim_sets_nobody_back(world: World, book: Book) -> None:
    looks(world, 1)
    (slow,) = look_back.claim(limit=1)
    looked = look_back.look(slow)
    world.later(181)
    looks(world, 2)
    before = state(world)
    look_back.save(slow, looked)
    after = state(world)
    assert (after.cursor, after.pages, after.problem, after.next_at) == (
        before.cursor,
        before.pages,
        before.problem,
        before.next_at,
    )


def test_a_look_holds_only_so_much_at_once(world: World, book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    at(book)
    monkeypatch.setattr(look_back, "_MOST_HELD", 2_000)
    looks(world, 1)
    assert 0 < len(seen()) < 20
    assert state(world).problem.startswith("catching_up")
    looks(world, 12)
    assert seen() == everything(book)


def test_the_ledger_page_tells_progress_from_what_stands_still(world: World, book: Book) -> None:
    def page() -> str:
        client, _ = log_in("auditor")
        return text_of(client.get("/ledger/"))

    progressing = f"The books of {world.downstream.title} are being read on, 20 pages since"
    alarm = f"The books of {world.downstream.title} are looked through only up to"
    looks(world, 2)
    assert progressing in page()
    LookBack.objects.update(through=times.now() - timedelta(hours=9))
    assert progressing in page()
    assert alarm not in page(), "it gets on"
    world.later(2 * 3_600)
    assert alarm in page(), "nobody goes on with it"
    assert progressing not in page()
    LookBack.objects.update(next_at=times.now())
    assert progressing in page()
    LookBack.objects.update(began_at=times.now() - timedelta(hours=25))
    assert alarm in page(), "for more than a day"
    LookBack.objects.update(began_at=times.now())
    book.odd = lambda _: (500, "{}")
    looks(world, 1)
    assert alarm in page()
    assert "HTTP 500" in page()


def test_what_is_too_long_is_no_place_to_go_on_from() -> None:
    page = Page("http://x", 200, (), "{}")
    fresh = progress.Way(began_at=datetime(2026, 11, 30, tzinfo=UTC), question="q")
    assert progress.past(fresh, []) == fresh
    assert progress.past(fresh, [replace(page, after="x" * 2_001)]) == fresh
    assert progress.past(fresh, [replace(page, after="x")]).cursor == "x"
