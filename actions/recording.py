"""Records an intent: the only way in, for the HTTP API and in process alike.

The order is fixed: the request key (a replay ends here), validation, policy and limits, the guard. Only a recorded
intent binds a request key, so that a refused proposal can be mended and sent under the same key. The agent's lock
(`actions.limits`) therefore comes before the family's.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import uuid_utils
from django.db import IntegrityError, transaction

from actions import leases, limits, money, policy, snapshots, stops, subjects, times, transitions
from actions.attempts import open_attempt
from actions.canonical import canonical, digest, new_salt
from actions.errors import (
    AgentPaused,
    AlreadyDone,
    BadIdempotencyKey,
    Invalid,
    KeyReused,
    KindNotAllowed,
    KindPaused,
    LandedError,
    LimitExceeded,
    UnsettledDuplicate,
)
from actions.limit_rules import LimitName
from actions.limits import Asked, Exceeded
from actions.models import (
    Agent,
    DuplicatePolicy,
    Executor,
    Intent,
    Kind,
    LookAlikePolicy,
)
from actions.payloads import payload_digest
from actions.policy import Policy
from actions.proposals import KEY, Proposal, Shape, shape_of
from actions.reasons import Reason
from actions.statuses import Actor, Status


@dataclass(frozen=True)
class Recorded:
    """The intent; whether it was there already; which unbinding fields (`note`) differ from the stored ones."""

    intent: Intent
    replayed: bool = False
    differs: tuple[str, ...] = ()


def record(
    proposal: Proposal,
    *,
    agent: Agent,
    request_key: str | None,
    actor: Actor = Actor.AGENT,
    idempotency_key: str | None = None,
) -> Recorded:
    """Records `proposal` for `agent`, or returns what its request key already stands for.

    Joins an open transaction; otherwise everything is committed when it returns.

    Raises:
        BadIdempotencyKey, KeyReused, KindNotAllowed, AgentPaused, KindPaused, Invalid,
        LimitExceeded, UnsettledDuplicate, AlreadyDone. Nothing is recorded then.
    """
    for key in (request_key, idempotency_key):
        if key is not None and not KEY.fullmatch(key):
            raise BadIdempotencyKey()
    for last_try in (False, True):
        if (found := _replay(proposal, agent, request_key)) is not None:
            return found
        try:
            with transaction.atomic():
                done = _record(proposal, agent, request_key, actor, idempotency_key)
            if isinstance(done, Intent):
                return Recorded(done)
            raise done
        except LandedError:
            # The very same proposal may have been faster by its other call: then what refused this one is itself.
            if (found := _replay(proposal, agent, request_key)) is None:
                raise
            return found
        except IntegrityError:
            # Somebody was faster with this request key (then it is a replay) or this subject (then the guard
            # says so on the second look).
            if last_try:
                raise
    raise AssertionError("unreachable")


def _replay(proposal: Proposal, agent: Agent, request_key: str | None) -> Recorded | None:
    if request_key is None:
        return None
    asked = Intent.objects.filter(agent=agent, request_key=request_key)
    if not asked.exists():
        return None  # nearly always; whole rows of five tables cost far more to ask for, even if there is none
    intent = asked.select_related("kind", "policy", "agent", "downstream").get()
    if intent.erased_at is not None:
        raise KeyReused(
            "What was asked for under this Idempotency-Key has been erased, so nobody can tell whether this is the "
            "same. Nothing was sent.",
            differs=[],
            intent=intent,
        )
    if differs := _payload_differs(proposal, intent):
        raise KeyReused(
            f"This Idempotency-Key was used for another payload: {', '.join(differs)} differ. Nothing was sent.",
            differs=list(differs),
            intent=intent,
        )
    return Recorded(intent, replayed=True, differs=("note",) if proposal.note != intent.note else ())


def _payload_differs(proposal: Proposal, intent: Intent) -> tuple[str, ...]:
    """Names the fields in which the proposal is not the one that was recorded, read by the rules of then."""
    stored = Shape(
        kind=policy.read(intent.policy.text).kind,
        subject=intent.subject,
        amount_minor=intent.amount_minor,
        currency=intent.currency,
        params=intent.params,
        executor=intent.executor,
    )
    if proposal.kind != stored.kind:
        return ("kind",)
    try:
        asked = shape_of(proposal, policy.read(intent.policy.text), validate=False)
    except Invalid as wrong:
        return tuple(dict.fromkeys(str(e["field"]).split(".")[0] for e in wrong.details["errors"]))
    if payload_digest(asked.payload(), salt=intent.payload_salt) == intent.payload_digest:
        return ()
    was, now = stored.payload(), asked.payload()
    return tuple(name for name in was if was[name] != now[name])


def _record(
    proposal: Proposal, agent: Agent, request_key: str | None, actor: Actor, idempotency_key: str | None
) -> Intent | LimitExceeded:
    """The new intent; or the refusal, when what was written with it has to stay."""
    now = times.now()
    kind = Kind.objects.select_related("downstream").filter(name=proposal.kind).first()
    if kind is None or not (agent.built_in or agent.kinds.filter(pk=kind.pk).exists()):
        # The same answer for both: what kinds there are is nobody's business who may not propose them.
        raise KindNotAllowed(f"This agent may not propose the kind {proposal.kind!r}.")
    if agent.paused:
        raise AgentPaused()
    if kind.paused:
        raise KindPaused()
    snapshot = snapshots.take(kind, now=now)
    rules = policy.read(snapshot.text)
    shape = shape_of(proposal, rules)
    send_before = _send_before(proposal, rules, now)
    repeat_of = _repeat_of(proposal, agent)
    if idempotency_key and Intent.objects.filter(idempotency_key=idempotency_key).exists():
        raise Invalid.field("idempotency_key", "Another intent has this key.")
    asked = Asked(kind, subjects.family_of(shape.subject), shape.amount_minor, shape.currency)
    if (exceeded := limits.judge(agent, asked, now=now)) is not None:
        return _refused(exceeded, agent, request_key)

    subjects.lock_family(kind.pk, subjects.family_of(shape.subject))
    blocker = next(iter(subjects.blocking(kind.pk, shape.subject)), None)
    if blocker is not None and rules.duplicate_policy == DuplicatePolicy.REFUSE:
        raise UnsettledDuplicate(intent=blocker, same_payload=_same_payload(shape, blocker))
    look_alike = _look_alike(kind, shape, rules, now)
    if look_alike is not None and rules.look_alike_policy == LookAlikePolicy.REFUSE:
        raise AlreadyDone(intent=look_alike)

    stopped = stops.applying(kind.pk, subject=shape.subject, payee=shape.payee, customer=shape.customer)
    unlimited = limits.needs_approval(agent, kind=kind.name, currency=shape.currency)
    in_question = subjects.being_corrected(kind.pk, shape.subject)
    holds = _holds(
        rules, shape, blocker, look_alike, stopped=bool(stopped), unlimited=unlimited, in_question=in_question
    )
    key_id = UUID(str(uuid_utils.uuid7()))
    salt = new_salt()
    intent = Intent(
        id=key_id,
        agent=agent,
        kind=kind,
        policy=snapshot,
        downstream=kind.downstream,
        executor=shape.executor,
        subject=shape.subject,
        family=subjects.family_of(shape.subject),
        amount_minor=shape.amount_minor,
        currency=shape.currency,
        amount_exponent=money.exponent(shape.currency) if shape.currency else 0,
        params=shape.params,
        payee=shape.payee,
        customer=shape.customer,
        note=proposal.note,
        context=canonical(dict(proposal.context)),
        payload_salt=salt,
        payload_digest=payload_digest(shape.payload(), salt=salt),
        request_key=request_key,
        # A key of its own, not the caller's request key: two agents' keys never meet downstream.
        idempotency_key=idempotency_key or str(uuid_utils.uuid7()),
        repeat_of=repeat_of,
        look_alike_of=look_alike,
        guard_key=None if blocker else subjects.guard_key(kind.pk, shape.subject),
        hold_reasons=",".join(holds),
        send_before=send_before,
    )
    if holds:
        intent.approve_before = now + timedelta(seconds=rules.approval_expires_s)
        return transitions.create(
            intent,
            to=Status.HELD,
            actor=actor,
            actor_id=f"agent:{agent.pk}",
            reason=Reason.NEEDS_APPROVAL,
            now=now,
        )
    if shape.executor == Executor.CALLER and proposal.claim_token and not kind.downstream.paused:
        return _record_claimed(intent, proposal.claim_token, actor=actor, now=now)
    if shape.executor == Executor.LANDED:
        intent.next_attempt_at = now
    return transitions.create(
        intent,
        to=Status.RECORDED,
        actor=actor,
        actor_id=f"agent:{agent.pk}",
        reason=Reason.RECORDED,
        now=now,
    )


def _refused(exceeded: Exceeded, agent: Agent, request_key: str | None) -> LimitExceeded:
    """Raises the refusal, which undoes the transaction; returns it for a velocity, whose pause has to stay."""
    if exceeded.limit.name is not LimitName.VELOCITY:
        raise limits.refusal(exceeded)
    # The same call, made twice at once, waited for the agent's lock until its other self was recorded: a replay.
    if request_key is not None and Intent.objects.filter(agent=agent, request_key=request_key).exists():
        raise limits.refusal(exceeded)
    limits.trip(agent, exceeded)
    return limits.refusal(exceeded)


def _record_claimed(intent: Intent, claim_token: str, *, actor: Actor, now: datetime) -> Intent:
    """Recording and claiming in one: the caller sends as soon as it has the answer."""
    down = intent.downstream
    lease = leases.lease_until(
        now=now,
        lease_s=None,
        deadline_ms=down.deadline_ms,
        margin_ms=down.lease_margin_ms,
        ends=(intent.send_before, policy.replay_safe_until(policy.read(intent.policy.text), now)),
    )
    intent.fence, intent.lease_until, intent.first_maybe_sent_at = 1, lease, now
    transitions.create(
        intent,
        to=Status.SUBMITTED,
        actor=actor,
        actor_id=f"agent:{intent.agent_id}",
        reason=Reason.CLAIMED,
        now=now,
    )
    open_attempt(
        intent,
        executor=Executor.CALLER,
        fence=intent.fence,
        claim_token_digest=digest(claim_token),
        lease_until=lease,
        now=now,
    )
    return intent


def _send_before(proposal: Proposal, rules: Policy, now: datetime) -> datetime | None:
    latest = None if rules.send_before_s is None else now + timedelta(seconds=rules.send_before_s)
    asked = proposal.send_before
    if asked is None:
        return latest
    if asked <= now:
        raise Invalid.field("send_before", "This time is over.")
    return asked if latest is None else min(asked, latest)


def _repeat_of(proposal: Proposal, agent: Agent) -> Intent | None:
    if proposal.repeat_of is None:
        return None
    found = Intent.objects.filter(pk=proposal.repeat_of, agent=agent).first()
    if found is None:
        raise Invalid.field("repeat_of", "It names no intent of yours.")
    return found


def _same_payload(shape: Shape, other: Intent) -> bool:
    return payload_digest(shape.payload(), salt=other.payload_salt) == other.payload_digest


def _look_alike(kind: Kind, shape: Shape, rules: Policy, now: datetime) -> Intent | None:
    """The newest intent of the kind that was confirmed a short time ago on this subject for this amount."""
    if rules.look_alike_policy == LookAlikePolicy.ALLOW:
        return None
    alike = Intent.objects.filter(
        kind=kind,
        family=subjects.family_of(shape.subject),
        subject=shape.subject,
        amount_minor=shape.amount_minor,
        currency=shape.currency,
        status=Status.CONFIRMED,
        settled_at__gt=now - timedelta(seconds=rules.look_alike_window_s),
    )
    if not alike.exists():
        return None
    return alike.select_related("agent", "kind", "policy").order_by("-settled_at").first()


def _holds(
    rules: Policy,
    shape: Shape,
    blocker: Intent | None,
    look_alike: Intent | None,
    *,
    stopped: bool,
    unlimited: bool,
    in_question: bool,
) -> list[str]:
    """Why it may not be sent before a person approves; codes of `reconciliation`'s review reasons."""
    holds = []
    if unlimited or policy.needs_approval(rules, shape.amount_minor, shape.currency):
        holds.append("approval")
    if blocker is not None:
        holds.append("duplicate_proposal")
    if look_alike is not None:
        holds.append("look_alike")
    if stopped:
        holds.append("stopped")
    if in_question:
        holds.append("contradiction")
    return holds
