"""Plain functions that make rows, with defaults a test can do without naming."""

import itertools
from typing import Any
from uuid import UUID

import uuid_utils
from django.contrib.auth.models import Permission, User

from actions import money, snapshots, subjects, times, tokens, transitions
from actions.canonical import canonical, new_salt
from actions.models import Agent, Downstream, Executor, Intent, Kind
from actions.payloads import payload, payload_digest
from actions.reasons import Reason
from actions.statuses import UNSETTLED, Actor, Status

_numbers = itertools.count(1)


def make_downstream(**columns: Any) -> Downstream:
    number = next(_numbers)
    found: dict[str, Any] = {
        "name": f"payments-{number}",
        "title": "Payments",
        "connector": "http_json",
        "base_url": "http://127.0.0.1:9",
        "look_up": "both",
        "absence_conclusive": True,
        "dedupes": True,
        "dedupe_window_s": 86_400,
        "lag_s": 2,
    }
    return Downstream.objects.create(**(found | columns))


def make_kind(downstream: Downstream | None = None, **columns: Any) -> Kind:
    number = next(_numbers)
    found: dict[str, Any] = {
        "name": f"refund-{number}",
        "title": "Refund",
        "downstream": downstream or make_downstream(),
        "executors": "both",
        "limits": {"EUR": {"review_above": 50_000, "two_people_above": 500_000, "approve_above": 1_000_000}},
    }
    return Kind.objects.create(**(found | columns))


def make_agent(*kinds: Kind, **columns: Any) -> Agent:
    agent = Agent.objects.create(**({"name": f"agent-{next(_numbers)}"} | columns))
    agent.kinds.add(*kinds)
    return agent


def make_token(agent: Agent, **options: Any) -> str:
    """The text of a new token that may propose and read, unless `options` of `tokens.create` say otherwise."""
    _, text = tokens.create(agent, **options)
    return text


def make_intent(
    kind: Kind | None = None,
    agent: Agent | None = None,
    *,
    subject: str = "",
    amount_minor: int | None = 5_000,
    currency: str = "EUR",
    params: dict[str, Any] | None = None,
    to: Status = Status.RECORDED,
    **columns: Any,
) -> Intent:
    """An intent as recording would leave it (`to`: recorded, held or submitted), guard included."""
    kind = kind or make_kind()
    agent = agent or make_agent(kind)
    now, salt = times.now(), new_salt()
    subject = subject or f"order-{next(_numbers)}"
    text = canonical(params or {})
    executor = columns.pop("executor", Executor.LANDED)
    fields = payload(
        kind=kind.name,
        subject=subject,
        amount_minor=amount_minor,
        currency=currency if amount_minor is not None else "",
        params=text,
        executor=str(executor),
    )
    found: dict[str, Any] = {
        "id": UUID(str(uuid_utils.uuid7())),
        "agent": agent,
        "kind": kind,
        "downstream": kind.downstream,
        "policy": snapshots.take(kind, now=now),
        "executor": executor,
        "subject": subject,
        "family": subjects.family_of(subject),
        "amount_minor": amount_minor,
        "currency": currency if amount_minor is not None else "",
        "amount_exponent": money.exponent(currency) if amount_minor is not None and currency else 0,
        "params": text,
        "context": "{}",
        "payload_salt": salt,
        "payload_digest": payload_digest(fields, salt=salt),
        "idempotency_key": str(uuid_utils.uuid7()),
        "guard_key": subjects.guard_key(kind.pk, subject) if to in UNSETTLED else None,
    }
    return transitions.create(
        Intent(**(found | columns)),
        to=to,
        actor=Actor.AGENT,
        actor_id=f"agent:{agent.pk}",
        reason=Reason.RECORDED,
        now=now,
    )


_PERMISSIONS = {
    "reviewer": ["decide_review"],
    "supervisor": ["decide_review", "supervise_review"],
    "auditor": ["audit"],
}
_APPS = ["actions", "reconciliation", "auth"]


def make_person(role: str = "reviewer", **columns: Any) -> User:
    """Somebody with the permissions of a role: reviewer, supervisor, auditor, admin (not a superuser)."""
    number = next(_numbers)
    found: dict[str, Any] = {"username": f"{role}-{number}", "is_staff": role == "admin"}
    person = User.objects.create_user(**(found | columns))
    if role == "admin":
        wanted = Permission.objects.filter(content_type__app_label__in=_APPS)
    else:
        wanted = Permission.objects.filter(codename__in=_PERMISSIONS[role])
    person.user_permissions.set(wanted)
    return person
