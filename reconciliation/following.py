"""What follows from a check, under the policy: confirm, fail, ask a person, or look again.

Call everything here inside the transaction that holds the intent's lock and has stored the check.
"""

from datetime import datetime, timedelta
from zlib import crc32

from django.db.models import F, QuerySet

from actions import evidence, policy, transitions
from actions.models import Evidence, EvidenceKind, Executor, Intent, SettledBy
from actions.policy import Policy
from actions.reasons import Reason
from actions.statuses import Actor, Status
from reconciliation import entries, rules, ties
from reconciliation.models import Check, Choice, LedgerEntry, MatchRole, ReasonCode, Review, Verdict
from reconciliation.reviews import opening
from reconciliation.rules import Move, Situation, Step
from reconciliation.verdicts import Judgement


def follow(intent: Intent, check: Check, judgement: Judgement, now: datetime, *, planned: bool = True) -> None:
    """`planned`: it was the intent's turn, and the next look is planned from here; else the plan stays."""
    rules_ = policy.read(intent.policy.text)
    step = rules.follow(judgement, _situation(intent, rules_, now))
    if step.move is Move.FAIL and entries.is_known_to_exist(intent):
        # Somebody told of an effect under its own key: what this look alone showed fails nothing by machine.
        step = Step(Move.REVIEW, ReasonCode.AMBIGUOUS)
    elif step.move is Move.FAIL and _said_to_be_done(intent):
        # Its caller says that it is done, and the book does not show it: one of them is wrong.
        step = Step(Move.REVIEW, ReasonCode.CONTRADICTION, Choice.FAIL)
    under_way = intent.next_attempt_at is not None and intent.next_attempt_at <= now and not judgement.candidates
    if step.reason is ReasonCode.STILL_UNKNOWN and step.recommendation is None and under_way:
        # Its key is about to be sent again, perhaps because a person said so: that is waited for first.
        step = Step(Move.LOOK_AGAIN)
    if planned:
        Intent.objects.filter(pk=intent.pk).update(checks_made=F("checks_made") + 1)
        intent.checks_made += 1
    if step.move is Move.CONFIRM:
        settle_by_entry(intent, check, judgement, now)
    elif step.move is Move.FAIL:
        _fail(intent, check, judgement, rules_, now)
    else:
        if step.move is Move.REVIEW and step.reason is not None:
            opening.open_for_outcome(intent, step.reason, check=check, recommendation=step.recommendation, now=now)
        else:
            opening.renew(intent, check=check, now=now)
            if judgement.candidates and intent.next_attempt_at is not None:
                # It has arrived: sending its key again tells nothing that the book doesn't.
                transitions.note(intent.pk, now=now, next_attempt_at=None)
        if planned:
            look_again(intent, rules_, now)


def _said_to_be_done(intent: Intent) -> bool:
    """Whether whoever carried it out reported it as confirmed, trusted or not."""
    reports = Evidence.objects.filter(intent=intent, kind=EvidenceKind.REPORT)
    return intent.executor == Executor.CALLER and reports.filter(text__contains='"outcome":"confirmed"').exists()


def _situation(intent: Intent, rules_: Policy, now: datetime) -> Situation:
    attempts = list(intent.attempts.all())
    return Situation(
        high_value=policy.needs_review(rules_, intent.amount_minor, intent.currency),
        absence_conclusive=rules_.absence_conclusive,
        absences=counted_absences(intent).count(),
        absences_needed=rules_.absences_needed,
        attempt_unclosed=any(not a.closed_by_itself for a in attempts),
        machine_concludes_unclosed=rules_.machine_concludes_unclosed,
        accepted=bool(intent.external_id),
        waited_s=(now - (intent.first_maybe_sent_at or intent.status_since)).total_seconds(),
        review_after_s=rules_.review_after_s,
    )


def look_again(intent: Intent, rules_: Policy, now: datetime) -> None:
    delay: float = policy.check_delay_s(rules_, intent.checks_made)
    if Review.objects.filter(intent=intent, closed_at__isnull=True).exists():
        # Somebody will decide; the books are still watched, the more calmly the older the case.
        age = (now - intent.status_since).total_seconds()
        delay = max(delay, min(3_600, age / 10))
    transitions.note(intent.pk, now=now, next_check_at=now + timedelta(seconds=delay * _jitter(intent)))


def _jitter(intent: Intent) -> float:
    """Up to a fifth more, so that what failed together isn't looked up together for ever. The same for the same
    look, whoever plans it."""
    return 1 + crc32(f"{intent.pk}:{intent.checks_made}".encode()) % 1_000 / 5_000


def settle_by_entry(intent: Intent, check: Check, judgement: Judgement, now: datetime) -> Intent:
    """The ledger shows it: ties the entry to the intent and confirms it, together."""
    assert judgement.entry is not None
    entry = LedgerEntry.objects.get(pk=judgement.entry)
    amount, currency = entries.moved(entry)
    ties.tie(entry, intent, MatchRole.SETTLES, by="checker", now=now)
    return transitions.apply(
        intent.pk,
        expected=(Status.SUBMITTED, Status.UNKNOWN),
        to=Status.CONFIRMED,
        actor=Actor.CHECKER,
        actor_id=check.by,
        reason=Reason.FOUND_IN_LEDGER,
        evidence=evidence.named_in(check.evidence),
        now=now,
        fence=check.fence,
        external_id=entry.entry_id,
        settled_amount_minor=amount,
        settled_currency=currency,
        settled_by=SettledBy.LEDGER,
    )


def _fail(intent: Intent, check: Check, judgement: Judgement, rules_: Policy, now: datetime) -> None:
    by_entry = judgement.verdict is Verdict.MATCH
    # What failed by absence is looked up again later: books have been late before.
    again = None if by_entry else now + timedelta(seconds=rules_.recheck_failed_s[0])
    transitions.apply(
        intent.pk,
        expected=(Status.SUBMITTED, Status.UNKNOWN),
        to=Status.FAILED,
        actor=Actor.CHECKER,
        actor_id=check.by,
        reason=Reason.FAILED_IN_LEDGER if by_entry else Reason.ABSENT_FROM_LEDGER,
        evidence=evidence.named_in(check.evidence),
        now=now,
        fence=check.fence,
        settled_by=SettledBy.LEDGER if by_entry else SettledBy.ABSENCE,
        next_check_at=again,
        checks_made=0,
    )


def counted_absences(intent: Intent) -> QuerySet[Check]:
    """The absences that count since the newest attempt and since the last look that said otherwise."""
    found = Check.objects.filter(intent=intent, fence=intent.fence)
    other = (
        found.exclude(verdict__in=[Verdict.ABSENT, Verdict.TOO_EARLY, Verdict.UNAVAILABLE])
        .order_by("-position")
        .first()
    )
    found = found.filter(counts_as_absence=True)
    return found.filter(position__gt=other.position) if other else found
