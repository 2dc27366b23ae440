"""What is believed of a body, however it ends."""

import asyncio
import logging
import time
from typing import Any

import pytest

from landed_client import (
    Action,
    AlreadyDone,
    Failed,
    MayHaveHappened,
    NotFound,
    NotNow,
    UnsettledDuplicate,
    current_action,
    executing,
    guarded,
)
from landed_client.testing import FakeLanded

TRANSFER = {
    "kind": "transfer",
    "subject": "order-1",
    "amount": "5.00",
    "currency": "EUR",
    "params": {"payee": "anna"},
}
FIELDS: dict[str, Any] = {name: value for name, value in TRANSFER.items() if name != "subject"}


class Declined(Exception):
    """A definite no."""


class NoRoute(Exception):
    """Nothing left."""


def reported(fake: FakeLanded, error: BaseException | None, **terms: Any) -> tuple[str, str]:
    """The status right after the body, and the one that the books lead to."""
    client = fake.client()
    try:
        with client.executing(**TRANSFER, **terms) as action:
            if error is not None:
                raise error
    except BaseException as raised:
        if raised is not error:
            raise
    assert action.unreported is None
    reason = action.intent.status_reason
    return reason, client.actions.wait(action.intent.id, timeout=5).outcome


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, ("report_unverified", "confirmed")),
        (Declined("no"), ("report_unverified", "failed")),
        (NoRoute("no route"), ("report_unverified", "failed")),
        (TimeoutError("slow"), ("reported_unknown", "pending")),
        (KeyError("id"), ("reported_unknown", "pending")),
        (KeyboardInterrupt(), ("reported_unknown", "pending")),
        (SystemExit(1), ("reported_unknown", "pending")),
        (GeneratorExit(), ("reported_unknown", "pending")),
        (asyncio.CancelledError(), ("reported_unknown", "pending")),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_only_what_is_listed_as_definite_counts_as_an_answer(error: Any, expected: tuple[str, str]) -> None:
    assert reported(FakeLanded(), error, definite=(Declined,), not_sent=(NoRoute,)) == expected


def test_nothing_is_definite_that_was_not_listed() -> None:
    assert reported(FakeLanded(), Declined("no")) == ("reported_unknown", "pending")


def test_what_the_body_said_goes_before_how_it_ended() -> None:
    fake = FakeLanded()
    with pytest.raises(ValueError, match="afterwards"), fake.client().executing(**TRANSFER) as action:
        action.confirmed(external_id="re_1")
        raise ValueError("afterwards")
    assert (action.intent.external_id, action.word and action.word.outcome) == ("re_1", "confirmed")
    with pytest.raises(ValueError, match="answer"):
        action.failed({})


def test_the_value_is_returned_when_the_report_is_lost(caplog: pytest.LogCaptureFixture) -> None:
    fake = FakeLanded()
    client = fake.client(timeout=2)
    seen: list[Action] = []

    @guarded(client, subject="order-1", **FIELDS)
    def pay() -> str:
        seen.append(current_action())
        fake.lose_answers(50, arrived=False)
        return "done"

    with caplog.at_level(logging.ERROR):
        assert pay() == "done"
    assert seen[0].unreported is not None
    assert "could not be told" in caplog.text
    fake.pass_time(10)
    assert fake.intents()[0]["status"] == "unknown"
    with pytest.raises(LookupError):
        current_action()


def test_the_bodys_own_exception_goes_on_when_the_report_is_lost() -> None:
    fake = FakeLanded()
    with pytest.raises(Declined), fake.client(timeout=2).executing(**TRANSFER, definite=(Declined,)) as action:
        fake.lose_answers(50, arrived=False)
        raise Declined("no")
    assert action.unreported is not None


def test_a_lost_answer_to_the_claim_does_not_lose_the_claim() -> None:
    fake = FakeLanded()
    fake.lose_answers(2)
    with fake.client().executing(**TRANSFER) as action:
        assert (action.attempt, action.idempotency_key) == (1, fake.intents()[0]["idempotency_key"])
    assert len(fake.intents()) == 1


def test_a_claim_that_came_too_late_is_given_back_and_its_body_does_not_run() -> None:
    fake = FakeLanded()
    client = fake.client(timeout=60)
    original = fake.handle_request

    def slowly(request: Any) -> Any:
        answer = original(request)
        if request.url.path.endswith("/intents") and len(fake.requests) == 1:
            fake.pass_time(6)
            return original(request)
        return answer

    fake.handle_request = slowly  # type: ignore[method-assign]
    with pytest.raises(NotNow, match="nothing was sent"), client.executing(**TRANSFER):
        raise AssertionError("this body must not run")
    fake.pass_time(5)
    assert fake.intents()[0]["status"] == "failed"


def test_the_fields_are_read_from_the_calls_own_arguments() -> None:
    fake = FakeLanded()

    @guarded(
        fake.client(),
        kind="transfer",
        subject=lambda order: order,
        amount=lambda amount: amount,
        currency="EUR",
        params=lambda payee: {"payee": payee},
        request_key=lambda order, run: f"{run}-{order}",
    )
    def pay(order: str, amount: str, *, payee: str = "anna", run: str = "r-1") -> str:
        return order

    assert pay("order-7", amount="3.00") == "order-7"
    shown = fake.intents()[0]
    assert (shown["subject"], shown["amount"], shown["params"]) == ("order-7", "3.00", {"payee": "anna"})
    with pytest.raises(TypeError, match="no argument ordr"):
        guarded(fake.client(), kind="transfer", subject=lambda ordr: ordr)(lambda order: None)


def test_an_earlier_refusal_under_the_same_key_is_not_carried_out_again() -> None:
    fake = FakeLanded()
    client = fake.client()
    fields: dict[str, Any] = TRANSFER | {"request_key": "once"}
    with pytest.raises(Declined), client.executing(**fields, definite=(Declined,)):
        raise Declined("no")
    fake.pass_time(5)
    with pytest.raises(Failed), client.executing(**fields):
        raise AssertionError("this body must not run")


def test_the_async_twin_does_the_same() -> None:
    fake = FakeLanded()

    async def run() -> None:
        async with fake.async_client() as client:

            @guarded(client, subject=lambda order: order, request_key=lambda order: f"k-{order}", **FIELDS)
            async def pay(order: str) -> str:
                return current_action().idempotency_key

            assert await pay("order-1") == fake.intents()[0]["idempotency_key"]
            with pytest.raises(MayHaveHappened):
                await pay("order-1")
            with pytest.raises(UnsettledDuplicate):
                await client.actions.propose(**TRANSFER)
            with pytest.raises(NotFound):
                await client.actions.get("nobody")
            page = await client.actions.list(settled=False)
            assert (await client.actions.wait(page.data[0].id, 10)).outcome == "confirmed"
            with pytest.raises(AlreadyDone):
                await pay("order-1")

    asyncio.run(run())


def test_a_cancelled_task_still_says_that_it_does_not_know() -> None:
    fake = FakeLanded()

    async def run() -> None:
        async with fake.async_client() as client:
            begun = asyncio.Event()

            @guarded(client, subject="order-1", **FIELDS)
            async def pay() -> None:
                begun.set()
                await asyncio.sleep(60)

            task = asyncio.create_task(pay())
            await asyncio.wait_for(begun.wait(), 20)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(run())
    assert fake.intents()[0]["status_reason"] == "reported_unknown"


def test_a_function_needs_the_client_that_fits_it() -> None:
    fake = FakeLanded()

    async def later() -> None:
        """Never runs."""

    with pytest.raises(TypeError, match="AsyncLanded"):
        guarded(fake.client(), subject="order-1", **FIELDS)(later)
    with pytest.raises(TypeError, match="executor"), fake.client().executing(**TRANSFER, executor="landed"):
        pass


def renewals(fake: FakeLanded) -> int:
    return sum(path.endswith("/renew") for _, path in fake.requests)


def test_the_lease_is_renewed_while_the_body_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executing, "FIRST_RENEWAL_S", 0.01)
    fake = FakeLanded()
    with fake.client().executing(**TRANSFER, lease_s=60):
        until = time.monotonic() + 5
        while not renewals(fake) and time.monotonic() < until:
            time.sleep(0.01)
        fake.pass_time(50)
        assert fake.intents()[0]["status"] == "submitted"
    assert renewals(fake) == 1


def test_the_lease_is_renewed_while_an_awaited_body_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executing, "FIRST_RENEWAL_S", 0.01)
    fake = FakeLanded()

    async def run() -> None:
        async with fake.async_client() as client, client.executing(**TRANSFER, lease_s=60):
            for _ in range(500):
                if renewals(fake):
                    break
                await asyncio.sleep(0.01)
            fake.pass_time(50)
            assert fake.intents()[0]["status"] == "submitted"

    asyncio.run(run())


def test_a_body_that_hangs_is_renewed_no_longer_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executing, "FIRST_RENEWAL_S", 0.01)
    fake = FakeLanded()
    with fake.client().executing(**TRANSFER, renew_for=0):
        time.sleep(0.1)
        fake.pass_time(6)
        assert fake.intents()[0]["status"] == "unknown"
    assert renewals(fake) == 0
