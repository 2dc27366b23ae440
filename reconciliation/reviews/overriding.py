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

from actions import evidence, history, money, policy, subjects, times, transitions
from actions.errors import BadDecision, SeenIsStale
from actions.locking import for_change
from actions.models import Evidence, EvidenceKind, Intent, Observed, SettledBy
from actions.reasons import Reason
from actions.statuses import Actor, Status
from reconciliation import checks, entries
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
from reconciliation.reviews import differences, effects, opening, people, relinking, voiding

OTHER = {Status.CONFIRMED: Status.FAILED, Status.FAILED: Status.CONFIRMED}


@dataclass(frozen=True)
class Correction:
    """What somebody proposes.

    `to`: how it ended; confirmed for what is confirmed already means that `entry_id` settles it instead.
    `settled_amount_minor`: in minor units; None: as the entry shows, else as it was intended. `linked_id`: the intent
    that the entry belongs to which settles this one now. `outside`: source and reference, where the books can't be
    looked into.
    """

    to: Status
    reason: str
    note: str
    settled_amount_minor: int | None = None
    settled_currency: str = ""
    entry_id: int | None = None
    linked_id: UUID | None = None
    outside: str = ""


@dataclass(frozen=True)
class Seen:
    """The facts that were on the person's screen."""

    version: int
    digest: str


def seen(intent: Intent) -> Seen:
    """What a page that shows this intent now has to send back with a proposal."""
    return Seen(intent.version, _newest_facts(intent))


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


def look(intent: Intent, *, person: User) -> bool:
    """A fresh look into the books, where we can look and something was sent, so that both people decide on what there
    is to be known at that moment. False: the books can't be read now. Network: call it outside any transaction."""
    rules = policy.read(intent.policy.text)
    if not policy.can_look_now(rules) or intent.first_maybe_sent_at is None or intent.status not in OTHER:
        return True
    return checks.check_by_person(intent.pk, person=person).verdict != Verdict.UNAVAILABLE


def may_propose(person: User) -> bool:
    return person.has_perm(people.OVERRIDE) or people.may_supervise(person)


def may_agree(person: User) -> bool:
    return person.has_perm(people.OVERRIDE) or people.may_decide(person)


def propose(intent_id: UUID, what: Correction, *, person: User, seen: Seen) -> Decision:
    """Proposes a correction. Nothing is settled otherwise before a second person agrees; but what is said to have
    happened after all blocks its subject from now on. Network: call it outside any transaction.

    Raises PersonNotAllowed, BadDecision, SeenIsStale.
    """
    people.must(may_propose(person))
    intent = Intent.objects.select_related("policy").get(pk=intent_id)
    _refuse_words(intent, what)
    readable = look(intent, person=person)
    with transaction.atomic():
        intent, linked = _lock(intent_id, what.linked_id)
        now = times.now()
        _refuse(intent, linked, what, seen)
        entry = _entry(intent, what)
        amount, currency = _settled(intent, what, entry)
        kept = _keep(intent, what.note, person, now)
        outside = _keep_outside(intent, what.outside, person, now, readable=readable)
        review = _review(intent, now)
        row = Decision(
            review=review,
            intent=intent,
            person=person,
            choice=Choice.CORRECT,
            reason=what.reason,
            note=kept,
            evidence=history.refs([kept, *outside]),
            entry_id=what.entry_id,
            linked_id=what.linked_id,
            settled_amount_minor=amount,
            settled_currency=currency,
            seen_version=seen.version,
            seen_digest=seen.digest,
            payload_digest=intent.payload_digest,
        )
        row = history.append(row, owner=Intent, pk=intent.pk, at=now)
        if intent.status == Status.FAILED:
            opening.call_in_question(intent, by=f"person:{person.pk}", seen=[kept], now=now)
        if linked is not None and linked.status == Status.FAILED:
            # What is proposed from now on is held as well: `subjects.being_corrected`.
            opening.hold_the_unsent(linked, now)
        return row


def _refuse_words(intent: Intent, what: Correction) -> None:
    if intent.status not in OTHER or what.to not in OTHER:
        raise BadDecision("Only a confirmed or failed intent can be corrected, and only to one of the two.")
    if not what.note.strip():
        raise BadDecision("A correction needs a note that says why.")
    if max(len(what.note), len(what.outside)) > differences.MAX_NOTE:
        raise BadDecision(f"The note is longer than {differences.MAX_NOTE} characters.")


def _lock(intent_id: UUID, linked_id: UUID | None) -> tuple[Intent, Intent | None]:
    """Both intents, families before rows, each in one order."""
    both = Intent.objects.filter(pk__in=[pk for pk in (intent_id, linked_id) if pk is not None])
    for kind_id, family in sorted(set(both.values_list("kind_id", "family"))):
        subjects.lock_family(kind_id, family)
    rows = for_change(Intent).select_related("policy", "kind", "downstream").filter(pk__in=both).order_by("pk")
    found = {row.pk: row for row in rows}
    return found[intent_id], found.get(linked_id) if linked_id else None


def _refuse(intent: Intent, linked: Intent | None, what: Correction, seen: Seen) -> None:
    if intent.status not in OTHER:
        raise SeenIsStale()
    if pending(intent.pk) is not None:
        raise BadDecision("A correction of this intent waits for a second person already.")
    if intent.version != seen.version or _newest_facts(intent) != seen.digest:
        raise SeenIsStale()
    now_settles = relinking.settling(intent)
    if what.to == intent.status and (
        intent.status == Status.FAILED or what.entry_id is None or (now_settles and now_settles.pk == what.entry_id)
    ):
        raise BadDecision("That is how it stands: name what was wrong.")
    if what.linked_id is not None:
        _refuse_link(intent, linked, now_settles)


def _entry(intent: Intent, what: Correction) -> LedgerEntry | None:
    """The entry that settles the intent then. Raises BadDecision when it can't."""
    if what.entry_id is None:
        return None
    if what.to is not Status.CONFIRMED:
        raise BadDecision("Only a confirmation names an entry.")
    entry = LedgerEntry.objects.filter(pk=what.entry_id, downstream=intent.downstream_id).first()
    if entry is None:
        raise BadDecision("There is no such entry in this downstream's books.")
    _refuse_entry(entry, intent)
    return entry


def _refuse_entry(entry: LedgerEntry, intent: Intent) -> None:
    taken = Match.objects.filter(entry=entry, role=MatchRole.SETTLES, released_at__isnull=True)
    if taken.exclude(intent=intent).exists():
        raise BadDecision(
            "This entry settles another intent already. If it belongs to this one, correct the other, and name this "
            "one there."
        )
    if why := relinking.against_entry(entry, intent):
        raise BadDecision(why)


def _settled(intent: Intent, what: Correction, entry: LedgerEntry | None) -> tuple[int | None, str]:
    """What was settled: as the person says, else as the entry shows, else as it was intended. A person can't say of
    an entry that it shows another amount."""
    if what.to is not Status.CONFIRMED or intent.amount_minor is None:
        return None, ""
    stated = (what.settled_amount_minor, what.settled_currency or intent.currency)
    if entry is None or entry.amount_minor is None:
        return (intent.amount_minor, intent.currency) if stated[0] is None else stated
    booked = entries.moved(entry)
    if stated[0] is not None and stated != booked:
        shown = money.describe(*booked)
        raise BadDecision(f"The entry shows {shown}. Leave the amount empty to take that, or name no entry.")
    return booked


def _refuse_link(intent: Intent, to: Intent | None, entry: LedgerEntry | None) -> None:
    if entry is None:
        raise BadDecision("No entry settles this intent, so none can be tied to another.")
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


def _keep_outside(intent: Intent, text: str, person: User, now: datetime, *, readable: bool) -> list[Evidence]:
    """Where the person has it from. Raises BadDecision when nothing is said and the books can't be read."""
    if not text.strip():
        if not readable:
            raise BadDecision(
                "The ledger can't be looked into now. To go on all the same, say where you have it from: source and "
                "reference."
            )
        return []
    return [
        evidence.store(
            intent_id=intent.pk,
            kind=EvidenceKind.OUTSIDE,
            source=f"person:{person.pk}",
            content=text.strip(),
            now=now,
        )
    ]


def _review(intent: Intent, now: datetime) -> Review:
    words = "A person says that it was settled wrongly; a second one has to agree."
    return opening.open_for_settled(intent, ReasonCode.CORRECTION, words, now=now)


def agree(decision_id: int, *, person: User, outside: str = "") -> Intent:
    """The second person agrees: status, settled amount, matches, the other intent and history change together, at
    once: two people have looked at it. `outside`: where they have it from, when the books can't be read. Network:
    call it outside any transaction.

    Raises PersonNotAllowed, BadDecision (the same person, or dealt with already), SeenIsStale (the intent, or what
    its books show, is not what the first person saw).
    """
    people.must(may_agree(person))
    proposal = Decision.objects.select_related("intent__policy").filter(pk=decision_id, choice=Choice.CORRECT).first()
    if proposal is None or proposal.intent is None:
        raise BadDecision("There is no such proposal.")
    if proposal.person_id == person.pk:
        raise BadDecision("A different person has to agree.")
    readable = look(proposal.intent, person=person)
    with transaction.atomic():
        first, intent, linked = _locked(decision_id)
        if intent.version != first.seen_version or _newest_facts(intent) != first.seen_digest:
            raise SeenIsStale()
        now = times.now()
        seen_as = _keep_outside(intent, outside, person, now, readable=readable)
        second = voiding.about(first, Choice.CORRECT, person, now=now, kept=seen_as)
        moved = _correct(intent, first, person, linked, now)
        voiding.about(second, Choice.EFFECT, person, now=now)
        opening.close(moved, ClosedHow.DECISION, now=now)
    return moved


def _correct(intent: Intent, first: Decision, person: User, linked: Intent | None, now: datetime) -> Intent:
    to, was, wrong = target_of(first, intent), intent.status, relinking.settling(intent)
    if first.entry is not None:
        _refuse_entry(first.entry, intent)
    let_go = _release(intent, first, person, now)
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
    if was == Status.FAILED:
        opening.hold_the_unsent(moved, now)
    if linked is not None:
        if wrong is None:
            raise SeenIsStale()
        relinking.relink(wrong, linked, first, by=f"person:{person.pk}", now=now)
    _supersede(moved, let_go, person, now)
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


def _release(intent: Intent, first: Decision, person: User, now: datetime) -> set[int]:
    """Lets go of what settled it, and of whatever tied the entry that settles it now. Whether something explains an
    entry that was let go is looked at again. Returns the ids of these entries."""
    mine = Q(intent=intent, role=MatchRole.SETTLES)
    # Judged as nobody's, or as a duplicate: what two people say now is the newer judgement.
    judged = Q(entry=first.entry_id) & (Q(intent=intent) | ~Q(role=MatchRole.SETTLES))
    active = Match.objects.filter(mine | judged, released_at__isnull=True)
    ties = dict(active.values_list("pk", "entry"))
    Match.objects.filter(pk__in=ties).update(released_at=now, released_by=f"person:{person.pk}")
    LedgerEntry.objects.filter(pk__in=ties.values()).update(explain_at=now)
    return {int(entry) for entry in ties.values()}


def _supersede(intent: Intent, let_go: set[int], person: User, now: datetime) -> None:
    """What earlier decisions left to do about the intent's own amount, and about the entries that are something else
    now, is not to be done any more."""
    about = Q(intent=intent, entry=None) | Q(entry__in=let_go)
    Difference.objects.filter(about, resolved_at=None).update(resolved_at=now, resolved_by=f"person:{person.pk}")


def refuse(decision_id: int, *, person: User, note: str) -> None:
    """The second person (or the first, thinking again) refuses: nothing changes but the history. The case ends when
    it was about nothing else."""
    people.must(may_agree(person))
    with transaction.atomic():
        first, intent, _ = _locked(decision_id)
        now = times.now()
        kept = [_keep(intent, note, person, now)] if note.strip() else []
        voiding.about(first, Choice.VOID, person, now=now, note=kept[0] if kept else None)
        if set(first.review.reasons.values_list("code", flat=True)) != {ReasonCode.CORRECTION}:
            return
        if intent.disputed:
            # By the proposal alone.
            transitions.note(intent.pk, now=now, disputed=False, guard_key=None)
            history.observe(intent.pk, Observed.UPHELD, by=f"person:{person.pk}", evidence=kept, at=now)
        opening.close(intent, ClosedHow.DECISION, now=now)


def _locked(decision_id: int) -> tuple[Decision, Intent, Intent | None]:
    """The proposal, its intent and the one that its entry belongs to; their families, rows, cases and entries locked,
    each in one order."""
    first = Decision.objects.filter(pk=decision_id, choice=Choice.CORRECT).first()
    if first is None or first.intent_id is None:
        raise BadDecision("There is no such proposal.")
    intent, linked = _lock(first.intent_id, first.linked_id)
    for pk in sorted(found.pk for found in (intent, linked) if found is not None):
        list(for_change(Review).filter(intent=pk, closed_at__isnull=True).order_by("pk"))
    settles = Match.objects.filter(intent=intent, role=MatchRole.SETTLES, released_at=None).values("entry")
    list(for_change(LedgerEntry).filter(Q(pk__in=settles) | Q(pk=first.entry_id)).order_by("pk"))
    first = Decision.objects.select_related("review", "entry", "intent").get(pk=decision_id)
    done = first.about_id is not None or Decision.objects.filter(about=first).exists()
    if done or first.review.closed_at is not None:
        raise BadDecision("This proposal was dealt with already.")
    return first, intent, linked
