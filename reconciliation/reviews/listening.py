"""Hears of transitions, inside their transaction, so that reviews and statuses change together or not at all."""

from actions import outcomes, policy, replays, times
from actions.models import Attempt, Intent, Replay, Transition
from actions.statuses import Actor, Status
from reconciliation.models import ClosedHow, ReasonCode
from reconciliation.reviews import opening

# People's own decisions end their review themselves, with what they decided.
_PEOPLE = frozenset({Actor.REVIEWER, Actor.ADMINISTRATOR})


def on_transition(intent: Intent, transition: Transition) -> None:
    to = Status(transition.to_status)
    if not transition.from_status and to is not Status.HELD:
        return  # new, so there is nothing about it yet
    if to is Status.HELD:
        reasons = [ReasonCode(code) for code in intent.hold_reasons.split(",") if code]
        opening.open_for_approval(intent, reasons or [ReasonCode.APPROVAL], now=transition.at)
    elif to is Status.UNKNOWN and _only_a_person_can_tell(intent, transition):
        opening.open_for_outcome(intent, ReasonCode.STILL_UNKNOWN, now=transition.at)
    elif intent.settled and transition.actor not in _PEOPLE:
        how = ClosedHow.WITHDRAWN if to is Status.CANCELLED else ClosedHow.EVIDENCE
        opening.close(intent, how, now=transition.at)
    elif to is Status.RECORDED and transition.actor not in _PEOPLE:
        # A late answer proved that nothing was sent: there is no outcome to find any more.
        opening.close(intent, ClosedHow.EVIDENCE, now=transition.at)


def _only_a_person_can_tell(intent: Intent, transition: Transition) -> bool:
    """No book to look into and no sending again; or the downstream keeps saying what proves nothing."""
    if transition.reason == "key_used_otherwise":
        return True
    if intent.next_attempt_at is not None:
        return False
    rules = policy.read(intent.policy.text)
    if not policy.can_look_up(rules):
        return True
    return rules.replay == Replay.IN_WINDOW and replays.heard_enough(outcomes.sendings(intent))


def on_contradiction(intent: Intent, attempt: Attempt) -> None:
    now = times.now()
    if intent.status in (Status.RECORDED, Status.HELD):
        opening.doubt(intent, now=now)
    else:
        opening.dispute(intent, now=now)
