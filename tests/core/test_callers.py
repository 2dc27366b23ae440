"""Whoever sends themselves claims with a token of their own: one may send, again and again; nobody else may."""

from datetime import timedelta
from typing import Any

import pytest

from actions import callers, history, times
from actions.errors import MayHaveHappened, NotApproved, NotExecutedByCaller
from actions.models import Attempt, Intent, Result
from actions.statuses import Status
from tests.core.steps import expire, race, read
from tests.factories import make_intent, make_kind
from tests.flushing import without_triggers

pytestmark = pytest.mark.django_db


def make(**columns: Any) -> Intent:
    return make_intent(make_kind(), executor="caller", **columns)


def claim(intent: Intent, token: str = "t-1") -> Attempt:
    return callers.claim(intent.pk, claim_token=token, actor_id="agent:1")


def report(intent: Intent, result: Result, **more: Any) -> Intent:
    return callers.report(
        intent.pk, outcome=callers.reported(result), content={"said": result}, actor_id="agent:1", **more
    )


def test_a_claim_commits_status_and_attempt_before_anybody_may_send() -> None:
    intent = make()
    attempt = claim(intent)
    found = read(intent)
    assert (found.status, found.fence, attempt.fence, attempt.number) == ("submitted", 1, 1, 1)
    assert found.lease_until == attempt.lease_until
    assert found.first_maybe_sent_at == attempt.claimed_at
    last = found.transitions.last()
    assert last is not None
    assert (last.actor, last.reason) == ("caller", "claimed")


def test_the_same_token_again_is_the_same_attempt() -> None:
    """A lost response loses nothing."""
    intent = make()
    first = claim(intent)
    assert [claim(intent).pk for _ in range(3)] == [first.pk] * 3
    assert read(intent).version == 2


def test_another_token_is_told_that_it_may_have_happened() -> None:
    intent = make()
    claim(intent)
    with pytest.raises(MayHaveHappened) as told:
        claim(intent, "t-2")
    assert told.value.details["intent"].pk == intent.pk
    assert Attempt.objects.count() == 1


@pytest.mark.parametrize("result", [Result.CONFIRMED, Result.REFUSED, Result.NO_ANSWER])
def test_once_the_attempt_is_closed_its_token_opens_nothing(result: Result) -> None:
    intent = make()
    claim(intent)
    report(intent, result)
    for token in ("t-1", "t-2"):
        with pytest.raises(MayHaveHappened):
            claim(intent, token)
    assert Attempt.objects.count() == 1


def test_after_the_lease_the_token_opens_nothing() -> None:
    intent = make()
    claim(intent)
    expire(intent)
    with pytest.raises(MayHaveHappened):
        claim(intent)


def test_a_token_whose_lease_is_over_may_not_send_although_no_clock_has_run() -> None:
    """Absence counts from the end of the lease as the last possible send (rule 6). Whoever is told "may send" after
    it can book what the ledger was already found not to show."""
    intent = make()
    attempt = claim(intent)
    over = times.now() - timedelta(seconds=1)
    Intent.objects.filter(pk=intent.pk).update(lease_until=over)
    with without_triggers():
        Attempt.objects.filter(pk=attempt.pk).update(claimed_at=over - timedelta(seconds=30), lease_until=over)
    with pytest.raises(MayHaveHappened):
        claim(intent)


def test_after_a_proven_not_sent_it_can_be_claimed_again_with_the_same_key() -> None:
    intent = make()
    claim(intent)
    report(intent, Result.NOT_SENT)
    second = claim(intent, "t-2")
    assert (second.number, second.fence, read(intent).idempotency_key) == (2, 2, intent.idempotency_key)


def test_what_is_held_is_not_claimed() -> None:
    intent = make(to=Status.HELD)
    with pytest.raises(NotApproved):
        claim(intent)
    assert not Attempt.objects.exists()
    assert read(intent).status == "held"


def test_what_landed_sends_can_t_be_claimed_or_reported_on() -> None:
    intent = make_intent()
    with pytest.raises(NotExecutedByCaller):
        claim(intent)
    with pytest.raises(NotExecutedByCaller):
        report(intent, Result.CONFIRMED)
    assert read(intent).version == 1


def test_past_its_time_it_can_t_be_claimed() -> None:
    intent = make(send_before=times.now() - timedelta(seconds=1))
    with pytest.raises(MayHaveHappened, match="time"):
        claim(intent)
    assert read(intent).status == "recorded"


def test_a_caller_that_crashed_resumes_with_its_token_and_reports() -> None:
    intent = make()
    first = claim(intent)
    resumed = claim(intent)
    assert resumed.pk == first.pk
    report(intent, Result.CONFIRMED, number=resumed.number)
    assert read(intent).status == "confirmed"
    assert history.faults(read(intent)) == []


def test_a_report_on_an_earlier_attempt_speaks_for_that_one_only() -> None:
    intent = make()
    claim(intent)
    report(intent, Result.NOT_SENT, number=1)
    claim(intent, "t-2")
    report(intent, Result.REFUSED, number=1)
    assert read(intent).status == "submitted"
    assert intent.attempts.get(number=2).closed_at is None
    assert intent.evidence.count() == 2, "kept as evidence all the same"


def test_a_report_on_an_attempt_that_does_not_exist_is_refused() -> None:
    from actions.errors import NotFound

    intent = make()
    claim(intent)
    with pytest.raises(NotFound):
        report(intent, Result.CONFIRMED, number=7)
    assert read(intent).status == "submitted"


def test_the_token_itself_is_not_stored() -> None:
    intent = make()
    attempt = claim(intent, "a-very-secret-token")
    attempt.refresh_from_db()
    assert len(attempt.claim_token_digest) == 64
    assert "a-very-secret-token" not in str(Attempt.objects.values().get())


@pytest.mark.django_db(transaction=True)
def test_of_many_processes_with_tokens_of_their_own_one_may_send() -> None:
    intent = make()
    results = race(8, lambda index: claim(intent, f"t-{index}"))
    assert sum(isinstance(found, Attempt) for found in results) == 1
    assert sum(isinstance(found, MayHaveHappened) for found in results) == 7
    assert Attempt.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_one_token_from_many_threads_is_one_attempt() -> None:
    intent = make()
    results = race(8, lambda _: claim(intent))
    assert len({found.pk for found in results if isinstance(found, Attempt)}) == 1
    assert all(isinstance(found, Attempt) for found in results)
