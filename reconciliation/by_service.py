"""Looks made by services with code of their own: claimed like our own checks, judged by the same verdicts and rules.

A service says what it saw and concludes nothing: what follows is decided here. Only a look that it claimed counts as
an absence, and from when it was claimed, by our clock.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.core import signing
from django.db import transaction
from django.db.models import Q

from actions import dispatch, evidence, subjects, times
from actions.canonical import canonical, digest
from actions.connectors.base import Entry
from actions.errors import AgentPaused, Invalid, NotAllowed, NotFound
from actions.locking import for_change
from actions.models import Agent, Evidence, EvidenceKind, Intent, LookUp
from actions.redaction import redact
from reconciliation import checks, entries, seeing, verdicts
from reconciliation.entries import Telling
from reconciliation.models import Check
from reconciliation.seeing import Sight

_SALT: Final = "landed.checks"


@dataclass(frozen=True)
class Offer:
    """A due look, claimed: whoever shows `check` by `answer_before` made it."""

    intent: Intent
    check: str
    answer_before: datetime


@dataclass(frozen=True)
class Said:
    """What a service says that it saw. `content`: the whole of it, as it is kept; `started_at`: by its own clock."""

    content: Mapping[str, Any]
    entries: Sequence[Entry]
    complete: bool
    source: str
    check: str | None = None
    started_at: datetime | None = None


@dataclass(frozen=True)
class _Claim:
    """What a check's token says. `name`: its own, which no other claim has."""

    name: str
    fence: int
    started_at: datetime
    until: datetime


# --- claiming


def claim(agent: Agent, *, limit: int, kind: str | None = None) -> list[Offer]:
    """Claims at most `limit` due looks of the agent's kinds, each by one conditional UPDATE, so that no two services
    make the same one. Raises AgentPaused."""
    _refuse_paused(agent)
    with transaction.atomic():
        now = times.now()
        found = (
            for_change(Intent, skip_locked=True)
            .select_related("kind", "policy", "downstream")
            .filter(_due(now), kind__in=agent.kinds.all(), **({"kind__name": kind} if kind else {}))
            .order_by("next_check_at", "id")[:limit]
        )
        return [offer for intent in found if (offer := _take(intent, agent, now)) is not None]


def _due(now: datetime) -> Q:
    return Q(next_check_at__lte=now, status__in=checks.LOOKED_AT, downstream__look_up=LookUp.SERVICE)


def _take(intent: Intent, agent: Agent, now: datetime) -> Offer | None:
    until = checks.take(intent, now)
    if until is None:
        return None
    claim = [str(intent.pk), agent.pk, secrets.token_hex(8), intent.fence, now.isoformat(), until.isoformat()]
    return Offer(intent, signing.dumps(claim, salt=_SALT), until)


def _claim_of(token: str, intent: Intent, agent: Agent) -> _Claim:
    """Raises Invalid for what is not a claim of this agent's on this intent."""
    try:
        intent_id, agent_id, name, fence, started_at, until = signing.loads(token, salt=_SALT)
    except (signing.BadSignature, ValueError):
        intent_id = agent_id = None
    if (intent_id, agent_id) != (str(intent.pk), agent.pk):
        raise Invalid.field("check", "Not a check of this intent that you claimed; null for what you say unasked.")
    return _Claim(name, fence, datetime.fromisoformat(started_at), datetime.fromisoformat(until))


# --- answering


def answer(intent_id: UUID, said: Said, *, agent: Agent) -> Check:
    """Keeps what a service saw, judges it and does what follows, all in one transaction. The same again: nothing new.

    Raises NotFound (no such intent, or of a kind that the agent doesn't serve), NotAllowed (we look into these books
    ourselves), AgentPaused, Invalid (for the field `check`).
    """
    _refuse_paused(agent)
    with transaction.atomic():
        served = Intent.objects.filter(pk=intent_id, kind__in=agent.kinds.all())
        family = served.values_list("kind_id", "family").first()
        if family is None:
            raise NotFound("There is no such intent, or it is not yours to see.")
        # The family before the row, as everywhere: a dispute holds the family while it waits for its rows.
        subjects.lock_family(*family)
        intent = for_change(Intent).select_related("kind", "policy", "downstream", "agent").get(pk=intent_id)
        if intent.downstream.look_up not in (LookUp.SERVICE, LookUp.NONE):
            raise NotAllowed("Landed looks into these books itself; evidence is taken where a service looks.")
        return _answer(intent, said, agent)


def _refuse_paused(agent: Agent) -> None:
    if agent.paused:
        raise AgentPaused()


def _answer(intent: Intent, said: Said, agent: Agent) -> Check:
    now = times.now()
    claim = _claim_of(said.check, intent, agent) if said.check is not None else None
    # Of an erased intent the salt is gone: what is said of it now must not be guessable either.
    content = digest(canonical(said.content), salt=intent.payload_salt or settings.SECRET_KEY)[:16]
    who = f"service:{agent.pk}/"
    by = f"{who}{claim.name}/{content}" if claim else f"{who}{content}"
    if claim is not None and (earlier := intent.checks.filter(by__startswith=f"{who}{claim.name}/").first()):
        if earlier.by == by:
            return earlier
        # Something else under a claim that was answered already: heard, but it was not the look that was claimed.
        claim, by = None, f"{who}{content}"
    newest = intent.checks.order_by("-position").first()
    if claim is None and newest is not None and newest.by == by:
        return newest
    sight = _sight(intent, said, claim, by=by, now=now)
    seen = _keep(intent, said, agent, now)
    about_it = entries.ours(intent, said.entries)
    if any(_names(intent, entry) and entry not in about_it for entry in said.entries):
        # It gives this one what is another one's on record: neither is believed, and least of all that it is absent.
        sight = replace(sight, may_count=False)
    telling = Telling(about_it, seen.source, seen)
    rows = entries.store(intent.downstream, [telling], now=now, as_of=sight.started_at)
    judged = seeing.judge(intent, sight, rows)
    check = seeing.write(intent, sight, judged, [seen], now)
    seeing.follow(intent, sight, check, judged, now)
    return check


def _names(intent: Intent, entry: Entry) -> bool:
    return entry.key == intent.idempotency_key or bool(intent.external_id and entry.entry_id == intent.external_id)


def _sight(intent: Intent, said: Said, claim: _Claim | None, *, by: str, now: datetime) -> Sight:
    """A look that was claimed began when it was claimed; one that was not, when the service says, and not later than
    now."""
    problem = "" if said.complete else "service_incomplete"
    if claim is None:
        started_at = min(said.started_at or now, now)
        return Sight(by, started_at, intent.fence, problem, may_count=False, planned=False)
    in_turn = now <= claim.until and intent.next_check_at == claim.until
    # By its own word it looked before it was asked to: true perhaps, but not that look.
    stale = said.started_at is not None and said.started_at < claim.started_at - verdicts.CLOCK_SKEW
    return Sight(by, claim.started_at, claim.fence, problem, may_count=in_turn and not stale, planned=in_turn)


def _keep(intent: Intent, said: Said, agent: Agent, now: datetime) -> Evidence:
    hidden = [dispatch.target_of(intent.downstream).secret]
    return evidence.store(
        intent_id=intent.pk,
        kind=EvidenceKind.PAGE,
        source=f"service {agent.name}: {redact(said.source, secrets=hidden)}",
        content=said.content,
        now=now,
        secrets=hidden,
    )
