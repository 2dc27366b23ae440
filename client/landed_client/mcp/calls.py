"""What each tool does: one call of the client, and its answer. A host that gives up a call withdraws nothing."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

import anyio

from landed_client import errors
from landed_client.aclient import AsyncLanded
from landed_client.intents import Intent
from landed_client.mcp import answers, keys, texts
from landed_client.mcp.answers import ActionList, Answer
from landed_client.mcp.arguments import (
    LONGEST_WAIT_OF_PROPOSAL_S,
    LONGEST_WAIT_S,
    Listing,
    OneAction,
    Proposal,
    Waiting,
)
from landed_client.mcp.keys import Key, Names, Place, Recent
from landed_client.proposals import Proposing, encoded, proposal_body

_PROGRESS_EVERY_S: Final = 5.0


@dataclass(frozen=True)
class Desk:
    """What all calls share: the connection, how the host names run and step, and recent keys."""

    landed: AsyncLanded
    names: Names = field(default_factory=Names)
    recent: Recent = field(default_factory=Recent)


# --- propose


async def propose(desk: Desk, given: Proposal, meta: dict[str, Any]) -> Answer:
    """Records it, then waits for the outcome.

    Recording is shielded: a host that cancels the call or goes away finds it on record. Waiting is not.
    """
    place = Place.read(meta, desk.names)
    fields = _fields(given, place)
    if (reason := _means_nothing(fields)) is not None:
        return answers.invalid([reason])
    found = _key(desk, given, fields, place)
    key, seen, wait = found.text, found.seen, min(given.wait_s, LONGEST_WAIT_OF_PROPOSAL_S)
    try:
        intent = await _record(desk, fields, key, wait=wait)
        if seen and given.request_key is None and _is_over_and_may_come_again(intent):
            # Who asks was told that the earlier one is over, or has read so: this is meant as a new one.
            desk.recent.forget(key)
            key = _key(desk, given, fields, place).text
            intent = await _record(desk, fields, key, wait=wait)
    except errors.Unavailable as error:
        # Not answered: the very same call goes out under this key, whenever it comes.
        text = texts.unavailable(may_be_recorded=error.may_be_recorded)
        return answers.unavailable(text, recorded="maybe" if error.may_be_recorded else "no", key=key)
    except errors.LandedError as error:
        answer = answers.refused(error, await _concerned(desk, error), key=key)
        if not error.may_be_recorded:
            desk.recent.forget(key)
        return answer
    _remember(desk, key, place)
    return answers.proposed(intent, key)


def _remember(desk: Desk, key: str, place: Place) -> None:
    """Where the host names steps, a call that was answered is over, and another step is another action."""
    if place.run is not None and place.step is not None:
        desk.recent.forget(key)
    else:
        desk.recent.answered(key)


def _is_over_and_may_come_again(intent: Intent) -> bool:
    return intent.replayed and intent.outcome in ("failed", "cancelled") and intent.may_propose_again


def _fields(given: Proposal, place: Place) -> Proposing:
    """Only what was given: what is left out has the server's own meaning."""
    fields: Proposing = {"kind": given.kind}
    if given.subject is not None:
        fields["subject"] = given.subject
    if given.amount is not None:
        fields["amount"] = given.amount
    if given.currency is not None:
        fields["currency"] = given.currency
    if given.params is not None:
        fields["params"] = given.params
    if given.note:
        fields["note"] = given.note
    if given.repeat_of is not None:
        fields["repeat_of"] = given.repeat_of
    if place.run is not None:
        fields["context"] = {"run": place.run}
    return fields


def _means_nothing(fields: Proposing) -> answers.Problem | None:
    """Why this can't be sent at all. Looked at first, so that whatever is raised later was not raised by this."""
    try:
        encoded(proposal_body(fields))
    except (TypeError, ValueError) as error:
        return answers.Problem(field="", message=f"This can't be written as JSON: {type(error).__name__}.")
    return None


def _key(desk: Desk, given: Proposal, fields: Proposing, place: Place) -> Key:
    """In this order: a recent one's, one of ours that came back, run and step, the model's own, a new one."""
    derived = keys.derived(place, kind=given.kind, subject=given.subject, params=given.params)
    own = None if given.request_key is None else keys.of_the_model(given.request_key)
    came_back = own if own == given.request_key else None
    same = {name: value for name, value in fields.items() if name not in ("note", "context", "request_key")}
    same["own"] = None if came_back else own
    return desk.recent.key_for(place.run, same, came_back or derived or own or keys.minted())


async def _record(desk: Desk, fields: Proposing, key: str, *, wait: float) -> Intent:
    fields["request_key"] = key
    with anyio.CancelScope(shield=True):
        intent = await desk.landed.actions.propose(**fields)
    # Here a cancelled call ends; its proposal is on record and its key is kept for whoever makes it again.
    await anyio.lowlevel.checkpoint()
    if wait <= 0 or intent.done:
        return intent
    try:
        later = await desk.landed.actions.wait(intent.id, wait)
    except errors.Unavailable:
        return intent
    return replace(later, request_key=intent.request_key, replayed=intent.replayed)


async def _concerned(desk: Desk, error: errors.LandedError) -> Intent | None:
    """The action that a refusal is about, as it is now, where this agent may see it."""
    carried = getattr(error, "intent", None)
    if isinstance(carried, Intent):
        return carried
    intent_id = getattr(error, "intent_id", None)
    if intent_id is None:
        return None
    try:
        return await desk.landed.actions.get(intent_id)
    except errors.LandedError:
        return None


# --- read, wait, list


async def get(desk: Desk, given: OneAction) -> Answer:
    return await _read(lambda: desk.landed.actions.get(given.intent_id))


async def wait(desk: Desk, given: Waiting, tell: Callable[[float, float], Awaitable[None]]) -> Answer:
    """The action once it is settled, or as it is when time is up. `tell`: seconds gone, seconds in all."""
    timeout = min(given.wait_s, LONGEST_WAIT_S)
    found: list[Answer] = []
    async with anyio.create_task_group() as group:
        group.start_soon(_tell_regularly, tell, timeout)
        found.append(await _read(lambda: desk.landed.actions.wait(given.intent_id, timeout)))
        group.cancel_scope.cancel()
    return found[0]


async def _tell_regularly(tell: Callable[[float, float], Awaitable[None]], total: float) -> None:
    began = anyio.current_time()
    while True:
        await tell(round(anyio.current_time() - began, 1), total)
        await anyio.sleep(_PROGRESS_EVERY_S)


async def _read(call: Callable[[], Awaitable[Intent]]) -> Answer:
    try:
        return answers.shown(await call())
    except errors.LandedError as error:
        return answers.unread(error)


async def list_unsettled(desk: Desk, given: Listing) -> ActionList:
    """Never an empty list for what could not be read."""
    try:
        page = await desk.landed.actions.list(
            settled=False, kind=given.kind, subject=given.subject, limit=given.limit, cursor=given.cursor
        )
    except errors.LandedError as error:
        return answers.not_listed(error)
    return answers.listed(page)


# --- withdraw


async def cancel(desk: Desk, given: OneAction) -> Answer:
    try:
        return answers.shown(await desk.landed.actions.cancel(given.intent_id))
    except errors.TooLate as error:
        return answers.refused(error, await _now(desk, given.intent_id), key=None)
    except errors.Unavailable:
        return answers.unavailable(texts.MAY_BE_WITHDRAWN, recorded="maybe")
    except errors.LandedError as error:
        return answers.unread(error)


async def _now(desk: Desk, intent_id: str) -> Intent | None:
    try:
        return await desk.landed.actions.get(intent_id)
    except errors.LandedError:
        return None
