"""Settled intents keep listening: what a look shows that speaks against how one ended is a case, unless a person has
judged it already.

Call everything here inside the transaction that holds the intent's lock and has stored the check.
"""

from datetime import datetime, timedelta
from math import ceil

from actions import policy, transitions
from actions.models import Intent, SettledBy
from actions.policy import Policy
from actions.statuses import Status
from reconciliation import following, rules, ties
from reconciliation.models import Check, Choice, Decision, LedgerEntry, Match, MatchRole, Verdict
from reconciliation.reviews import opening
from reconciliation.verdicts import Judgement

# Of a confirmed intent that is to be seen in the book so many looks are made before it is left as it is.
_MOST_LOOKS = 10


def after_the_end(intent: Intent, check: Check, judgement: Judgement, now: datetime, *, planned: bool = True) -> None:
    """A look at a settled intent: facts that contradict it open a case; else it is looked at as often as asked."""
    rules_ = policy.read(intent.policy.text)
    confirmed = intent.status == Status.CONFIRMED
    missing = confirmed and planned and _missing(intent, judgement, rules_)
    if (missing or rules.contradicts(judgement, confirmed=confirmed)) and not judged(intent, check):
        opening.dispute(intent, check=check, now=now)
    elif confirmed and judgement.verdict is Verdict.MATCH and judgement.entry is not None:
        _tie(intent, judgement.entry, now)
    if planned:
        _plan(intent, judgement, rules_, now, missing=missing)


def _missing(intent: Intent, judgement: Judgement, rules_: Policy) -> bool:
    """A book whose absence is conclusive doesn't show what we were told is done, as often as a kind asks."""
    if judgement.verdict is not Verdict.ABSENT or not rules_.absence_conclusive:
        return False
    return following.counted_absences(intent).count() >= rules_.absences_needed


def _plan(intent: Intent, judgement: Judgement, rules_: Policy, now: datetime, *, missing: bool) -> None:
    """When it is looked at next. What failed by absence: as its kind says. What was confirmed by its answer: until
    the book has shown it once."""
    made = intent.checks_made + (0 if judgement.verdict is Verdict.UNAVAILABLE else 1)
    wait: int | None = None
    if intent.status == Status.CONFIRMED:
        seen = judgement.verdict in (Verdict.MATCH, Verdict.DUPLICATE, Verdict.PARTIAL, Verdict.MISMATCH)
        if not seen and not missing and not intent.disputed and made < _MOST_LOOKS:
            wait = policy.check_delay_s(rules_, made)
    elif intent.settled_by == SettledBy.ABSENCE and intent.settled_at is not None:
        # By time and not by count: looks that somebody asked for use up none of these.
        times_ = sorted(intent.settled_at + timedelta(seconds=after) for after in rules_.recheck_failed_s)
        at = next((time for time in times_ if time > now), None)
        wait = None if at is None else ceil((at - now).total_seconds())
        if judgement.verdict is Verdict.UNAVAILABLE:
            soon = policy.check_delay_s(rules_, made)
            wait = soon if wait is None else min(wait, soon)
    transitions.note(
        intent.pk,
        now=now,
        checks_made=made,
        next_check_at=None if wait is None else now + timedelta(seconds=wait),
    )


def _tie(intent: Intent, entry_id: int, now: datetime) -> None:
    """The entry of an intent that was confirmed by its answer is tied to it once the book shows it."""
    active = Match.objects.filter(released_at=None)
    if active.filter(intent=intent, role=MatchRole.SETTLES).exists() or active.filter(entry=entry_id).exists():
        return
    ties.tie(LedgerEntry.objects.get(pk=entry_id), intent, MatchRole.SETTLES, by="checker", now=now)


def judged(intent: Intent, check: Check) -> bool:
    """Whether a person has upheld the intent on these very facts."""
    return Decision.objects.filter(
        intent=intent, choice=Choice.UPHOLD, seen_digest=check.facts_digest, followed_by__choice=Choice.EFFECT
    ).exists()
