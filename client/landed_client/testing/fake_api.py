"""The fake's routes and rules, as docs of the API have them. Amounts are compared as numbers."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

import httpx

from landed_client.filters import Filters
from landed_client.proposals import Proposing
from landed_client.testing.fake_rows import Row, Step, date_header, show, time_text

if TYPE_CHECKING:
    from landed_client.testing.fake import FakeKind

_FIELDS: Final = frozenset(Proposing.__annotations__) - {"request_key"}
_FILTERS: Final = frozenset(Filters.__annotations__)
_PATH: Final = re.compile(r"/api/v1/intents/(?P<id>[^/]+)(?P<rest>(?:/.*)?)")
_RENEW: Final = re.compile(r"/attempts/(\d+)/renew")
_OUTCOMES: Final = ("confirmed", "failed", "unknown", "not_sent")
_LEASE_S: Final = 5.0
_SENT_AFTER_S: Final = 0.1
_VERDICT_AFTER_S: Final = 2.0


@dataclass(frozen=True)
class Answer:
    status: int
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)
    about: str | None = None


class _Refuse(Exception):
    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.body.get("code"))
        self.answer = answer


class Api:
    """All that is recorded, and what each request does to it. The caller holds the lock and knows the time."""

    def __init__(self, kinds: "Mapping[str, FakeKind]") -> None:
        self.kinds = kinds
        self.rows: dict[str, Row] = {}
        self.scripts: dict[str, tuple[tuple[str, ...], float]] = {}
        self.events: list[dict[str, Any]] = []
        self._seen: dict[str, int] = {}

    def answer(self, request: httpx.Request, now: float) -> Answer:
        self.catch_up(now)
        try:
            found = self._route(request, now)
        except _Refuse as refused:
            found = refused.answer
        self.catch_up(now)
        return replace(found, headers={"Date": date_header(now)} | found.headers)

    def problem(self, status: int, code: str, detail: str, now: float, **more: Any) -> Answer:
        body = {"type": f"urn:landed:problem:{code}", "title": detail, "status": status, "detail": detail}
        return Answer(status, body | {"code": code, "retryable": False} | more, {"Date": date_header(now)})

    def shown(self, now: float, subject: str | None) -> list[dict[str, Any]]:
        return [show(row, now) for row in self.rows.values() if subject in (None, row.subject)]

    # --- time

    def catch_up(self, now: float) -> None:
        """Everything that was due until now, and an event for whatever has changed."""
        for row in self.rows.values():
            while row.steps and row.steps[0].at <= now:
                step = row.steps.pop(0)
                self._reach(row, step)
            if row.status == "submitted" and row.executor == "caller" and now >= row.lease_until:
                row.move("unknown", row.lease_until, reason="lease_over")
            if row.sequence != self._seen.get(row.id):
                self._seen[row.id] = row.sequence
                self._tell(row)

    def _reach(self, row: Row, step: Step) -> None:
        if row.attempts == 0 and row.executor == "landed" and step.status != "cancelled":
            row.attempts, row.lease_until = 1, step.at + _LEASE_S
            row.move("submitted", step.at, reason="claimed")
        if step.status == "confirmed":
            row.external_id = row.external_id or f"fake_{row.id[:8]}"
            row.settled_by = "ledger" if row.status == "unknown" else "answer"
        if row.status != step.status:
            row.move(step.status, step.at, reason=_REASONS.get(step.status, step.status))

    def _tell(self, row: Row) -> None:
        kind = "settled" if not row.open else row.status
        event = {"position": len(self.events) + 1, "type": f"intent.{kind}", "at": time_text(row.updated)}
        self.events.append(event | {"intent": row.id, "sequence": row.sequence, "status": row.status})

    def hold(self, request: httpx.Request, answer: Answer, now: float) -> float:
        """Until when this answer is held, if it is about something that can only be waited for."""
        wait = re.fullmatch(r"wait=(\d+)", request.headers.get("prefer", ""))
        row = self.rows.get(answer.about or "")
        if wait is None or row is None or answer.status >= 300:
            return now
        until, at = now + min(30, int(wait[1])), now
        while at < until and row.next_step(None, at) == "wait":
            at = min(until, max(row.steps[0].at, at + 0.01)) if row.steps else until
            self.catch_up(at)
        return at

    def again(self, request: httpx.Request, answer: Answer, now: float) -> Answer:
        """The same answer, as its intent is by now."""
        shown = show(self.rows[str(answer.about)], now, claim_token=_body_or_nothing(request).get("claim_token"))
        body = shown | {name: value for name, value in answer.body.items() if name == "differs"}
        headers = answer.headers | {"Date": date_header(now), "Preference-Applied": request.headers["prefer"]}
        return replace(answer, body=body, headers=headers)

    # --- routes

    def _route(self, request: httpx.Request, now: float) -> Answer:
        path, method = request.url.path, request.method
        if (method, path) == ("POST", "/api/v1/intents"):
            return self._record(request, now)
        if (method, path) == ("GET", "/api/v1/intents"):
            return self._list(request, now)
        if (method, path) == ("GET", "/api/v1/events"):
            return self._events(request)
        if (method, path) == ("GET", "/api/v1/me"):
            limits = {"rate_per_minute": 500, "left": {"propose": 500, "other": 5_000}}
            scopes = ["propose", "read", "report"]
            return Answer(
                200,
                {
                    "agent": "fake",
                    "title": "Fake",
                    "group": None,
                    "paused": False,
                    "scopes": scopes,
                    "limits": limits,
                },
            )
        if (method, path) == ("GET", "/api/v1/kinds"):
            return Answer(200, {"data": [_kind(kind) for kind in self.kinds.values()]})
        return self._about_one(request, now)

    def _about_one(self, request: httpx.Request, now: float) -> Answer:
        found = _PATH.fullmatch(request.url.path)
        row = self.rows.get(found["id"]) if found else None
        if row is None or found is None:
            raise _Refuse(self.problem(404, "not_found", "There is no such intent, or it is not yours to see.", now))
        method, rest = request.method, found["rest"]
        if (method, rest) == ("GET", ""):
            return Answer(200, show(row, now), about=row.id)
        if (method, rest) == ("POST", "/cancel"):
            return self._cancel(row, now)
        if (method, rest) == ("POST", "/attempts"):
            return self._claim(row, _object(request), now)
        if (method, rest) == ("POST", "/report"):
            return self._report(row, _object(request), now)
        if method == "POST" and (renew := _RENEW.fullmatch(rest)):
            return self._renew(row, int(renew[1]), _object(request), now)
        raise _Refuse(self.problem(404, "not_found", "There is no such address.", now))

    def _record(self, request: httpx.Request, now: float) -> Answer:
        key = request.headers.get("idempotency-key", "").strip('"')
        if not key:
            raise _Refuse(self.problem(400, "missing_idempotency_key", "The header Idempotency-Key is missing.", now))
        body = _object(request)
        token = body.get("claim_token")
        asked = self._asked(body, key, now)
        stored = next((row for row in self.rows.values() if row.request_key == key), None)
        if stored is not None:
            return self._replayed(stored, asked, token, now)
        self._refuse_duplicate(asked, now)
        self._begin(asked, token, now)
        self.rows[asked.id] = asked
        headers = {"Location": f"/api/v1/intents/{asked.id}"}
        return Answer(201, show(asked, now, claim_token=token), headers, about=asked.id)

    def _replayed(self, stored: Row, asked: Row, token: str | None, now: float) -> Answer:
        if stored.payload != asked.payload:
            names = ("kind", "subject", "amount", "currency", "params", "executor")
            pairs = zip(names, stored.payload, asked.payload, strict=True)
            differs = [name for name, was, asks in pairs if was != asks]
            text = (
                f"This Idempotency-Key was used for another payload: {', '.join(differs)} differ. Nothing was sent."
            )
            raise _Refuse(self.problem(422, "key_reused", text, now, differs=differs, intent=show(stored, now)))
        body = show(stored, now, claim_token=token) | {"differs": ["note"] if stored.note != asked.note else []}
        return Answer(200, body, {"Idempotent-Replayed": "true"}, about=stored.id)

    def _asked(self, body: dict[str, Any], key: str, now: float) -> Row:
        errors = [{"field": name, "message": "Unknown."} for name in body if name not in _FIELDS]
        kind = self.kinds.get(str(body.get("kind")))
        if kind is None and "kind" in body:
            text = f"This agent may not propose the kind {body['kind']!r}."
            raise _Refuse(self.problem(403, "kind_not_allowed", text, now))
        amount = _amount(body.get("amount"), errors)
        params, executor = body.get("params", {}), body.get("executor", "landed")
        subject = " ".join(str(body.get("subject") or "").split())
        if not subject:
            errors.append({"field": "subject", "message": "The subject, or a part of it, is empty."})
        if kind is None:
            errors.append({"field": "kind", "message": "Missing."})
        elif executor not in kind.executors:
            text = f"This kind is carried out by: {', '.join(sorted(kind.executors))}."
            errors.append({"field": "executor", "message": text})
        missing = [name for name in (kind.required if kind else ()) if name not in params]
        errors += [{"field": "params", "message": f"'{name}' is a required property"} for name in missing]
        if errors:
            text = " ".join(f"{one['field']}: {one['message']}" for one in errors)
            raise _Refuse(self.problem(422, "invalid", text, now, errors=errors))
        return Row(
            kind=str(body["kind"]),
            subject=subject,
            amount=amount,
            currency=body.get("currency"),
            params=params,
            context=body.get("context", {}),
            note=body.get("note", ""),
            executor=executor,
            request_key=key,
            created=now,
        )

    def _refuse_duplicate(self, asked: Row, now: float) -> None:
        for row in self.rows.values():
            if row.open and (row.kind, row.family) == (asked.kind, asked.family) and _related(row, asked):
                more = {
                    "intent_id": row.id,
                    "intent_url": f"/api/v1/intents/{row.id}",
                    "ask_again_at": time_text(row.ask_again(now)),
                    "next_step": "wait_for_person" if row.status == "held" else "wait",
                    "same_payload": row.payload == asked.payload,
                }
                text = "The subject has an intent that is not settled yet."
                raise _Refuse(self.problem(409, "unsettled_duplicate", text, now, **more))

    def _begin(self, row: Row, token: str | None, now: float) -> None:
        limit = self.kinds[row.kind].approve_above
        if limit is not None and row.amount is not None and Decimal(row.amount) > limit:
            row.status, row.reason = "held", "needs_approval"
        elif row.executor == "caller" and token:
            self._submit(row, token, now, _LEASE_S)
        else:
            self._plan(row, now)

    def approve(self, row: Row, now: float) -> None:
        row.move("recorded", now, reason="approved")
        self._plan(row, now)

    def _plan(self, row: Row, now: float) -> None:
        if row.executor == "landed":
            statuses, every = self.scripts.get(row.subject, (("confirmed",), 1.0))
            row.steps = [Step(now + _SENT_AFTER_S + every * n, status) for n, status in enumerate(statuses)]

    def _submit(self, row: Row, token: str, now: float, lease_s: float) -> None:
        row.claim_token, row.lease_until, row.attempts = token, now + lease_s, row.attempts + 1
        row.move("submitted", now, reason="claimed")

    # --- withdraw, claim, report

    def _cancel(self, row: Row, now: float) -> Answer:
        if row.status not in ("held", "recorded", "cancelled"):
            text = "It may have been sent; it can't be withdrawn any more."
            raise _Refuse(self.problem(409, "too_late", text, now, intent=show(row, now)))
        if row.status != "cancelled":
            row.move("cancelled", now, reason="cancelled_by_agent")
        return Answer(200, show(row, now))

    def _claim(self, row: Row, body: dict[str, Any], now: float) -> Answer:
        token = str(body["claim_token"])
        if row.executor != "caller":
            text = "Landed sends this intent itself; reports on it are not taken."
            raise _Refuse(self.problem(409, "not_executed_by_caller", text, now))
        if row.may_send(token, now):
            return Answer(200, self._claim_json(row, now))
        if row.status == "recorded":
            self._submit(row, token, now, float(body.get("lease_s") or _LEASE_S))
            return Answer(201, self._claim_json(row, now))
        code, text = _UNCLAIMABLE.get(row.status, ("may_have_happened", "Somebody else claimed this intent."))
        raise _Refuse(self.problem(409, code, text, now, intent=show(row, now)))

    def _renew(self, row: Row, number: int, body: dict[str, Any], now: float) -> Answer:
        if number != row.attempts or not row.may_send(str(body["claim_token"]), now):
            text = "The attempt is closed or its lease is over; nobody may send it any more."
            raise _Refuse(self.problem(409, "lease_over", text, now, intent=show(row, now)))
        row.lease_until = max(row.lease_until, now + float(body.get("lease_s") or _LEASE_S))
        return Answer(200, self._claim_json(row, now))

    def _claim_json(self, row: Row, now: float) -> dict[str, Any]:
        attempt = show(row, now, claim_token=row.claim_token)["attempt"]
        return {"attempt": attempt, "idempotency_key": row.key}

    def _report(self, row: Row, body: dict[str, Any], now: float) -> Answer:
        """Nobody's word is taken: it is unknown until the books were looked into, as with the demo's kinds."""
        said = body.get("outcome")
        if said not in _OUTCOMES or (said == "failed" and not body.get("answer")):
            errors = [{"field": "answer" if said == "failed" else "outcome", "message": "Missing or wrong."}]
            raise _Refuse(self.problem(422, "invalid", "answer: Missing or wrong.", now, errors=errors))
        if body.get("claim_token") != row.claim_token or body.get("attempt") != row.attempts:
            text = "Another token claimed this attempt: the report is kept as evidence and speaks for nothing."
            raise _Refuse(self.problem(409, "foreign_report", text, now))
        if row.status in ("submitted", "unknown") and not row.steps:
            row.move("unknown", now, reason="report_unverified" if said != "unknown" else "reported_unknown")
            row.external_id = body.get("external_id") or row.external_id
            found = {"confirmed": "confirmed", "failed": "failed", "not_sent": "failed"}.get(str(said))
            row.steps = [Step(now + _VERDICT_AFTER_S, found)] if found else self._looked_up(row, now)
        return Answer(200, show(row, now, claim_token=row.claim_token))

    def _looked_up(self, row: Row, now: float) -> list[Step]:
        statuses, every = self.scripts.get(row.subject, ((), 1.0))
        return [Step(now + every * (n + 1), status) for n, status in enumerate(statuses)]

    # --- lists

    def _list(self, request: httpx.Request, now: float) -> Answer:
        asked = dict(request.url.params)
        if unknown := set(asked) - _FILTERS:
            raise _Refuse(self.problem(400, "bad_query", f"{min(unknown)!r} is unknown.", now))
        rows = [row for row in reversed(self.rows.values()) if _fits(row, asked)]
        start, limit = int(asked.get("cursor", 0)), int(asked.get("limit", 50))
        more = str(start + limit) if len(rows) > start + limit else None
        data = [show(row, now) for row in rows[start : start + limit]]
        return Answer(200, {"data": data, "next_cursor": more})

    def _events(self, request: httpx.Request) -> Answer:
        after, limit = int(request.url.params.get("after", 0)), int(request.url.params.get("limit", 100))
        later = [event for event in self.events if event["position"] > after]
        data = later[:limit]
        following = data[-1]["position"] if data else after
        return Answer(200, {"data": data, "next": following, "has_more": len(later) > limit})


_REASONS: Final = {"unknown": "read_timeout", "confirmed": "confirmed_by_answer", "failed": "refused"}
_UNCLAIMABLE: Final = {
    "held": ("not_approved", "A person has to approve this intent before it may be sent."),
    "cancelled": ("too_late", "It was withdrawn; it may not be sent any more."),
}


def _fits(row: Row, asked: Mapping[str, str]) -> bool:
    return (
        ("status" not in asked or row.status in asked["status"].split(","))
        and ("settled" not in asked or (asked["settled"] == "true") is not row.open)
        and all(asked.get(name) in (None, getattr(row, name)) for name in ("kind", "subject", "request_key"))
        and asked.get("run") in (None, row.context.get("run"))
    )


def _related(one: Row, other: Row) -> bool:
    pair = sorted((one.subject, other.subject), key=len)
    return pair[0] == pair[1] or pair[1].startswith(f"{pair[0]}/")


def _amount(value: Any, errors: list[dict[str, str]]) -> str | None:
    if value is None:
        return None
    try:
        found = Decimal(str(value))
    except InvalidOperation:
        errors.append({"field": "amount", "message": "Not a decimal number."})
        return None
    if found <= 0 or found != round(found, 2):
        errors.append(
            {"field": "amount", "message": f"{value} has more decimals than there are, or is not positive."}
        )
        return None
    return format(round(found, 2), "f")


def _kind(kind: "FakeKind") -> dict[str, Any]:
    schema = {"type": "object", "required": list(kind.required)}
    shown = {"name": kind.name, "title": kind.name.title(), "executors": sorted(kind.executors)}
    return shown | {"params_schema": schema, "amount": "required", "subject": "required", "paused": False}


def _object(request: httpx.Request) -> dict[str, Any]:
    found = json.loads(request.content)
    assert isinstance(found, dict), "this client sends objects only"
    return found


def _body_or_nothing(request: httpx.Request) -> dict[str, Any]:
    return _object(request) if request.content else {}
