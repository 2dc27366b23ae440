"""What somebody saw about one intent: judged, written down, acted on. Whoever saw it: a worker, a person, a service
that looks with code of its own, or a webhook.

Call everything here inside the transaction that holds the intent's lock.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from actions import history, policy, transitions
from actions.canonical import canonical
from actions.models import Attempt, ClosedBy, Evidence, Executor, Intent, Result
from actions.statuses import Status
from reconciliation import aftermath, entries, following, verdicts
from reconciliation.models import Check, LedgerEntry, Verdict
from reconciliation.reviews import opening
from reconciliation.verdicts import Candidate, Facts, Judgement, Look


@dataclass(frozen=True)
class Sight:
    """How it was seen.

    `problem`: why it is not complete, a code first; `may_count`: whether it may count as an absence; `planned`: it
    was the intent's turn. What comes unasked leaves the plan of looks as it is, or it could be put off for ever.
    """

    by: str
    started_at: datetime
    fence: int
    problem: str = ""
    manual: bool = False
    may_count: bool = True
    planned: bool = True


@dataclass(frozen=True)
class Judged:
    """The verdict, and the entries that it is about."""

    judgement: Judgement
    candidates: list[Candidate]

    @property
    def facts_digest(self) -> str:
        return verdicts.facts_digest(self.candidates)

    @property
    def shows_ours(self) -> bool:
        """Whether an entry is there that bears the intent's own key or id, and was not called off."""
        own = self.judgement.by == "key" and bool(self.judgement.candidates)
        return own and not self.judgement.entry_failed and self.judgement.verdict is not Verdict.TOO_EARLY


def judge(intent: Intent, sight: Sight, rows: Iterable[LedgerEntry]) -> Judged:
    candidates = entries.candidates_for(intent, rows)
    look = Look(
        complete=not sight.problem,
        started_at=sight.started_at,
        last_possible_send=last_possible_send(intent.attempts.all(), otherwise=intent.created_at),
        lag_s=policy.read(intent.policy.text).lag_s,
    )
    return Judged(verdicts.judge(_facts(intent), candidates, look), candidates)


def _facts(intent: Intent) -> Facts:
    # What a person, or the book, established is not compared with what was once intended.
    as_settled = intent.settled_amount_minor if intent.status == Status.CONFIRMED else None
    return Facts(
        key=intent.idempotency_key,
        subject=intent.subject,
        amount_minor=intent.amount_minor if as_settled is None else as_settled,
        currency=intent.currency if as_settled is None else intent.settled_currency,
        first_sent_at=intent.first_maybe_sent_at,
        external_id=intent.external_id,
        confirmed=intent.status == Status.CONFIRMED,
    )


def last_possible_send(attempts: Iterable[Attempt], *, otherwise: datetime) -> datetime:
    """After this no attempt can have sent anything: its own answer's time, or else the end of its lease.

    A caller whose word proved nothing may be sending still, until its lease ends.
    """
    return max((_last_of(attempt) for attempt in attempts), default=otherwise)


def _last_of(attempt: Attempt) -> datetime:
    if attempt.closed_at is None or attempt.closed_by == ClosedBy.CLOCK:
        return attempt.lease_until
    if attempt.executor == Executor.CALLER and attempt.result == Result.NO_ANSWER:
        return max(attempt.closed_at, attempt.lease_until)
    return attempt.closed_at


def write(intent: Intent, sight: Sight, judged: Judged, seen: Iterable[Evidence], now: datetime) -> Check:
    """The check's row in the intent's history."""
    judgement = judged.judgement
    grounds = {
        "by": judgement.by,
        "entry": judgement.entry,
        "candidates": list(judgement.candidates),
        "differs": list(judgement.differs),
        "entry_failed": judgement.entry_failed,
        "problem": sight.problem.split(":", 1)[0],
    }
    check = Check(
        intent=intent,
        by=sight.by,
        manual=sight.manual,
        started_at=sight.started_at,
        fence=sight.fence,
        verdict=judgement.verdict,
        counts_as_absence=_counts(intent, sight, judgement),
        grounds=canonical(grounds),
        evidence=history.refs(seen),
        facts_digest=judged.facts_digest,
    )
    history.append(check, owner=Intent, pk=intent.pk, at=now)
    intent.refresh_from_db(fields=["chain_length", "chain_head"])
    return check


def _counts(intent: Intent, sight: Sight, judgement: Judgement) -> bool:
    """Whether this absence counts: not a person's look, under the current fence, spaced from the last that did, and
    against nobody's word that it is there."""
    rules_ = policy.read(intent.policy.text)
    if judgement.verdict is not Verdict.ABSENT or sight.manual or not sight.may_count:
        return False
    if not rules_.absence_conclusive or sight.fence != intent.fence or entries.is_known_to_exist(intent):
        return False
    last = following.counted_absences(intent).order_by("-position").first()
    return last is None or sight.started_at >= last.started_at + timedelta(seconds=rules_.absence_spacing_s)


def follow(intent: Intent, sight: Sight, check: Check, judged: Judged, now: datetime) -> None:
    """What follows from a check, whatever became of the intent while it was made."""
    if intent.status in (Status.HELD, Status.RECORDED):
        # It was said not to be sent. Nothing follows, unless the book shows it under its own key.
        if judged.shows_ours:
            opening.doubt(intent, now=now, check=check)
    elif intent.status == Status.CANCELLED:
        if judged.shows_ours:
            opening.dispute(intent, now=now, check=check)
    elif intent.settled:
        aftermath.after_the_end(intent, check, judged.judgement, now, planned=sight.planned)
    elif intent.fence == sight.fence:
        following.follow(intent, check, judged.judgement, now, planned=sight.planned)
    else:
        transitions.note(intent.pk, now=now, next_check_at=now)
