"""What follows from an answer; above all rule 3: it speaks for its own attempt only."""

import itertools
from collections.abc import Sequence
from datetime import timedelta

import pytest

from actions import history, times
from actions.models import ClosedBy, Intent, Result
from actions.outcomes import what_follows
from actions.statuses import Status
from reconciliation.models import Review
from tests.core.steps import answer, expire, race, read, settle, submit
from tests.factories import make_intent, make_kind

UNK, CON, FAI, REC = Status.UNKNOWN, Status.CONFIRMED, Status.FAILED, Status.RECORDED
C, A, R, N, X = Result.CONFIRMED, Result.ACCEPTED, Result.REFUSED, Result.NOT_SENT, Result.NO_ANSWER

# own result, all others ("" is still open), what follows
TABLE: list[tuple[Result, Sequence[str], Status | None]] = [
    (C, [], CON),
    (C, [""], CON),
    (C, [X], CON),
    (C, [R, N, X], CON),
    (A, [], None),
    (A, [X], None),
    (A, [R], None),
    (X, [], UNK),
    (X, [N], UNK),
    (X, [R], UNK),
    (X, [""], UNK),
    (R, [], FAI),
    (R, [R], FAI),
    (R, [N], FAI),
    (R, [N, N, R], FAI),
    (N, [], REC),
    (N, [N, N], REC),
    (N, [R], FAI),
    # rule 3: something before it may have landed
    (R, [""], UNK),
    (R, [X], UNK),
    (R, [A], UNK),
    (R, [N, X], UNK),
    (R, [R, N, X, R], UNK),
    (N, [""], UNK),
    (N, [X], UNK),
    (N, [A], UNK),
    (N, [N, N, X], UNK),
    (N, [R, ""], UNK),
]


@pytest.mark.parametrize(("own", "others", "to"), TABLE)
def test_what_follows_from_an_answer_and_all_others(own: Result, others: Sequence[str], to: Status | None) -> None:
    assert what_follows(own, others) == to
    assert what_follows(own, reversed(others)) == to


def test_by_answers_alone_nothing_fails_or_is_free_unless_every_attempt_is_proven_harmless() -> None:
    harmless = {R.value, N.value}
    for own in Result:
        for size in range(4):
            for others in itertools.product([*Result.values, ""], repeat=size):
                to = what_follows(own, others)
                if to in (FAI, REC):
                    assert {own.value, *others} <= harmless


pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("result", "status", "reason"),
    [
        (C, "confirmed", "confirmed_by_answer"),
        (R, "failed", "refused"),
        (X, "unknown", "read_timeout"),
        (N, "recorded", "not_sent"),
    ],
)
def test_an_answer_moves_the_intent_and_closes_its_attempt(result: Result, status: str, reason: str) -> None:
    intent = make_intent()
    attempt = submit(intent)
    found = answer(attempt, result, reason="read_timeout", phase="done", http_status=200)
    attempt.refresh_from_db()
    assert (found.status, read(intent).status, read(intent).status_reason) == (status, status, reason)
    assert (attempt.result, attempt.closed_by, attempt.phase, attempt.http_status) == (result, "answer", "done", 200)
    assert history.faults(read(intent)) == []


def test_a_confirmation_keeps_the_downstreams_id_and_what_it_settled() -> None:
    intent = make_intent(amount_minor=5_000)
    answer(submit(intent), C, external_id="re_1", amount_minor=4_990, currency="EUR")
    intent = read(intent)
    assert (intent.external_id, intent.settled_amount, intent.settled_by) == ("re_1", "49.90", "answer")


def test_an_accepted_answer_ends_the_lease_and_polls_on_while_the_subject_stays_blocked() -> None:
    intent = make_intent(make_kind(check_schedule=[7]))
    attempt = submit(intent)
    answer(attempt, A, external_id="re_1")
    intent = read(intent)
    attempt.refresh_from_db()
    assert (intent.status, intent.lease_until, intent.external_id) == ("submitted", None, "re_1")
    assert intent.next_check_at is not None
    assert attempt.closed_at is not None
    assert intent.next_check_at == attempt.closed_at + timedelta(seconds=7)
    assert intent.guard_key is not None


def test_the_same_answer_twice_is_one_answer() -> None:
    for result in Result:
        intent = make_intent()
        attempt = submit(intent)
        answer(attempt, result)
        before = Intent.objects.filter(pk=intent.pk).values().get()
        answer(attempt, result)
        assert Intent.objects.filter(pk=intent.pk).values().get() == before


@pytest.mark.parametrize(
    ("result", "status"), [(C, "confirmed"), (R, "failed"), (N, "recorded"), (X, "unknown"), (A, "unknown")]
)
def test_a_late_answer_after_the_clock_counts_under_its_own_fence(result: Result, status: str) -> None:
    intent = make_intent()
    attempt = submit(intent)
    expire(intent)
    answer(attempt, result, external_id="re_1" if result in (C, A) else "")
    attempt.refresh_from_db()
    assert read(intent).status == status
    assert (attempt.result, attempt.closed_by, attempt.late_result) == ("no_answer", "clock", result)
    assert attempt.known_result == result
    assert history.faults(read(intent)) == []


def test_a_late_answer_is_added_once() -> None:
    intent = make_intent()
    attempt = submit(intent)
    expire(intent)
    answer(attempt, X)
    answer(attempt, C)
    attempt.refresh_from_db()
    assert (attempt.late_result, read(intent).status) == ("no_answer", "unknown")


def replayed(intent: Intent) -> tuple[object, object]:
    first = submit(intent)
    expire(intent)
    second = submit(intent)
    return first, second


@pytest.mark.parametrize("result", [R, N, X])
def test_a_late_answer_under_an_old_fence_moves_nothing(result: Result) -> None:
    intent = make_intent()
    first, _ = replayed(intent)
    before = Intent.objects.filter(pk=intent.pk).values().get()
    answer(first, result)  # type: ignore[arg-type]
    assert Intent.objects.filter(pk=intent.pk).values().get() == before


@pytest.mark.parametrize("result", [C, A])
def test_a_positive_late_answer_under_an_old_fence_asks_for_a_check_and_settles_nothing(result: Result) -> None:
    intent = make_intent()
    first, _ = replayed(intent)
    answer(first, result)  # type: ignore[arg-type]
    found = read(intent)
    assert (found.status, found.version, found.settled_by) == ("submitted", 4, "")
    assert found.next_check_at is not None
    assert found.next_check_at <= times.now()
    assert first.late_result == ""  # type: ignore[attr-defined]
    first.refresh_from_db()  # type: ignore[attr-defined]
    assert first.late_result == result  # type: ignore[attr-defined]


@pytest.mark.parametrize("result", [R, N])
def test_after_an_attempt_that_may_have_landed_a_refusal_is_unknown(result: Result) -> None:
    """Rule 3, through the whole path: the first was lost, the replay was refused."""
    intent = make_intent()
    first, second = replayed(intent)
    answer(second, result)  # type: ignore[arg-type]
    intent = read(intent)
    assert (intent.status, intent.status_reason) == ("unknown", "earlier_attempt_open")
    assert intent.guard_key is not None
    answer(first, N)  # type: ignore[arg-type]
    assert read(intent).status == "unknown", "an old attempt's answer comes under an old fence"


def test_when_all_attempts_are_proven_harmless_it_fails_or_is_free() -> None:
    intent = make_intent()
    answer(submit(intent), N)
    assert read(intent).status == "recorded"
    answer(submit(intent), R)
    assert read(intent).status == "failed"


def test_not_sent_is_tried_again_so_often_and_then_it_is_failed_unsent() -> None:
    intent = make_intent(make_kind(not_sent_retries=2))
    delays = []
    for _ in range(2):
        answer(submit(intent), N, phase="connect")
        found = read(intent)
        assert found.status == "recorded"
        assert found.first_maybe_sent_at is None, "nothing was sent, so no key's window runs"
        assert found.next_attempt_at is not None
        delays.append((found.next_attempt_at - found.status_since).total_seconds())
    assert delays == [1, 2]
    answer(submit(intent), N, phase="connect")
    found = read(intent)
    assert (found.status, found.status_reason, found.settled_by) == ("failed", "not_sent_given_up", "nothing_sent")
    assert history.faults(found) == []


@pytest.mark.parametrize("result", [C, A])
def test_a_late_yes_to_what_failed_is_a_contradiction_for_a_person(result: Result) -> None:
    intent = make_intent(subject="order-1")
    attempt = submit(intent)
    expire(intent)
    _fail_by_absence(intent)
    assert read(intent).guard_key is None
    answer(attempt, result, external_id="re_1")
    intent = read(intent)
    assert (intent.status, intent.disputed) == ("failed", True)
    assert intent.guard_key is not None, "its subject counts as unsettled again"
    review = Review.objects.get(intent=intent, closed_at__isnull=True)
    assert [found.code for found in review.reasons.all()] == ["contradiction"]


@pytest.mark.parametrize("result", [N, X, R])
def test_a_late_no_to_what_failed_is_no_contradiction(result: Result) -> None:
    intent = make_intent()
    attempt = submit(intent)
    expire(intent)
    _fail_by_absence(intent)
    answer(attempt, result)
    assert read(intent).disputed is False
    assert not Review.objects.filter(intent=intent).exists()


def test_a_late_refusal_of_what_is_confirmed_is_a_contradiction() -> None:
    intent = make_intent()
    attempt = submit(intent)
    expire(intent)
    from actions import transitions
    from actions.statuses import Actor

    transitions.apply(
        intent.pk,
        expected=Status.UNKNOWN,
        to=Status.CONFIRMED,
        actor=Actor.CHECKER,
        actor_id="checker:test/1",
        reason="found_in_ledger",
        settled_by="ledger",
    )
    answer(attempt, R)
    assert (read(intent).status, read(intent).disputed) == ("confirmed", True)


def test_the_guard_stays_with_the_other_intent_when_a_dispute_finds_it_taken() -> None:
    kind = make_kind()
    intent = make_intent(kind, subject="order-1")
    attempt = submit(intent)
    expire(intent)
    _fail_by_absence(intent)
    other = make_intent(kind, subject="order-1")
    answer(attempt, C)
    assert (read(intent).disputed, read(intent).guard_key) == (True, None)
    assert read(other).guard_key is not None


def _fail_by_absence(intent: Intent) -> None:
    from actions import transitions
    from actions.statuses import Actor

    transitions.apply(
        intent.pk,
        expected=Status.UNKNOWN,
        to=Status.FAILED,
        actor=Actor.CHECKER,
        actor_id="checker:test/1",
        reason="absent_from_ledger",
        settled_by="absence",
    )


@pytest.mark.parametrize("to", [Status.CONFIRMED, Status.FAILED])
def test_an_attempt_is_closed_although_the_intent_moved_on(to: Status) -> None:
    """A check was faster than the answer: the attempt is closed by its own answer all the same."""
    intent = make_intent()
    attempt = submit(intent)
    from actions import transitions
    from actions.statuses import Actor

    transitions.apply(
        intent.pk,
        expected=Status.SUBMITTED,
        to=to,
        actor=Actor.CHECKER,
        actor_id="checker:test/1",
        reason="found_in_ledger",
        settled_by="ledger",
    )
    answer(attempt, C if to is CON else R)
    attempt.refresh_from_db()
    assert attempt.closed_by == "answer"
    assert read(intent).version == 3
    assert read(intent).disputed is False


def test_the_lease_that_ends_leaves_the_fence_so_that_the_late_answer_counts() -> None:
    intent = make_intent()
    attempt = submit(intent)
    found = expire(intent)
    attempt.refresh_from_db()
    assert (found.status, found.status_reason, found.fence) == ("unknown", "lease_over", attempt.fence)
    assert (attempt.result, attempt.closed_by) == ("no_answer", ClosedBy.CLOCK)


@pytest.mark.django_db(transaction=True)
def test_answer_and_clock_at_the_same_moment_end_in_the_answer() -> None:
    for _ in range(3):
        intent = make_intent()
        attempt = submit(intent)
        race(2, lambda index, a=attempt, i=intent: answer(a, C) if index else expire(i))  # type: ignore[misc]
        attempt.refresh_from_db()
        assert read(intent).status == "confirmed"
        assert attempt.known_result == "confirmed"
        assert history.faults(read(intent)) == []


@pytest.mark.django_db(transaction=True)
def test_two_answers_of_one_attempt_at_the_same_moment_are_one() -> None:
    intent = make_intent()
    attempt = submit(intent)
    race(4, lambda index: answer(attempt, R if index % 2 else C))
    found = read(intent)
    assert found.version == 3
    attempt.refresh_from_db()
    assert {"confirmed": "confirmed", "refused": "failed"}[attempt.result] == found.status


def test_a_settled_intent_is_settled_once() -> None:
    intent = make_intent()
    settle(intent, Status.CONFIRMED)
    assert intent.transitions.filter(to_status="confirmed").count() == 1
