"""The audited change of a settled intent: two different people, a reason, and a history that keeps both states."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q

from actions import evidence, history, policy, times, transitions
from actions.errors import BadDecision, SeenIsStale
from actions.locking import for_change
from actions.models import Evidence, EvidenceKind, Intent, SettledBy
from actions.reasons import Reason
from actions.statuses import Actor, Status
from reconciliation.models import (
    Choice,
    ClosedHow,
    Decision,
    LedgerEntry,
    Match,
    MatchRole,
    Purpose,
    ReasonCode,
    Review,
    ReviewReason,
)
from reconciliation.reviews import differences, effects, opening, people, stakes

_OTHER = {Status.CONFIRMED: Status.FAILED, Status.FAILED: Status.CONFIRMED}


def pending(intent_id: UUID) -> Decision | None:
    """The proposed override that waits for a second person."""
    return (
        Decision.objects.filter(intent_id=intent_id, choice=Choice.CORRECT, about=None, followed_by=None)
        .select_related("person", "note", "review")
        .order_by("-id")
        .first()
    )


def propose(
    intent_id: UUID,
    *,
    to: Status,
    person: User,
    reason: str,
    note: str,
    settled_amount_minor: int | None,
    settled_currency: str,
    entry_id: int | None,
    seen_version: int,
) -> Decision:
    """Proposes that a settled intent ended the other way. Nothing changes before a second person agrees.

    Raises PersonNotAllowed, BadDecision, SeenIsStale.
    """
    people.must(person.has_perm(people.OVERRIDE))
    with transaction.atomic():
        intent = for_change(Intent).select_related("policy").get(pk=intent_id)
        if _OTHER.get(Status(intent.status)) is not to:
            raise BadDecision("Only a confirmed or failed intent can be overridden, and only to the other one.")
        if intent.version != seen_version:
            raise SeenIsStale()
        if pending(intent.pk) is not None:
            raise BadDecision("An override of this intent waits for a second person already.")
        if not note.strip():
            raise BadDecision("An override needs a note that says why.")
        _refuse_entry(intent, entry_id, to)
        now = times.now()
        kept = evidence.store(
            intent_id=intent.pk,
            kind=EvidenceKind.NOTE,
            source=f"person:{person.pk}",
            content=note.strip(),
            now=now,
        )
        review = _review(intent, now)
        amount = intent.amount_minor if settled_amount_minor is None else settled_amount_minor
        confirm = to is Status.CONFIRMED and amount is not None
        row = Decision(
            review=review,
            intent=intent,
            person=person,
            choice=Choice.CORRECT,
            reason=reason,
            note=kept,
            evidence=history.refs([kept]),
            entry_id=entry_id,
            settled_amount_minor=amount if confirm else None,
            settled_currency=(settled_currency or intent.currency) if confirm else "",
            seen_version=intent.version,
            payload_digest=intent.payload_digest,
        )
        return history.append(row, owner=Intent, pk=intent.pk, at=now)


def _refuse_entry(intent: Intent, entry_id: int | None, to: Status) -> None:
    if entry_id is None:
        return
    if to is not Status.CONFIRMED:
        raise BadDecision("Only a confirmation names an entry.")
    entry = LedgerEntry.objects.filter(pk=entry_id, downstream=intent.downstream_id).first()
    if entry is None:
        raise BadDecision("There is no such entry in this downstream's books.")
    if Match.objects.filter(entry=entry, released_at__isnull=True).exclude(intent=intent).exists():
        raise BadDecision("This entry settles another intent already.")


def _review(intent: Intent, now: datetime) -> Review:
    review = opening.open_review(intent)
    if review is None:
        due = timedelta(seconds=policy.read(intent.policy.text).review_due_s)
        review = Review.objects.create(
            intent=intent,
            purpose=Purpose.OUTCOME,
            amount_minor=intent.amount_minor,
            currency=intent.currency,
            stake=stakes.of(intent),
            opened_at=now,
            due_at=now + due,
            grounds="A person says that it ended the other way; a second one has to agree.",
        )
    ReviewReason.objects.get_or_create(review=review, code=ReasonCode.CORRECTION, defaults={"at": now})
    return review


def agree(decision_id: int, *, person: User) -> Intent:
    """The second person agrees: status, settled amount, match and history change together.

    Raises PersonNotAllowed, BadDecision (the same person, or dealt with already), SeenIsStale.
    """
    people.must(person.has_perm(people.OVERRIDE))
    with transaction.atomic():
        first, intent = _locked(decision_id)
        if first.person_id == person.pk:
            raise BadDecision("A different person has to agree.")
        if intent.version != first.seen_version:
            raise SeenIsStale()
        now = times.now()
        second = _about(first, Choice.CORRECT, person)
        to = _OTHER[Status(intent.status)]
        columns: dict[str, Any] = {"settled_by": SettledBy.OVERRIDE, "disputed": False, "guard_key": None}
        _release(intent, first, person, now)
        if to is Status.CONFIRMED:
            columns |= {
                "settled_amount_minor": first.settled_amount_minor,
                "settled_currency": first.settled_currency,
            }
            if first.entry_id is not None:
                columns["external_id"] = effects.tie(intent, first, now).entry_id
        else:
            columns |= {"settled_amount_minor": None, "settled_currency": ""}
        note: list[Evidence] = effects.grounds_of(first)
        moved = transitions.apply(
            intent.pk,
            expected=Status(intent.status),
            to=to,
            actor=Actor.ADMINISTRATOR,
            actor_id=f"person:{person.pk}",
            reason=Reason.OVERRIDDEN,
            evidence=note,
            version=first.seen_version,
            now=now,
            **columns,
        )
        differences.settle(moved, first, now=now)
        _about(second, Choice.EFFECT, person)
        opening.close(moved, ClosedHow.DECISION, now=now)
    return moved


def _release(intent: Intent, first: Decision, person: User, now: datetime) -> None:
    """Lets go of what settled it, and of what tied the entry to it that settles it now. Whether something explains
    an entry that was let go is looked at again."""
    mine = Match.objects.filter(intent=intent, released_at__isnull=True)
    ties = list(mine.filter(Q(role=MatchRole.SETTLES) | Q(entry=first.entry_id)))
    mine.filter(pk__in=[tie.pk for tie in ties]).update(released_at=now, released_by=f"person:{person.pk}")
    LedgerEntry.objects.filter(pk__in=[tie.entry_id for tie in ties]).update(explain_at=now)


def refuse(decision_id: int, *, person: User, note: str) -> None:
    """The second person (or the first, thinking again) refuses: nothing changes but the history."""
    people.must(person.has_perm(people.OVERRIDE))
    with transaction.atomic():
        first, intent = _locked(decision_id)
        now = times.now()
        kept = None
        if note.strip():
            kept = evidence.store(
                intent_id=intent.pk,
                kind=EvidenceKind.NOTE,
                source=f"person:{person.pk}",
                content=note.strip(),
                now=now,
            )
        _about(first, Choice.VOID, person, note=kept)
        if not intent.disputed:
            opening.close(intent, ClosedHow.DECISION, now=now)


def _locked(decision_id: int) -> tuple[Decision, Intent]:
    first = Decision.objects.select_related("review").filter(pk=decision_id, choice=Choice.CORRECT).first()
    if first is None or first.intent_id is None:
        raise BadDecision("There is no such proposal.")
    intent = for_change(Intent).select_related("policy").get(pk=first.intent_id)
    for_change(Review).get(pk=first.review_id)
    first.refresh_from_db()
    done = first.about_id is not None or Decision.objects.filter(about=first).exists()
    if done or Review.objects.filter(pk=first.review_id, closed_at__isnull=False).exists():
        raise BadDecision("This proposal was dealt with already.")
    return first, intent


def _about(earlier: Decision, choice: Choice, person: User, *, note: Evidence | None = None) -> Decision:
    row = Decision(
        review_id=earlier.review_id,
        intent_id=earlier.intent_id,
        person=person,
        choice=choice,
        about=earlier,
        note=note,
        evidence=history.refs([note] if note else []),
        entry_id=earlier.entry_id,
        settled_amount_minor=earlier.settled_amount_minor,
        settled_currency=earlier.settled_currency,
        seen_version=earlier.seen_version,
        payload_digest=earlier.payload_digest,
    )
    return history.append(row, owner=Intent, pk=earlier.intent_id, at=times.now())
