"""What is due or stuck here. Runs beside `actions.sweep`, from the same clock."""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from actions import policy, times
from actions.in_words import unsettled
from actions.locking import for_change
from actions.models import Intent
from actions.statuses import Status
from actions.sweep import BATCH, Swept
from reconciliation import checks, incidents, look_back, orphans
from reconciliation.models import ReasonCode, Review
from reconciliation.reviews import opening, pending, waiting
from reconciliation.reviews import orphans as deciding_orphans
from reconciliation.webhooks import applying

log = logging.getLogger(__name__)

# How much longer than the kind's "review after" a check may take to ask by itself.
_GRACE = timedelta(minutes=5)


# PostgreSQL: a deadlock, or a conflict with another transaction. It is about this row, and gone the next time.
_ROW_ONLY = frozenset({"40P01", "40001"})


def sweep() -> Swept:
    """One pass: applies webhooks that came before their intent, puts decisions into effect whose undo window is
    over, opens a review for every unknown that nobody would otherwise look at again, and one for every entry that no
    intent explains."""
    now = times.now()
    changed = _take_effect(now) + _apply_deliveries(now) + _ask_people(now) + incidents.sweep(now)
    changed += _explain_entries(now)
    changed += sum(_safely(waiting.time_is_over, pk) for pk in waiting.due(now, limit=BATCH))
    return Swept(changed=changed, due_to_check=checks.anything_due(now) or look_back.anything_due(now))


def _explain_entries(now: datetime) -> int:
    changed = sum(_safely(deciding_orphans.take_effect, pk) for pk in deciding_orphans.due(now, limit=BATCH))
    changed += sum(_safely(orphans.open_case, pk) for pk in orphans.due(now))
    return changed + sum(_safely(orphans.close_case, pk) for pk in orphans.explained_since())


def _apply_deliveries(now: datetime) -> int:
    return sum(_safely(applying.apply, pk) for pk in applying.due(now, limit=BATCH))


def _take_effect(now: datetime) -> int:
    # False: somebody else's sweep was faster, or the person took it back.
    return sum(_safely(pending.take_effect, pk) for pk in pending.due(now, limit=BATCH))


def _safely(act: Callable[[Any], int], pk: object) -> int:
    """One bad row stops no other."""
    try:
        return act(pk)
    except (OperationalError, InterfaceError) as away:
        if getattr(away.__cause__, "sqlstate", None) in _ROW_ONLY:
            log.warning("the sweep leaves %s of %s for later: %s", act.__name__, pk, away)
            return False
        raise  # the database is away, for every row
    except Exception:
        log.exception("the sweep can't handle %s of %s", act.__name__, pk)
        return False


def _ask_people(now: datetime) -> int:
    """Nothing ends in silence: an unknown that nobody would look at again, or whose checks never came through, gets
    a review."""
    unasked = Intent.objects.filter(
        unsettled(),
        ~Exists(_asked(now).filter(intent=OuterRef("pk"))),
        status__in=[Status.UNKNOWN, Status.SUBMITTED],
        lease_until__isnull=True,
    )
    # These columns alone: whole rows cost more to ask for than all else that the clock does in a pass.
    needed = ("status_since", "first_maybe_sent_at", "next_check_at", "next_attempt_at", "policy__text")
    oldest = unasked.select_related("policy").only(*needed).order_by("status_since", "pk")[:BATCH]
    return sum(_safely(_ask, intent.pk) for intent in oldest if _in_silence(intent, now))


def _asked(now: datetime) -> QuerySet[Review]:
    """Open cases, and those decided a moment ago: what was decided may be on its way still."""
    return Review.objects.filter(Q(closed_at__isnull=True) | Q(closed_at__gt=now - _GRACE))


def _in_silence(intent: Intent, now: datetime) -> bool:
    """Whether nobody will look at it or send its key again, or that has come to nothing for longer than its kind
    allows."""
    if intent.next_check_at is None and intent.next_attempt_at is None:
        return True
    # Checks ask a person by themselves; only those that can't be made or stored at all are left to the clock, those
    # of a service that stopped looking, and sendings that are put off: paused, stopped, or behind a breaker.
    patience = timedelta(seconds=policy.read(intent.policy.text).review_after_s) + _GRACE
    since = intent.first_maybe_sent_at or intent.status_since
    return since + patience < now


def _ask(pk: UUID) -> bool:
    with transaction.atomic():
        intent = for_change(Intent).select_related("policy").get(pk=pk)
        now = times.now()
        # Read again under the lock: it may have been settled, held, or freed to be sent in between.
        still = intent.status in (Status.UNKNOWN, Status.SUBMITTED) and intent.lease_until is None
        if not still or not _in_silence(intent, now) or _asked(now).filter(intent=intent).exists():
            return False
        opening.open_for_outcome(intent, ReasonCode.STILL_UNKNOWN, now=now)
    return True
