"""One wish, one intent, however often a framework or a model asks for it. What the adapters share; pure.

The request key is made of where the wish came up (a run, or a thread and its step) and of what is wished. The id that
a model gave its tool call is no part of it: a model that calls a second time gives another id, and some give the
same one to every call. So a call that is made again stands for the same intent even after it is settled and the
guard has let go of its subject. Who means a second one says so with `repeat_of`, which makes another wish of it;
limits, guard and look-alike policy still decide.
"""

import hashlib
import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from landed_client import errors, steps, telling
from landed_client.intents import Intent
from landed_client.proposals import Amount, Proposing, amount_text, proposal_body
from landed_client.retrying import Setting
from landed_client.wire import Steps

# What tells one wish from another. Neither note nor context: a model words its reasons anew each time.
_WISHED: Final = ("kind", "subject", "amount", "currency", "params", "executor", "repeat_of")


@dataclass(frozen=True)
class Told:
    """What came of a proposal, for a program and for a model.

    `text`: for the model. `intent`: what was recorded, or the earlier one that stood in the way, as read last; None
    where there is none or none may be seen. `error`: why this call recorded nothing, or could not be told whether it
    did. `request_key`: for `actions.find`.
    """

    text: str
    intent: Intent | None
    error: errors.LandedError | None
    request_key: str

    @property
    def refused(self) -> str | None:
        """The code of what kept this call from recording; None when it is on record."""
        return None if self.error is None else self.error.code

    @property
    def open(self) -> bool:
        """Whether something may still come of it, so that it is worth reading again."""
        if self.intent is not None:
            return not self.intent.done
        return isinstance(self.error, errors.UnsettledDuplicate) or bool(self.error and self.error.may_be_recorded)


def request_key(place: str, fields: Proposing) -> str:
    """The key for what `fields` wish at `place`. Raises TypeError, ValueError for fields that mean nothing.

    Amounts count by value and texts without their spacing, because models write `50`, `50.0` and `50.00`.
    """
    body = proposal_body(fields)
    wished = {name: body[name] for name in _WISHED if name in body} | {"amount": _plain(fields.get("amount"))}
    wished["subject"] = " ".join(unicodedata.normalize("NFC", str(fields.get("subject") or "")).split())
    text = json.dumps([place, wished], sort_keys=True, separators=(",", ":"), allow_nan=False)
    return f"landed-{hashlib.sha256(text.encode()).hexdigest()[:40]}"


def step_of(arguments: Mapping[str, Any]) -> str | None:
    """A name for what these arguments of another tool wish; None where they wish nothing that can be read."""
    wished: Any = {name: value for name, value in arguments.items() if name in _WISHED}
    try:
        return request_key("", wished)
    except (TypeError, ValueError):
        return None


def _plain(amount: Amount | None) -> str | None:
    text = amount_text(amount)
    try:
        return text if text is None else format(Decimal(text).normalize(), "f")
    except (InvalidOperation, ValueError):
        return text


def in_run(fields: Proposing, run: str) -> Proposing:
    """The same, with its request key and its run; what the application has set itself stays."""
    if not run:
        raise ValueError("A run needs a name that stays the same when it is resumed, and that no other run has.")
    context: Mapping[str, str] = {"run": run[:255], **(fields.get("context") or {})}
    return {**fields, "context": context, "request_key": fields.get("request_key") or request_key(run, fields)}


def propose(fields: Proposing, setting: Setting, *, wait: float = 0.0) -> Steps[Told]:
    """Proposes and tells. Raises only TypeError and ValueError, before anything is sent; all else is told."""
    key = str(fields.get("request_key") or "")
    try:
        intent = yield from steps.propose(fields, setting, wait=wait)
    except errors.LandedError as error:
        earlier = yield from _in_the_way(error, setting, wait=wait)
        return Told(telling.tell_error(error, earlier=earlier), earlier, error, error.request_key or key)
    return Told(telling.tell(intent), intent, None, intent.request_key or key)


def _in_the_way(error: errors.LandedError, setting: Setting, *, wait: float) -> Steps[Intent | None]:
    """The intent because of which nothing was recorded: open ones are waited for, as one's own would have been."""
    if not isinstance(error, errors.UnsettledDuplicate) or error.intent_id is None:
        found: Any = getattr(error, "intent", None)
        return found if isinstance(found, Intent) else None
    try:
        return (yield from steps.wait(error.intent_id, wait, setting))
    except errors.LandedError:
        return None


def follow(intent_id: str, setting: Setting, *, wait: float, refused: str | None = None) -> Steps[Told]:
    """Reads it, for `wait` seconds at most until it is settled. Raises NotFound, Unavailable: asking is repeatable.

    `refused`: the code under which this intent stood in another one's way.
    """
    intent = yield from steps.wait(intent_id, wait, setting)
    return Told(telling.tell(intent, refused=refused), intent, None, intent.request_key or "")
