"""`@guarded`: a function that is carried out under an intent of its own, each time it is called."""

import functools
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, ParamSpec, TypeVar, cast

from landed_client.aclient import AsyncLanded
from landed_client.carrying_out import Action, Exceptions
from landed_client.client import Landed
from landed_client.picking import Picker, picker
from landed_client.proposals import Amount, Proposing

log = logging.getLogger("landed_client")

P = ParamSpec("P")
T = TypeVar("T")


def guarded(
    client: Landed | AsyncLanded,
    *,
    kind: str,
    subject: str | Callable[..., str],
    amount: Amount | Callable[..., Amount] | None = None,
    currency: str | Callable[..., str] | None = None,
    params: Mapping[str, Any] | Callable[..., Mapping[str, Any]] | None = None,
    note: str | Callable[..., str] | None = None,
    context: Mapping[str, str] | Callable[..., Mapping[str, str]] | None = None,
    send_before: Callable[..., datetime] | None = None,
    repeat_of: Callable[..., str | None] | None = None,
    request_key: Callable[..., str] | None = None,
    external_id: Callable[[Any], str] | None = None,
    answer: Callable[[Any], Mapping[str, Any]] | None = None,
    definite: Exceptions = (),
    not_sent: Exceptions = (),
    lease_s: int = 30,
    renew_for: float = 900.0,
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Carries out the decorated function, sync or async, between a claim and a report; returns what it returns.

    The fields of the proposal are values, or functions of those of the call's arguments that they name: with
    `subject=lambda order: order` the argument `order` is the subject. `request_key` too: derive it
    from what makes this call this action, and a run after a crash meets its own record instead of doing it again;
    without one each call is a new intent, and what protects is the guard on the subject. `external_id` and `answer`
    read the value for the report. Inside, `current_action().idempotency_key` is the key to send with.

    The body does not run, and this is raised, when it may not: AlreadyDone, MayHaveHappened, Held, Failed and
    Cancelled for what an earlier call under the same request key came to; UnsettledDuplicate for another open
    intent on the subject; what `propose` raises else. Exceptions of the body pass through: after one of `definite`
    the intent is failed, after one of `not_sent` it may be sent again, after any other it is unknown.

    When the body returned and the report can't be delivered, the value is returned all the same: it was done, and
    an exception would say otherwise. That is logged as an error, and `current_action().unreported` is set; Landed
    itself will call the intent unknown and look. See `carrying_out.end`.
    """
    given = {
        "kind": kind,
        "subject": subject,
        "amount": amount,
        "currency": currency,
        "params": params,
        "note": note,
        "context": context,
        "send_before": send_before,
        "repeat_of": repeat_of,
        "request_key": request_key,
    }
    terms: dict[str, Any] = {
        "definite": definite,
        "not_sent": not_sent,
        "lease_s": lease_s,
        "renew_for": renew_for,
    }

    def finish(action: Action, value: Any) -> None:
        if action.word is None:
            action.confirmed(external_id=_read(external_id, value), answer=_read(answer, value))

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError("A generator returns before it has done anything; guard what it calls instead.")
        if inspect.iscoroutinefunction(function):
            return cast(Callable[P, T], _async(_fit(client, AsyncLanded), function))
        return _sync(_fit(client, Landed), function)

    def _sync(landed: Landed, function: Callable[P, T]) -> Callable[P, T]:
        pick = picker(function, given)

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            with landed.executing(**terms, **_proposal(pick, args, kwargs)) as action:
                value = function(*args, **kwargs)
                if inspect.isawaitable(value):
                    raise TypeError(
                        "The function returned an awaitable: decorate one that is declared with async def."
                    )
                finish(action, value)
            return value

        return call

    def _async(landed: AsyncLanded, function: Callable[P, Awaitable[Any]]) -> Callable[P, Awaitable[Any]]:
        pick = picker(function, given)

        @functools.wraps(function)
        async def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            async with landed.executing(**terms, **_proposal(pick, args, kwargs)) as action:
                value = await function(*args, **kwargs)
                finish(action, value)
            return value

        return call

    return decorate


def _fit(client: Landed | AsyncLanded, wanted: type[T]) -> T:
    if not isinstance(client, wanted):
        raise TypeError(f"This function needs a client of the class {wanted.__name__}.")
    return client


def _proposal(pick: Picker, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Proposing:
    found = pick(args, kwargs)
    return cast(Proposing, {name: value for name, value in found.items() if value is not None})


def _read(reader: Callable[[Any], T] | None, value: Any) -> T | None:
    """What `reader` finds in the value. It was done, whatever a reader makes of its answer."""
    if reader is None:
        return None
    try:
        return reader(value)
    except Exception:
        log.exception("the value of a guarded function could not be read for its report")
        return None
