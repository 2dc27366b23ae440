"""What follows from a verdict under a policy. Pure.

A machine concludes only what evidence proves and the limits allow; time alone leads to a person, never to an end.
"""

from dataclasses import dataclass
from enum import StrEnum

from reconciliation.verdicts import Judgement
from reconciliation.words import Choice, ReasonCode, Verdict


class Move(StrEnum):
    CONFIRM = "confirm"
    FAIL = "fail"
    REVIEW = "review"
    LOOK_AGAIN = "look_again"


@dataclass(frozen=True)
class Situation:
    """What counts beside the verdict. `absences`: conclusive ones so far, this look's included."""

    high_value: bool
    absence_conclusive: bool
    absences: int
    absences_needed: int
    attempt_unclosed: bool
    machine_concludes_unclosed: bool
    accepted: bool
    waited_s: float
    review_after_s: int

    @property
    def waited_too_long(self) -> bool:
        return self.waited_s >= self.review_after_s


@dataclass(frozen=True)
class Step:
    """The move, and for a review its reason and what is recommended."""

    move: Move
    reason: ReasonCode | None = None
    recommendation: Choice | None = None


_AT_ONCE = {
    Verdict.PARTIAL: ReasonCode.PARTIAL,
    Verdict.MISMATCH: ReasonCode.MISMATCH,
    Verdict.AMBIGUOUS: ReasonCode.AMBIGUOUS,
    Verdict.DUPLICATE: ReasonCode.DUPLICATE,
}


def contradicts(judgement: Judgement, *, confirmed: bool) -> bool:
    """Whether what a look showed speaks against how an intent ended (`confirmed`, or failed).

    Not that it shows nothing: who asks for that look asks for it (`misses`).
    """
    verdict = judgement.verdict
    if not confirmed:
        # Too early: the entries that are there were not carried out, which contradicts no "failed".
        return bool(judgement.candidates) and not judgement.entry_failed and verdict is not Verdict.TOO_EARLY
    return verdict in (Verdict.DUPLICATE, Verdict.PARTIAL, Verdict.MISMATCH) or (
        verdict is Verdict.MATCH and judgement.entry_failed
    )


def follow(judgement: Judgement, situation: Situation) -> Step:
    """The next step for an intent that is submitted or unknown."""
    verdict = judgement.verdict
    if verdict in _AT_ONCE:
        return Step(Move.REVIEW, _AT_ONCE[verdict])
    if verdict is Verdict.MATCH:
        return _conclude(situation, fail=judgement.entry_failed)
    if verdict is Verdict.ABSENT and _absence_counts(situation):
        if situation.attempt_unclosed and not situation.machine_concludes_unclosed:
            return Step(Move.REVIEW, ReasonCode.STILL_UNKNOWN, Choice.FAIL)
        return _conclude(situation, fail=True)
    if situation.waited_too_long:
        return Step(Move.REVIEW, ReasonCode.STILL_UNKNOWN)
    return Step(Move.LOOK_AGAIN)


def _absence_counts(situation: Situation) -> bool:
    # What the downstream accepted under an id of its own doesn't go away by not being listed.
    return situation.absence_conclusive and not situation.accepted and situation.absences >= situation.absences_needed


def _conclude(situation: Situation, *, fail: bool) -> Step:
    if situation.high_value:
        return Step(Move.REVIEW, ReasonCode.HIGH_VALUE, Choice.FAIL if fail else Choice.CONFIRM)
    return Step(Move.FAIL if fail else Move.CONFIRM)
