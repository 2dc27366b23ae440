"""DESIGN §7's second table, whole: verdict and situation → what happens next."""

import itertools
from dataclasses import replace

import pytest

from reconciliation.models import Choice, ReasonCode, Verdict
from reconciliation.rules import Move, Situation, Step, follow
from reconciliation.verdicts import Judgement

# Below every limit, one attempt that said how it ended, a book that is conclusive, nothing waited.
PLAIN = Situation(
    high_value=False,
    absence_conclusive=True,
    absences=0,
    absences_needed=2,
    attempt_unclosed=False,
    machine_concludes_unclosed=False,
    accepted=False,
    waited_s=10.0,
    review_after_s=900,
)
ABSENT = replace(PLAIN, absences=2)
OLD = {"waited_s": 900.0}

CASES = [
    # match
    ("match", PLAIN, Step(Move.CONFIRM)),
    ("match", replace(PLAIN, high_value=True), Step(Move.REVIEW, ReasonCode.HIGH_VALUE, Choice.CONFIRM)),
    ("match", replace(PLAIN, attempt_unclosed=True), Step(Move.CONFIRM)),
    ("match", replace(PLAIN, accepted=True), Step(Move.CONFIRM)),
    ("match", replace(PLAIN, **OLD), Step(Move.CONFIRM)),
    ("match", replace(PLAIN, absence_conclusive=False), Step(Move.CONFIRM)),
    # an entry that says of itself that it was not carried out
    ("match-failed", PLAIN, Step(Move.FAIL)),
    ("match-failed", replace(PLAIN, accepted=True), Step(Move.FAIL)),
    ("match-failed", replace(PLAIN, high_value=True), Step(Move.REVIEW, ReasonCode.HIGH_VALUE, Choice.FAIL)),
    # pending
    ("pending", PLAIN, Step(Move.LOOK_AGAIN)),
    ("pending", replace(PLAIN, high_value=True), Step(Move.LOOK_AGAIN)),
    ("pending", replace(PLAIN, absences=9), Step(Move.LOOK_AGAIN)),
    ("pending", replace(PLAIN, **OLD), Step(Move.REVIEW, ReasonCode.STILL_UNKNOWN)),
    # absent, by rule 6
    ("absent", ABSENT, Step(Move.FAIL)),
    ("absent", replace(ABSENT, absences=3, **OLD), Step(Move.FAIL)),
    ("absent", replace(ABSENT, high_value=True), Step(Move.REVIEW, ReasonCode.HIGH_VALUE, Choice.FAIL)),
    ("absent", replace(ABSENT, attempt_unclosed=True), Step(Move.REVIEW, ReasonCode.STILL_UNKNOWN, Choice.FAIL)),
    ("absent", replace(ABSENT, attempt_unclosed=True, machine_concludes_unclosed=True), Step(Move.FAIL)),
    # absent, not conclusive
    ("absent", PLAIN, Step(Move.LOOK_AGAIN)),
    ("absent", replace(PLAIN, absences=1), Step(Move.LOOK_AGAIN)),
    ("absent", replace(PLAIN, absences=1, **OLD), Step(Move.REVIEW, ReasonCode.STILL_UNKNOWN)),
    ("absent", replace(ABSENT, absence_conclusive=False), Step(Move.LOOK_AGAIN)),
    ("absent", replace(ABSENT, absence_conclusive=False, absences=99), Step(Move.LOOK_AGAIN)),
    ("absent", replace(ABSENT, absence_conclusive=False, **OLD), Step(Move.REVIEW, ReasonCode.STILL_UNKNOWN)),
    # what the downstream accepted does not go away by not being listed
    ("absent", replace(ABSENT, accepted=True), Step(Move.LOOK_AGAIN)),
    ("absent", replace(ABSENT, accepted=True, absences=99), Step(Move.LOOK_AGAIN)),
    ("absent", replace(ABSENT, accepted=True, **OLD), Step(Move.REVIEW, ReasonCode.STILL_UNKNOWN)),
    # a person at once
    ("partial", PLAIN, Step(Move.REVIEW, ReasonCode.PARTIAL)),
    ("mismatch", PLAIN, Step(Move.REVIEW, ReasonCode.MISMATCH)),
    ("ambiguous", PLAIN, Step(Move.REVIEW, ReasonCode.AMBIGUOUS)),
    ("duplicate", PLAIN, Step(Move.REVIEW, ReasonCode.DUPLICATE)),
    # nothing learnt
    ("too_early", PLAIN, Step(Move.LOOK_AGAIN)),
    ("too_early", replace(PLAIN, absences=99), Step(Move.LOOK_AGAIN)),
    ("too_early", replace(PLAIN, **OLD), Step(Move.REVIEW, ReasonCode.STILL_UNKNOWN)),
    ("unavailable", PLAIN, Step(Move.LOOK_AGAIN)),
    ("unavailable", replace(PLAIN, absences=99), Step(Move.LOOK_AGAIN)),
    ("unavailable", replace(PLAIN, **OLD), Step(Move.REVIEW, ReasonCode.STILL_UNKNOWN)),
]


def judgement(name: str) -> Judgement:
    verdict, _, failed = name.partition("-")
    return Judgement(Verdict(verdict), entry=1, candidates=(1,), entry_failed=bool(failed))


@pytest.mark.parametrize(("name", "situation", "step"), CASES)
def test_what_follows_from_a_verdict(name: str, situation: Situation, step: Step) -> None:
    assert follow(judgement(name), situation) == step


@pytest.mark.parametrize(("waited", "move"), [(0.0, Move.LOOK_AGAIN), (899.9, Move.LOOK_AGAIN), (900.0, Move.REVIEW)])
def test_people_are_asked_after_the_kinds_time(waited: float, move: Move) -> None:
    assert follow(judgement("unavailable"), replace(PLAIN, waited_s=waited)).move is move


ALL = [
    Situation(high, conclusive, absences, 2, unclosed, machine, accepted, waited, 900)
    for high, conclusive, absences, unclosed, machine, accepted, waited in itertools.product(
        [False, True], [False, True], [0, 1, 2, 99], [False, True], [False, True], [False, True], [0.0, 1e9]
    )
]


def test_a_machine_confirms_only_what_the_ledger_shows_and_the_limit_allows() -> None:
    for verdict, situation in itertools.product(Verdict, ALL):
        for failed in (False, True):
            found = follow(Judgement(verdict, entry=1, entry_failed=failed), situation)
            if found.move is Move.CONFIRM:
                assert verdict is Verdict.MATCH
                assert not failed
                assert not situation.high_value


def test_a_machine_fails_only_by_a_failed_entry_or_a_proven_absence() -> None:
    """Rules 5 and 6: not by age, not by running out of checks, not what was accepted."""
    for verdict, situation in itertools.product(Verdict, ALL):
        found = follow(Judgement(verdict), situation)
        if found.move is Move.FAIL:
            assert verdict is Verdict.ABSENT
            assert situation.absence_conclusive
            assert situation.absences >= situation.absences_needed
            assert not situation.accepted
            assert not situation.high_value
            assert not situation.attempt_unclosed or situation.machine_concludes_unclosed


def test_above_the_limit_no_machine_concludes_anything() -> None:
    for verdict, situation in itertools.product(Verdict, ALL):
        if situation.high_value:
            for failed in (False, True):
                found = follow(Judgement(verdict, entry_failed=failed), situation)
                assert found.move in (Move.REVIEW, Move.LOOK_AGAIN)


def test_whoever_waited_too_long_is_never_just_looked_at_again() -> None:
    """Nothing ends in silence."""
    for verdict, situation in itertools.product(Verdict, ALL):
        if situation.waited_s >= situation.review_after_s:
            assert follow(Judgement(verdict), situation).move is not Move.LOOK_AGAIN


def test_a_review_always_says_why() -> None:
    for verdict, situation in itertools.product(Verdict, ALL):
        found = follow(Judgement(verdict), situation)
        assert (found.reason is not None) == (found.move is Move.REVIEW)
