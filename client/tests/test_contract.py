"""What the client promises, against the fake and against a real server: the same tests, the same answers."""

from typing import Any

import pytest

from landed_client import (
    AlreadyDone,
    Failed,
    Held,
    Intent,
    KeyReused,
    MayHaveHappened,
    NotAllowed,
    NotFound,
    OutcomeUnknown,
    Refused,
    TooLate,
    UnsettledDuplicate,
    guarded,
)
from tests.conftest import World

FORBIDDEN_WORDS = ("failed", "try again", "retry", "timed out", "timeout", "error")


def propose(world: World, subject: str, **more: Any) -> Intent:
    return world.landed.actions.propose(
        **({"kind": "refund", "amount": "50.00", "currency": "EUR"} | more), subject=subject
    )


def transfer(subject: str, **more: Any) -> dict[str, Any]:
    fields = {"kind": "transfer", "amount": "5.00", "currency": "EUR", "params": {"payee": "anna"}}
    return fields | {"subject": subject} | more


def test_what_is_proposed_is_confirmed_and_found_by_its_request_key(world: World) -> None:
    subject = world.new_subject()
    found = propose(world, subject, wait=15)
    assert (found.outcome, found.step, found.settled_amount) == ("confirmed", "done", "50.00")
    assert found.request_key
    again = world.landed.actions.find(request_key=found.request_key)
    assert again is not None
    assert (again.id, again.request_key) == (found.id, found.request_key)
    assert world.landed.actions.find(request_key="nobody-used-this") is None
    assert world.sendings(subject) == 1


def test_a_lost_response_is_unknown_and_blocks_and_is_confirmed_in_the_end(world: World) -> None:
    subject = world.new_subject()
    world.lose_the_downstreams_answer(subject)
    first = propose(world, subject)
    unknown = world.landed.actions.wait(first.id, timeout=1)
    assert (unknown.outcome, unknown.settled, unknown.may_propose_again) == ("pending", False, False)
    assert not any(word in unknown.message.lower() for word in FORBIDDEN_WORDS)
    with pytest.raises(UnsettledDuplicate) as refused:
        propose(world, subject)
    assert (refused.value.intent_id, refused.value.next_step, refused.value.same_payload) == (first.id, "wait", True)
    assert refused.value.ask_again_at is not None
    assert refused.value.retryable is False
    world.open_the_books(subject)
    assert world.landed.actions.wait(first.id, timeout=30).outcome == "confirmed"
    assert world.sendings(subject) == 1


def test_the_feed_tells_each_change_once_and_in_order(world: World) -> None:
    actions = world.landed.actions
    position = newest(world)
    found = propose(world, world.new_subject(), wait=15)
    told = []
    while True:
        page = actions.events(after=position, limit=2)
        told += [event for event in page.data if event.intent_id == found.id]
        assert [event.position for event in page.data] == sorted({event.position for event in page.data})
        position = page.next
        if not page.has_more:
            break
    assert (told[0].type, told[-1].type, told[-1].status) == ("intent.recorded", "intent.settled", "confirmed")
    assert [event.sequence for event in told] == sorted({event.sequence for event in told})
    assert actions.events(after=position).data == ()


def newest(world: World) -> int:
    position, page = 0, world.landed.actions.events()
    while page.has_more or page.next > position:
        position = page.next
        page = world.landed.actions.events(after=position)
    return position


def test_time_that_runs_out_raises_a_name_that_nobody_takes_for_a_failure(world: World) -> None:
    subject = world.new_subject()
    world.lose_the_downstreams_answer(subject)
    with pytest.raises(OutcomeUnknown) as raised:
        world.landed.actions.perform(kind="refund", subject=subject, amount="50.00", currency="EUR", wait=1)
    assert not isinstance(raised.value, TimeoutError | Failed)
    assert not any(word in str(raised.value).lower() for word in FORBIDDEN_WORDS)
    assert raised.value.intent is not None
    assert raised.value.request_key == raised.value.intent.request_key
    world.open_the_books(subject)
    assert world.landed.actions.result(raised.value.intent.id, timeout=30).outcome == "confirmed"


def test_a_refusal_by_the_downstream_is_failed_and_may_come_again(world: World) -> None:
    subject = world.new_subject()
    world.let_the_downstream_refuse(subject)
    with pytest.raises(Failed) as raised:
        world.landed.actions.perform(kind="refund", subject=subject, amount="50.00", currency="EUR", wait=20)
    assert raised.value.intent.may_propose_again is True


def test_the_same_request_key_gives_the_same_intent_and_another_payload_is_refused(world: World) -> None:
    subject, other = world.new_subject(), world.new_subject()
    first = propose(world, subject, request_key=f"key-{subject}")
    again = propose(world, subject, request_key=f"key-{subject}", note="told otherwise")
    assert (again.id, again.replayed, again.differs) == (first.id, True, ("note",))
    with pytest.raises(KeyReused) as refused:
        propose(world, other, amount="51.00", request_key=f"key-{subject}")
    assert set(refused.value.differs) == {"subject", "amount"}
    assert refused.value.intent is not None
    assert refused.value.intent.id == first.id


def test_two_subjects_are_two_intents(world: World) -> None:
    one, other = propose(world, world.new_subject()), propose(world, world.new_subject())
    assert one.id != other.id
    assert one.request_key != other.request_key


def test_what_waits_for_a_person_is_held_when_time_runs_out_and_stays_held(world: World) -> None:
    subject = world.new_subject()
    held = propose(world, subject, amount="10000.01", wait=1)
    assert (held.status, held.step, held.outcome) == ("held", "wait_for_person", "pending")
    assert held.review is not None
    assert held.review.purpose == "approval"
    with pytest.raises(Held) as raised:
        world.landed.actions.result(held.id, timeout=0)
    assert isinstance(raised.value, OutcomeUnknown)
    assert world.landed.actions.get(held.id).status == "held"
    assert world.sendings(subject) == 0
    world.approve(held)
    assert world.landed.actions.wait(held.id, timeout=20).outcome == "confirmed"


def test_what_a_person_rejects_may_not_come_again(world: World) -> None:
    subject = world.new_subject()
    held = propose(world, subject, amount="10000.01")
    world.reject(held)
    found = world.landed.actions.get(held.id)
    assert (found.outcome, found.may_propose_again) == ("cancelled", False)
    assert world.sendings(subject) == 0


def test_what_was_never_sent_can_be_cancelled_and_what_was_can_not(world: World) -> None:
    held = propose(world, world.new_subject(), amount="10000.01")
    assert world.landed.actions.cancel(held.id).outcome == "cancelled"
    assert world.landed.actions.cancel(held.id).outcome == "cancelled"
    done = propose(world, world.new_subject(), wait=15)
    with pytest.raises(TooLate):
        world.landed.actions.cancel(done.id)


def test_fields_that_can_not_be_taken_are_named(world: World) -> None:
    with pytest.raises(Refused) as refused:
        propose(world, world.new_subject(), amount="50.001")
    assert list(refused.value.fields) == ["amount"]
    assert (refused.value.code, refused.value.status) == ("invalid", 422)
    assert refused.value.request_key
    with pytest.raises(NotAllowed) as not_allowed:
        propose(world, world.new_subject(), kind="launch")
    assert not_allowed.value.code == "kind_not_allowed"
    with pytest.raises(NotFound):
        world.landed.actions.get("0193f5a0-0000-7000-8000-000000000000")
    with pytest.raises(NotFound):
        world.landed.actions.get("../kinds")


def test_a_list_is_narrowed_and_paged(world: World) -> None:
    run = f"run-{world.new_subject()}"
    made = [propose(world, world.new_subject(), context={"run": run}) for _ in range(3)]
    first = world.landed.actions.list(run=run, limit=2)
    rest = world.landed.actions.list(run=run, limit=2, cursor=first.next_cursor)
    assert [one.id for one in (*first.data, *rest.data)] == [one.id for one in reversed(made)]
    assert rest.next_cursor is None
    assert world.landed.me()["scopes"] == ["propose", "read", "report"]
    assert {kind["name"] for kind in world.landed.kinds()} == {"refund", "transfer"}


def test_a_caller_claims_renews_and_reports(world: World) -> None:
    actions = world.landed.actions
    intent = actions.propose(**transfer(world.new_subject(), executor="caller"))
    assert (intent.status, intent.step) == ("recorded", "send")
    claim = actions.claim(intent.id, claim_token="mine")
    assert (claim.attempt.number, claim.attempt.may_send) == (1, True)
    assert claim.idempotency_key == intent.idempotency_key
    assert actions.claim(intent.id, claim_token="mine").attempt.number == 1
    with pytest.raises(MayHaveHappened):
        actions.claim(intent.id, claim_token="another")
    renewed = actions.renew(intent.id, attempt=1, claim_token="mine", lease_s=60)
    assert claim.attempt.lease_until is not None
    assert renewed.attempt.lease_until is not None
    assert renewed.attempt.lease_until > claim.attempt.lease_until
    with pytest.raises(Refused):
        actions.report(intent.id, attempt=1, claim_token="mine", outcome="failed")
    said = actions.report(intent.id, attempt=1, claim_token="mine", outcome="not_sent")
    assert said.outcome in ("pending", "failed")


def test_a_body_that_returns_is_confirmed_and_does_not_run_again(world: World) -> None:
    subject, ran = world.new_subject(), []

    @guarded(
        world.landed,
        kind="transfer",
        subject=lambda order: order,
        amount="5.00",
        currency="EUR",
        params={"payee": "anna"},
        request_key=lambda order: f"once-{order}",
        external_id=lambda done: done,
    )
    def pay(order: str) -> str:
        from landed_client import current_action

        ran.append(order)
        return world.do_it(current_action())

    done = pay(subject)
    with pytest.raises((AlreadyDone, MayHaveHappened)):
        pay(order=subject)
    intent = world.landed.actions.find(request_key=f"once-{subject}")
    assert intent is not None
    settled = world.landed.actions.wait(intent.id, timeout=30)
    assert (settled.outcome, settled.external_id) == ("confirmed", done)
    with pytest.raises(AlreadyDone) as raised:
        pay(subject)
    assert raised.value.intent is not None
    assert raised.value.intent.id == intent.id
    assert ran == [subject]


def test_a_body_that_raises_is_unknown_and_its_subject_is_closed(world: World) -> None:
    subject = world.new_subject()
    with pytest.raises(ConnectionResetError), world.landed.executing(**transfer(subject)) as action:
        raise ConnectionResetError("the line went dead")
    assert action.unreported is None
    assert (action.intent.status, action.intent.outcome) == ("unknown", "pending")
    with pytest.raises(UnsettledDuplicate), world.landed.executing(**transfer(subject)):
        raise AssertionError("this body must not run")


def test_what_needs_approval_is_not_carried_out_before_it(world: World) -> None:
    fields = transfer(world.new_subject(), amount="5000.01", request_key=f"approve-{world.new_subject()}")
    with pytest.raises(Held) as raised, world.landed.executing(**fields):
        raise AssertionError("this body must not run")
    assert raised.value.intent is not None
    world.approve(raised.value.intent)
    with world.landed.executing(**fields) as action:
        assert action.intent.id == raised.value.intent.id
        action.not_sent()
    assert action.attempt == 1
