"""Orphans: entries that move money and that no intent explains. Each becomes a case, once per state of the entry.

What has to be looked at carries a time (`LedgerEntry.explain_at`), so that a pass costs what is due and not what was
ever booked. What is explained only for now (its intent is not settled, or in question) is looked at again later.
"""

from datetime import datetime, timedelta
from math import ceil
from typing import Any

from django.db import transaction
from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, Value, When

from actions import money, policy, times
from actions.locking import for_change
from actions.models import Intent
from actions.statuses import UNSETTLED
from reconciliation import checks
from reconciliation.entries import EXPLAINED_WITHIN, HAS_EXTERNAL_ID
from reconciliation.models import (
    Check,
    ClosedHow,
    EntryRole,
    EntryState,
    LedgerEntry,
    Match,
    MatchRole,
    Purpose,
    ReasonCode,
    Review,
    ReviewReason,
)
from reconciliation.reviews import deadlines, stakes, voiding

BATCH = 500
# What an intent explains only for now is looked at again after so long.
_AGAIN = timedelta(minutes=5)
# So long after it was first seen an entry waits for a look at the settled intent whose key it bears.
_PATIENCE = timedelta(hours=1)
# Only these say something about whether we did it.
ROLES = (EntryRole.EFFECT, EntryRole.REVERSAL)
# Open cases are looked at again in turn, by each process that sweeps (once a second): so many in a pass that each has
# its turn about every half minute, and never more than a batch.
_TURN_S, _AT_LEAST = 30, 50


def tied() -> Exists:
    """A tie explains an entry, and judged once it stays judged in that state. What settles an intent goes on doing
    so when a pending entry becomes final."""
    active = Match.objects.filter(entry=OuterRef("pk"), released_at__isnull=True)
    return Exists(active.filter(Q(role=MatchRole.SETTLES) | Q(entry_state=OuterRef("state"))))


def answered() -> Exists:
    """The downstream named it to an intent as that one's own."""
    # As a sum, so that SQLite doesn't take the index on the downstream for the better one of the two.
    theirs = Intent.objects.annotate(whose=F("downstream_id") + 0)
    return Exists(theirs.filter(HAS_EXTERNAL_ID, external_id=OuterRef("entry_id"), whose=OuterRef("downstream_id")))


def in_question() -> Exists:
    """It bears the key of an intent that is not settled or in question: that one explains it, for now."""
    cases = Review.objects.filter(intent=OuterRef("pk"), closed_at__isnull=True)
    doubtful = Q(status__in=sorted(UNSETTLED)) | Q(disputed=True) | Exists(cases)
    own = Intent.objects.filter(downstream=OuterRef("downstream"), idempotency_key=OuterRef("key"))
    return Exists(own.filter(doubtful))


def _with_explanation(found: QuerySet[LedgerEntry]) -> QuerySet[Any]:
    """With `explained`: why an entry is no orphan; empty when it is one."""
    why = Case(
        When(state=EntryState.FAILED, then=Value("nothing_moved")),
        When(~Q(role__in=ROLES), then=Value("nothing_moved")),
        When(tied(), then=Value("tied")),
        When(answered(), then=Value("answered")),
        When(in_question(), then=Value("for_now")),
        default=Value(""),
    )
    return found.annotate(explained=why)


def due(now: datetime) -> list[int]:
    """Entries that no intent explains although it is time. Those that one explains are put away, or put off."""
    ids = list(_due(now).order_by("explain_at", "pk").values_list("pk", flat=True)[:BATCH])
    if not ids:
        return []
    with transaction.atomic():
        # Locked, so that a state that changes meanwhile is not taken for the one that was looked at.
        mine = list(for_change(LedgerEntry, skip_locked=True).filter(pk__in=ids).values_list("pk", flat=True))
        why = dict(_with_explanation(_due(now).filter(pk__in=mine)).values_list("pk", "explained"))
        for_now = [pk for pk, found in why.items() if found == "for_now"]
        for_good = [pk for pk, found in why.items() if found not in ("", "for_now")]
        LedgerEntry.objects.filter(pk__in=for_now).update(explain_at=now + _AGAIN)
        LedgerEntry.objects.filter(pk__in=for_good).update(explain_at=None)
    return [pk for pk, found in why.items() if not found]


def _due(now: datetime) -> QuerySet[LedgerEntry]:
    return LedgerEntry.objects.filter(explain_at__lte=now)


def open_case(entry_id: int) -> bool:
    """Opens the case of one entry. False: something explains it, it is too young, it has a case, or its intent is
    looked at first."""
    if _looked_at_first(entry_id):
        return False
    with transaction.atomic():
        # Read again under the lock: whoever ties it, or stores it anew, may have been faster.
        entry = for_change(LedgerEntry, skip_locked=True).select_related("downstream").filter(pk=entry_id).first()
        if entry is None or entry.explain_at is None or explained(entry_id):
            return False
        now = times.now()
        old_enough = entry.first_seen_at + timedelta(seconds=entry.downstream.lag_s) + EXPLAINED_WITHIN
        young = now < old_enough
        LedgerEntry.objects.filter(pk=entry_id).update(explain_at=old_enough if young else None)
        if young or Review.objects.filter(entry=entry_id, closed_at__isnull=True).exists():
            return False
        _create(entry, now)
    return True


def _looked_at_first(entry_id: int) -> bool:
    """Whether a settled intent whose key the entry bears was not looked at since: a look ties the entry to it, or
    disputes it, and nobody has to be asked. It is not waited for longer than an hour."""
    now = times.now()
    entry = LedgerEntry.objects.filter(pk=entry_id, first_seen_at__gt=now - _PATIENCE).exclude(key="").first()
    own = _own(entry).first() if entry else None
    if entry is None or own is None or own.status not in checks.LOOKED_AT:
        return False
    if not policy.can_look_up(policy.read(own.policy.text)):
        return False
    if Check.objects.filter(intent=own, at__gt=entry.first_seen_at).exists():
        return False
    with transaction.atomic():
        for_change(Intent).get(pk=own.pk)
        checks.ask_for_look(own.pk, at=now, now=now)
        LedgerEntry.objects.filter(pk=entry_id).update(explain_at=now + _AGAIN)
    return True


def _own(entry: LedgerEntry) -> QuerySet[Intent]:
    """The intent whose key the entry bears."""
    mine = Intent.objects.filter(downstream=entry.downstream_id, idempotency_key=entry.key)
    return mine.select_related("policy")


def _create(entry: LedgerEntry, now: datetime) -> Review:
    review = Review.objects.create(
        entry=entry,
        purpose=Purpose.ENTRY,
        grounds=_grounds(entry),
        amount_minor=entry.amount_minor,
        currency=entry.currency,
        stake=stakes.of_entry(entry),
        opened_at=now,
        due_at=deadlines.for_entry(entry, opened_at=now),
    )
    ReviewReason.objects.create(review=review, code=ReasonCode.ORPHAN, at=now)
    return review


def _grounds(entry: LedgerEntry) -> str:
    what = "takes back" if entry.role == EntryRole.REVERSAL else "shows"
    pending = ", pending so far" if entry.state == EntryState.PENDING else ""
    if entry.key and _own(entry).exists():
        why = "It bears the key of an intent that is settled, and is not the entry that settled it."
    elif entry.key:
        why = "It bears a key that none of our intents has."
    else:
        why = "It bears no key, and none of our intents knows its id."
    amount = money.describe(entry.amount_minor, entry.currency)
    return f"No intent explains this entry. The ledger {what} {amount}{pending}. {why}"


def explained(entry_id: int) -> str:
    """Why an entry is no orphan now; "" while it is one."""
    found = _with_explanation(LedgerEntry.objects.filter(pk=entry_id)).first()
    return str(found.explained) if found is not None else ""


def explained_since() -> list[int]:
    """Open cases about entries that an intent explains by now, or that were not carried out after all: of those whose
    turn it is."""
    cases = dict(_in_turn())
    if not cases:
        return []
    about = _with_explanation(LedgerEntry.objects.filter(pk__in=list(cases))).exclude(explained="")
    return [cases[pk] for pk in about.order_by("pk").values_list("pk", flat=True)]


class _Turn:
    """Behind which entry the next pass goes on. Of this process: whoever starts anew begins at the first."""

    after = 0


def _in_turn() -> list[tuple[int, int]]:
    """Open cases, their entries first: the next ones in the order of the index over open ones, round and round."""
    found = Review.objects.filter(purpose=Purpose.ENTRY, closed_at__isnull=True)
    many = min(BATCH, max(_AT_LEAST, ceil(found.order_by().count() / _TURN_S)))
    pairs = found.order_by("entry_id").values_list("entry_id", "pk")
    turn = list(pairs.filter(entry_id__gt=_Turn.after)[:many])
    if len(turn) < many and _Turn.after:
        turn += list(pairs.filter(entry_id__lte=_Turn.after)[: many - len(turn)])
    _Turn.after = turn[-1][0] if turn else 0
    return [(entry, case) for entry, case in turn if entry is not None]


def close_case(review_id: int) -> bool:
    """Ends a case that nobody has to decide any more. What people decided in it and has not taken effect is void."""
    with transaction.atomic():
        review = for_change(Review, skip_locked=True).filter(pk=review_id, closed_at__isnull=True).first()
        if review is None or review.entry_id is None or not (why := explained(review.entry_id)):
            return False
        now = times.now()
        voiding.closed_meanwhile(review, now=now)
        Review.objects.filter(pk=review_id).update(
            closed_at=now, closed_how=ClosedHow.EVIDENCE, lease_until=None, version=F("version") + 1
        )
        if why == "for_now":
            # Its intent may yet end without it.
            LedgerEntry.objects.filter(pk=review.entry_id).update(explain_at=now + _AGAIN)
    return True
