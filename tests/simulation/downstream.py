"""A small payments service with a ledger: what really happened. It speaks as the sandbox does (`http_json`).

What it promises, it keeps: one key once inside its window, where it dedupes, and that what it did shows in its ledger
when its lag is over. Everything else it does badly on request: it answers late, twice, wrongly, or not at all.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from actions.transport import Call

PAGE = 1  # so that there is a second page whenever there are two entries


class Fault(StrEnum):
    """What befalls one request. `not_sent`: it never gets there; the others say what becomes of it there."""

    NONE = "none"
    NOT_SENT = "not_sent"
    LOST_REQUEST = "lost_request"  # bytes left, and never arrived
    LOST_ANSWER = "lost_answer"
    PENDING = "pending"
    REFUSED = "refused"
    UNAUTHORIZED = "unauthorized"
    DECLINED = "declined"  # taken on, and did not succeed
    ERROR_BOOKED = "error_booked"
    ERROR_NOT_BOOKED = "error_not_booked"
    STORED_ERROR = "stored_error"  # not booked, and the error comes again for the same key
    NOT_PROCESSED = "not_processed"
    CONFLICT = "conflict"
    GARBAGE = "garbage"
    LESS = "less"  # books a smaller amount
    TWICE = "twice"  # a fault of its own: books two effects for one request
    TWICE_LOST = "twice_lost"  # the same, and the answer never comes


@dataclass
class Effect:
    """One row of its ledger. `key` is known to it whether or not its ledger shows keys; "" for a stranger's."""

    id: str
    key: str
    order: str
    amount_minor: int
    currency: str
    created: datetime
    visible_at: datetime
    state: str = "succeeded"
    type: str = "refund"
    # Not by a request of ours alone: its own second booking, or somebody else's doing.
    not_by_us: bool = False
    changed_at: datetime | None = None
    reversed: bool = False

    @property
    def live(self) -> bool:
        """Money that moved, or may yet move."""
        return self.type == "refund" and self.state != "failed"


@dataclass(frozen=True)
class Answer:
    """None: the answer never comes."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


def _json(status: int, value: Any, **headers: str) -> Answer:
    return Answer(status, json.dumps(value).encode(), headers)


def _error(status: int, code: str, **headers: str) -> Answer:
    return _json(status, {"error": {"code": code}}, **headers)


@dataclass
class Payments:
    name: str
    dedupes: bool
    window_s: int
    lag_s: int
    shows_keys: bool = True
    effects: list[Effect] = field(default_factory=list)
    first: dict[str, datetime] = field(default_factory=dict)  # key -> when it was first worked on
    errors: dict[str, Answer] = field(default_factory=dict)
    away_until: datetime | None = None  # its ledger can't be read
    seen: set[tuple[str, str]] = field(default_factory=set)  # what webhooks told last: (id, state)

    # --- sending

    def take(self, call: Call, *, sent_at: datetime, now: datetime, fault: Fault, lateness: float) -> Answer | None:
        """Works on a request that has arrived. `lateness`: 0 … 1, how much of its lag the ledger takes."""
        asked = json.loads(call.body or b"{}")
        key = call.headers["Idempotency-Key"]
        if fault is Fault.UNAUTHORIZED:
            return _error(401, "unauthorized")
        if fault is Fault.CONFLICT:
            return _error(409, "in_progress")
        if self.dedupes and (known := self._known(key, now)) is not None:
            return None if fault is Fault.LOST_ANSWER else known
        if fault is Fault.REFUSED:
            return _error(422, "invalid")
        if fault is Fault.NOT_PROCESSED:
            return _error(429, "slow_down")
        if fault is Fault.ERROR_NOT_BOOKED:
            return _error(503, "unavailable")
        self.first[key] = now
        if fault is Fault.STORED_ERROR:
            self.errors[key] = _error(500, "broken", **{"idempotent-replayed": "true"})
            return _error(500, "broken")
        found = self._book(asked, key, sent_at=sent_at, now=now, fault=fault, lateness=lateness)
        return self._say(found, fault)

    def _known(self, key: str, now: datetime) -> Answer | None:
        first = self.first.get(key)
        if first is None or now > first + timedelta(seconds=self.window_s):
            return None
        if key in self.errors:
            return self.errors[key]
        found = next(effect for effect in self.effects if effect.key == key)
        return _json(200, self.row(found, echo=True), **{"idempotent-replayed": "true"})

    def _book(
        self, asked: dict[str, Any], key: str, *, sent_at: datetime, now: datetime, fault: Fault, lateness: float
    ) -> Effect:
        shows = max(now, sent_at + timedelta(seconds=self.lag_s * lateness))
        state = {Fault.PENDING: "pending", Fault.DECLINED: "failed"}.get(fault, "succeeded")
        amount = asked["amount_minor"] - (100 if fault is Fault.LESS else 0)
        for number in range(2 if fault in (Fault.TWICE, Fault.TWICE_LOST) else 1):
            self.effects.append(
                Effect(
                    id=f"re_{self.name}_{len(self.effects) + 1}",
                    key=key,
                    order=asked["order"],
                    amount_minor=amount,
                    currency=asked["currency"],
                    created=now,
                    visible_at=shows,
                    state=state,
                    not_by_us=number > 0,
                )
            )
        return self.effects[-1]

    def _say(self, found: Effect, fault: Fault) -> Answer | None:
        if fault in (Fault.LOST_ANSWER, Fault.TWICE_LOST):
            return None
        if fault is Fault.ERROR_BOOKED:
            return _error(500, "broken")
        if fault is Fault.GARBAGE:
            return Answer(200, b"<html>ok</html>")
        return _json(200, self.row(found, echo=True))

    # --- its ledger

    def row(self, effect: Effect, *, echo: bool = False) -> dict[str, Any]:
        found = {
            "id": effect.id,
            "type": effect.type,
            "order": effect.order,
            "amount_minor": effect.amount_minor,
            "currency": effect.currency,
            "status": effect.state,
            "idempotency_key": effect.key,
            "created": int(effect.created.timestamp()),
        }
        if not effect.key or not (self.shows_keys or echo):
            del found["idempotency_key"]
        return found

    def visible(self, now: datetime) -> list[Effect]:
        return [effect for effect in self.effects if effect.visible_at <= now]

    def ledger(self, url: str, now: datetime) -> Answer:
        asked = dict(parse_qsl(urlsplit(url).query))
        rows = self.visible(now)
        if "idempotency_key" in asked:
            rows = [row for row in rows if self.shows_keys and row.key == asked["idempotency_key"]]
        if "order" in asked:
            rows = [row for row in rows if row.order == asked["order"]]
        if "since" in asked:
            since = datetime.fromisoformat(asked["since"].replace("Z", "+00:00"))
            rows = [row for row in rows if row.created >= since]
        begin = next((n + 1 for n, row in enumerate(rows) if row.id == asked.get("starting_after")), 0)
        page = rows[begin : begin + PAGE]
        return _json(200, {"data": [self.row(row) for row in page], "has_more": begin + PAGE < len(rows)})

    # --- what becomes of it later

    def finish(self, effect: Effect, state: str, now: datetime) -> None:
        """A pending one ends. The ledger shows it at once."""
        effect.state, effect.changed_at = state, now

    def take_back(self, effect: Effect, now: datetime) -> Effect:
        effect.reversed = True
        return self._add(effect, now, type="reversal", key=effect.key)

    def by_a_stranger(self, like: Effect, now: datetime, *, key: str) -> Effect:
        """Somebody did something for the same order in the service's own dashboard, with another amount or key."""
        return self._add(like, now, type="refund", key=key, more=0 if key else 7)

    def _add(self, like: Effect, now: datetime, *, type: str, key: str, more: int = 0) -> Effect:
        found = Effect(
            id=f"re_{self.name}_{len(self.effects) + 1}",
            key=key,
            order=like.order,
            amount_minor=like.amount_minor + more,
            currency=like.currency,
            created=now,
            visible_at=now,
            type=type,
            not_by_us=True,
        )
        self.effects.append(found)
        return found

    # --- god's view

    def of(self, key: str) -> list[Effect]:
        """What it really did under a key, whatever its ledger shows."""
        return [effect for effect in self.effects if effect.key == key and effect.type == "refund"]
