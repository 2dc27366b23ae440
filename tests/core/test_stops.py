"""Stops: what they find however it is spelled, what they hold, and that nothing slips past one."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from actions import callers, claims, dispatch, history, stops, times
from actions.connectors.http_json.example import EXAMPLE
from actions.errors import AlreadyDone, Invalid, LandedError, NotApproved, NotFound, UnsettledDuplicate
from actions.models import Agent, Attempt, Downstream, Executor, Intent, Kind, Result, Stop
from actions.recording import Recorded
from actions.statuses import Actor, Status
from reconciliation.models import Choice, DecisionReason, Review
from reconciliation.reviews import deciding
from tests.core.steps import expire, propose, race, read, settle, submit
from tests.factories import make_agent, make_downstream, make_intent, make_kind, make_person

pytestmark = pytest.mark.django_db

WHO = "person:7"


def place(scope: str = "customer", value: str = "c-5", **more: Any) -> Stop:
    return stops.place(scope, value, **({"reason": "suspected fraud", "actor_id": WHO} | more))


def world(**kind: Any) -> tuple[Agent, Kind]:
    """An agent and a kind that says who is paid and whom it is for."""
    found = make_kind(**({"payee_from": "payee", "customer_from": "customer"} | kind))
    return make_agent(found), found


def sendable(monkeypatch: pytest.MonkeyPatch) -> Downstream:
    """A downstream whose connector can make a request of an intent; nobody listens there."""
    monkeypatch.setenv("LANDED_TEST_SECRET", "sk_test_never_to_be_stored")
    return make_downstream(config=EXAMPLE.target.config, secret_env="LANDED_TEST_SECRET")


def claim(intent: Intent, token: str = "t-1") -> Attempt:
    return callers.claim(intent.pk, claim_token=token, actor_id="agent:1")


def take(intent: Intent, token: str = "t-1") -> claims.Claim:
    return callers.take(intent.pk, claim_token=token, actor_id="agent:1")


def reasons_of(intent: Intent) -> list[str]:
    return [reason.code for reason in Review.objects.get(intent=intent, closed_at=None).reasons.all()]


# one key for every spelling


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("c-5", "C-5"),
        ("c-5", "ｃ－５"),
        ("c-5", " c - 5 "),
        ("c-5", "c\u00a0-\u30005"),
        ("c-5", "c\u1680-\t5\n"),
        ("c-5", "c\u200b-\u00ad5\ufeff"),
        ("DE89 3704 0044 0532 0130 00", "de89370400440532013000"),
        ("Straße", "STRASSE"),
        ("café", "CAFE\u0301"),
        ("ﬁsh", "FISH"),
        ("Å", "\u212b"),
        ("istanbul", "İSTANBUL"),
        ("Yıldız", "YILDIZ"),
    ],
)
def test_what_is_spelled_otherwise_is_the_same(one: str, other: str) -> None:
    assert stops.fold(one) == stops.fold(other)


@pytest.mark.parametrize(("one", "other"), [("c-5", "c-6"), ("c-5", "c-55"), ("resume", "résumé"), ("c-5", "c5")])
def test_what_is_something_else_stays_something_else(one: str, other: str) -> None:
    assert stops.fold(one) != stops.fold(other)


@given(st.text(max_size=20))
def test_a_key_is_its_own_key(text: str) -> None:
    assert stops.fold(stops.fold(text)) == stops.fold(text)


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=20))
def test_neither_case_nor_space_makes_another_key(text: str) -> None:
    key = stops.fold(text)
    assert stops.fold(text.upper()) == stops.fold(text.lower()) == key
    assert stops.fold(f" {text}\u3000") == stops.fold("\u200b".join(text)) == key


@given(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=20))
def test_full_width_letters_make_no_other_key(text: str) -> None:
    assert stops.fold("".join(chr(ord(char) + 0xFEE0) for char in text)) == stops.fold(text)


def test_a_key_fits_its_column_however_much_its_letters_hold() -> None:
    stop = place(value="\ufdfa" * 200)
    assert len(stop.key) == 600
    assert [found.pk for found in applying(customer="\ufdfa" * 200)] == [stop.pk]


# placing and lifting


def test_a_stop_says_who_placed_it_when_and_why() -> None:
    before = times.now()
    stop = place(value="  C\u00a0-5 ", reason=" suspected\u00a0fraud ")
    assert (stop.scope, stop.value, stop.kind, stop.reason) == ("customer", "C -5", None, "suspected fraud")
    assert (stop.placed_by, stop.lifted_at, stop.lifted_by) == (WHO, None, "")
    assert before <= stop.placed_at <= times.now()


def test_the_same_stop_again_is_the_one_there_is() -> None:
    first = place()
    again = place(value="ｃ - 5", reason="another one", actor_id="person:8")
    assert (again.pk, again.reason, again.placed_by) == (first.pk, "suspected fraud", WHO)
    assert Stop.objects.count() == 1


def test_for_one_kind_and_for_every_kind_are_two_stops() -> None:
    kind = make_kind()
    assert len({place().pk, place(kind=kind).pk, place(kind=make_kind()).pk, place(kind=kind).pk}) == 3


def test_payee_customer_and_subject_of_one_name_are_three_stops() -> None:
    assert len({place(scope, "c-5").pk for scope in ("payee", "customer", "subject")}) == 3


@pytest.mark.parametrize(
    ("wrong", "fields"),
    [
        ({"scope": "everything"}, {"scope"}),
        ({"value": ""}, {"value"}),
        ({"value": " \u3000 "}, {"value"}),
        ({"value": "c\u200b-5"}, {"value"}),
        ({"value": "c\x00"}, {"value"}),
        ({"value": "c\n5"}, {"value"}),
        ({"value": "\ud800"}, {"value"}),
        ({"value": "x" * 201}, {"value"}),
        ({"scope": "subject", "value": "order-1//line-2"}, {"value"}),
        ({"scope": "subject", "value": "/"}, {"value"}),
        ({"reason": ""}, {"reason"}),
        ({"reason": "  "}, {"reason"}),
        ({"reason": "a\u202eb"}, {"reason"}),
        ({"reason": "x" * 201}, {"reason"}),
        ({"value": "", "reason": ""}, {"value", "reason"}),
    ],
)
def test_what_can_t_be_stopped_is_said_field_by_field(wrong: dict[str, str], fields: set[str]) -> None:
    with pytest.raises(Invalid) as told:
        place(**wrong)
    assert {error["field"] for error in told.value.details["errors"]} == fields
    assert not Stop.objects.exists()


def test_a_stop_is_lifted_once() -> None:
    stop = place()
    lifted = stops.lift(stop.pk, actor_id="person:9")
    again = stops.lift(stop.pk, actor_id="person:8", now=times.now() + timedelta(days=1))
    assert (
        (again.lifted_by, again.lifted_at) == (lifted.lifted_by, lifted.lifted_at) == ("person:9", lifted.lifted_at)
    )
    assert lifted.lifted_at is not None
    with pytest.raises(NotFound):
        stops.lift(stop.pk + 1, actor_id=WHO)


def test_after_it_was_lifted_it_can_be_placed_anew() -> None:
    first = place()
    stops.lift(first.pk, actor_id=WHO)
    assert place().pk != first.pk


@pytest.mark.django_db(transaction=True)
def test_a_stop_is_committed_before_anything_else_and_by_itself() -> None:
    """A rollback of somebody's own would take it back silently."""
    with pytest.raises(RuntimeError), transaction.atomic():
        place()
    assert not Stop.objects.exists()


# what a stop concerns


def applying(kind: Kind | None = None, subject: str = "order-1", payee: str = "", customer: str = "") -> list[Stop]:
    return stops.applying((kind or make_kind()).pk, subject=subject, payee=payee, customer=customer)


@pytest.mark.parametrize(
    ("stopped", "asked", "concerned"),
    [
        ("order-4812", "order-4812", True),
        ("order-4812", "order-4812/line-2", True),
        ("order-4812", "order-4812/line-2/part-1", True),
        ("order-4812/line-2", "order-4812", True),
        ("order-4812/line-2", "order-4812/line-2/part-1", True),
        ("order-4812/line-2", "ORDER-4812 / Ｌine-2", True),
        ("Order-4812", "order-4812/line-2", True),
        ("order-4812", "order-4812／line-2", True),
        ("order-4812/line-2", "order-4812／", True),
        ("order-4812", "／order-4812", True),
        ("order-4812/line-2", "order-4812/line-3", False),
        ("order-4812/line-1", "order-4812/line-10", False),
        ("order-481", "order-4812", False),
        ("order-4812", "order-481", False),
    ],
)
def test_a_stop_on_a_thing_concerns_its_parts_and_the_other_way_round(
    stopped: str, asked: str, concerned: bool
) -> None:
    stop = place("subject", stopped)
    assert [found.pk for found in applying(subject=asked)] == ([stop.pk] if concerned else [])


def test_a_customer_is_no_payee_and_a_line_of_no_name_is_nobody() -> None:
    place("customer", "c-5")
    place("payee", "p-7")
    assert applying(payee="c-5", customer="p-7") == []
    assert applying(payee=" ", customer="") == []
    assert [stop.value for stop in applying(payee="P-7", customer="C-5")] == ["c-5", "p-7"]


def test_a_stop_on_one_kind_leaves_the_others_alone() -> None:
    stopped, other = make_kind(), make_kind()
    place(kind=stopped)
    assert len(applying(stopped, customer="c-5")) == 1
    assert applying(other, customer="c-5") == []


def test_what_is_lifted_concerns_nothing() -> None:
    stop = place()
    stops.lift(stop.pk, actor_id=WHO)
    assert applying(customer="c-5") == []


def test_what_concerns_an_intent_is_one_query_however_many_stops_there_are() -> None:
    intent = make_intent(subject="order-1/line-2", payee="p-7", customer="c-5")
    for number in range(30):
        place("subject", f"order-1/line-{number}")
        place("customer", f"c-{number}")
    place("payee", "p-7")
    with CaptureQueriesContext(connection) as queries:
        found = stops.of_intent(intent)
    assert [stop.value for stop in found] == ["order-1/line-2", "c-5", "p-7"]
    assert len(queries) == 1


# new proposals


@pytest.mark.parametrize(
    ("scope", "value"),
    [("customer", "C - 5"), ("payee", "ｐ－７"), ("subject", "ORDER-4812/line-2"), ("subject", "order-4812")],
)
def test_a_proposal_that_a_stop_concerns_is_held_and_tells_no_reason(scope: str, value: str) -> None:
    agent, kind = world()
    place(scope, value)
    intent = propose(agent, kind, params={"customer": "c-5", "payee": "p-7"}).intent
    assert (intent.status, intent.status_reason, intent.hold_reasons) == ("held", "needs_approval", "stopped")
    assert intent.approve_before is not None
    assert intent.next_attempt_at is None
    assert reasons_of(intent) == ["stopped"]
    assert history.faults(intent) == []


def test_a_proposal_that_no_stop_concerns_is_recorded() -> None:
    agent, kind = world()
    place(kind=make_kind())
    place("payee", "c-5")
    place("subject", "order-4812/line-1")
    intent = propose(agent, kind, subject="order-4812/line-2", params={"customer": "c-5", "payee": "p-7"}).intent
    assert (intent.status, intent.hold_reasons) == ("recorded", "")


@pytest.mark.parametrize("customer", ["C-5", "ｃ-5", "c -5", "c-5\u3000", 5, " 5"])
def test_no_spelling_gets_a_proposal_past_a_stop(customer: Any) -> None:
    agent, kind = world()
    place(value="c-5")
    place(value="5")
    assert propose(agent, kind, params={"customer": customer}).intent.status == "held"


def test_a_proposal_that_claims_in_the_same_call_is_held_and_not_claimed() -> None:
    agent, kind = world()
    place("subject", "order-4812")
    intent = propose(agent, kind, executor="caller", claim_token="t-1").intent
    assert (intent.status, intent.fence, intent.first_maybe_sent_at) == ("held", 0, None)
    assert not Attempt.objects.exists()


def test_what_the_policy_refuses_is_refused_first() -> None:
    agent, kind = world(look_alike_policy="refuse")
    place("subject", "order-4812")
    blocker = make_intent(kind, agent, subject="order-4812")
    with pytest.raises(UnsettledDuplicate):
        propose(agent, kind)
    settle(blocker, Status.CONFIRMED)
    with pytest.raises(AlreadyDone):
        propose(agent, kind)
    assert Intent.objects.count() == 1


def test_a_stop_joins_the_other_reasons_for_a_person_to_look() -> None:
    agent, kind = world(duplicate_policy="hold", limits={"EUR": {"approve_above": 100}})
    make_intent(kind, agent, subject="order-4812")
    place("subject", "order-4812")
    intent = propose(agent, kind).intent
    assert intent.hold_reasons == "approval,duplicate_proposal,stopped"
    assert reasons_of(intent) == ["approval", "duplicate_proposal", "stopped"]


def test_recording_asks_for_stops_once() -> None:
    agent, kind = world()
    propose(agent, kind, subject="order-1")  # the policy's snapshot is there from now on

    def cost(subject: str) -> tuple[int, int]:
        with CaptureQueriesContext(connection) as queries:
            propose(agent, kind, subject=subject, params={"customer": "c-9", "payee": "p-9"})
        return len(queries), sum('"actions_stop"' in query["sql"] for query in queries)

    few = cost("order-2")
    for number in range(20):
        place(value=f"c-1{number}")
    assert cost("order-3") == few
    assert few[1] == 1


# what is recorded already


def recorded(kind: Kind, **columns: Any) -> Intent:
    return make_intent(kind, **({"customer": "c-5", "payee": "p-7", "next_attempt_at": times.now()} | columns))


def test_placing_a_stop_holds_what_is_recorded_however_much_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stops, "_PAGE", 2)
    kind, other = make_kind(), make_kind()
    mine = [recorded(kind, customer=customer) for customer in ("c-5", "C-5", "ｃ-5", "c -5", "c-5")]
    others = [recorded(kind, customer="c-55"), recorded(kind, customer=""), recorded(other, customer="c-5")]
    place(kind=kind)
    assert {read(intent).status for intent in mine} == {"held"}
    assert {read(intent).status for intent in others} == {"recorded"}


def test_whoever_placed_the_stop_holds_and_agents_read_no_reason() -> None:
    intent = recorded(make_kind())
    place("payee", "P-7")
    found = read(intent)
    assert (found.status, found.status_reason, found.hold_reasons) == ("held", "held_on_stop", "stopped")
    assert found.next_attempt_at is None
    assert found.approve_before is not None
    last = found.transitions.last()
    assert last is not None
    assert (last.actor, last.actor_id) == (Actor.REVIEWER, WHO)
    assert reasons_of(found) == ["stopped"]
    assert history.faults(found) == []


@pytest.mark.parametrize(
    ("stopped", "held"), [("order-1", True), ("ORDER-1/line-2", True), ("order-1/line-3", False)]
)
def test_what_is_recorded_on_a_part_is_held_by_a_stop_on_the_whole(stopped: str, held: bool) -> None:
    intent = recorded(make_kind(), subject="order-1/line-2")
    place("subject", stopped)
    assert read(intent).status == ("held" if held else "recorded")


def test_what_rests_on_a_callers_word_is_held_without_end() -> None:
    """Only what is proven not to be sent may expire as if it never had been."""
    intent = make_intent(make_kind(), executor="caller", customer="c-5")
    claim(intent)
    callers.report(intent.pk, outcome=callers.reported(Result.NOT_SENT), content={"why": "x"}, actor_id="agent:1")
    place()
    found = read(intent)
    assert (found.status, found.approve_before) == ("held", None)


def test_what_may_have_been_sent_is_left_as_it_is() -> None:
    kind = make_kind()
    submitted, unknown = recorded(kind), recorded(kind)
    held = make_intent(kind, customer="c-5", to=Status.HELD, hold_reasons="approval")
    submit(submitted)
    submit(unknown)
    expire(unknown)
    before = [read(intent).version for intent in (submitted, unknown, held)]
    place()
    assert [read(intent).version for intent in (submitted, unknown, held)] == before


def test_what_was_approved_already_is_held_again_with_its_waiver_gone() -> None:
    intent = recorded(make_kind(), guard_key=None, guard_waived=True)
    place()
    found = read(intent)
    assert (found.status, found.guard_waived) == ("held", False)


def test_one_that_can_t_be_had_now_keeps_no_other_from_being_held(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = make_kind()
    intents = [recorded(kind) for _ in range(3)]
    real, tries = stops.holding.hold, iter([True, False, False])

    def hold(*args: Any, **more: Any) -> None:
        if next(tries, False):
            raise OperationalError("deadlock detected")
        real(*args, **more)

    monkeypatch.setattr(stops.holding, "hold", hold)
    stop = place()
    assert [read(intent).status for intent in intents] == ["recorded", "held", "held"]
    assert place().pk == stop.pk, "placed again, it goes on with what is left"
    assert read(intents[0]).status == "held"


def test_a_stop_that_is_lifted_in_between_holds_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    intent = recorded(make_kind())

    def lifted(*_: Any) -> None:
        Stop.objects.update(lifted_at=times.now(), lifted_by=WHO)

    monkeypatch.setattr(stops.subjects, "lock_family", lifted)
    place()
    assert read(intent).status == "recorded"


def test_what_was_claimed_since_the_list_was_made_is_left_to_its_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    intent = recorded(make_kind())
    monkeypatch.setattr(stops.subjects, "lock_family", lambda *_: submit(intent))
    place()
    assert read(intent).status == "submitted"


# claims


def stopped_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on placing finds nothing that is recorded, as if it were all recorded a moment later."""
    monkeypatch.setattr(stops, "_recorded", lambda _: iter(()))


def make(**columns: Any) -> Intent:
    return make_intent(make_kind(reports_trusted=True), **({"executor": "caller", "customer": "c-5"} | columns))


def test_a_claim_that_meets_a_stop_holds_it_and_says_what_every_held_one_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopped_beside(monkeypatch)
    intent, held = make(), make(to=Status.HELD, customer="c-6")
    place()
    said = []
    for one in (intent, held):
        with pytest.raises(NotApproved) as told:
            claim(one)
        said.append(told.value.message)
    assert said[0] == said[1]
    found = read(intent)
    assert (found.status, found.status_reason, found.hold_reasons) == ("held", "held_on_stop", "stopped")
    assert not Attempt.objects.exists()


def test_a_worker_that_meets_a_stop_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped_beside(monkeypatch)
    intent = recorded(make_kind(sendable(monkeypatch)), executor=Executor.LANDED)
    place()
    assert dispatch.claim(slots=5) == []
    found = read(intent)
    assert (found.status, found.status_reason) == ("held", "held_on_stop")
    assert not Attempt.objects.exists()


def test_an_open_attempt_may_not_be_sent_while_a_stop_applies() -> None:
    intent = make()
    claim(intent)
    stop = place()
    assert take(intent).may_send is False
    for act in (lambda: claim(intent), lambda: callers.renew(intent.pk, number=1, claim_token="t-1")):
        with pytest.raises(NotApproved) as told:
            act()
        assert "stop" not in told.value.message.lower()
        assert "fraud" not in told.value.message
    assert read(intent).status == "submitted"
    stops.lift(stop.pk, actor_id=WHO)
    assert take(intent).may_send is True
    assert callers.renew(intent.pk, number=1, claim_token="t-1").number == 1


def test_what_came_of_an_attempt_is_taken_while_a_stop_applies() -> None:
    intent = make()
    claim(intent)
    place()
    callers.report(intent.pk, outcome=callers.reported(Result.CONFIRMED), content={"id": 1}, actor_id="agent:1")
    assert read(intent).status == "confirmed"


def test_a_stop_placed_while_a_claim_is_being_made_is_met_by_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Placing found it recorded no more, and the claim had looked before: whoever is told now is told no."""
    stopped_beside(monkeypatch)
    real = claims._submit

    def submit_then_stop(*args: Any) -> Attempt:
        made = real(*args)
        Stop.objects.create(
            scope="customer", value="c-5", key="c-5", reason="x", placed_by=WHO, placed_at=times.now()
        )
        return made

    monkeypatch.setattr(claims, "_submit", submit_then_stop)
    intent = make()
    found = take(intent)
    assert (found.is_new, found.may_send) == (True, False)
    with pytest.raises(NotApproved):
        claim(intent)


def test_a_claim_that_no_stop_concerns_is_made() -> None:
    place(kind=make_kind())
    place("payee", "c-5")
    assert claim(make()).number == 1


# at once, in real threads


@pytest.mark.django_db(transaction=True)
def test_eight_who_place_the_same_stop_at_once_place_one() -> None:
    found = race(8, lambda index: place(value="c-5" if index % 2 else "Ｃ-5"))
    assert len({stop.pk for stop in found if isinstance(stop, Stop)}) == 1
    assert all(isinstance(stop, Stop) for stop in found)


@pytest.mark.django_db(transaction=True)
def test_what_is_being_recorded_while_a_stop_is_placed_is_held_or_met_by_its_claim(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Recording had looked, and its transaction stays open, as an application's own does; then it commits."""
    if connection.vendor != "postgresql":
        pytest.skip("on SQLite one who writes is alone, so that nothing comes in between")
    agent, kind = world(downstream=sendable(monkeypatch))
    propose(agent, kind, subject="order-0")  # the policy's snapshot is there: nothing else makes one wait
    with transaction.atomic():
        landed = propose(agent, kind, subject="order-1", params={"customer": "c-5"}).intent
        caller = propose(agent, kind, subject="order-2", params={"customer": "c-5"}, executor="caller").intent
        (stop,) = race(1, lambda _: place())
        assert isinstance(stop, Stop), "a stop waits for nobody"
    assert [read(intent).status for intent in (landed, caller)] == ["recorded", "recorded"]
    assert landed.pk not in [one.intent_id for one in dispatch.claim(slots=5)]
    with pytest.raises(NotApproved):
        claim(caller)
    assert [read(intent).status for intent in (landed, caller)] == ["held", "held"]


@pytest.mark.django_db(transaction=True)
def test_once_a_stop_is_placed_nobody_is_told_that_they_may_send(monkeypatch: pytest.MonkeyPatch) -> None:
    """The claim had looked and was about to commit; the stop comes and is committed in between."""
    if connection.vendor != "postgresql":
        pytest.skip("on SQLite one who writes is alone, so that nothing comes in between")
    intent, submit_, recorded_ = make(), claims._submit, stops._recorded
    submitted, committed = threading.Event(), threading.Event()

    def submit_slowly(*args: Any) -> Attempt:
        made = submit_(*args)
        submitted.set()
        assert committed.wait(20)
        return made

    def once_committed(stop: Stop) -> Any:
        committed.set()
        return recorded_(stop)

    def act(index: int) -> claims.Claim | Stop:
        return take(intent) if index == 0 else submitted.wait(20) and place()

    monkeypatch.setattr(claims, "_submit", submit_slowly)
    monkeypatch.setattr(stops, "_recorded", once_committed)
    claimed, stop = race(2, act)
    assert isinstance(stop, Stop)
    assert isinstance(claimed, claims.Claim)
    assert claimed.may_send is False
    assert read(intent).status == "submitted"


@pytest.mark.django_db(transaction=True)
def test_claims_and_a_stop_at_once_leave_nothing_recorded_and_wait_in_no_circle() -> None:
    kind = make_kind()
    intents = [make_intent(kind, executor="caller", customer="c-5", subject=f"order-{n}") for n in range(8)]
    results = race(9, lambda index: place() if index == 8 else take(intents[index]))
    assert all(isinstance(found, claims.Claim | Stop | NotApproved) for found in results), results
    for intent, found in zip(intents, results, strict=False):
        assert read(intent).status == ("submitted" if isinstance(found, claims.Claim) else "held")
        with pytest.raises(LandedError):
            claim(intent)


@pytest.mark.django_db(transaction=True)
def test_proposals_and_a_stop_at_once_are_held_or_can_not_be_claimed() -> None:
    agent, kind = world()
    propose(agent, kind, subject="order-0")

    def act(index: int) -> Recorded | Stop:
        if index == 4:
            return place()
        token = {"claim_token": f"t-{index}"} if index % 2 else {}
        return propose(
            agent, kind, subject=f"order-{index + 1}", params={"customer": "c-5"}, executor="caller", **token
        )

    results = race(9, act)
    assert [found for found in results if isinstance(found, Exception)] == []
    for index, found in enumerate(results):
        if isinstance(found, Recorded):
            with pytest.raises(NotApproved):
                claim(found.intent, f"t-{index}")
            assert read(found.intent).status in ("held", "submitted")


# what docs/stops.md says of pauses


@pytest.mark.parametrize("what", ["agent", "kind", "downstream"])
def test_what_is_recorded_is_not_sent_while_something_is_paused(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    intent = recorded(make_kind(sendable(monkeypatch)))
    paused = getattr(intent, what)
    paused.paused = True
    paused.save()
    assert dispatch.claim(slots=5) == []
    assert (read(intent).status, read(intent).guard_key) == ("recorded", intent.guard_key)
    paused.paused = False
    paused.save()
    assert [one.intent_id for one in dispatch.claim(slots=5)] == [intent.pk]


@pytest.mark.parametrize("what", ["agent", "kind", "downstream"])
def test_what_is_held_can_be_approved_while_something_is_paused(what: str) -> None:
    intent = make_intent(to=Status.HELD, hold_reasons="approval")
    paused = getattr(intent, what)
    paused.paused = True
    paused.save()
    review = Review.objects.select_related("intent").get(intent=intent)
    deciding.decide(
        review.pk,
        person=make_person(),
        choice=Choice.APPROVE,
        reason=DecisionReason.JUSTIFIED,
        note="",
        seen=deciding.seen(review),
    )
    assert read(intent).status == "recorded"
    assert dispatch.claim(slots=5) == []
