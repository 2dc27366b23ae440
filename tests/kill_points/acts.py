"""What is done when somebody dies: each of the product's own entry points, and how things stood before.

`prepare` writes that down, on an empty database; `act` is the work of a worker or a clock, `request` what a client
asks of a web server; `again` is what a good client does who was told nothing.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from standardwebhooks import Webhook

from actions import dispatch, jobs, times
from actions.connectors.http_json.example import EXAMPLE
from actions.models import Intent, Kind
from actions.notifying import running
from config import clockwork
from reconciliation import checks
from reconciliation import jobs as check_jobs
from reconciliation.models import Decision, Review
from tests import factories
from tests.desk.steps import press
from tests.events.making import make_endpoint
from tests.flow.world import Clock
from tests.kill_points.downstream import LAG_S, WINDOW_S, control
from tests.kill_points.lives import Request

SUBJECT = "order-1"
SECRET, HOOK_SECRET = "KILLED_SECRET", "KILLED_HOOK_SECRET"
ENVIRONMENT = {SECRET: "sk_killed", HOOK_SECRET: "whsec_" + base64.b64encode(b"killed").decode()}

Facts = dict[str, Any]
clock = Clock(times.now)


@dataclass(frozen=True)
class Act:
    """`ends`: how its intent may end, whoever died when. `undo_s`: LANDED_UNDO_S. `decisions`: so many take effect,
    no more and no fewer."""

    name: str
    prepare: Callable[[Scene], Facts]
    act: Callable[[], object] | None = None
    request: Callable[[Facts], Request] | None = None
    again: Callable[[Facts], None] = lambda _: None
    ends: frozenset[str] = frozenset({"confirmed"})
    undo_s: int = 0
    decisions: int = 0


@dataclass
class Scene:
    """Who and what there is in the beginning."""

    port: int
    facts: Facts = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.plain = self._kind("plain", dedupes=False, dedupe_window_s=None)
        self.dedupes = self._kind(
            "dedupes",
            dedupes=True,
            dedupe_window_s=WINDOW_S,
            policy={"replay": "in_window", "replay_schedule": [2, 5]},
        )
        self.agent = factories.make_agent(self.plain, self.dedupes, name="agent")
        self.token = factories.make_token(self.agent)

    def _kind(self, name: str, *, policy: dict[str, Any] | None = None, **down: Any) -> Kind:
        found = factories.make_downstream(
            name=name,
            base_url=f"http://127.0.0.1:{self.port}/{name}",
            config=EXAMPLE.target.config,
            secret_env=SECRET,
            webhook_secret_env=HOOK_SECRET,
            deadline_ms=5_000,
            connect_timeout_ms=2_000,
            lease_margin_ms=1_000,
            lag_s=LAG_S,
            **down,
        )
        rules: dict[str, Any] = {
            "check_schedule": [2, 3, 5],
            "absences_needed": 2,
            "absence_spacing_s": 1,
            "review_after_s": 60,
            "recheck_failed_s": [86_400],
            "limits": {"EUR": {"review_above": 10_000, "two_people_above": 20_000, "approve_above": 30_000}},
        }
        return factories.make_kind(found, name=name, **(rules | (policy or {})))

    def propose(self, kind: Kind, amount: str = "50.00", *, fault: str = "none", subject: str = SUBJECT) -> Intent:
        """Over the API, as agents do; not sent yet. `fault`: what befalls it at the service."""
        control(self.port, "fault", **{subject: fault})
        request = proposal(self.token, kind.name, amount, subject=subject)
        answer = speak(request)
        assert answer.status_code == 201, answer.content
        return Intent.objects.get(pk=answer.json()["id"])

    def lost(self, kind: Kind, amount: str = "50.00", *, fault: str = "lost_answer") -> Intent:
        """Sent, and no answer came."""
        intent = self.propose(kind, amount, fault=fault)
        dispatch.run(budget_s=5)
        control(self.port, "fault", **{intent.subject: "none"})
        intent.refresh_from_db()
        assert intent.status == "unknown", intent.status
        return intent

    def log_in(self, role: str = "reviewer") -> tuple[Client, User]:
        person = factories.make_person(role)
        client = Client()
        client.force_login(person)
        return client, person

    def session(self, client: Client, person: User) -> Facts:
        return {"session": client.cookies["sessionid"].value, "person": person.pk}


def later(seconds: float) -> None:
    """The database's clock, as the product reads it, goes on by so much."""
    clock.ahead += timedelta(seconds=seconds)


def proposal(token: str, kind: str, amount: str, *, subject: str = SUBJECT) -> Request:
    body = {"kind": kind, "subject": subject, "amount": amount, "currency": "EUR", "executor": "landed"}
    headers = {
        "Authorization": f"Bearer {token}",
        "Idempotency-Key": f"key-{subject}",
        "Content-Type": "application/json",
    }
    return Request("POST", "/api/v1/intents", headers, json.dumps(body))


def speak(request: Request) -> Any:
    """The same request to a web process that lives, without the network between."""
    client = Client(raise_request_exception=True)
    return client.generic(
        request.method,
        request.path,
        request.body,
        content_type=request.headers.get("Content-Type", ""),
        headers={name: value for name, value in request.headers.items() if name != "Content-Type"},
    )


# --- recording


def _to_record(scene: Scene) -> Facts:
    control(scene.port, "fault")
    return {"token": scene.token, "subject": SUBJECT}


def _record(facts: Facts) -> Request:
    return proposal(facts["token"], "plain", "50.00")


def _record_again(facts: Facts) -> None:
    """With the same request key: it stands for the same intent, whether or not that was heard."""
    answer = speak(_record(facts))
    told, ack = answer.json().get("id"), facts["ack"]
    if answer.status_code not in (200, 201) or (ack and json.loads(ack)["id"] != told):
        facts["faults"].append(f"2, 4: told {ack!r}, and asked again {answer.status_code} {answer.content!r}")
    facts["intents"] = [told]


# --- sending and looking


def _to_send(scene: Scene) -> Facts:
    return {"intents": [str(scene.propose(scene.plain).pk)]}


def _to_replay(scene: Scene) -> Facts:
    intent = scene.lost(scene.dedupes)
    later(2.1)
    return {"intents": [str(intent.pk)]}


def _to_find(scene: Scene) -> Facts:
    intent = scene.lost(scene.plain)
    later(8)
    return {"intents": [str(intent.pk)]}


def _to_miss(scene: Scene) -> Facts:
    """The next look is the second one that finds nothing."""
    intent = scene.lost(scene.plain, fault="lost_request")
    later(8)
    assert check_jobs.check_due() == 1
    later(8)
    return {"intents": [str(intent.pk)]}


# --- the clock


def _to_sweep(scene: Scene) -> Facts:
    """A lease is over, a decision takes effect, and something may not be sent any more."""
    decided = _decided(scene)
    late = scene.propose(scene.plain, subject="order-2")
    Kind.objects.filter(pk=scene.plain.pk).update(send_before_s=5)
    gone = scene.propose(scene.plain, subject="order-3")
    assert {one.intent_id for one in dispatch.claim(slots=1)} == {late.pk}
    later(40)
    return {"intents": [*decided["intents"], str(late.pk), str(gone.pk)]}


# --- deciding


def _in_review(scene: Scene, amount: str = "150.00") -> tuple[Intent, Review, Client, User]:
    intent = scene.lost(scene.plain, amount)
    later(8)
    check_jobs.check_due()
    client, person = scene.log_in()
    return intent, Review.objects.get(intent=intent, closed_at=None), client, person


def _to_decide(scene: Scene, amount: str = "150.00") -> Facts:
    intent, review, client, person = _in_review(scene, amount)
    form = press(client.get(f"/reviews/{review.pk}/"), "confirm")
    path = f"/reviews/{review.pk}/decide/"
    return {"intents": [str(intent.pk)], "path": path, "form": form} | scene.session(client, person)


def _to_second(scene: Scene) -> Facts:
    """One has voted."""
    first = _to_decide(scene, "250.00")
    assert _press(first).status_code == 302
    client, person = scene.log_in()
    form = press(client.get(first["path"].replace("decide/", "")), "confirm")
    return first | {"form": form} | scene.session(client, person)


def _decided(scene: Scene) -> Facts:
    """It waits for its undo window to end."""
    facts = _to_decide(scene)
    assert _press(facts).status_code == 302
    return facts


def _to_undo(scene: Scene) -> Facts:
    facts = _decided(scene)
    row = Decision.objects.get(takes_effect_at__isnull=False)
    return facts | {"path": facts["path"].replace("decide", "undo"), "form": {"decision": str(row.pk)}}


def _confirmed(scene: Scene) -> Intent:
    intent = scene.propose(scene.plain)
    dispatch.run(budget_s=5)
    return Intent.objects.get(pk=intent.pk, status="confirmed")


def _to_propose(scene: Scene) -> Facts:
    intent = _confirmed(scene)
    client, person = scene.log_in("supervisor")
    checks.check_by_person(intent.pk, person=person)
    path = f"/intents/{intent.pk}/correct/"
    page = client.get(path)
    form = {name: str(page.context["form"][name].value() or "") for name in ("seen_version", "seen_digest")}
    form |= {"to": "failed", "reason": "other", "note": "their support says so", "outside": "ticket 4711"}
    return {"intents": [str(intent.pk)], "path": f"{path}propose/", "form": form} | scene.session(client, person)


def _to_agree(scene: Scene) -> Facts:
    facts = _to_propose(scene)
    assert _press(facts).status_code == 302
    row = Decision.objects.get()
    client, person = scene.log_in()
    form = {"decision": str(row.pk), "outside": "ticket 4711"}
    return facts | {"path": facts["path"].replace("propose", "agree"), "form": form} | scene.session(client, person)


_CSRF = "x" * 32


def _form(facts: Facts) -> Request:
    headers = {
        "Cookie": f"sessionid={facts['session']}; csrftoken={_CSRF}",
        "X-CSRFToken": _CSRF,
        "Content-Type": "application/x-www-form-urlencoded",
    }
    return Request("POST", facts["path"], headers, urlencode(facts["form"]))


def _press(facts: Facts) -> Any:
    return speak(_form(facts))


def _press_again(facts: Facts) -> None:
    """The same button on the same page; and if that page is too old by now, on a fresh one."""
    answer = _press(facts)
    if answer.status_code >= 500:
        facts["faults"].append(f"18: pressed again {answer.status_code}")
    if answer.status_code == 302 or "decide" not in facts["path"]:
        return
    client = Client()
    client.cookies["sessionid"] = facts["session"]
    page = client.get(facts["path"].replace("decide/", ""))
    if page.context.get("form") is not None and page.context.get("seen") is not None:
        client.post(facts["path"], press(page, "confirm"))


# --- what they tell, and what is told


def _to_hear(scene: Scene) -> Facts:
    intent = scene.lost(scene.plain)
    (effect,) = control(scene.port, "state")["effects"]
    row = {
        "id": effect["id"],
        "type": "refund",
        "order": intent.subject,
        "amount_minor": effect["amount_minor"],
        "currency": effect["currency"],
        "status": "succeeded",
        "idempotency_key": effect["key"],
        "created": int(intent.created_at.timestamp()),
    }
    at = times.now()
    body = json.dumps({"type": "refund.succeeded", "timestamp": at.isoformat(), "data": row})
    headers = {
        "webhook-id": "evt_1",
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(os.environ[HOOK_SECRET]).sign("evt_1", at, body),
        "Content-Type": "application/json",
    }
    return {"intents": [str(intent.pk)], "headers": headers, "body": body, "delivery": "evt_1"}


def _hook(facts: Facts) -> Request:
    return Request("POST", "/api/v1/webhooks/plain", facts["headers"], facts["body"])


def _hook_again(facts: Facts) -> None:
    """Whoever was not told 2xx delivers it again; and many do anyway."""
    answer = speak(_hook(facts))
    if answer.status_code != 204:
        facts["faults"].append(f"20: delivered again {answer.status_code}")


def _to_tell(scene: Scene) -> Facts:
    make_endpoint(scene.agent, f"http://127.0.0.1:{scene.port}/hooks")
    intent = _confirmed(scene)
    return {"intents": [str(intent.pk)], "events": True}


def allow_receiver(port: int) -> None:
    settings.LANDED_PRIVATE_RECEIVERS = [f"127.0.0.1:{port}"]


_EITHER = frozenset({"confirmed", "failed", "unknown"})
ACTS: dict[str, Act] = {
    act.name: act
    for act in (
        Act("record", _to_record, request=_record, again=_record_again),
        Act("dispatch", _to_send, act=jobs.send_due, ends=_EITHER),
        Act("replay", _to_replay, act=jobs.send_due),
        Act("check that finds it", _to_find, act=check_jobs.check_due),
        Act("check that finds nothing", _to_miss, act=check_jobs.check_due, ends=frozenset({"failed"})),
        Act("sweep", _to_sweep, act=clockwork.tick, ends=_EITHER | {"cancelled"}, undo_s=15, decisions=1),
        Act("decide", _to_decide, request=_form, again=_press_again, decisions=1),
        Act("second vote", _to_second, request=_form, again=_press_again, decisions=1),
        Act("undo", _to_undo, request=_form, again=_press_again, ends=frozenset({"unknown"}), undo_s=15),
        Act("propose a correction", _to_propose, request=_form, again=_press_again),
        Act(
            "agree to a correction",
            _to_agree,
            request=_form,
            again=_press_again,
            ends=frozenset({"failed"}),
            decisions=1,
        ),
        Act("webhook", _to_hear, request=_hook, again=_hook_again),
        Act("events", _to_tell, act=running.deliver_due),
    )
}
