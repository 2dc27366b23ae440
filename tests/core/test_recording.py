"""Recording: the only way in, in a fixed order, and only what was recorded binds a request key."""

import json
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from actions import history, times
from actions.canonical import canonical, digest
from actions.errors import (
    AgentPaused,
    AlreadyDone,
    BadIdempotencyKey,
    Invalid,
    KeyReused,
    KindNotAllowed,
    KindPaused,
    LandedError,
    NotFound,
    UnsettledDuplicate,
)
from actions.models import Agent, Attempt, Intent, Kind
from actions.statuses import Status
from reconciliation.models import Review
from tests.core.steps import propose, read, settle
from tests.factories import make_agent, make_downstream, make_kind

pytestmark = pytest.mark.django_db


def world(**kind: Any) -> tuple[Agent, Kind]:
    found = make_kind(**({"executors": "both"} | kind))
    return make_agent(found), found


def fields_of(told: pytest.ExceptionInfo[Invalid]) -> set[str]:
    return {error["field"] for error in told.value.details["errors"]}


def nothing_was_recorded() -> bool:
    return not Intent.objects.exists()


# the plain case


def test_an_intent_is_recorded_with_its_keys_guard_and_history() -> None:
    agent, kind = world()
    recorded = propose(
        agent, kind, request_key="r-1", note="as agreed", context={"run": "7"}, params={"b": 1, "a": "x"}
    )
    intent = Intent.objects.get()
    assert (recorded.replayed, recorded.differs, recorded.intent.pk) == (False, (), intent.pk)
    assert (intent.status, intent.subject, intent.family) == ("recorded", "order-4812", "order-4812")
    assert (intent.amount_minor, intent.currency, intent.params) == (5_000, "EUR", '{"a":"x","b":1}')
    assert (intent.request_key, intent.note, intent.context) == ("r-1", "as agreed", '{"run":"7"}')
    assert intent.guard_key == f"{kind.pk}:order-4812"
    assert intent.next_attempt_at == intent.created_at, "due at once"
    assert (intent.pk.version, intent.fence) == (7, 0)
    assert history.faults(intent) == []


def test_the_idempotency_key_is_the_intents_own_and_never_the_request_key() -> None:
    agent, kind = world()
    first = propose(agent, kind, request_key="r-1").intent
    second = propose(agent, kind, request_key="r-2", subject="order-2").intent
    assert len({first.idempotency_key, second.idempotency_key, "r-1", "r-2"}) == 4
    assert len(first.idempotency_key) >= 32


def test_the_payload_digest_is_salted_per_intent_and_covers_what_binds() -> None:
    agent, kind = world(look_alike_policy="allow")
    first = propose(agent, kind).intent
    settle(first, Status.CONFIRMED)
    second = propose(agent, kind).intent
    assert first.payload_salt != second.payload_salt
    assert first.payload_digest != second.payload_digest, "equal payloads can't be told by their digests"
    payload = {
        "kind": kind.name,
        "subject": "order-4812",
        "amount": "5000",
        "currency": "EUR",
        "params": "{}",
        "executor": "landed",
    }
    for intent in (first, second):
        assert intent.payload_digest == digest(canonical(payload), salt=intent.payload_salt)


# request keys


def test_the_same_proposal_under_the_same_key_is_the_same_intent() -> None:
    agent, kind = world()
    first = propose(agent, kind, request_key="r-1", params={"a": 1, "b": 2})
    again = propose(agent, kind, request_key="r-1", params={"b": 2, "a": 1}, subject=" order-4812 ", amount="50.0")
    assert (again.replayed, again.differs, again.intent.pk) == (True, (), first.intent.pk)
    assert Intent.objects.count() == 1


@pytest.mark.parametrize("to", [Status.CONFIRMED, Status.FAILED])
def test_a_replay_of_something_settled_shows_it_and_records_nothing(to: Status) -> None:
    agent, kind = world()
    intent = propose(agent, kind, request_key="r-1").intent
    settle(intent, to)
    again = propose(agent, kind, request_key="r-1")
    assert (again.replayed, again.intent.pk, again.intent.status) == (True, intent.pk, to)


@pytest.mark.parametrize(
    ("other", "differs"),
    [
        ({"amount": "50.01"}, {"amount"}),
        ({"currency": "USD"}, {"currency"}),
        ({"subject": "order-4813"}, {"subject"}),
        ({"params": {"a": 2}}, {"params"}),
        ({"params": {}}, {"params"}),
        ({"executor": "caller"}, {"executor"}),
        ({"amount": "1.00", "subject": "order-1"}, {"amount", "subject"}),
        ({"amount": None, "currency": None}, {"amount", "currency"}),
        ({"amount": "abc"}, {"amount"}),
    ],
)
def test_another_payload_under_the_same_key_names_what_differs(other: dict[str, Any], differs: set[str]) -> None:
    agent, kind = world(amount_rule="optional")
    intent = propose(agent, kind, request_key="r-1", params={"a": 1}).intent
    with pytest.raises(KeyReused) as told:
        propose(agent, kind, request_key="r-1", **({"params": {"a": 1}} | other))
    assert set(told.value.details["differs"]) == differs
    assert told.value.details["intent"].pk == intent.pk
    assert all(name in str(told.value) for name in differs)
    assert Intent.objects.count() == 1


def test_another_kind_under_the_same_key_is_refused_by_name() -> None:
    agent, kind = world()
    other = make_kind()
    agent.kinds.add(other)
    propose(agent, kind, request_key="r-1")
    with pytest.raises(KeyReused) as told:
        propose(agent, other, request_key="r-1")
    assert told.value.details["differs"] == ["kind"]


def test_a_rephrased_note_is_a_replay_that_says_so_and_changes_nothing() -> None:
    agent, kind = world()
    propose(agent, kind, request_key="r-1", note="first words")
    again = propose(agent, kind, request_key="r-1", note="other words")
    assert (again.replayed, again.differs) == (True, ("note",))
    assert Intent.objects.get().note == "first words"


def test_a_refused_proposal_does_not_bind_its_key() -> None:
    agent, kind = world()
    with pytest.raises(Invalid):
        propose(agent, kind, request_key="r-1", amount="50.001")
    assert nothing_was_recorded()
    mended = propose(agent, kind, request_key="r-1", amount="51.00")
    assert (mended.replayed, mended.intent.amount_minor) == (False, 5_100)


def test_a_proposal_refused_as_duplicate_binds_nothing_either() -> None:
    agent, kind = world()
    blocker = propose(agent, kind, request_key="r-1").intent
    with pytest.raises(UnsettledDuplicate):
        propose(agent, kind, request_key="r-2", amount="7.00")
    settle(blocker, Status.FAILED)
    assert propose(agent, kind, request_key="r-2", amount="8.00").replayed is False


def test_the_request_key_comes_first_even_when_everything_else_changed_meanwhile() -> None:
    agent, kind = world()
    intent = propose(agent, kind, request_key="r-1").intent
    Kind.objects.update(paused=True, amount_rule="none", limits={}, params_schema={"required": ["x"]})
    Agent.objects.update(paused=True)
    agent.refresh_from_db()
    assert propose(agent, kind, request_key="r-1").intent.pk == intent.pk


def test_equal_request_keys_of_two_agents_never_meet() -> None:
    agent, kind = world()
    other = make_agent(kind)
    first = propose(agent, kind, request_key="r-1").intent
    second = propose(other, kind, request_key="r-1", subject="order-2", amount="1.00")
    assert second.replayed is False
    assert second.intent.pk != first.pk
    with pytest.raises(UnsettledDuplicate):
        propose(make_agent(kind), kind, request_key="r-1")


@pytest.mark.parametrize("key", ["", " ", "a b", "ü", "a\n", "x" * 256, "\x7f", "a\x00"])
def test_a_request_key_is_visible_ascii(key: str) -> None:
    agent, kind = world()
    with pytest.raises(BadIdempotencyKey):
        propose(agent, kind, request_key=key)
    assert nothing_was_recorded()


# the guard


@pytest.mark.parametrize(
    ("first", "second", "blocked"),
    [
        ("order-4812", "order-4812", True),
        ("order-4812", " order-4812", True),
        ("order-4812", "order-4812/line-2", True),
        ("order-4812/line-2", "order-4812", True),
        ("order-4812/line-2", "order-4812/line-2/part-1", True),
        ("order-4812/line-1", "order-4812/line-2", False),
        ("order-4812", "order-48120", False),
        ("order-4812/line-1", "order-4812/line-10", False),
    ],
)
def test_an_unsettled_one_blocks_its_family_both_ways(first: str, second: str, blocked: bool) -> None:
    agent, kind = world()
    intent = propose(agent, kind, subject=first).intent
    if not blocked:
        assert propose(agent, kind, subject=second).intent.guard_key is not None
        return
    with pytest.raises(UnsettledDuplicate) as told:
        propose(agent, kind, subject=second)
    assert told.value.details["intent"].pk == intent.pk
    assert Intent.objects.count() == 1


def test_folded_cases_block_each_other_where_the_kind_folds() -> None:
    agent, kind = world(subject_case_folds=True)
    propose(agent, kind, subject="Order-1")
    with pytest.raises(UnsettledDuplicate):
        propose(agent, kind, subject="ORDER-1")
    agent, kind = world(subject_case_folds=False)
    propose(agent, kind, subject="Order-1")
    assert propose(agent, kind, subject="ORDER-1").intent.subject == "ORDER-1"


def test_a_duplicate_says_whether_it_asks_for_the_very_same() -> None:
    agent, kind = world()
    propose(agent, kind)
    for amount, same in (("50.00", True), ("50.01", False)):
        with pytest.raises(UnsettledDuplicate) as told:
            propose(agent, kind, amount=amount)
        assert told.value.details["same_payload"] is same


def test_a_disputed_one_blocks_again_although_it_is_settled() -> None:
    agent, kind = world(look_alike_policy="allow")
    intent = propose(agent, kind).intent
    settle(intent, Status.FAILED)
    Intent.objects.filter(pk=intent.pk).update(disputed=True)
    with pytest.raises(UnsettledDuplicate):
        propose(agent, kind)


def test_under_hold_the_second_one_waits_for_a_person_without_the_guard() -> None:
    agent, kind = world(duplicate_policy="hold")
    first = propose(agent, kind).intent
    second = propose(agent, kind, amount="7.00").intent
    assert (second.status, second.guard_key, second.hold_reasons) == ("held", None, "duplicate_proposal")
    assert read(first).guard_key is not None
    assert second.next_attempt_at is None
    review = Review.objects.get(intent=second)
    assert (review.purpose, [r.code for r in review.reasons.all()]) == ("approval", ["duplicate_proposal"])


def test_naming_what_it_repeats_is_never_a_permission() -> None:
    agent, kind = world(look_alike_policy="refuse")
    first = propose(agent, kind).intent
    with pytest.raises(UnsettledDuplicate):
        propose(agent, kind, repeat_of=first.pk)
    settle(first, Status.CONFIRMED)
    with pytest.raises(AlreadyDone):
        propose(agent, kind, repeat_of=first.pk)
    Kind.objects.update(look_alike_policy="hold")
    second = propose(agent, kind, repeat_of=first.pk).intent
    assert (second.status, second.repeat_of_id) == ("held", first.pk)


def test_what_it_repeats_must_be_an_intent_of_its_own() -> None:
    agent, kind = world()
    foreign = propose(make_agent(kind), kind, subject="order-1").intent
    for unknown in (uuid4(), foreign.pk):
        with pytest.raises((Invalid, NotFound), match="no intent of yours"):
            propose(agent, kind, repeat_of=unknown)
    assert Intent.objects.count() == 1


# look-alikes


@pytest.mark.parametrize(("rule", "status"), [("hold", "held"), ("allow", "recorded"), ("refuse", None)])
def test_what_looks_like_one_just_done_is_treated_as_the_kind_says(rule: str, status: str | None) -> None:
    agent, kind = world(look_alike_policy=rule)
    first = propose(agent, kind).intent
    settle(first, Status.CONFIRMED)
    if status is None:
        with pytest.raises(AlreadyDone) as told:
            propose(agent, kind)
        assert told.value.details["intent"].pk == first.pk
        return
    found = propose(agent, kind).intent
    assert found.status == status
    assert found.look_alike_of_id == (first.pk if rule == "hold" else None)
    assert found.hold_reasons == ("look_alike" if rule == "hold" else "")
    assert found.guard_key is not None, "the guard was free"


@pytest.mark.parametrize(
    "other", [{"amount": "50.01"}, {"subject": "order-4813"}, {"subject": "order-4812/line-1"}, {"currency": "USD"}]
)
def test_another_amount_currency_or_subject_is_no_look_alike(other: dict[str, Any]) -> None:
    agent, kind = world(look_alike_policy="refuse", limits={"EUR": {}, "USD": {}})
    settle(propose(agent, kind).intent, Status.CONFIRMED)
    assert propose(agent, kind, **other).intent.status == "recorded"


def test_what_failed_is_no_look_alike() -> None:
    agent, kind = world(look_alike_policy="refuse")
    settle(propose(agent, kind).intent, Status.FAILED)
    assert propose(agent, kind).intent.status == "recorded"


@pytest.mark.parametrize(("age_s", "alike"), [(3_500, True), (3_700, False)])
def test_a_look_alike_is_one_inside_the_window(age_s: int, alike: bool) -> None:
    agent, kind = world(look_alike_policy="hold", look_alike_window_s=3_600)
    first = propose(agent, kind).intent
    settle(first, Status.CONFIRMED)
    Intent.objects.filter(pk=first.pk).update(settled_at=times.now() - timedelta(seconds=age_s))
    assert propose(agent, kind).intent.status == ("held" if alike else "recorded")


# limits


@pytest.mark.parametrize(("amount", "status"), [("100.00", "recorded"), ("100.01", "held"), ("0.01", "recorded")])
def test_above_the_approval_limit_it_is_held(amount: str, status: str) -> None:
    agent, kind = world(limits={"EUR": {"approve_above": 10_000}}, approval_expires_s=60)
    intent = propose(agent, kind, amount=amount).intent
    assert intent.status == status
    if status == "held":
        assert intent.hold_reasons == "approval"
        assert intent.guard_key is not None
        assert intent.approve_before == intent.created_at + timedelta(seconds=60)
        assert intent.next_attempt_at is None
        assert Review.objects.get(intent=intent).due_at <= intent.approve_before


@pytest.mark.parametrize("limits", [{}, {"EUR": {"approve_above": 10}}])
def test_a_currency_without_limits_is_held_whatever_the_amount(limits: dict[str, Any]) -> None:
    agent, kind = world(limits=limits)
    assert propose(agent, kind, amount="0.01", currency="USD").intent.status == "held"


def test_a_limit_of_zero_holds_everything_and_no_limit_nothing() -> None:
    agent, kind = world(limits={"EUR": {"approve_above": 0}, "USD": {}})
    assert propose(agent, kind, amount="0.01").intent.status == "held"
    assert propose(agent, kind, amount="99999.99", currency="USD", subject="order-2").intent.status == "recorded"


def test_every_reason_to_hold_is_kept() -> None:
    agent, kind = world(duplicate_policy="hold", limits={"EUR": {"approve_above": 100}})
    propose(agent, kind)
    intent = propose(agent, kind).intent
    assert intent.hold_reasons == "approval,duplicate_proposal"
    assert {r.code for r in Review.objects.get(intent=intent).reasons.all()} == {"approval", "duplicate_proposal"}


# fields


@pytest.mark.parametrize(
    ("rule", "amount", "currency", "wrong"),
    [
        ("required", None, None, {"amount", "currency"}),
        ("required", "5.00", None, {"currency"}),
        ("required", None, "EUR", {"amount"}),
        ("optional", None, None, set()),
        ("optional", "5.00", None, {"currency"}),
        ("optional", None, "EUR", {"amount"}),
        ("optional", "5.00", "EUR", set()),
        ("none", None, None, set()),
        ("none", "5.00", "EUR", {"amount"}),
        ("required", "5.00", "XYZ", {"currency"}),
        ("required", "5.00", "eur", {"currency"}),
        ("required", "5.001", "EUR", {"amount"}),
        ("required", "5,00", "EUR", {"amount"}),
        ("required", "0", "EUR", {"amount"}),
    ],
)
def test_an_amount_is_taken_as_the_kind_says(
    rule: str, amount: str | None, currency: str | None, wrong: set[str]
) -> None:
    agent, kind = world(amount_rule=rule)
    if wrong:
        with pytest.raises(Invalid) as told:
            propose(agent, kind, amount=amount, currency=currency)
        assert fields_of(told) == wrong
        assert nothing_was_recorded()
    else:
        intent = propose(agent, kind, amount=amount, currency=currency).intent
        assert (intent.amount_minor, intent.currency) == ((500, "EUR") if amount else (None, ""))


def test_what_the_schema_refuses_is_told_field_by_field_and_all_at_once() -> None:
    schema = {
        "type": "object",
        "properties": {"reason": {"enum": ["late", "broken"]}, "lines": {"items": {"type": "integer"}}},
        "required": ["payee"],
        "additionalProperties": False,
    }
    agent, kind = world(params_schema=schema)
    with pytest.raises(Invalid) as told:
        propose(agent, kind, params={"reason": "bored", "lines": [1, "x"], "more": 1}, amount="5,00")
    assert fields_of(told) == {"params", "params.reason", "params.lines.1", "amount"}
    assert nothing_was_recorded()


@pytest.mark.parametrize("params", [{"a": 1.5}, {"a": {"b": [2**53]}}, {"a": float("nan")}, {"a": "\ud800"}])
def test_params_that_mean_different_things_to_different_readers_are_refused(params: dict[str, Any]) -> None:
    agent, kind = world()
    with pytest.raises(Invalid) as told:
        propose(agent, kind, params=params)
    assert fields_of(told) == {"params"}


def test_texts_have_their_bounds() -> None:
    agent, kind = world()
    for wrong, field in (
        ({"note": "x" * 4_001}, "note"),
        ({"note": "a\x00"}, "note"),
        ({"context": {"where": "here"}}, "context.where"),
        ({"context": {"run": 7}}, "context.run"),
        ({"context": {"run": "x" * 256}}, "context.run"),
        ({"params": {"a": "x" * 33_000}}, "params"),
        ({"executor": "nobody"}, "executor"),
        ({"claim_token": "t"}, "claim_token"),
        ({"executor": "caller", "claim_token": "t t"}, "claim_token"),
    ):
        with pytest.raises(Invalid) as told:
            propose(agent, kind, **wrong)  # type: ignore[arg-type]
        assert fields_of(told) == {field}
    assert nothing_was_recorded()


@pytest.mark.parametrize(
    ("executors", "asked", "taken"),
    [("landed", "caller", False), ("caller", "landed", False), ("both", "caller", True)],
)
def test_who_may_carry_it_out_is_the_kinds_to_say(executors: str, asked: str, taken: bool) -> None:
    agent, kind = world(executors=executors)
    if taken:
        assert propose(agent, kind, executor=asked).intent.executor == asked
    else:
        with pytest.raises(Invalid) as told:
            propose(agent, kind, executor=asked)
        assert fields_of(told) == {"executor"}


def test_a_subject_is_derived_from_params_and_checked_against_them() -> None:
    agent, kind = world(subject_from="order.id", subject_pattern=r"order-\d+", subject_case_folds=True)
    params = {"order": {"id": " ORDER-7 "}}
    assert propose(agent, kind, subject=None, params=params).intent.subject == "order-7"
    settle(Intent.objects.get(), Status.FAILED)
    assert propose(agent, kind, subject="Order-7", params=params).intent.subject == "order-7"
    with pytest.raises(Invalid) as told:
        propose(agent, kind, subject="order-8", params=params)
    assert fields_of(told) == {"subject"}
    assert "order-7" in str(told.value)


@pytest.mark.parametrize(
    "params", [{}, {"order": {}}, {"order": {"id": None}}, {"order": {"id": ""}}, {"order": {"id": "x"}}]
)
def test_a_subject_that_can_t_be_derived_is_refused(params: dict[str, Any]) -> None:
    agent, kind = world(subject_from="order.id", subject_pattern=r"order-\d+")
    with pytest.raises(Invalid) as told:
        propose(agent, kind, subject=None, params=params)
    assert fields_of(told) == {"subject"}


def test_an_integer_in_params_may_be_the_subject() -> None:
    agent, kind = world(subject_from="order")
    assert propose(agent, kind, subject=None, params={"order": 4812}).intent.subject == "4812"


def test_a_subject_has_to_be_named_when_nothing_derives_it() -> None:
    agent, kind = world()
    for subject in (None, "", "   ", "a//b", "order-1\u200b"):
        with pytest.raises(Invalid) as told:
            propose(agent, kind, subject=subject)
        assert fields_of(told) == {"subject"}


def test_payee_and_customer_are_found_in_params() -> None:
    agent, kind = world(payee_from="to.account", customer_from="customer")
    intent = propose(agent, kind, params={"to": {"account": "acc-1"}, "customer": 77}).intent
    assert (intent.payee, intent.customer) == ("acc-1", "77")


# until when


def test_send_before_is_the_kinds_or_an_earlier_one_of_the_agents() -> None:
    agent, kind = world(send_before_s=3_600)
    now = times.now()
    assert propose(agent, kind, subject="a").intent.send_before > now + timedelta(seconds=3_590)  # type: ignore[operator]
    sooner, later = now + timedelta(seconds=60), now + timedelta(days=9)
    assert propose(agent, kind, subject="b", send_before=sooner).intent.send_before == sooner
    capped = propose(agent, kind, subject="c", send_before=later).intent
    assert capped.send_before == capped.created_at + timedelta(seconds=3_600)


def test_send_before_in_the_past_is_refused() -> None:
    agent, kind = world()
    with pytest.raises(Invalid) as told:
        propose(agent, kind, send_before=times.now() - timedelta(seconds=1))
    assert fields_of(told) == {"send_before"}


def test_without_the_kinds_limit_the_agents_time_counts_alone() -> None:
    agent, kind = world(send_before_s=None)
    assert propose(agent, kind, subject="a").intent.send_before is None
    later = times.now() + timedelta(days=99)
    assert propose(agent, kind, subject="b", send_before=later).intent.send_before == later


# who and whether at all


def test_a_paused_agent_and_a_paused_kind_record_nothing() -> None:
    agent, kind = world()
    agent.paused = True
    with pytest.raises(AgentPaused):
        propose(agent, kind)
    agent.paused = False
    Kind.objects.update(paused=True)
    with pytest.raises(KindPaused) as told:
        propose(agent, kind)
    assert told.value.retryable
    assert nothing_was_recorded()


def test_an_agent_can_t_tell_a_kind_that_is_not_its_own_from_one_that_does_not_exist() -> None:
    agent, _ = world()
    foreign = make_kind()

    class Nothing:
        name = "no-such-kind"

    told: list[LandedError] = []
    for kind in (foreign, Nothing()):
        with pytest.raises(KindNotAllowed) as raised:
            propose(agent, kind)
        told.append(raised.value)
    assert str(told[0]).replace(foreign.name, "X") == str(told[1]).replace("no-such-kind", "X")
    assert nothing_was_recorded()


# the snapshot


def test_equal_policies_share_a_snapshot_and_a_later_edit_changes_no_recorded_intent() -> None:
    agent, kind = world(limits={"EUR": {"approve_above": 100_000}})
    first = propose(agent, kind, subject="a").intent
    second = propose(agent, kind, subject="b").intent
    assert first.policy_id == second.policy_id
    text = first.policy.text
    Kind.objects.update(limits={"EUR": {"approve_above": 1}}, review_after_s=1)
    kind.downstream.lag_s = 9_999
    kind.downstream.save()
    third = propose(agent, kind, subject="c").intent
    assert third.policy_id != first.policy_id
    assert (first.status, third.status) == ("recorded", "held")
    assert read(first).policy.text == text
    assert json.loads(read(first).policy.text)["lag_s"] == 2
    assert json.loads(read(third).policy.text)["lag_s"] == 9_999


def test_two_kinds_with_equal_policies_have_snapshots_of_their_own() -> None:
    downstream = make_downstream()
    one, other = make_kind(downstream), make_kind(downstream)
    agent = make_agent(one, other)
    assert propose(agent, one).intent.policy_id != propose(agent, other).intent.policy_id


# recording and claiming in one


def test_a_caller_that_brings_its_token_claims_in_the_same_call() -> None:
    agent, kind = world()
    intent = propose(agent, kind, executor="caller", claim_token="t-1").intent
    attempt = Attempt.objects.get(intent=intent)
    assert (intent.status, intent.fence, attempt.fence, attempt.number) == ("submitted", 1, 1, 1)
    assert intent.lease_until == attempt.lease_until
    assert intent.first_maybe_sent_at == intent.created_at
    assert "t-1" not in attempt.claim_token_digest
    assert history.faults(read(intent)) == []


def test_what_is_held_is_not_claimed_by_a_token() -> None:
    agent, kind = world(limits={})
    intent = propose(agent, kind, executor="caller", claim_token="t-1").intent
    assert (intent.status, intent.fence) == ("held", 0)
    assert not Attempt.objects.exists()


def test_without_a_token_a_callers_intent_waits_and_is_never_due_to_a_worker() -> None:
    agent, kind = world()
    intent = propose(agent, kind, executor="caller").intent
    assert (intent.status, intent.next_attempt_at) == ("recorded", None)
    assert isinstance(intent.pk, UUID)
