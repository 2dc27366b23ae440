"""What a book can show that it shouldn't, looked into by key and by subject: a clear verdict, the evidence kept, and
nothing guessed."""

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from actions import history, transport
from actions.connectors.http_json.example import EXAMPLE
from actions.models import Downstream, Intent, Kind
from actions.statuses import Status
from reconciliation import checks
from reconciliation.models import Check, LedgerEntry, Match, Verdict
from tests.flow.book import Book, row
from tests.flow.test_finding_the_truth import unknown
from tests.flow.world import World
from tests.pages.cases import log_in, text_of

WAYS = pytest.mark.parametrize("by", ["key", "subject"])


@pytest.fixture
def book(world: World) -> Iterator[Book]:
    """The downstream's book from `asks` on; what was sent went to the sandbox, whose answer proved nothing."""
    # Nothing here is about time-outs.
    Downstream.objects.update(connect_timeout_ms=5_000, deadline_ms=20_000)
    with Book() as found:
        yield found


def asks(world: World, book: Book, by: str, subject: str = "order-1", **entry: Any) -> Intent:
    """An unknown intent that is looked up in this book, in this way."""
    Downstream.objects.update(look_up=by)
    intent = unknown(world, subject)
    config = dict(EXAMPLE.target.config)
    look_up = config["look_up"]
    reads = {name: how for name, how in (look_up["entry"] | entry).items() if how is not None}
    config |= {"look_up": look_up | {"entry": reads}}
    Downstream.objects.update(base_url=book.url, config=config)
    world.later(5)
    return intent


def ours(intent: Intent, by: str, number: int = 1, **columns: Any) -> dict[str, Any]:
    """A row about this intent: with its key, or with none and with everything else that fits."""
    assert intent.first_maybe_sent_at is not None
    key = None if by == "subject" else intent.idempotency_key
    booked = (intent.first_maybe_sent_at + timedelta(seconds=1)).isoformat()
    return row(number, **({"order": intent.subject, "idempotency_key": key, "created": booked} | columns))


def looks(world: World, intent: Intent, verdict: Verdict, times_: int = 3) -> Check:
    """So many looks a minute apart all come to this, and settle nothing."""
    for _ in range(times_):
        check = world.check(intent)
        assert check.verdict == verdict
        assert check.counts_as_absence is False
        assert world.read(intent).status == Status.UNKNOWN
        world.later(60)
    assert not Match.objects.filter(intent=intent).exists()
    assert history.faults(world.read(intent)) == []
    return check


def pages_of(intent: Intent) -> str:
    """All that was seen, as it is kept."""
    return "\n".join(intent.evidence.filter(kind="page").order_by("pk").values_list("text", flat=True))


def case(world: World, intent: Intent, reason: str) -> str:
    """What the person who takes its case reads."""
    review = world.review(intent)
    assert [found.code for found in review.reasons.all()] == [reason]
    client, _ = log_in("reviewer")
    return text_of(client.get(f"/reviews/{review.pk}/"))


@WAYS
@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (500, '{"error": "page 2 is on fire"}', "The downstream answered with an HTTP error."),
        (200, "<h1>page 2 is on fire</h1>", "A page could not be read."),
        (200, '{"data": "page 2 is on fire", "has_more": false}', "A page could not be read."),
        (206, '{"data": [], "has_more": false, "why": "page 2 is on fire"}', "The downstream answered with an HTTP"),
    ],
    ids=["an error", "no JSON", "no list", "a part"],
)
def test_of_pages_that_fail_half_way_nothing_counts_and_all_is_kept(
    world: World, book: Book, by: str, status: int, body: str, says: str
) -> None:
    intent = asks(world, book, by)
    book.rows, book.page_size = [ours(intent, by), ours(intent, by, 2, amount_minor=1)], 1
    book.odd = lambda query: (status, body) if "starting_after" in query else None
    check = looks(world, intent, Verdict.UNAVAILABLE)
    assert "re_1" in pages_of(intent), "the page before"
    assert "page 2 is on fire" in pages_of(intent), "and what could not be read"
    assert len(check.evidence) < 1_000
    world.later(600)
    looks(world, intent, Verdict.UNAVAILABLE, 1)
    assert says in case(world, intent, "still_unknown")
    book.rows, book.odd = book.rows[:1], lambda _: None
    assert world.check(intent).verdict == Verdict.MATCH
    assert world.read(intent).status == Status.CONFIRMED


@WAYS
def test_an_entry_without_an_id_settles_it_when_all_else_fits_and_is_one_entry_however_often_it_is_seen(
    world: World, book: Book, by: str
) -> None:
    intent = asks(world, book, by)
    book.rows = [ours(intent, by, id=None)]
    for _ in range(3):
        assert world.check(intent).verdict == Verdict.MATCH
        world.later(60)
    assert (world.read(intent).status, world.read(intent).disputed) == (Status.CONFIRMED, False)
    assert LedgerEntry.objects.get().entry_id.startswith("digest:")
    assert Match.objects.get().intent == intent


@WAYS
def test_two_entries_without_ids_that_are_alike_are_two(world: World, book: Book, by: str) -> None:
    intent = asks(world, book, by)
    book.rows = [ours(intent, by, id=None)] * 2
    check = looks(world, intent, Verdict.DUPLICATE if by == "key" else Verdict.AMBIGUOUS)
    assert (LedgerEntry.objects.count(), len(check.grounds_data["candidates"])) == (2, 2)
    case(world, intent, "duplicate" if by == "key" else "ambiguous")


@pytest.mark.parametrize("keyed", [True, False])
def test_an_entry_without_an_id_that_both_questions_show_is_one(world: World, book: Book, keyed: bool) -> None:
    intent = asks(world, book, "both")
    book.rows, book.filters = [ours(intent, "key" if keyed else "subject", id=None)], False
    assert world.check(intent).verdict == Verdict.MATCH
    assert world.read(intent).status == Status.CONFIRMED
    assert world.check(intent).verdict == Verdict.MATCH, "of a confirmed one both are asked"
    assert (world.read(intent).disputed, LedgerEntry.objects.count()) == (False, 1)


@WAYS
@pytest.mark.parametrize("kind", ["chargeback_v2", None], ids=["a type that nobody knows", "no type"])
def test_an_entry_of_an_unknown_type_is_neither_taken_for_ours_nor_for_nothing(
    world: World, book: Book, by: str, kind: str | None
) -> None:
    intent = asks(world, book, by)
    book.rows = [ours(intent, by, type=kind)]
    check = looks(world, intent, Verdict.MISMATCH if by == "key" else Verdict.AMBIGUOUS)
    assert check.grounds_data["differs"] == ["type"]
    assert LedgerEntry.objects.get().role == "unknown"
    assert "unknown type" in case(world, intent, "mismatch" if by == "key" else "ambiguous")
    assert "re_1" in pages_of(intent)


@WAYS
@pytest.mark.parametrize("amount", ["50.001", "5e1", "50,00", 50.001])
def test_an_amount_with_too_many_decimals_is_not_rounded(world: World, book: Book, by: str, amount: Any) -> None:
    intent = asks(world, book, by, amount_minor=None, amount="amount")
    book.rows = [ours(intent, by, amount=amount)]
    looks(world, intent, Verdict.UNAVAILABLE)
    assert str(amount) in pages_of(intent)
    assert LedgerEntry.objects.count() == 0, "nothing was read out of it"
    world.later(600)
    looks(world, intent, Verdict.UNAVAILABLE, 1)
    assert "An entry could not be read." in case(world, intent, "still_unknown")
    book.rows = [ours(intent, by, amount="50.00")]
    world.check(intent)
    assert world.read(intent).status == Status.CONFIRMED


@pytest.mark.parametrize("created", ["{:%Y-%m-%dT%H:%M:%S}", "{:%Y-%m-%d}", "{:%d.%m.%Y %H:%M}"])
def test_a_date_without_a_zone_says_nothing_and_the_key_says_enough(world: World, book: Book, created: str) -> None:
    intent = asks(world, book, "key")
    book.rows = [ours(intent, "key", created=created.format(intent.first_maybe_sent_at))]
    assert world.check(intent).verdict == Verdict.MATCH
    assert world.read(intent).status == Status.CONFIRMED
    assert LedgerEntry.objects.get().booked_at is None


@pytest.mark.parametrize("created", ["{:%Y-%m-%dT%H:%M:%S}", "{:%Y-%m-%d}", "{:%d.%m.%Y %H:%M}"])
def test_by_its_order_alone_a_date_without_a_zone_is_for_a_person(world: World, book: Book, created: str) -> None:
    intent = asks(world, book, "subject")
    book.rows = [ours(intent, "subject", created=created.format(intent.first_maybe_sent_at))]
    looks(world, intent, Verdict.AMBIGUOUS)
    assert LedgerEntry.objects.get().booked_at is None
    assert created.format(intent.first_maybe_sent_at) in pages_of(intent)
    assert "re_1" in case(world, intent, "ambiguous")


@WAYS
@pytest.mark.parametrize("currency", ["USD", "JPY", None])
def test_the_same_number_in_another_currency_is_another_amount(
    world: World, book: Book, by: str, currency: str | None
) -> None:
    intent = asks(world, book, by)
    book.rows = [ours(intent, by, currency=currency)]
    check = looks(world, intent, Verdict.MISMATCH if by == "key" else Verdict.AMBIGUOUS)
    assert check.grounds_data["differs"] == ["currency"]
    assert "re_1" in pages_of(intent)
    assert "the currency" in case(world, intent, "mismatch" if by == "key" else "ambiguous")


@WAYS
def test_a_currency_that_is_none_is_not_read(world: World, book: Book, by: str) -> None:
    intent = asks(world, book, by)
    book.rows = [ours(intent, by, currency="€")]
    looks(world, intent, Verdict.UNAVAILABLE)


@WAYS
def test_an_entry_with_another_intents_key_is_that_ones_whatever_it_was_asked_for(
    world: World, book: Book, by: str
) -> None:
    """The book doesn't filter as it was asked to. What it shows settles the one, and says nothing about the other."""
    Kind.objects.update(look_alike_policy="allow", absences_needed=100)
    Downstream.objects.update(look_up=by)
    other = unknown(world, "order-2")
    intent = asks(world, book, by)
    book.rows, book.filters = [ours(intent, "key", idempotency_key=other.idempotency_key)], False
    check = world.check(intent)
    assert (check.verdict, check.grounds_data["candidates"]) == (Verdict.ABSENT, [])
    assert world.read(intent).status == Status.UNKNOWN
    assert other.idempotency_key in pages_of(intent)
    assert world.check(other).verdict == Verdict.MISMATCH, "under its key, and on another order"
    assert world.read(other).status == Status.UNKNOWN
    book.rows = [ours(other, "key")]
    world.check(intent)
    world.check(other)
    assert (world.read(intent).status, world.read(other).status) == (Status.UNKNOWN, Status.CONFIRMED)
    assert Match.objects.get().intent == other


@WAYS
def test_of_10_000_entries_for_one_order_ours_is_found_although_it_is_the_last(
    world: World, book: Book, by: str
) -> None:
    intent = asks(world, book, by)
    book.filters = False
    book.rows = [ours(intent, "key", n, idempotency_key=f"of-{n}") for n in range(9_999)]
    book.rows.append(ours(intent, by, 10_000))
    began = time.monotonic()
    check = world.check(intent)
    assert time.monotonic() - began < 60
    assert check.grounds_data["by"] == by
    assert (check.verdict, world.read(intent).status) == (Verdict.MATCH, Status.CONFIRMED)
    assert Match.objects.get(intent=intent).entry.entry_id == "re_10000"
    assert intent.evidence.filter(kind="page").count() == 100


def test_of_10_000_entries_without_keys_that_all_fit_none_is_taken_and_a_person_can_read_the_case(
    world: World, book: Book
) -> None:
    intent = asks(world, book, "subject")
    book.rows = [ours(intent, "subject", number) for number in range(10_000)]
    assert world.check(intent).verdict == Verdict.AMBIGUOUS
    assert world.read(intent).status == Status.UNKNOWN
    began = time.monotonic()
    text = case(world, intent, "ambiguous")
    assert time.monotonic() - began < 20
    assert "10000 entries could be" in text
    assert len(text) < 500_000, "nobody reads all of them"


@WAYS
@pytest.mark.parametrize("page_size", [1, 40])
def test_of_more_entries_than_one_look_takes_the_rest_may_hold_ours(
    world: World, book: Book, by: str, page_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut off by the number of pages, or of entries: never an absence, and no guess from what was read."""
    monkeypatch.setattr(checks, "_MOST_ENTRIES", 150)
    intent = asks(world, book, by)
    book.filters, book.page_size = False, page_size
    book.rows = [ours(intent, "key", number, idempotency_key=f"of-{number}") for number in range(1_000)]
    book.rows[999] = ours(intent, by, 999)
    # One that fits, and would be a match if it were all.
    book.rows[3] = ours(intent, by, 3)
    looks(world, intent, Verdict.UNAVAILABLE)
    read = 100 if page_size == 1 else 160
    assert LedgerEntry.objects.count() == read
    assert intent.evidence.filter(kind="page").count() == 3 * (read // page_size + 1)
    world.later(600)
    looks(world, intent, Verdict.UNAVAILABLE, 1)
    assert "There are more pages than are followed." in case(world, intent, "still_unknown")


@pytest.mark.parametrize("limit", ["_MOST_TEXT", "_LONGEST_S"])
def test_a_look_takes_only_so_much_text_and_time(
    world: World, book: Book, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    intent = asks(world, book, "key")
    book.filters, book.page_size = False, 1
    book.rows = [row(number, note="x" * 2_000) for number in range(30)]
    if limit == "_LONGEST_S":
        send = transport.send

        def slow(*asked: Any) -> Any:
            time.sleep(0.2)
            return send(*asked)

        monkeypatch.setattr(transport, "send", slow)
    monkeypatch.setattr(checks, limit, 10_000 if limit == "_MOST_TEXT" else 1)
    looks(world, intent, Verdict.UNAVAILABLE, 1)
    assert 2 <= LedgerEntry.objects.count() <= 7
