"""Records an intent: the only way in, for the HTTP API and in process alike.

The order is fixed: the request key (a replay ends here), validation, policy and limits, the guard. Only a recorded
intent binds a request key, so that a refused proposal can be mended and sent under the same key.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import jmespath
import uuid_utils
from django.db import IntegrityError, transaction
from jmespath.exceptions import JMESPathError
from jsonschema import Draft202012Validator

from actions import leases, money, policy, snapshots, subjects, times, transitions
from actions.attempts import open_attempt
from actions.canonical import BadJson, canonical, check_params, check_text, digest, new_salt
from actions.errors import (
    AgentPaused,
    AlreadyDone,
    BadIdempotencyKey,
    Invalid,
    KeyReused,
    KindNotAllowed,
    KindPaused,
    LandedError,
    UnsettledDuplicate,
)
from actions.models import (
    Agent,
    AmountRule,
    DuplicatePolicy,
    Executor,
    Executors,
    Intent,
    Kind,
    LookAlikePolicy,
)
from actions.payloads import payload, payload_digest
from actions.policy import Policy
from actions.reasons import Reason
from actions.statuses import Actor, Status

MAX_NOTE, MAX_PARAMS, MAX_CONTEXT = 4_000, 32_768, 4_096
CONTEXT_KEYS = ("run", "ticket", "on_behalf_of")
_KEY = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)


@dataclass(frozen=True)
class Proposal:
    """What an agent asks for, as it came: amounts as the digits that were written."""

    kind: str
    subject: str | None = None
    amount: str | None = None
    currency: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    context: Mapping[str, Any] = field(default_factory=dict)
    executor: str = Executor.LANDED.value
    claim_token: str | None = None
    send_before: datetime | None = None
    repeat_of: UUID | None = None


@dataclass(frozen=True)
class Recorded:
    """The intent; whether it was there already; which unbinding fields (`note`) differ from the stored ones."""

    intent: Intent
    replayed: bool = False
    differs: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Shape:
    """A proposal in canonical form: what the payload digest covers."""

    kind: str
    subject: str
    amount_minor: int | None
    currency: str
    params: str
    executor: str
    payee: str = ""
    customer: str = ""

    def payload(self) -> dict[str, Any]:
        return payload(
            kind=self.kind,
            subject=self.subject,
            amount_minor=self.amount_minor,
            currency=self.currency,
            params=self.params,
            executor=self.executor,
        )


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
        UnsettledDuplicate, AlreadyDone. Nothing is recorded then.
    """
    for key in (request_key, idempotency_key):
        if key is not None and not _KEY.fullmatch(key):
            raise BadIdempotencyKey()
    for last_try in (False, True):
        if (found := _replay(proposal, agent, request_key)) is not None:
            return found
        try:
            with transaction.atomic():
                return Recorded(_record(proposal, agent, request_key, actor, idempotency_key))
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
    intent = (
        Intent.objects.select_related("kind", "policy", "agent", "downstream")
        .filter(agent=agent, request_key=request_key)
        .first()
    )
    if intent is None:
        return None
    if differs := _payload_differs(proposal, intent):
        raise KeyReused(
            f"This Idempotency-Key was used for another payload: {', '.join(differs)} differ. Nothing was sent.",
            differs=list(differs),
            intent=intent,
        )
    return Recorded(intent, replayed=True, differs=("note",) if proposal.note != intent.note else ())


def _payload_differs(proposal: Proposal, intent: Intent) -> tuple[str, ...]:
    """Names the fields in which the proposal is not the one that was recorded, read by the rules of then."""
    stored = _Shape(
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
        asked = _shape(proposal, policy.read(intent.policy.text), validate=False)
    except Invalid as wrong:
        return tuple(dict.fromkeys(str(e["field"]).split(".")[0] for e in wrong.details["errors"]))
    if payload_digest(asked.payload(), salt=intent.payload_salt) == intent.payload_digest:
        return ()
    was, now = stored.payload(), asked.payload()
    return tuple(name for name in was if was[name] != now[name])


def _record(
    proposal: Proposal, agent: Agent, request_key: str | None, actor: Actor, idempotency_key: str | None
) -> Intent:
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
    shape = _shape(proposal, rules)
    send_before = _send_before(proposal, rules, now)
    repeat_of = _repeat_of(proposal, agent)
    if idempotency_key and Intent.objects.filter(idempotency_key=idempotency_key).exists():
        raise Invalid.field("idempotency_key", "Another intent has this key.")

    subjects.lock_family(kind.pk, subjects.family_of(shape.subject))
    blocker = next(iter(subjects.blocking(kind.pk, shape.subject)), None)
    if blocker is not None and rules.duplicate_policy == DuplicatePolicy.REFUSE:
        raise UnsettledDuplicate(intent=blocker, same_payload=_same_payload(shape, blocker))
    look_alike = _look_alike(kind, shape, rules, now)
    if look_alike is not None and rules.look_alike_policy == LookAlikePolicy.REFUSE:
        raise AlreadyDone(intent=look_alike)

    holds = _holds(rules, shape, blocker, look_alike)
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


# --- what was asked, in canonical form


def _shape(proposal: Proposal, rules: Policy, *, validate: bool = True) -> _Shape:
    """Raises Invalid with every field that can't be taken. `validate=False` leaves out the JSON Schema."""
    errors: list[dict[str, str]] = []

    def wrong(name: str, message: object) -> None:
        errors.append({"field": name, "message": str(message)})

    params = _params(proposal, rules, wrong, validate=validate)
    subject = _subject(proposal, rules, params, wrong)
    amount_minor, currency = _amount(proposal, rules, wrong)
    _texts(proposal, wrong)
    executors = set(Executor.values) if rules.executors == Executors.BOTH else {rules.executors}
    if proposal.executor not in executors:
        wrong("executor", f"This kind is carried out by: {', '.join(sorted(executors))}.")
    if proposal.claim_token is not None and proposal.executor != Executor.CALLER:
        wrong("claim_token", "Only an intent that the caller carries out is claimed.")
    elif proposal.claim_token is not None and not _KEY.fullmatch(proposal.claim_token):
        wrong("claim_token", "1 to 255 visible ASCII characters.")
    if errors:
        raise Invalid(errors)
    return _Shape(
        kind=rules.kind,
        subject=subject,
        amount_minor=amount_minor,
        currency=currency,
        params=canonical(params),
        executor=proposal.executor,
        payee=(_named(rules.payee_from, params) or "")[:200],
        customer=(_named(rules.customer_from, params) or "")[:200],
    )


def _params(proposal: Proposal, rules: Policy, wrong: Any, *, validate: bool) -> dict[str, Any]:
    params = dict(proposal.params)
    try:
        check_params(params)
        if len(canonical(params)) > MAX_PARAMS:
            wrong("params", f"Longer than {MAX_PARAMS} characters.")
    except (BadJson, ValueError) as bad:
        wrong("params", bad)
        return {}
    if validate and rules.params_schema:
        for problem in Draft202012Validator(rules.params_schema).iter_errors(params):
            wrong(".".join(["params", *map(str, problem.absolute_path)]), problem.message[:300])
    return params


def _subject(proposal: Proposal, rules: Policy, params: Mapping[str, Any], wrong: Any) -> str:
    try:
        derived = _named(rules.subject_from, params)
        if derived is not None:
            derived = subjects.canonical_subject(
                derived, folds=rules.subject_case_folds, pattern=rules.subject_pattern
            )
        if proposal.subject is None:
            if derived is None:
                wrong("subject", "Missing." if not rules.subject_from else "It can't be derived from params.")
            return derived or ""
        subject = subjects.canonical_subject(
            proposal.subject, folds=rules.subject_case_folds, pattern=rules.subject_pattern
        )
        if derived is not None and subject != derived:
            wrong("subject", f"params say {derived!r}.")
        return subject
    except subjects.BadSubject as bad:
        wrong("subject", bad)
        return ""


def _amount(proposal: Proposal, rules: Policy, wrong: Any) -> tuple[int | None, str]:
    if proposal.amount is None and proposal.currency is None:
        if rules.amount_rule == AmountRule.REQUIRED:
            wrong("amount", "Missing.")
            wrong("currency", "Missing.")
        return None, ""
    if rules.amount_rule == AmountRule.NONE:
        wrong("amount", "This kind takes no amount.")
        return None, ""
    if proposal.amount is None or proposal.currency is None:
        wrong("currency" if proposal.currency is None else "amount", "Amount and currency go together.")
        return None, ""
    try:
        return money.to_minor(proposal.amount, proposal.currency), proposal.currency
    except money.BadAmount as bad:
        try:
            money.exponent(proposal.currency)
            wrong("amount", bad)
        except money.BadAmount:
            wrong("currency", bad)
        return None, ""


def _texts(proposal: Proposal, wrong: Any) -> None:
    if len(proposal.note) > MAX_NOTE:
        wrong("note", f"Longer than {MAX_NOTE} characters.")
    for key, value in proposal.context.items():
        if key not in CONTEXT_KEYS:
            wrong(f"context.{key}", f"Unknown; there are {', '.join(CONTEXT_KEYS)}.")
        elif not isinstance(value, str) or len(value) > 255:
            wrong(f"context.{key}", "A text of at most 255 characters.")
    try:
        check_text(proposal.note)
        for value in proposal.context.values():
            check_text(str(value))
    except BadJson as bad:
        wrong("note", bad)


def _named(expression: str, params: Mapping[str, Any]) -> str | None:
    """The text or whole number that a kind's expression finds in params; None when it finds neither."""
    if not expression:
        return None
    try:
        found = jmespath.search(expression, params)
    except JMESPathError:
        return None  # the expression is sound (the admin compiled it); these params don't fit it
    if isinstance(found, str):
        return found
    return str(found) if type(found) is int else None


# --- what the policy says


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


def _same_payload(shape: _Shape, other: Intent) -> bool:
    return payload_digest(shape.payload(), salt=other.payload_salt) == other.payload_digest


def _look_alike(kind: Kind, shape: _Shape, rules: Policy, now: datetime) -> Intent | None:
    """The newest intent of the kind that was confirmed a short time ago on this subject for this amount."""
    if rules.look_alike_policy == LookAlikePolicy.ALLOW:
        return None
    return (
        Intent.objects.select_related("agent", "kind", "policy")
        .filter(
            kind=kind,
            family=subjects.family_of(shape.subject),
            subject=shape.subject,
            amount_minor=shape.amount_minor,
            currency=shape.currency,
            status=Status.CONFIRMED,
            settled_at__gt=now - timedelta(seconds=rules.look_alike_window_s),
        )
        .order_by("-settled_at")
        .first()
    )


def _holds(rules: Policy, shape: _Shape, blocker: Intent | None, look_alike: Intent | None) -> list[str]:
    """Why it may not be sent before a person approves; codes of `reconciliation`'s review reasons."""
    holds = []
    if policy.needs_approval(rules, shape.amount_minor, shape.currency):
        holds.append("approval")
    if blocker is not None:
        holds.append("duplicate_proposal")
    if look_alike is not None:
        holds.append("look_alike")
    return holds
