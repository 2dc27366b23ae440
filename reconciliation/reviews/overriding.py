"""The audited correction of a settled intent: two different people, a reason, and a history that keeps both states.

It ended the other way; or it stays confirmed and another entry settles it. What becomes of the entry that is let go
is mended in the same transaction: it can be named the one of another intent, which it settles then.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
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
from reconciliation import checks
from reconciliation.models import (
    Choice,
    ClosedHow,
    Decision,
    Difference,
    LedgerEntry,
    Match,
    MatchRole,
    ReasonCode,
    Review,
    Verdict,
)
from reconciliation.reviews import differences, effects, opening, people, relinking

OTHER = {Status.CONFIRMED: Status.FAILED, Status.FAILED: Status.CONFIRMED}


@dataclass(frozen=True)
class Correction:
    """What somebody proposes.

    `to`: how it ended; confirmed for what is confirmed already means that `entry_id` settles it instead.
    `settled_amount_minor`: in minor units; None: as it was intended. `linked_id`: the intent that the entry belongs
    to which settles this one now.
    """

    to: Status
    reason: str
    note: str
    settled_amount_minor: int | None = None
    settled_currency: str = ""
    entry_id: int | None = None
    linked_id: UUID | None = None


def pending(intent_id: UUID) -> Decision | None:
    """The proposed correction that waits for a second person."""
    return (
        Decision.objects.filter(intent_id=intent_id, choice=Choice.CORRECT, about=None, followed_by=None)
        .select_related("person", "note", "review", "entry", "linked__kind")
        .order_by("-id")
        .first()
    )


def target_of(proposal: Decision, intent: Intent) -> Status:
    """How the intent ends when the proposal takes effect: naming an entry for a confirmed one keeps it confirmed."""
    if intent.status == Status.CONFIRMED and proposal.entry_id is not None:
        return Status.CONFIRMED
    return OTHER[Status(intent.status)]


def look(intent_id: UUID, *, person: User) -> None:
    """A fresh look into the books, where we can look and something was sent: both people decide on what there is to
    be known at that moment. Network: call it outside any transaction, before `propose` and before `agree`."""
    people.must(may_propose(person) or may_agree(person))
    intent = Intent.objects.select_related("policy").get(pk=intent_id)
    rules = policy.read(intent.policy.text)
    if policy.can_look_now(rules) and intent.first_maybe_sent_at is not None and intent.status in OTHER:
        checks.check_by_person(intent_id, person=person)


def may_propose(person: User) -> bool:
    return person.has_perm(people.OVERRIDE) or people.may_supervise(person)


def may_agree(person: User) -> bool:
    return person.has_perm(people.OVERRIDE) or people.may_decide(person)


def propose(intent_id: UUID, what: Correction, *, person: User, seen_version: int) -> Decision:
    """Proposes a correction. Nothing changes before a second person agrees.

    Raises PersonNotAllowed, BadDecision, SeenIsStale.
    """
    people.must(may_propose(person))
    with transaction.atomic():
        intent = for_change(Intent).select_related("policy").get(pk=intent_id)
        _refuse(intent, what, seen_version)
        now = times.now()
        kept = _keep(intent, what.note, person, now)
        review = _review(intent, now)
        amount = intent.amount_minor if what.settled_amount_minor is None else what.settled_amount_minor
        confirm = what.to is Status.CONFIRMED and amount is not None
        row = Decision(
            review=review,
            intent=intent,
            person=person,
            choice=Choice.CORRECT,
            reason=what.reason,
            note=kept,
            evidence=history.refs([kept]),
            entry_id=what.entry_id,
            linked_id=what.linked_id,
            settled_amount_minor=amount if confirm else None,
            settled_currency=(what.settled_currency or intent.currency) if confirm else "",
            seen_version=intent.version,
            seen_digest=_newest_facts(intent),
            payload_digest=intent.payload_digest,
        )
        return history.append(row, owner=Intent, pk=intent.pk, at=now)


def _refuse(intent: Intent, what: Correction, seen_version: int) -> None:
    if intent.status not in OTHER or what.to not in OTHER:
        raise BadDecision("Only a confirmed or failed intent can be corrected, and only to one of the two.")
    if intent.version != seen_version:
        raise SeenIsStale()
    if pending(intent.pk) is not None:
        raise BadDecision("A correction of this intent waits for a second person already.")
    if not what.note.strip():
        raise BadDecision("A correction needs a note that says why.")
    if len(what.note) > differences.MAX_NOTE:
        raise BadDecision(f"The note is longer than {differences.MAX_NOTE} characters.")
    now_settles = relinking.settling(intent)
    if what.to == intent.status and (
        intent.status == Status.FAILED or what.entry_id is None or (now_settles and now_settles.pk == what.entry_id)
    ):
        raise BadDecision("That is how it stands: name what was wrong.")
    _refuse_entry(intent, what)
    _refuse_link(intent, what, now_settles)


def _refuse_entry(intent: Intent, what: Correction) -> None:
    if what.entry_id is None:
        return
    if what.to is not Status.CONFIRMED:
        raise BadDecision("Only a confirmation names an entry.")
    entry = LedgerEntry.objects.filter(pk=what.entry_id, downstream=intent.downstream_id).first()
    if entry is None:
        raise BadDecision("There is no such entry in this downstream's books.")
    taken = Match.objects.filter(entry=entry, role=MatchRole.SETTLES, released_at__isnull=True)
    if taken.exclude(intent=intent).exists():
        raise BadDecision(
            "This entry settles another intent already. If it belongs to this one, correct the other, and name this "
            "one there."
        )


def _refuse_link(intent: Intent, what: Correction, entry: LedgerEntry | None) -> None:
    if what.linked_id is None:
        return
    if entry is None:
        raise BadDecision("No entry settles this intent, so none can be tied to another.")
    to = Intent.objects.select_related("policy").filter(pk=what.linked_id).first()
    why = relinking.against(entry, to, instead_of=intent) if to else "There is no such intent."
    if why:
        raise BadDecision(why)


def _newest_facts(intent: Intent) -> str:
    """What the newest look showed that came to its end."""
    complete = intent.checks.exclude(verdict=Verdict.UNAVAILABLE).order_by("-position")
    return complete.values_list("facts_digest", flat=True).first() or ""


def _keep(intent: Intent, note: str, person: User, now: datetime) -> Evidence:
    return evidence.store(
        intent_id=intent.pk, kind=EvidenceKind.NOTE, source=f"person:{person.pk}", content=note.strip(), now=now
    )


def _review(intent: Intent, now: datetime) -> Review:
    words = "A person says that it was settled wrongly; a second one has to agree."
    return opening.open_for_settled(intent, ReasonCode.CORRECTION, words, now=now)


def agree(decision_id: int, *, person: User) -> Intent:
    """The second person agrees: status, settled amount, matches, the other intent and history change together.

    Raises PersonNotAllowed, BadDecision (the same person, or dealt with already), SeenIsStale (the intent, or what
    its books show, is not what the first person saw).
    """
    people.must(may_agree(person))
    with transaction.atomic():
        first, intent, linked = _locked(decision_id)
        if first.person_id == person.pk:
            raise BadDecision("A different person has to agree.")
        if intent.version != first.seen_version or _newest_facts(intent) != first.seen_digest:
            raise SeenIsStale()
        now = times.now()
        second = _about(first, Choice.CORRECT, person)
        moved = _correct(intent, first, person, linked, now)
        _about(second, Choice.EFFECT, person)
        opening.close(moved, ClosedHow.DECISION, now=now)
    return moved


def _correct(intent: Intent, first: Decision, person: User, linked: Intent | None, now: datetime) -> Intent:
    to, wrong = target_of(first, intent), relinking.settling(intent)
    _release(intent, first, person, now)
    columns: dict[str, Any] = {
        "settled_by": SettledBy.OVERRIDE,
        "disputed": False,
        "guard_key": None,
        "settled_amount_minor": first.settled_amount_minor,
        "settled_currency": first.settled_currency,
    }
    if to is Status.CONFIRMED and first.entry_id is not None:
        columns["external_id"] = effects.tie(intent, first, now).entry_id
    moved = _move(intent, to, first, person, columns, now)
    if linked is not None:
        if wrong is None:
            raise SeenIsStale()
        relinking.relink(wrong, linked, first, by=f"person:{person.pk}", now=now)
    _supersede(moved, person, now)
    differences.settle(moved, first, now=now)
    return moved


def _move(
    intent: Intent, to: Status, first: Decision, person: User, columns: Mapping[str, Any], now: datetime
) -> Intent:
    if to == intent.status:
        columns = {**columns, "settled_at": intent.settled_at}  # when it was settled has not changed
    return transitions.apply(
        intent.pk,
        expected=Status(intent.status),
        to=to,
        actor=Actor.ADMINISTRATOR if person.has_perm(people.OVERRIDE) else Actor.REVIEWER,
        actor_id=f"person:{person.pk}",
        reason=Reason.OVERRIDDEN,
        evidence=effects.grounds_of(first),
        version=first.seen_version,
        now=now,
        **columns,
    )


def _release(intent: Intent, first: Decision, person: User, now: datetime) -> None:
    """Lets go of what settled it, and of what tied the entry to it that settles it now. Whether something explains
    an entry that was let go is looked at again."""
    mine = Match.objects.filter(intent=intent, released_at__isnull=True)
    wrong = mine.filter(Q(role=MatchRole.SETTLES) | Q(entry=first.entry_id))
    # Judged as nobody's, or as a duplicate: what two people say now is the newer judgement.
    judged = Match.objects.filter(entry=first.entry_id, released_at__isnull=True).exclude(role=MatchRole.SETTLES)
    ties = {tie.pk: tie.entry_id for tie in [*wrong, *judged]}
    Match.objects.filter(pk__in=ties).update(released_at=now, released_by=f"person:{person.pk}")
    LedgerEntry.objects.filter(pk__in=ties.values()).update(explain_at=now)


def _supersede(intent: Intent, person: User, now: datetime) -> None:
    """What an earlier decision left to do about the intent's own amount is not to be done any more."""
    own = Difference.objects.filter(intent=intent, entry=None, resolved_at=None)
    own.update(resolved_at=now, resolved_by=f"person:{person.pk}")


def refuse(decision_id: int, *, person: User, note: str) -> None:
    """The second person (or the first, thinking again) refuses: nothing changes but the history."""
    people.must(may_agree(person))
    with transaction.atomic():
        first, intent, _ = _locked(decision_id)
        now = times.now()
        kept = _keep(intent, note, person, now) if note.strip() else None
        _about(first, Choice.VOID, person, note=kept)
        if not intent.disputed:
            opening.close(intent, ClosedHow.DECISION, now=now)


def _locked(decision_id: int) -> tuple[Decision, Intent, Intent | None]:
    """The proposal, its intent and the one that its entry belongs to, locked in the order of their ids."""
    first = Decision.objects.select_related("review").filter(pk=decision_id, choice=Choice.CORRECT).first()
    if first is None or first.intent_id is None:
        raise BadDecision("There is no such proposal.")
    both = [pk for pk in (first.intent_id, first.linked_id) if pk is not None]
    rows = for_change(Intent).select_related("policy", "kind", "downstream").filter(pk__in=both).order_by("pk")
    found = {row.pk: row for row in rows}
    for_change(Review).get(pk=first.review_id)
    first.refresh_from_db()
    done = first.about_id is not None or Decision.objects.filter(about=first).exists()
    if done or Review.objects.filter(pk=first.review_id, closed_at__isnull=False).exists():
        raise BadDecision("This proposal was dealt with already.")
    return first, found[first.intent_id], found.get(first.linked_id) if first.linked_id else None


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
        linked_id=earlier.linked_id,
        settled_amount_minor=earlier.settled_amount_minor,
        settled_currency=earlier.settled_currency,
        seen_version=earlier.seen_version,
        seen_digest=earlier.seen_digest,
        payload_digest=earlier.payload_digest,
    )
    return history.append(row, owner=Intent, pk=earlier.intent_id, at=times.now())
