"""One bad row, answer or configuration stops nothing else, and nothing of it stays silent for ever."""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext
from rq.exceptions import AbandonedJobError
from rq.timeouts import JobTimeoutException

from actions import dispatch, money, redaction
from actions import sweep as actions_sweep
from actions.connectors.values import Unreadable, decimal_amount, word
from actions.models import Downstream, Intent
from actions.statuses import Status
from config import clockwork
from reconciliation import checks
from reconciliation.models import Check, LedgerEntry, Review
from reconciliation.reviews import pending
from tests.flow.world import World


def lost(world: World, order: str, **more: Any) -> Intent:
    world.sandbox.order_fault(order, "lose_response")
    intent = world.propose(order, **more)
    world.send()
    assert world.read(intent).status == Status.UNKNOWN
    return intent


# --- texts that take for ever to mask


@pytest.mark.parametrize(
    "text",
    ["1 " * 16_000, "4111 " * 6_000, "1-2 " * 8_000, "12345678-1234-" * 2_000, '"' + "secret" * 5_000],
    ids=["digits", "groups", "mixed", "like_uuids", "secrets"],
)
def test_masking_what_an_agent_may_propose_takes_no_time(text: str) -> None:
    """Params may be 32 KiB; they are masked while the claim's transaction is open."""
    begun = time.monotonic()
    redaction.redact(text)
    assert time.monotonic() - begun < 2


def test_a_card_number_in_a_long_row_of_groups_is_still_masked() -> None:
    assert "1111 1111" not in redaction.redact("1 2 3 " * 50 + "4111 1111 1111 1111 " + "7 8 9 " * 50)


# --- rows that can't be handled


def forget_the_dollar(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an upgrade of the table of currencies would."""
    real = money.exponent

    def exponent(currency: str) -> int:
        if currency == "USD":
            raise money.BadAmount("no currency any more")
        return real(currency)

    monkeypatch.setattr(money, "exponent", exponent)


def test_an_intent_whose_currency_is_no_currency_any_more_keeps_no_other_from_being_sent(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Currencies end (HRK, BGN), and the table of them comes with a package: an upgrade must not stop sending."""
    world.kind.limits |= {"USD": {}}
    world.kind.save()
    old, new = world.propose("order-20", currency="USD"), world.propose("order-21")
    forget_the_dollar(monkeypatch)
    world.send()
    assert world.read(new).status == Status.CONFIRMED
    assert world.read(old).status == Status.CONFIRMED, "its amount keeps the decimals that it was recorded with"
    assert (world.read(old).amount, world.read(old).settled_amount) == ("50.00", "50.00")


def test_an_intent_whose_currency_is_no_currency_any_more_keeps_no_other_from_being_checked(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.kind.limits |= {"USD": {}}
    world.kind.save()
    old, new = lost(world, "order-22", currency="USD"), lost(world, "order-23")
    forget_the_dollar(monkeypatch)
    world.later(100)
    checks.run(budget_s=5)
    assert world.read(new).status == Status.CONFIRMED
    assert world.read(old).status == Status.CONFIRMED


def test_one_row_that_breaks_the_sweep_does_not_stop_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.sandbox.order_fault("order-24", "silent")
    bad, good = world.propose("order-24"), world.propose("order-25")
    dispatch.claim(slots=8)
    world.later(60)
    real = actions_sweep._expire_lease

    def break_at(intent_id: Any, now: Any) -> None:
        if intent_id == bad.pk:
            raise ValueError("a bug of ours")
        real(intent_id, now)

    monkeypatch.setattr(actions_sweep, "_expire_lease", break_at)
    Intent.objects.filter(pk=bad.pk).update(lease_until=bad.created_at)
    clockwork.tick()
    assert world.read(good).status == Status.UNKNOWN


def test_one_decision_that_can_t_take_effect_stops_no_other(
    world: World, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reconciliation.models import Choice
    from tests.factories import make_person
    from tests.flow.test_deciding import decide

    settings.LANDED_UNDO_S = 5
    held = [world.propose(f"order-26{n}", "10000.01") for n in range(2)]
    bad, good = (
        decide(world.review(one), make_person(), Choice.REJECT, reason="not_justified").decision for one in held
    )
    real = pending.take_effect
    monkeypatch.setattr(
        pending, "take_effect", lambda pk: (_ for _ in ()).throw(ValueError("a bug")) if pk == bad.pk else real(pk)
    )
    world.later(6)
    world.sweep()
    assert world.read(held[1]).status == Status.CANCELLED
    assert good.pk


def test_an_unknown_of_a_connector_that_is_not_installed_any_more_gets_a_review(world: World) -> None:
    intent = lost(world, "order-27")
    Downstream.objects.update(connector="gone")
    for _ in range(3):
        world.later(700)
        checks.run(budget_s=5)
        world.sweep()
    assert Review.objects.filter(intent=intent, closed_at__isnull=True).count() == 1


@pytest.mark.parametrize("problem", [OverflowError("too large"), ValueError("a bug"), KeyError("name")])
def test_a_check_that_can_t_be_stored_is_not_made_in_silence_for_ever(
    world: World, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    from reconciliation import entries

    intent = lost(world, "order-28")

    real = entries.store_pages

    def broken(downstream: Any, pages: Any, **more: Any) -> Any:
        if pages := list(pages):
            raise problem
        return real(downstream, pages, **more)

    monkeypatch.setattr(entries, "store_pages", broken)
    for _ in range(3):
        world.later(700)
        checks.run(budget_s=5)
        world.sweep()
    assert world.read(intent).status == Status.UNKNOWN
    assert Review.objects.filter(intent=intent, closed_at__isnull=True).count() == 1
    assert Check.objects.filter(intent=intent).exists()


# --- jobs and databases that break off


@pytest.mark.parametrize("problem", [AbandonedJobError, JobTimeoutException, SystemExit, MemoryError])
def test_whatever_breaks_into_a_save_leaves_it_submitted_and_then_unknown(
    world: World, monkeypatch: pytest.MonkeyPatch, problem: type[BaseException]
) -> None:
    from actions import outcomes

    intent = world.propose("order-29")

    def broken(*_: Any, **__: Any) -> Any:
        raise problem

    with monkeypatch.context() as patched:
        patched.setattr(outcomes, "_move", broken)
        with contextlib.suppress(problem, SystemExit):
            world.send()
    assert world.read(intent).status == Status.SUBMITTED
    assert world.read(intent).attempts.get().closed_at is None
    world.later(60)
    world.sweep()
    assert world.read(intent).status == Status.UNKNOWN
    world.check(intent)
    assert world.read(intent).status == Status.CONFIRMED
    assert world.posts(intent) == 1


@pytest.mark.parametrize("problem", [AbandonedJobError, JobTimeoutException, SystemExit])
def test_whatever_breaks_into_a_check_changes_nothing_and_it_is_made_again(
    world: World, monkeypatch: pytest.MonkeyPatch, problem: type[BaseException]
) -> None:
    intent = lost(world, "order-30")

    def broken(*_: Any, **__: Any) -> Any:
        raise problem

    world.later(5)
    with monkeypatch.context() as patched:
        patched.setattr(checks, "_write", broken)
        with contextlib.suppress(problem, SystemExit):
            checks.run(budget_s=5)
    assert world.read(intent).status == Status.UNKNOWN
    world.later(120)
    checks.run(budget_s=5)
    assert world.read(intent).status == Status.CONFIRMED


def test_a_claim_that_fails_does_not_lose_the_answers_that_are_under_way(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database that is locked or gone for a moment: what was sent is saved, whatever became of the next claim."""
    world.sandbox.configure(latency_ms=600)
    intent = world.propose("order-31")
    real, calls = dispatch.claim, []

    def claim(*, slots: int) -> Any:
        calls.append(slots)
        if len(calls) == 2:
            raise OperationalError("database is locked")
        return real(slots=slots)

    monkeypatch.setattr(dispatch, "claim", claim)
    with contextlib.suppress(OperationalError):
        world.send()
    assert world.read(intent).status == Status.CONFIRMED


# --- what a downstream may say


def test_values_that_no_column_takes_are_unreadable() -> None:
    with pytest.raises(Unreadable):
        decimal_amount("999999999999999", "CLF")
    with pytest.raises(Unreadable):
        word(10**300)


class Strange(BaseHTTPRequestHandler):
    """A downstream that loses every POST and shows whatever `entries` and `answer` say."""

    entries: list[dict[str, Any]] = []
    answer: bytes = b""
    page = 100

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.answer:
            self.close_connection = True
            return
        self._reply(self.answer, 201)

    def do_GET(self) -> None:
        after = self.path.partition("starting_after=")[2].partition("&")[0]
        ids = [entry.get("id") for entry in self.entries]
        begin = ids.index(after) + 1 if after else 0
        data = self.entries[begin : begin + self.page]
        more = begin + self.page < len(self.entries)
        self._reply(json.dumps({"data": data, "has_more": more}).encode(), 200)

    def _reply(self, body: bytes, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def strange(world: World) -> Iterator[type[Strange]]:
    handler = type("One", (Strange,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Downstream.objects.update(base_url=f"http://127.0.0.1:{server.server_port}")
    world.downstream.refresh_from_db()
    yield handler
    server.shutdown()
    server.server_close()


def entry(**more: Any) -> dict[str, Any]:
    found = {"id": "re_1", "order": "order-40", "amount_minor": 5000, "currency": "EUR", "status": "succeeded"}
    return found | {"idempotency_key": "another", "created": 1_795_000_000, "type": "refund"} | more


ODD: dict[str, Callable[[str], dict[str, Any]]] = {
    "null amount": lambda key: entry(idempotency_key=key, amount_minor=None),
    "no currency": lambda key: entry(idempotency_key=key, currency="XQX"),
    "id of 300": lambda key: entry(idempotency_key=key, id="x" * 300),
    "order of 250": lambda key: entry(idempotency_key=key, order="o" * 250),
    "order of 5000": lambda key: entry(idempotency_key=key, order="o" * 5_000),
    "nul": lambda key: entry(idempotency_key=key, id="a\x00b"),
    "half a surrogate": lambda key: entry(idempotency_key=key, id="a\ud800b"),
    "year 9999": lambda key: entry(idempotency_key=key, created="9999-12-31T23:59:59+00:00", amount_minor=1),
    "year 9999 west": lambda key: entry(idempotency_key=key, created="9999-12-31T23:59:59-11:00", amount_minor=1),
    "year 1": lambda key: entry(idempotency_key=key, created="0001-01-01T00:00:00+00:00", amount_minor=1),
    "negative": lambda key: entry(idempotency_key=key, amount_minor=-5000),
    "2^63": lambda key: entry(idempotency_key=key, amount_minor=2**63),
    "id of 400 digits": lambda key: entry(idempotency_key=key, id=10**400),
    "a list for an id": lambda key: entry(idempotency_key=key, id=["a"]),
    "floats": lambda key: entry(idempotency_key=key, amount_minor=50.5),
    "no id": lambda key: entry(idempotency_key=key, id=None, amount_minor=4999, extra={"a": [1.5, None, {}]}),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_entry_with_our_key_ends_with_a_person_and_never_as_failed(
    world: World, strange: type[Strange], name: str
) -> None:
    intent = world.propose("order-40")
    world.send()
    assert world.read(intent).status == Status.UNKNOWN
    strange.entries = [ODD[name](intent.idempotency_key)]
    for _ in range(4):
        world.later(700)
        checks.run(budget_s=5)
        world.sweep()
    assert world.read(intent).status == Status.UNKNOWN
    assert Review.objects.filter(intent=intent, closed_at__isnull=True).count() == 1


def test_an_order_that_is_cut_to_fit_is_not_ours(world: World, strange: type[Strange]) -> None:
    order = "o" * 200
    intent = world.propose(order)
    world.send()
    now = int(time.time())
    strange.entries = [entry(order=order + "p", idempotency_key=None, created=now)]
    for _ in range(2):
        world.later(5)
        checks.run(budget_s=5)
    assert world.read(intent).status != Status.CONFIRMED


@pytest.mark.parametrize(
    "body", [b"[" * 5_000, b'{"id":' + b"9" * 4_000 + b"}", b"\x00" * 1_000, b'"' + b"a" * 2_000_000]
)
def test_a_strange_success_is_unknown(world: World, strange: type[Strange], body: bytes) -> None:
    strange.answer = body
    intent = world.propose("order-41")
    world.send()
    assert world.read(intent).status == Status.UNKNOWN
    assert intent.attempts.get().closed_by == "answer", "the answer is saved, not left to the clock"


def test_a_success_with_an_endless_id_is_saved_as_an_answer(world: World, strange: type[Strange]) -> None:
    strange.answer = json.dumps(entry(order="order-42", id=10**400)).encode()
    intent = world.propose("order-42")
    world.send()
    assert world.read(intent).status == Status.UNKNOWN
    assert intent.attempts.get().closed_by == "answer"


def test_two_thousand_entries_take_a_handful_of_statements(world: World, strange: type[Strange]) -> None:
    intent = world.propose("order-43")
    world.send()
    strange.entries = [entry(id=f"re_{n}", order="order-43") for n in range(2_000)]
    strange.entries.append(entry(id="re_ours", order="order-43", idempotency_key=intent.idempotency_key))
    (claimed,) = _claim(world, intent)
    looked = checks.look(claimed)
    with CaptureQueriesContext(connection) as queries:
        checks.act(claimed, looked)
    assert world.read(intent).status == Status.CONFIRMED
    assert LedgerEntry.objects.count() == 2_001
    # One transaction, which on SQLite is everybody's: its length must not grow with every entry.
    assert len(queries) < 150, "SQLite takes 999 values a statement"


def _claim(world: World, intent: Intent) -> list[checks.Claimed]:
    world.make_due(intent)
    return [one for one in checks.claim(limit=50) if one.intent_id == intent.pk]
