"""What goes out: the bodies of proposals and reports. Refuses here what could only be read wrongly there."""

import json
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal, Required, TypedDict
from uuid import uuid4

Amount = str | Decimal | int


class Proposing(TypedDict, total=False):
    """The fields of a proposal, as keyword arguments.

    `amount`: a decimal string, a Decimal or an int; a float is refused, because its digits are not the ones that
    were meant. `send_before`: an aware datetime. `context`: `run`, `ticket`, `on_behalf_of`; never sent downstream.
    `repeat_of`: the id of the intent that this is meant to repeat; no permission. `executor`: `landed` (default) or
    `caller`, with `claim_token` recorded and claimed in one call. `request_key`: the same one gives the same intent,
    so derive it from whatever makes this action this action; left out, it is minted once per call and kept over
    the tries of that call only.
    """

    kind: Required[str]
    subject: str | None
    amount: Amount | None
    currency: str | None
    params: Mapping[str, Any] | None
    note: str
    context: Mapping[str, str] | None
    executor: Literal["landed", "caller"]
    claim_token: str | None
    send_before: datetime | None
    repeat_of: str | None
    request_key: str | None


_NAMES = frozenset(Proposing.__annotations__)


def new_request_key() -> str:
    return str(uuid4())


def amount_text(amount: Amount | None) -> str | None:
    """The decimal string to send. Raises TypeError for a float or a bool, ValueError for what is no finite number."""
    if amount is None or isinstance(amount, str):
        return amount
    if isinstance(amount, bool) or not isinstance(amount, int | Decimal):
        raise TypeError(
            f'An amount is a decimal string such as "50.00", a Decimal or an int, not {type(amount).__name__}: '
            "a float does not hold the digits that were meant."
        )
    if isinstance(amount, Decimal) and not amount.is_finite():
        raise ValueError(f"An amount must be a finite number, not {amount}.")
    return format(amount, "f") if isinstance(amount, Decimal) else str(amount)


def time_text(time: datetime | None) -> str | None:
    """RFC 3339. Raises ValueError for a time without a zone, which means another moment on every machine."""
    if time is None:
        return None
    if time.tzinfo is None:
        raise ValueError("A time needs a zone: datetime.now(UTC), not datetime.now().")
    return time.isoformat()


def proposal_body(fields: Proposing) -> dict[str, Any]:
    """The JSON object of a proposal, without what is left out. Raises TypeError for a field that there is not."""
    if unknown := set(fields) - _NAMES:
        raise TypeError(f"propose() takes no {', '.join(sorted(unknown))}; there are {', '.join(sorted(_NAMES))}.")
    if not isinstance(fields.get("kind"), str):
        raise TypeError("propose() needs kind, a text.")
    body: dict[str, Any] = {
        name: value for name, value in fields.items() if value is not None and name != "request_key"
    }
    if "amount" in body:
        body["amount"] = amount_text(fields.get("amount"))
    if "send_before" in body:
        body["send_before"] = time_text(fields.get("send_before"))
    for name in ("params", "context"):
        if name in body:
            body[name] = dict(body[name])
    if "repeat_of" in body:
        body["repeat_of"] = str(body["repeat_of"])
    return body


def encoded(body: Mapping[str, Any]) -> bytes:
    """UTF-8 JSON. Raises ValueError for NaN and infinity, TypeError for what JSON has no form for."""
    return json.dumps(body, allow_nan=False, ensure_ascii=False).encode()
