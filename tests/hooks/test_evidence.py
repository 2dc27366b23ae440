"""Where nobody can look, a verified webhook is the evidence: judged as a look is, by the same rules."""

from datetime import timedelta
from typing import Any

import pytest

from actions import times, transitions
from actions.connectors import registry
from actions.connectors.base import Notice
from actions.errors import NotFound
from actions.models import Intent, Result
from actions.reasons import Reason
from actions.statuses import Actor, Status
from reconciliation.models import Check, Choice, Delivery, LedgerEntry, Match, Review
from reconciliation.webhooks import applying
from tests.core.steps import answer, expire, settle, submit
from tests.factories import make_intent, make_person
from tests.flow.test_deciding import decide
from tests.hooks.hooking import Hooks, Says, event, new_id


def test_it_confirms_what_nobody_knew(hooks: Hooks) -> None:
    intent = hooks.unknown()
    assert hooks.reasons(intent) == ["still_unknown"], "without a book a person is asked at once"
    delivery = hooks.tell(intent)
    found, entry, check = hooks.sound(intent, Status.CONFIRMED), LedgerEntry.objects.get(), Check.objects.get()
    assert (found.settled_by, found.external_id, found.settled_amount_minor) == ("ledger", entry.entry_id, 5_000)
    assert (check.by, check.verdict, check.counts_as_absence) == (f"webhook:{delivery.pk}", "match", False)
    assert Match.objects.get().entry == entry
    assert hooks.reasons(intent) == [], "and the case is closed by it"
    assert Review.objects.get().closed_how == "resolved_by_evidence"
    assert (delivery.outcome, delivery.tries) == ("judged", 1)
    assert delivery.applied_at is not None
    last = found.transitions.order_by("-sequence").first()
    assert last is not None
    assert (last.actor, last.actor_id, last.reason) == ("checker", check.by, "found_in_ledger")


@pytest.mark.parametrize(
    ("entry", "verdict", "reason"),
    [
        ({"amount_minor": 4_850}, "partial", "partial"),
        ({"amount_minor": 5_100}, "mismatch", "mismatch"),
        ({"currency": "USD"}, "mismatch", "mismatch"),
        ({"order": "order-other"}, "mismatch", "mismatch"),
        ({"type": "reversal"}, "mismatch", "mismatch"),
    ],
)
def test_what_differs_goes_to_a_person(hooks: Hooks, entry: dict[str, Any], verdict: str, reason: str) -> None:
    intent = hooks.unknown()
    hooks.tell(intent, **entry)
    hooks.sound(intent, Status.UNKNOWN)
    assert hooks.checks(intent) == [verdict]
    assert reason in hooks.reasons(intent)


def test_a_second_entry_under_one_key_is_a_duplicate_whichever_delivery_brought_it(hooks: Hooks) -> None:
    intent = hooks.unknown(amount_minor=60_000)
    hooks.tell(intent)
    hooks.tell(intent, id="re_another")
    assert hooks.checks(intent) == ["match", "duplicate"]
    assert "duplicate" in hooks.reasons(intent)
    hooks.sound(intent, Status.UNKNOWN)


def test_above_the_limit_a_person_decides_and_confirming_is_recommended(hooks: Hooks) -> None:
    intent = hooks.unknown(amount_minor=60_000)
    hooks.tell(intent)
    hooks.sound(intent, Status.UNKNOWN)
    assert "high_value" in hooks.reasons(intent)
    review = Review.objects.get()
    assert (review.recommendation, review.verdict) == (Choice.CONFIRM, "match")
    entry = LedgerEntry.objects.get()
    decide(review, make_person(), Choice.CONFIRM, entry_id=entry.pk, outside="The provider's webhook")
    found = hooks.sound(intent, Status.CONFIRMED)
    assert (found.settled_by, found.external_id) == ("decision", entry.entry_id)


def test_pending_settles_nothing_and_what_comes_of_it_does(hooks: Hooks) -> None:
    intent = hooks.unknown()
    hooks.tell(intent, status="pending")
    assert hooks.sound(intent, Status.UNKNOWN).next_check_at is None, "there is nothing that could look"
    hooks.tell(intent)
    hooks.sound(intent, Status.CONFIRMED)
    assert hooks.checks(intent) == ["pending", "match"]


def test_an_entry_without_a_key_that_fits_in_everything_is_ours(hooks: Hooks) -> None:
    intent = hooks.unknown()
    hooks.tell(intent, idempotency_key=...)
    hooks.sound(intent, Status.CONFIRMED)
    assert Check.objects.get().grounds_data["by"] == "subject"


def test_an_entry_without_a_key_that_could_be_twos_is_for_a_person(hooks: Hooks) -> None:
    first, second = hooks.unknown(subject="order-9"), hooks.unknown(subject="order-9", guard_key=None)
    hooks.tell(first, idempotency_key=...)
    for intent in (first, second):
        hooks.sound(intent, Status.UNKNOWN)
        assert "ambiguous" in hooks.reasons(intent)


def test_an_entry_with_somebody_elses_key_is_somebody_elses(hooks: Hooks) -> None:
    intent = hooks.unknown()
    delivery = hooks.tell(intent, idempotency_key="a-clerk-did-it")
    assert delivery.outcome == "", "kept: its intent may come"
    assert hooks.checks(intent) == []


def test_absence_never_follows_from_a_webhook(hooks: Hooks) -> None:
    """However late, and whatever the downstream declares: not being told of is not having not happened."""
    type(hooks.downstream).objects.update(absence_conclusive=True)
    hooks.kind.downstream.refresh_from_db()
    intent = hooks.unknown()
    hooks.later(3_600)
    for number in range(4):
        # A book with this order's entries, none of which is ours.
        foreign = hooks.entry(intent, id=f"re_{number}", idempotency_key=f"foreign-{number}")
        assert hooks.deliver([foreign]).status_code == 204
        hooks.later(100)
        hooks.sweep()
    # And one that names it and shows nothing.
    hooks.tell(intent, idempotency_key=..., status="failed")
    assert not Check.objects.filter(counts_as_absence=True).exists()
    assert "absent" not in hooks.checks(intent)
    hooks.sound(intent, Status.UNKNOWN)


def test_one_that_names_it_and_shows_nothing_is_kept_and_says_so(
    hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    intent = hooks.unknown()
    monkeypatch.setattr(
        registry, "get", lambda _: Says(Notice("evt_thin", times.now(), keys=(intent.idempotency_key,)))
    )
    assert hooks.deliver({}).status_code == 204
    delivery = Delivery.objects.get()
    assert (delivery.outcome, delivery.evidence.intent_id) == ("nothing_said", intent.pk)
    assert hooks.checks(intent) == []


# --- what was not carried out


def test_one_that_was_not_carried_out_fails_it_once_no_other_attempt_can_show(hooks: Hooks) -> None:
    intent = hooks.unknown()
    delivery = hooks.tell(intent, status="failed")
    assert hooks.checks(intent) == ["too_early"]
    assert delivery.outcome == ""
    hooks.later(10)
    hooks.sweep()
    hooks.sound(intent, Status.UNKNOWN)
    assert hooks.checks(intent) == ["too_early"], "the same again is not written again"
    hooks.later(60)
    hooks.later(60)
    hooks.sweep()
    found = hooks.sound(intent, Status.FAILED)
    assert (found.status_reason, found.settled_by) == ("failed_in_ledger", "ledger")
    delivery.refresh_from_db()
    assert delivery.outcome == "judged"


def test_when_another_attempt_shows_up_before_that_it_is_not_failed(hooks: Hooks) -> None:
    intent = hooks.unknown()
    hooks.tell(intent, id="re_first", status="failed")
    hooks.tell(intent, id="re_second")
    assert hooks.sound(intent, Status.CONFIRMED).external_id == "re_second"
    hooks.later(200)
    hooks.sweep()
    hooks.sound(intent, Status.CONFIRMED)
    assert set(hooks.outcomes()) == {"judged", "known"}


# --- settled ones listen


def test_a_failed_one_that_shows_up_after_all_is_disputed_and_blocks_its_subject(hooks: Hooks) -> None:
    intent = make_intent(hooks.kind)
    settle(intent, Status.FAILED)
    delivery = hooks.tell(intent)
    found = hooks.sound(intent, Status.FAILED)
    assert (found.disputed, found.guard_key is not None, hooks.reasons(intent)) == (True, True, ["contradiction"])
    assert delivery.outcome == "judged"


@pytest.mark.parametrize("status", ["failed", "succeeded"])
def test_a_webhook_that_agrees_with_the_outcome_is_noted_and_that_is_all(hooks: Hooks, status: str) -> None:
    """The usual case: our own answer came first."""
    intent = make_intent(hooks.kind)
    if status == "failed":
        settle(intent, Status.FAILED)
    else:
        settle(intent, Status.CONFIRMED, external_id=f"re_{intent.pk}")
    before = hooks.read(intent)
    assert hooks.tell(intent, status=status).outcome == "known"
    after = hooks.sound(intent, Status(before.status))
    assert (after.chain_length, after.disputed, hooks.reasons(intent)) == (before.chain_length, False, [])


def test_a_confirmed_one_that_came_back_is_judged_once_no_other_attempt_can_show(hooks: Hooks) -> None:
    intent = make_intent(hooks.kind)
    settle(intent, Status.CONFIRMED, external_id=f"re_{intent.pk}")
    delivery = hooks.tell(intent, status="failed")
    assert hooks.checks(intent) == []
    hooks.later(130)
    hooks.sweep()
    delivery.refresh_from_db()
    assert (delivery.outcome, hooks.checks(intent)) == ("judged", ["match"])
    assert Check.objects.get().grounds_data["entry_failed"]


def test_a_confirmed_one_whose_entry_nobody_had_named_is_tied_to_it_once(hooks: Hooks) -> None:
    intent = make_intent(hooks.kind)
    settle(intent, Status.CONFIRMED)
    outcomes = [hooks.tell(intent).outcome for _ in range(3)]
    assert outcomes == ["judged", "known", "known"]
    assert Match.objects.get().intent_id == intent.pk
    found = hooks.sound(intent, Status.CONFIRMED)
    assert (found.settled_by, found.disputed) == ("answer", False)


def test_a_contradiction_is_told_once(hooks: Hooks) -> None:
    intent = make_intent(hooks.kind)
    settle(intent, Status.FAILED)
    assert [hooks.tell(intent).outcome for _ in range(3)] == ["judged", "known", "known"]
    assert hooks.tell(intent, id="re_second").outcome == "judged", "this is news"


@pytest.mark.parametrize("key", [{}, {"idempotency_key": ...}])
def test_a_confirmed_one_that_is_taken_back_is_disputed(hooks: Hooks, key: dict[str, Any]) -> None:
    """Reversals seldom carry a key; their order tells."""
    intent, other = make_intent(hooks.kind), make_intent(hooks.kind)
    settle(intent, Status.CONFIRMED, external_id="re_1")
    settle(other, Status.CONFIRMED, external_id="re_2")
    hooks.tell(intent, id="rv_1", type="reversal", **key)
    assert hooks.sound(intent, Status.CONFIRMED).disputed
    assert hooks.reasons(intent) == ["contradiction"]
    assert not hooks.sound(other, Status.CONFIRMED).disputed


def test_somebody_elses_effect_on_a_confirmed_ones_order_is_no_contradiction(hooks: Hooks) -> None:
    intent = make_intent(hooks.kind)
    settle(intent, Status.CONFIRMED, external_id="re_1")
    assert hooks.tell(intent, id="re_clerk", idempotency_key=...).outcome == "known"
    assert not hooks.sound(intent, Status.CONFIRMED).disputed


def test_an_effect_on_an_order_contradicts_the_one_that_was_failed_without_its_word(hooks: Hooks) -> None:
    done, failed = make_intent(hooks.kind, subject="order-3"), hooks.unknown(subject="order-3", guard_key=None)
    settle(done, Status.CONFIRMED, external_id="re_1")
    decide(Review.objects.get(intent=failed), make_person("supervisor"), Choice.FAIL, outside="The bank's clerk")
    hooks.tell(failed, idempotency_key=..., id="re_late")
    assert hooks.sound(failed, Status.FAILED).disputed
    assert not hooks.sound(done, Status.CONFIRMED).disputed


def test_an_effect_on_an_order_is_that_ones_whose_outcome_is_open(hooks: Hooks) -> None:
    failed = hooks.unknown(subject="order-4")
    decide(Review.objects.get(intent=failed), make_person("supervisor"), Choice.FAIL, outside="The bank's clerk")
    intent = hooks.unknown(subject="order-4")
    for status, then in (("pending", Status.UNKNOWN), ("succeeded", Status.CONFIRMED)):
        hooks.tell(intent, idempotency_key=..., status=status)
        hooks.sound(intent, then)
        assert not hooks.sound(failed, Status.FAILED).disputed


def test_a_withdrawn_one_that_was_carried_out_is_disputed(hooks: Hooks) -> None:
    intent = make_intent(hooks.kind)
    transitions.apply(
        intent.pk,
        expected=Status.RECORDED,
        to=Status.CANCELLED,
        actor=Actor.AGENT,
        actor_id="agent:1",
        reason=Reason.CANCELLED_BY_AGENT,
    )
    hooks.tell(intent)
    assert hooks.sound(intent, Status.CANCELLED).disputed
    assert hooks.reasons(intent) == ["contradiction"]


def test_one_that_was_said_not_to_be_processed_and_was_is_not_sent_again(hooks: Hooks) -> None:
    intent = make_intent(hooks.kind)
    answer(submit(intent), Result.NOT_SENT, reason="not_processed")
    assert hooks.read(intent).next_attempt_at is not None
    hooks.tell(intent)
    found = hooks.sound(intent, Status.UNKNOWN)
    assert (found.status_reason, found.next_attempt_at) == ("contradicted", None)
    assert "contradiction" in hooks.reasons(intent)


@pytest.mark.parametrize("entry", [{"status": "failed"}, {"idempotency_key": ...}])
def test_one_that_was_not_sent_is_sent_all_the_same_when_its_key_shows_no_effect(
    hooks: Hooks, entry: dict[str, Any]
) -> None:
    intent = make_intent(hooks.kind)
    answer(submit(intent), Result.NOT_SENT, reason="not_processed")
    hooks.tell(intent, **entry)
    assert hooks.sound(intent, Status.RECORDED).next_attempt_at is not None


# --- before our own answer, twice, late, older


def test_before_our_own_answer_it_settles_once_and_the_answer_agrees(hooks: Hooks) -> None:
    intent = make_intent(hooks.kind)
    attempt = submit(intent)
    hooks.tell(intent)
    found = hooks.sound(intent, Status.CONFIRMED)
    assert (found.lease_until, found.settled_by) == (None, "ledger")
    answer(attempt, Result.CONFIRMED, external_id=f"re_{intent.pk}", amount_minor=5_000, currency="EUR")
    after = hooks.sound(intent, Status.CONFIRMED)
    assert (after.version, after.settled_by, after.disputed) == (found.version, "ledger", False)
    assert hooks.reasons(intent) == []
    assert Match.objects.count() == 1


def test_before_our_own_answer_a_failed_one_waits_for_it(hooks: Hooks) -> None:
    intent = make_intent(hooks.kind)
    attempt = submit(intent)
    hooks.tell(intent, status="failed")
    hooks.sound(intent, Status.SUBMITTED)
    answer(attempt, Result.REFUSED)
    hooks.later(200)
    hooks.sweep()
    assert hooks.sound(intent, Status.FAILED).settled_by == "answer"
    assert hooks.reasons(intent) == []


def test_the_same_news_under_another_id_is_judged_once(hooks: Hooks) -> None:
    intent = hooks.unknown(amount_minor=60_000)
    for _ in range(3):
        hooks.tell(intent)
    assert hooks.checks(intent) == ["match"]
    assert hooks.outcomes() == {"judged": 1, "known": 2}


def test_an_older_pending_after_a_newer_final_brings_nothing_back(hooks: Hooks) -> None:
    intent = hooks.unknown(amount_minor=60_000)
    now = times.now()
    hooks.tell(intent, at=now)
    hooks.tell(intent, at=now - timedelta(seconds=60), status="pending", amount_minor=1)
    entry = LedgerEntry.objects.get()
    assert (entry.state, entry.amount_minor) == ("final", 60_000)
    assert hooks.checks(intent) == ["match"]


@pytest.mark.parametrize(
    ("told", "state"),
    [
        ([("failed", 20), ("succeeded", 10)], "failed"),  # it came back after it was through; that came first
        ([("succeeded", 20), ("failed", 10)], "final"),
        ([("succeeded", 10), ("failed", 20)], "failed"),
        ([("failed", 10), ("succeeded", 20)], "final"),
        ([("succeeded", 10), ("succeeded", 30), ("failed", 20)], "final"),
        ([("pending", 30), ("succeeded", 10)], "final"),  # what is pending only ever goes on
    ],
)
def test_of_final_and_failed_the_newer_counts_in_whatever_order_they_come(
    hooks: Hooks, told: list[tuple[str, int]], state: str
) -> None:
    intent = hooks.unknown(amount_minor=60_000)
    began = times.now() - timedelta(seconds=100)
    for status, seconds in told:
        hooks.tell(intent, at=began + timedelta(seconds=seconds), status=status)
    assert LedgerEntry.objects.get().state == state
    hooks.sound(intent, Status.UNKNOWN)


def test_a_clock_that_is_ahead_of_ours_makes_no_news_from_the_future(hooks: Hooks) -> None:
    intent = hooks.unknown(amount_minor=60_000)
    hooks.tell(intent, at=times.now() + timedelta(seconds=200))
    hooks.later(5)
    hooks.tell(intent, at=times.now(), status="failed")
    assert LedgerEntry.objects.get().state == "failed"


# --- before its intent is there


def test_one_whose_intent_is_not_there_yet_is_applied_when_it_is(hooks: Hooks) -> None:
    key = "key-of-a-later-one"
    stand_in = make_intent(hooks.kind)
    delivery_id = new_id()
    row = hooks.entry(stand_in, id="re_early", idempotency_key=key, order="order-early")
    assert hooks.deliver(row, delivery_id=delivery_id).status_code == 204
    delivery = Delivery.objects.get(delivery_id=delivery_id)
    assert (delivery.outcome, delivery.tries, delivery.evidence.intent_id) == ("", 1, None)
    hooks.sweep()
    intent = make_intent(hooks.kind, subject="order-early", idempotency_key=key)
    answer(submit(intent), Result.NO_ANSWER)
    hooks.later(6)
    hooks.sweep()
    hooks.sound(intent, Status.CONFIRMED)
    delivery.refresh_from_db()
    assert (delivery.outcome, delivery.tries, delivery.next_try_at) == ("judged", 2, None)
    kept = intent.evidence.get(kind="webhook")
    assert kept.text == delivery.evidence.text, "the intent's history holds its own copy"


def test_one_that_names_an_id_which_our_own_answer_brings_later_is_applied_then(hooks: Hooks) -> None:
    intent = make_intent(hooks.kind)
    attempt = submit(intent)
    entry = {"id": "re_7", "order": "not-our-name-for-it", "idempotency_key": ...}
    assert hooks.tell(intent, **entry, status="failed").outcome == ""
    answer(attempt, Result.ACCEPTED, external_id="re_7")
    hooks.later(200)
    hooks.sweep()
    assert hooks.checks(intent) == ["match"]
    assert hooks.sound(intent, Status.FAILED).status_reason == "failed_in_ledger"


def test_after_a_day_it_is_nobodys_and_its_entries_stay(hooks: Hooks) -> None:
    delivery = hooks.tell(make_intent(hooks.kind), idempotency_key="foreign", id="re_foreign", order="foreign")
    tries = []
    for _ in range(45):
        hooks.later(2_000)
        hooks.sweep()
        delivery.refresh_from_db()
        tries.append(delivery.tries)
    assert delivery.outcome == "nothing_of_ours"
    assert delivery.applied_at is not None
    assert delivery.applied_at - delivery.received_at >= timedelta(days=1)
    assert tries[-1] <= len(applying.TRY_AFTER_S) + 1
    assert LedgerEntry.objects.get().entry_id == "re_foreign"


def test_one_that_breaks_is_tried_again_later_and_stops_no_other(
    hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = hooks.unknown(), hooks.unknown()
    real = applying._judge

    def broken(intent: Intent, *args: Any) -> None:
        if intent.pk == bad.pk:
            raise NotFound("a bug")
        real(intent, *args)

    with monkeypatch.context() as patch:
        patch.setattr(applying, "_judge", broken)
        delivery = hooks.tell(bad)
        hooks.tell(good)
        hooks.sound(good, Status.CONFIRMED)
        assert (delivery.outcome, delivery.tries) == ("", 1)
        for _ in range(5):
            hooks.sweep()
        delivery.refresh_from_db()
        assert delivery.tries == 1, "not at once again"
        hooks.later(6)
        hooks.sweep()
        delivery.refresh_from_db()
        assert delivery.tries == 2
        hooks.sound(bad, Status.UNKNOWN)
    hooks.later(60)
    hooks.sweep()
    hooks.sound(bad, Status.CONFIRMED)


def test_a_process_that_dies_between_keeping_and_applying_loses_nothing(
    hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    intent = hooks.unknown()
    with monkeypatch.context() as patch:
        patch.setattr(applying, "_take_a_try", lambda *_: False)
        hooks.tell(intent)
    hooks.sound(intent, Status.UNKNOWN)
    hooks.sweep()
    hooks.sound(intent, Status.CONFIRMED)


@pytest.mark.django_db(transaction=True)
def test_the_request_and_the_sweep_at_once_apply_it_once(transactional_db: None, hooks: Hooks) -> None:
    from tests.core.steps import race

    intent = hooks.unknown(amount_minor=60_000)
    delivery = hooks.tell(intent, idempotency_key="later")
    hooks.later(6)
    for _ in range(3):
        results = race(4, lambda _: applying.apply(delivery.pk))
        assert results.count(True) <= 1, results
        assert all(isinstance(result, bool) for result in results), results
    assert Delivery.objects.get().tries == 2


def test_what_is_told_again_and_again_does_not_put_off_what_is_planned(hooks: Hooks) -> None:
    intent = hooks.submitted()
    expire(intent)
    plan = hooks.read(intent).checks_made
    for amount in (1, 2, 3):
        hooks.tell(intent, amount_minor=amount)
    assert hooks.read(intent).checks_made == plan


def test_a_list_of_entries_speaks_of_each_of_its_intents(hooks: Hooks) -> None:
    first, second = hooks.unknown(), hooks.unknown()
    assert hooks.deliver(event([hooks.entry(first), hooks.entry(second)])).status_code == 204
    hooks.sound(first, Status.CONFIRMED)
    hooks.sound(second, Status.CONFIRMED)
    assert hooks.outcomes() == {"judged": 1}
