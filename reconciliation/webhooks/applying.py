"""What follows from a webhook.

It is a reason to look. Where nobody looks, its verified content is the evidence: judged as a look is, by the same
rules. That something is not said proves nothing.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q

from actions import evidence, jobs, policy, subjects, times
from actions.locking import for_change
from actions.models import Evidence, EvidenceKind, Intent, LookUp, SettledBy
from actions.statuses import Status
from reconciliation import checks, entries, rules, seeing
from reconciliation.models import Check, Delivery, DeliveryOutcome, LedgerEntry, Match, Verdict
from reconciliation.seeing import Judged, Sight

# Seconds after it came at which a delivery is tried again that no intent was there for. After the last: not ours.
TRY_AFTER_S: Final = (5, 30, 120, 600, 3_600, 21_600, 86_400)
# A try that broke off is made again no sooner; one that still breaks after the last, once a day.
_AT_LEAST, _BROKEN = timedelta(seconds=5), timedelta(days=1)
_MOST_INTENTS: Final = 20
_OPEN: Final = (Status.SUBMITTED, Status.UNKNOWN)


def due(now: datetime, *, limit: int) -> list[int]:
    """Deliveries that wait to be tried again, the longest due first."""
    waiting = Delivery.objects.filter(next_try_at__lte=now).order_by("next_try_at", "pk")
    return list(waiting.values_list("pk", flat=True)[:limit])


def concerned(downstream_id: int, named: Mapping[str, Sequence[Any]]) -> list[UUID]:
    """The intents that it speaks of: by key or id whatever their status; else by subject."""
    ours = Intent.objects.filter(downstream_id=downstream_id).order_by("created_at", "id")
    if found := _named(downstream_id, named):
        return found
    about = named.get("subjects", ())
    families = {subjects.family_of(subject) for subject in about}
    sent = ours.filter(family__in=families, subject__in=about, first_maybe_sent_at__isnull=False)
    found = list(sent.filter(status__in=_OPEN).values_list("pk", flat=True)[:_MOST_INTENTS])
    # Beside those whose outcome nobody knows: what entries may take back; and, if it can be nobody else's, what
    # nobody but we ourselves called failed.
    also = Q(status=Status.CONFIRMED) if named.get("entries") else Q(pk__in=())
    if not found:
        also |= Q(status=Status.FAILED, settled_by__in=[SettledBy.ABSENCE, SettledBy.DECISION])
    return [*found, *sent.filter(also).values_list("pk", flat=True)[:_MOST_INTENTS]]


def _named(downstream_id: int, named: Mapping[str, Sequence[Any]]) -> list[UUID]:
    """By key or id, the oldest first. Each is asked for by itself, in its own index."""
    keyed = Intent.objects.filter(idempotency_key__in=named.get("keys", ()))
    answered = entries.answered_by(downstream_id, named.get("external_ids", ()))
    found = {
        (created_at, pk)
        for by in (keyed, answered)
        for created_at, pk, whose in by.order_by("created_at", "id").values_list("created_at", "pk", "downstream_id")
        if whose == downstream_id
    }
    return [pk for _, pk in sorted(found)[:_MOST_INTENTS]]


def apply(pk: int, *, told: Sequence[LedgerEntry] = ()) -> bool:
    """Does what follows from a kept delivery. False: nothing is left to do, or it is somebody else's turn.

    `told`: its entries as it shows them. The try is counted before it is made, so that one that breaks is not made
    again at once.
    """
    delivery = Delivery.objects.select_related("evidence").get(pk=pk)
    now = times.now()
    if not _take_a_try(delivery, now):
        return False
    outcomes = [
        _apply_to(delivery, intent_id, told) for intent_id in concerned(delivery.downstream_id, delivery.about_data)
    ]
    done = [outcome for outcome in outcomes if outcome is not None]
    # What names nothing of ours and shows no entry is over: an intent is recorded, with its key, before it is sent.
    waits = bool(delivery.about_data["entries"]) if not outcomes else len(done) < len(outcomes)
    if not outcomes or waits:
        if waits and now < delivery.received_at + timedelta(seconds=TRY_AFTER_S[-1]):
            return True
        done.append(DeliveryOutcome.JUDGED if outcomes else DeliveryOutcome.NOTHING_OF_OURS)
    # The later in the list, the more followed.
    outcome = max(done, key=list(DeliveryOutcome).index)
    Delivery.objects.filter(pk=pk, outcome="").update(outcome=outcome, applied_at=times.now(), next_try_at=None)
    return True


def _take_a_try(delivery: Delivery, now: datetime) -> bool:
    """By one conditional UPDATE, so that the sweep and the request don't both make it."""
    if delivery.next_try_at is None or delivery.next_try_at > now:
        return False
    plan = (delivery.received_at + timedelta(seconds=seconds) for seconds in TRY_AFTER_S)
    again = next((at for at in plan if at > now), now + _BROKEN)
    still = Delivery.objects.filter(pk=delivery.pk, next_try_at=delivery.next_try_at)
    return still.update(tries=F("tries") + 1, next_try_at=max(again, now + _AT_LEAST)) == 1


def _apply_to(delivery: Delivery, intent_id: UUID, told: Sequence[LedgerEntry]) -> DeliveryOutcome | None:
    """What follows for one intent. None: it is too early to tell, and tried again."""
    with transaction.atomic():
        # The family before the row, as everywhere: a dispute holds the family while it waits for its rows.
        subjects.lock_family_of(intent_id)
        intent = for_change(Intent).select_related("kind", "policy", "downstream", "agent").get(pk=intent_id)
        now = times.now()
        # Whatever follows, people read in its case what came.
        seen = _evidence_for(intent, delivery, now)
        return _follow(intent, delivery, seen, told, now)


def _follow(
    intent: Intent, delivery: Delivery, seen: Evidence, told: Sequence[LedgerEntry], now: datetime
) -> DeliveryOutcome | None:
    sight = Sight(by=f"webhook:{delivery.pk}", started_at=now, fence=intent.fence, may_count=False, planned=False)
    rows = _rows(intent, told)
    judged = seeing.judge(intent, sight, rows)
    can_look_up = policy.can_look_up(policy.read(intent.policy.text))
    if can_look_up and intent.status in _OPEN:
        asked = _ask_for_look(intent, now)
        # Its own answer, coming now, plans looks anew: asked again when that is here.
        return None if intent.lease_until is not None else asked
    early = _is_early(intent, judged)
    is_looked_at = can_look_up and intent.status in checks.LOOKED_AT
    if is_looked_at and any(row.pk in delivery.about_data.get("differs", ()) for row in rows):
        # The sender's clock is not ours: what passes for old news may be the newest. The look tells.
        return _ask_for_look(intent, now)
    if delivery.about_data["entries"] and _is_known(intent, judged, is_looked_at=is_looked_at):
        return None if early else DeliveryOutcome.KNOWN
    if is_looked_at:
        return _ask_for_look(intent, now)
    if not judged.judgement.candidates:
        return DeliveryOutcome.NOTHING_SAID
    _judge(intent, sight, judged, seen, now)
    if can_look_up and intent.status in _OPEN:
        _ask_for_look(intent, now)
    return None if early else DeliveryOutcome.JUDGED


def _rows(intent: Intent, told: Sequence[LedgerEntry]) -> list[LedgerEntry]:
    """Everything on record that could be the intent, the entries just told as they were told."""
    fresh = {row.pk: row for row in told}
    return [fresh.get(row.pk, row) for row in entries.about(intent)]


def _is_known(intent: Intent, judged: Judged, *, is_looked_at: bool) -> bool:
    """Whether nothing follows from it: it agrees with how things stand, or was judged just like this before."""
    if intent.status in (Status.HELD, Status.RECORDED, Status.CANCELLED):
        agrees = not judged.shows_ours
    else:
        agrees = intent.settled and _agrees(intent, judged)
    return agrees or (not is_looked_at and _was_judged(intent, judged))


def _agrees(intent: Intent, judged: Judged) -> bool:
    """Whether it says of a settled intent what is known of it: that it failed, or by which entry it was done."""
    confirmed, entry = intent.status == Status.CONFIRMED, judged.judgement.entry
    if rules.contradicts(judged.judgement, confirmed=confirmed):
        return False
    if not confirmed or entry is None:
        return True
    named = any(one.id == entry and one.entry_id == intent.external_id for one in judged.candidates)
    return named or Match.objects.filter(intent=intent, entry=entry, released_at__isnull=True).exists()


def _was_judged(intent: Intent, judged: Judged) -> bool:
    newest = Check.objects.filter(intent=intent, at__gte=intent.status_since).order_by("-position").first()
    return newest is not None and (newest.verdict, newest.facts_digest, newest.fence) == (
        judged.judgement.verdict,
        judged.facts_digest,
        intent.fence,
    )


def _is_early(intent: Intent, judged: Judged) -> bool:
    """An entry that was not carried out concludes nothing, and contradicts nothing, while another attempt may still
    show."""
    waits = intent.status in (*_OPEN, Status.CONFIRMED)
    return waits and judged.judgement.verdict is Verdict.TOO_EARLY and bool(judged.judgement.candidates)


def _ask_for_look(intent: Intent, now: datetime) -> DeliveryOutcome:
    checks.ask_for_look(intent.pk, at=now, now=now)
    if intent.downstream.look_up != LookUp.SERVICE:
        jobs.ring_after_commit(jobs.CHECK)
    return DeliveryOutcome.LOOK_ASKED


def _judge(intent: Intent, sight: Sight, judged: Judged, seen: Evidence, now: datetime) -> None:
    check = seeing.write(intent, sight, judged, [seen], now)
    seeing.follow(intent, sight, check, judged, now)
    intent.refresh_from_db(fields=["status"])


def _evidence_for(intent: Intent, delivery: Delivery, now: datetime) -> Evidence:
    """The delivery's evidence as the intent's own, once: history, and its case, name only what belongs to the intent.
    A delivery that names several, or came before the intent, is none of theirs."""
    came = delivery.evidence
    if came.intent_id == intent.pk:
        return came
    kept = Evidence.objects.filter(intent=intent, kind=EvidenceKind.WEBHOOK, source=came.source, text=came.text)
    return kept.first() or evidence.store(
        intent_id=intent.pk, kind=EvidenceKind.WEBHOOK, source=came.source, content=came.text, now=now
    )
