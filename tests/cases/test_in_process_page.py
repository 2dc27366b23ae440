"""docs/in-process.md, run as it stands: every code block, on a real database against the real sandbox."""

import http.client
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from django.db import connection, models
from django.http import HttpResponse
from django.test.utils import isolate_apps
from django.urls import path

from actions import dispatch, transport
from actions.errors import Invalid
from actions.models import Attempt, Downstream, Intent, Kind
from config.children import wait_until
from reconciliation.models import Choice, DecisionReason
from tests import factories
from tests.flow.test_deciding import decide
from tests.flow.world import World
from tests.policy_files.conftest import apply_file

PAGE = Path(__file__).parents[2].joinpath("docs", "in-process.md").read_text()
README = Path(__file__).parents[2].joinpath("README.md").read_text()
Test = TypeVar("Test", bound=Callable[..., None])
# The blocks that tests below run, by a line that only this block has.
RUN: set[str] = set()


def runs(*marks: str) -> Callable[[Test], Test]:
    """Says of a test which blocks it runs."""
    RUN.update(marks)
    return lambda test: test


def blocks(text: str, language: str = "[a-z]+") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def block(mark: str, text: str = PAGE) -> str:
    (found,) = [one for one in blocks(text) if mark in one]
    return str(found)


def run(code: str, **names: Any) -> dict[str, Any]:
    """Executes a block with these names; what it has defined then."""
    exec(compile(code, "docs/in-process.md", "exec"), names)
    return names


class Payments:
    """A client as services have them: a time-out over everything, one try, errors by what they prove."""

    class Refused(Exception):
        def __init__(self, answer: object) -> None:
            super().__init__(answer)
            self.answer = answer

    class NotConnected(Exception):
        pass

    def __init__(self, port: int) -> None:
        self.port = port

    def refund(self, *, order: str, amount: Any, idempotency_key: str) -> Any:
        body = {"order": order, "amount_minor": int(Decimal(amount) * 100), "currency": "EUR"}
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=0.4)
        try:
            line.connect()
        except ConnectionRefusedError as why:
            raise self.NotConnected(str(why)) from None
        try:
            line.request("POST", "/v1/refunds", json.dumps(body), {"Idempotency-Key": idempotency_key})
            answer = line.getresponse()
            said = json.loads(answer.read())
        finally:
            line.close()
        if answer.status == 422:
            raise self.Refused(said)
        if answer.status >= 300:
            raise RuntimeError(f"HTTP {answer.status}")
        return said


@pytest.fixture
def payments(world: World) -> Payments:
    Kind.objects.update(name="refund")
    world.kind.refresh_from_db()
    return Payments(world.sandbox.port)


@pytest.fixture
def tables(payments: Payments) -> Iterator[SimpleNamespace]:
    """The service's own tables."""
    with isolate_apps():

        class Order(models.Model):  # noqa: DJ008
            number = models.IntegerField()
            total = models.DecimalField(max_digits=9, decimal_places=2)
            returned = models.BooleanField(default=False)
            returns = models.IntegerField(default=0)
            refund_id = models.UUIDField(null=True)

            class Meta:
                app_label = "shop"

        class Inbox(models.Model):  # noqa: DJ008
            key = models.CharField(max_length=255, unique=True)
            wish = models.JSONField()
            status = models.CharField(max_length=10, default="pending")

            class Meta:
                app_label = "shop"

            def as_json(self) -> dict[str, Any]:
                return {"id": f"rf_{self.pk}", "key": self.key, "status": self.status, **self.wish}

        class Outbox(models.Model):  # noqa: DJ008
            inbox = models.ForeignKey(Inbox, null=True, on_delete=models.CASCADE)
            key = models.CharField(max_length=255, unique=True)
            order = models.IntegerField(null=True)
            amount = models.CharField(max_length=20, blank=True)
            done = models.BooleanField(default=False)

            class Meta:
                app_label = "shop"

        mine = [Order, Inbox, Outbox]
        with connection.schema_editor() as editor:
            for model in mine:
                editor.create_model(model)
        yield SimpleNamespace(Order=Order, Inbox=Inbox, Outbox=Outbox)
        with connection.schema_editor() as editor:
            for model in reversed(mine):
                editor.delete_model(model)


# landed


def accept_return(tables: SimpleNamespace) -> tuple[Any, dict[str, Any]]:
    return tables.Order.objects.create(number=1, total="50.00"), run(block("def accept_return(order):"))


@runs("def accept_return(order):", "refund.settled")
def test_the_outbox_is_sent_after_the_commit_and_read_later(world: World, tables: SimpleNamespace) -> None:
    order, names = accept_return(tables)
    names["accept_return"](order)
    order.refresh_from_db()
    assert (order.returned, Intent.objects.get().pk) == (True, order.refund_id)
    reading = block("refund.settled")
    assert run(reading, order=order)["say"] == "It is on its way."
    world.send()
    (entry,) = world.sandbox.booked("order-1")
    assert run(reading, order=order)["say"] == f"Refunded, reference {entry['id']}."
    names["accept_return"](order)
    world.send()
    assert len(world.sandbox.requests("order-1")) == 1, "the same event is the same intent"


def test_what_was_refused_is_told_as_such(world: World, tables: SimpleNamespace) -> None:
    order, names = accept_return(tables)
    world.sandbox.order_fault("order-1", "reject_422")
    names["accept_return"](order)
    world.send()
    assert run(block("refund.settled"), order=order)["say"] == "It did not happen."


@runs("except FraudSuspected")
def test_the_outbox_of_a_rolled_back_transaction_is_never_sent(world: World, tables: SimpleNamespace) -> None:
    order, names = accept_return(tables)

    class FraudSuspected(Exception):
        pass

    def look_for_fraud(_: Any) -> None:
        raise FraudSuspected

    run(
        block("except FraudSuspected"),
        **names,
        order=order,
        look_for_fraud=look_for_fraud,
        FraudSuspected=FraudSuspected,
    )
    order.refresh_from_db()
    assert (order.returned, order.refund_id, Intent.objects.count()) == (False, None, 0)
    assert (world.send(), world.sandbox.requests("order-1")) == (0, [])


# caller


@pytest.fixture
def refund_now(payments: Payments) -> Callable[[], str]:
    """The page's function for one and the same order, as a process that starts again calls it."""
    return lambda: str(
        run(block("def refund_now"), payments=payments)["refund_now"](SimpleNamespace(number=1, total="50.00"))
    )


@runs("def refund_now")
def test_the_caller_sends_once_however_often_it_is_called(world: World, refund_now: Callable[[], str]) -> None:
    assert refund_now() == "sent"
    intent = Intent.objects.get()
    (entry,) = world.booked(intent)
    assert (intent.status, intent.external_id) == ("confirmed", entry["id"])
    assert refund_now() == "not sent again: it is confirmed"
    assert world.posts(intent) == 1


def test_a_refusal_is_failed(world: World, refund_now: Callable[[], str]) -> None:
    world.sandbox.order_fault("order-1", "reject_422")
    refund_now()
    assert Intent.objects.get().status == "failed"
    assert refund_now() == "not sent again: it is failed"


@pytest.mark.parametrize("fault", ["silent", "lose_response", "error_504_booked", "html_200"])
def test_a_time_out_and_whatever_else_is_unknown_and_not_sent_again(
    world: World, refund_now: Callable[[], str], fault: str
) -> None:
    world.sandbox.order_fault("order-1", fault, **({"seconds": 5} if fault == "silent" else {}))
    with pytest.raises((TimeoutError, ConnectionError, RuntimeError, ValueError)):
        refund_now()
    intent = Intent.objects.get()
    assert intent.status == "unknown"
    assert refund_now() == "not sent again: it is unknown"
    world.check(intent)
    assert (world.read(intent).status, world.posts(intent)) == ("confirmed", 1)


def test_what_provably_did_not_leave_may_be_sent_by_the_next_call_with_the_same_key(
    world: World, payments: Payments, refund_now: Callable[[], str]
) -> None:
    payments.port, port = 9, payments.port
    refund_now()
    intent = Intent.objects.get()
    assert intent.status == "recorded"
    payments.port = port
    assert refund_now() == "sent"
    (post,) = world.sandbox.requests("order-1")
    assert post["idempotency_key"] == intent.idempotency_key
    assert [attempt.result for attempt in Attempt.objects.order_by("number")] == ["not_sent", "confirmed"]


def test_a_crash_before_the_mark_is_never_sent_again(
    world: World, payments: Payments, refund_now: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        """Nothing that the page's code could catch."""

    def die(**_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(payments, "refund", die)
        refund_now()
    assert refund_now() == "not sent again: it is submitted"
    world.later(60)
    world.sweep()
    assert refund_now() == "not sent again: it is unknown"
    assert world.sandbox.requests("order-1") == []


def test_what_needs_a_person_is_sent_by_the_call_after_the_approval(
    world: World, refund_now: Callable[[], str]
) -> None:
    Kind.objects.update(limits={"EUR": {"approve_above": 1_000}})
    for _ in range(2):
        assert refund_now() == "a person has to approve it first"
    intent = Intent.objects.get()
    decide(world.review(intent), factories.make_person(), Choice.APPROVE, reason=DecisionReason.JUSTIFIED)
    assert refund_now() == "sent"
    assert (world.read(intent).status, world.posts(intent)) == ("confirmed", 1)


# beside a service with an outbox and keys of its own


class Shop:
    """The service of the first arrangement, on a real web server, and Landed's way to it."""

    def __init__(self, world: World, tables: SimpleNamespace, live: str, settings: Any, file: Path) -> None:
        self.tables = tables
        self.view = run(block("def refunds(request)"), Inbox=tables.Inbox, Outbox=tables.Outbox)["refunds"]
        self.before: Callable[[], Any] = lambda: None
        self.after: Callable[[], Any] = lambda: None
        settings.ROOT_URLCONF = (path("refunds", self.answer),)
        file.write_text(block("[[downstream]]").replace("http://shop.internal:8000", live))
        assert apply_file(file).code == 0
        self.downstream = Downstream.objects.get(name="shop")
        Kind.objects.filter(name="refund").update(downstream=self.downstream)
        world.kind.refresh_from_db()

    def answer(self, request: Any) -> Any:
        if request.method == "POST" and (other := self.before()):
            return other
        found = self.view(request)
        if request.method == "POST":
            self.after()
        return found

    answer.csrf_exempt = True  # type: ignore[attr-defined]


@pytest.fixture
def shop(world: World, tables: SimpleNamespace, live: str, settings: Any, tmp_path: Path) -> Iterator[Shop]:
    yield Shop(world, tables, live, settings, tmp_path / "shop.toml")
    transport.close_idle()  # each keeps a thread of the web server, and that a connection to the database


def relayed(world: World, shop: Shop) -> None:
    """The service's own relay: sends with its own key and writes into the inbox what it knows."""
    for row in shop.tables.Outbox.objects.filter(done=False).select_related("inbox"):
        wish = row.inbox.wish
        answer = world.sandbox.refund(wish["order"], key=row.key, amount_minor=wish["amount_minor"])
        assert answer.status == 201
        shop.tables.Inbox.objects.filter(pk=row.inbox_id).update(status="done")
        shop.tables.Outbox.objects.filter(pk=row.pk).update(done=True)


@runs("def refunds(request)", "[[downstream]]")
def test_in_front_the_service_takes_it_on_once_and_tells_by_landeds_key(world: World, shop: Shop) -> None:
    intent = world.propose("order-1")
    world.send()
    found = world.read(intent)
    row = shop.tables.Inbox.objects.get()
    assert (found.status, found.external_id, row.key) == ("submitted", f"rf_{row.pk}", intent.idempotency_key)
    assert world.check(intent).verdict == "pending"
    relayed(world, shop)
    assert world.check(intent).verdict == "match"
    assert world.read(intent).status == "confirmed"
    (post,) = world.sandbox.requests("order-1")
    assert post["idempotency_key"] == shop.tables.Outbox.objects.get().key != intent.idempotency_key


def test_in_front_a_lost_answer_is_found_in_the_inbox(world: World, shop: Shop) -> None:
    Downstream.objects.filter(name="shop").update(deadline_ms=200)
    finished = threading.Event()

    def dawdle() -> None:
        time.sleep(0.4)
        finished.set()

    shop.after = dawdle
    intent = world.propose("order-1")
    world.send()
    assert world.read(intent).status == "unknown"
    assert wait_until(lambda: finished.is_set() and shop.tables.Inbox.objects.exists(), within_s=10)
    relayed(world, shop)
    assert world.check(intent).verdict == "match"
    assert (world.read(intent).status, len(world.sandbox.requests("order-1"))) == ("confirmed", 1)


def test_in_front_what_the_inbox_lacks_was_not_taken_on(world: World, shop: Shop) -> None:
    shop.before = lambda: HttpResponse(status=503)
    intent = world.propose("order-1")
    world.send()
    assert world.read(intent).status == "unknown"
    for _ in range(2):
        world.later(5)
        world.check(intent)
    assert (world.read(intent).status, world.read(intent).settled_by) == ("failed", "absence")
    assert shop.tables.Inbox.objects.count() == 0


def test_in_front_one_key_is_one_row_and_another_wish_under_it_is_no_answer(world: World, shop: Shop) -> None:
    intent = world.propose("order-1")
    (claimed,) = dispatch.claim(slots=1)
    first, again = (transport.send(claimed.call, claimed.limits) for _ in range(2))
    assert json.loads(first.body) == json.loads(again.body), "the same answer"
    assert (shop.tables.Inbox.objects.count(), shop.tables.Outbox.objects.count()) == (1, 1)
    shop.tables.Inbox.objects.update(wish={"order": "order-2", "amount_minor": 1, "currency": "EUR"})
    dispatch.save(claimed, dispatch.send(claimed))
    found = world.read(intent)
    assert (found.status, found.status_reason) == ("unknown", "key_used_otherwise")


@runs("def accept_return(order, number)")
def test_inside_the_services_own_key_goes_out_and_a_second_return_has_its_own(
    world: World, tables: SimpleNamespace
) -> None:
    order = tables.Order.objects.create(number=1, total="18.00")
    accept = run(block("def accept_return(order, number)"))["accept_return"]
    one, again, two = accept(order, 1), accept(order, 1), accept(order, 2)
    assert one.pk == again.pk != two.pk
    world.send()
    posts = world.sandbox.requests("order-1/return-1") + world.sandbox.requests("order-1/return-2")
    assert [post["idempotency_key"] for post in posts] == ["shop-refund-1-1", "shop-refund-1-2"]
    assert {post["body"]["amount_minor"] for post in posts} == {1_800}
    with pytest.raises(Invalid, match="Another intent has this key"):
        world.propose("order-9", idempotency_key="shop-refund-1-1")


@runs("def relay(row)")
def test_the_services_relay_may_run_as_often_as_it_likes(
    world: World, payments: Payments, tables: SimpleNamespace
) -> None:
    row = tables.Outbox.objects.create(key="shop-1", order=1, amount="50.00")
    relay = run(block("def relay(row)"), payments=payments)["relay"]
    port = payments.port
    payments.port = 9
    relay(row)
    assert (Intent.objects.get().status, row.done) == ("recorded", False)
    payments.port = port
    world.sandbox.order_fault("order-1", "lose_response")
    for _ in range(3):
        relay(row)
    assert (Intent.objects.get().status, row.done) == ("unknown", False)
    intent = Intent.objects.get()
    world.check(intent)
    relay(row)
    row.refresh_from_db()
    assert (world.read(intent).status, row.done) == ("confirmed", True)
    (post,) = world.sandbox.requests("order-1")
    assert post["idempotency_key"] == "shop-1"


def test_the_relay_waits_for_a_person_and_keeps_a_refusal(
    world: World, payments: Payments, tables: SimpleNamespace
) -> None:
    relay = run(block("def relay(row)"), payments=payments)["relay"]
    Kind.objects.update(limits={"EUR": {"approve_above": 10_000}})
    high = tables.Outbox.objects.create(key="shop-1", order=1, amount="500.00")
    relay(high)
    assert (Intent.objects.get().status, high.done, world.sandbox.requests("order-1")) == ("held", False, [])
    refused = tables.Outbox.objects.create(key="shop-2", order=2, amount="50.00")
    world.sandbox.order_fault("order-2", "reject_422")
    relay(refused)
    relay(refused)
    assert refused.done
    assert len(world.sandbox.requests("order-2")) == 1


# the pages themselves


def test_every_block_is_run_by_a_test_here() -> None:
    assert {block(mark) for mark in RUN} == set(blocks(PAGE))
    assert len(RUN) == len(blocks(PAGE)) > 7


def test_readmes_lines_for_a_service_run(world: World, payments: Payments) -> None:
    class Shown:
        def refund(self, *, order_id: str, amount: str, idempotency_key: str) -> Any:
            return payments.refund(order=order_id, amount=amount, idempotency_key=idempotency_key)

    code = block("actions.mark_unknown(intent.id)", README)
    names = run(code, payments=Shown(), Timeout=TimeoutError)
    assert Intent.objects.get(pk=names["intent"].pk).status == "confirmed"
    world.send()
    assert {intent.subject: intent.status for intent in Intent.objects.all()} == {
        "order-4812": "confirmed",
        "order-4813": "confirmed",
    }


def test_it_is_linked_from_where_one_looks() -> None:
    architecture = Path(__file__).parents[2].joinpath("docs", "architecture.md").read_text()
    assert "docs/in-process.md" in README
    assert "(in-process.md)" in architecture
