"""Longer histories for the pages: looks, attempts, what was stored, as the product would have left them."""

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from actions import evidence, history, times, transitions
from actions.canonical import canonical
from actions.models import Attempt, EvidenceKind, Intent
from actions.statuses import Actor, Status
from reconciliation.models import Check, LedgerEntry


def make_attempt(intent: Intent, **columns: Any) -> Attempt:
    now = times.now()
    found: dict[str, Any] = {
        "intent": intent,
        "number": 1,
        "fence": 1,
        "executor": "landed",
        "claimed_at": now - timedelta(seconds=20),
        "lease_until": now,
        "phase": "sent",
        "result": "no_answer",
        "reason": "read_timeout",
        "closed_at": now - timedelta(seconds=10),
        "closed_by": "answer",
    }
    return Attempt.objects.create(**(found | columns))


def store(intent: Intent, text: str, kind: EvidenceKind = EvidenceKind.PAGE, **more: Any) -> Any:
    return evidence.store(
        intent_id=intent.pk, kind=kind, source="http://127.0.0.1:9/v1", content=text, now=times.now(), **more
    )


def make_look(
    intent: Intent,
    verdict: str = "too_early",
    *,
    text: str = "[]",
    candidates: tuple[int, ...] = (),
    at: datetime | None = None,
    **columns: Any,
) -> Check:
    now = at or times.now()
    grounds = {
        "by": "key" if candidates else "",
        "entry": None,
        "candidates": list(candidates),
        "differs": [],
        "entry_failed": False,
        "problem": "",
    }
    with transaction.atomic():
        kept = store(intent, text)
        row = Check(
            **{
                "intent": intent,
                "by": "checker:test/1",
                "started_at": now,
                "fence": intent.fence,
                "verdict": verdict,
                "grounds": canonical(grounds | columns.pop("grounds", {})),
                "evidence": history.refs([kept]),
                "facts_digest": f"{verdict}{candidates}"[:64],
                **columns,
            }
        )
        return history.append(row, owner=Intent, pk=intent.pk, at=now)


def make_entry(intent: Intent, entry_id: str = "re_1", **columns: Any) -> LedgerEntry:
    """An entry that agrees with the intent in everything."""
    now = times.now()
    found: dict[str, Any] = {
        "downstream": intent.downstream,
        "entry_id": entry_id,
        "role": "effect",
        "state": "final",
        "subject": intent.subject,
        "key": intent.idempotency_key,
        "amount_minor": intent.amount_minor,
        "currency": intent.currency,
        "booked_at": intent.first_maybe_sent_at,
        "first_seen_at": now,
        "last_seen_at": now,
    }
    return LedgerEntry.objects.create(**(found | columns))


def settle(intent: Intent, to: Status = Status.CONFIRMED) -> Intent:
    """As its answer would have settled it."""
    return transitions.apply(
        intent.pk,
        expected=Status(intent.status),
        to=to,
        actor=Actor.WORKER,
        actor_id="worker:test/1",
        reason="confirmed_by_answer",
        settled_by="answer",
        guard_key=None,
    )
