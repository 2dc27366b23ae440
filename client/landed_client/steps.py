"""Every call, written once: what to send, how to read the answer, what follows from it. Nothing here does I/O."""

import unicodedata
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from email.utils import parsedate_to_datetime
from typing import Any, Final, NoReturn
from urllib.parse import quote

from landed_client import errors
from landed_client.intents import Attempt, Claim, Event, Events, Intent, Page
from landed_client.problems import error_of
from landed_client.proposals import Proposing, encoded, new_request_key, proposal_body, time_text
from landed_client.reading import mapping, text, text_or_none, whole
from landed_client.reporting import Reporting, report_body
from landed_client.retrying import Asked, Setting, ask, retry_after
from landed_client.wire import Lost, Reply, Request, Steps, pause

# What the server holds an answer for at most, in seconds.
LONGEST_HOLD_S: Final = 30
# The share of a proposal's time that is kept for finding out whether it was recorded.
_TO_FIND: Final = 0.25
_LEAST_PAUSE_S: Final = 0.5
_JSON: Final = {"Content-Type": "application/json"}


# --- propose


def propose(fields: Proposing, setting: Setting, *, wait: float = 0.0) -> Steps[Intent]:
    """Records an intent, or finds that it is recorded. See `Actions.propose`."""
    body = proposal_body(fields)
    key = fields.get("request_key") or new_request_key()
    began, held = setting.clock(), _hold(wait)
    request = Request(
        "POST",
        "/intents",
        headers={**_JSON, "Idempotency-Key": _quoted(key), **_prefer(held)},
        content=encoded(body),
        wait=held,
    )
    within = setting.timeout * (1 - _TO_FIND)
    asked = yield from ask(request, setting, within=within, accepts=lambda reply: _is_answer_to(body, reply))
    if isinstance(asked.came, Lost):
        intent = yield from _found_after_all(body, key, asked.came, asked, setting)
    else:
        intent = _intent_of(asked.came, key, after_lost=asked.maybe_arrived)
    left = wait - (setting.clock() - began)
    if left > 0 and not _is_callers_turn(intent) and not intent.done:
        return (yield from _followed(intent, setting, until=setting.clock() + left))
    return intent


def _found_after_all(body: Mapping[str, Any], key: str, lost: Lost, asked: Asked, setting: Setting) -> Steps[Intent]:
    try:
        found = yield from find(key, setting, within=setting.timeout * _TO_FIND)
    except errors.LandedError:
        found = None
    if found is None:
        raise _unavailable(lost, may_be_recorded=asked.maybe_arrived, key=key)
    if not _is_about(body, found):
        raise errors.KeyReused("This request key stands for another payload.", request_key=key)
    return found


def _is_answer_to(body: Mapping[str, Any], reply: Reply) -> bool:
    """Whether this 2xx shows the intent that was proposed, and not some other request's answer."""
    intent = _read(reply)
    return intent is not None and _is_about(body, intent)


def _is_about(body: Mapping[str, Any], intent: Intent) -> bool:
    """By what the server never changes but in spelling. A subject that was left out is derived from params."""
    same_subject = "subject" not in body or _folded(body["subject"]) == _folded(intent.subject)
    same_currency = "currency" not in body or _folded(body["currency"]) == _folded(intent.currency or "")
    same_amount = "amount" not in body or _number(body["amount"]) == _number(intent.amount)
    return body["kind"] == intent.kind and same_subject and same_currency and same_amount


def _folded(name: str) -> str:
    return "".join(unicodedata.normalize("NFC", name.casefold()).split())


def _number(amount: str | None) -> Decimal | None:
    try:
        return None if amount is None else Decimal(amount)
    except InvalidOperation:
        return None


# --- read, wait, find, list


def get(intent_id: str, setting: Setting, *, hold: float = 0.0) -> Steps[Intent]:
    intent, _ = yield from _get(intent_id, setting, hold=hold, within=setting.timeout)
    return intent


def _get(intent_id: str, setting: Setting, *, hold: float, within: float) -> Steps[tuple[Intent, Reply]]:
    request = Request("GET", _path(intent_id), headers=_prefer(hold), wait=hold)
    reply = yield from _answered(request, setting, within=within, accepts=lambda reply: _shows(intent_id, reply))
    return _intent_of(reply, None), reply


def _shows(intent_id: str, reply: Reply) -> bool:
    intent = _read(reply)
    return intent is not None and intent.id.lower() == str(intent_id).lower()


def wait(intent_id: str, timeout: float, setting: Setting) -> Steps[Intent]:
    """The intent once it is settled or the caller's turn has come; when time runs out, as it is then."""
    until = setting.clock() + timeout
    first, reply = yield from _get(intent_id, setting, hold=_hold(timeout), within=setting.timeout)
    if first.done or _is_callers_turn(first):
        return first
    yield from pause(min(_until_it_helps(first, reply, held=_hold(timeout)), max(0.0, until - setting.clock())))
    return (yield from _followed(first, setting, until=until))


def _followed(last: Intent, setting: Setting, *, until: float) -> Steps[Intent]:
    """Reads it again and again. What was read last is worth more than the news that Landed can't be reached."""
    while (left := until - setting.clock()) > 0:
        hold = _hold(left)
        try:
            found, reply = yield from _get(last.id, setting, hold=hold, within=max(1.0, min(setting.timeout, left)))
        except errors.Unavailable:
            return last
        last = found.under(last.request_key)
        if last.done or _is_callers_turn(last):
            return last
        yield from pause(min(_until_it_helps(last, reply, held=hold), max(0.0, until - setting.clock())))
    return last


def _is_callers_turn(intent: Intent) -> bool:
    """Waiting for oneself never ends. What is claimed already is another's turn, and its lease ends that."""
    return intent.step == "send"


def _until_it_helps(intent: Intent, reply: Reply, *, held: float) -> float:
    """Seconds until asking again can show something new."""
    if (after := retry_after(reply)) is not None:
        return max(_LEAST_PAUSE_S, after)
    if held and intent.step == "wait" and "preference-applied" in reply.headers:
        # It was held for all that time, or moved: the next one is held as well.
        return 0.0
    if intent.ask_again_at is None:
        return _LEAST_PAUSE_S
    return max(_LEAST_PAUSE_S, (intent.ask_again_at - _now_there(reply)).total_seconds())


def _now_there(reply: Reply) -> datetime:
    """The server's time: its clock wrote ask_again_at, and ours may be off."""
    try:
        return parsedate_to_datetime(reply.headers.get("date", "")).astimezone(UTC)
    except (TypeError, ValueError):
        return datetime.now(UTC)


def find(request_key: str, setting: Setting, *, within: float | None = None) -> Steps[Intent | None]:
    """What was recorded under this request key; None when nothing was, as of now."""
    found = yield from list_intents({"request_key": request_key, "limit": 1}, setting, within=within)
    return found.data[0].under(request_key) if found.data else None


def list_intents(filters: Mapping[str, Any], setting: Setting, *, within: float | None = None) -> Steps[Page]:
    request = Request("GET", "/intents", query=_query(filters))
    reply = yield from _answered(request, setting, within=within, accepts=lambda reply: _page(reply) is not None)
    page = _page(reply)
    assert page is not None, "only such an answer is accepted"
    return page


def _page(reply: Reply) -> Page | None:
    body = reply.object
    if body is None or not isinstance(body.get("data"), list):
        return None
    try:
        return Page(tuple(map(Intent.read, body["data"])), text_or_none(body.get("next_cursor")))
    except (ValueError, AttributeError):
        return None


def events(after: int, setting: Setting, *, limit: int | None = None, hold: float = 0.0) -> Steps[Events]:
    """What changed after this position, oldest first; with `hold` seconds of waiting while there is nothing."""
    held = _hold(hold)
    request = Request(
        "GET", "/events", query=_query({"after": after, "limit": limit}), headers=_prefer(held), wait=held
    )
    reply = yield from _answered(request, setting, accepts=lambda reply: _events(reply, after) is not None)
    found = _events(reply, after)
    assert found is not None, "only such an answer is accepted"
    return found


def _events(reply: Reply, after: int) -> Events | None:
    body = reply.object
    if body is None or not isinstance(body.get("data"), list):
        return None
    rows = tuple(Event.read(row) for row in body["data"] if isinstance(row, dict))
    following = whole(body.get("next"), rows[-1].position if rows else after)
    return Events(rows, following, body.get("has_more") is True)


def me(setting: Setting) -> Steps[dict[str, Any]]:
    return (yield from _object("/me", setting))


def kinds(setting: Setting) -> Steps[list[dict[str, Any]]]:
    found = (yield from _object("/kinds", setting)).get("data")
    return [mapping(row) for row in found] if isinstance(found, list) else []


def history(intent_id: str, setting: Setting) -> Steps[dict[str, Any]]:
    return (yield from _object(f"{_path(intent_id)}/history", setting))


def _object(path: str, setting: Setting) -> Steps[dict[str, Any]]:
    reply = yield from _answered(Request("GET", path), setting, accepts=lambda reply: reply.object is not None)
    return reply.object or {}


# --- withdraw, and carry out oneself


def cancel(intent_id: str, setting: Setting) -> Steps[Intent]:
    request = Request("POST", f"{_path(intent_id)}/cancel")
    reply = yield from _answered(request, setting, accepts=lambda reply: _shows(intent_id, reply))
    return _intent_of(reply, None)


def claim(intent_id: str, claim_token: str, setting: Setting, *, lease_s: int | None = None) -> Steps[Claim]:
    return (yield from _claim(f"{_path(intent_id)}/attempts", claim_token, lease_s, setting))


def renew(
    intent_id: str, attempt: int, claim_token: str, setting: Setting, *, lease_s: int | None = None
) -> Steps[Claim]:
    return (yield from _claim(f"{_path(intent_id)}/attempts/{attempt}/renew", claim_token, lease_s, setting))


def _claim(path: str, claim_token: str, lease_s: int | None, setting: Setting) -> Steps[Claim]:
    body = {"claim_token": claim_token} | ({} if lease_s is None else {"lease_s": lease_s})
    reply = yield from _answered(_post(path, body), setting, accepts=lambda reply: _claimed(reply) is not None)
    found = _claimed(reply)
    assert found is not None, "only such an answer is accepted"
    return found


def _claimed(reply: Reply) -> Claim | None:
    body = reply.object or {}
    attempt, key = body.get("attempt"), text(body.get("idempotency_key"))
    return Claim(Attempt.read(attempt), key) if isinstance(attempt, dict) and key else None


def report(intent_id: str, said: Reporting, setting: Setting) -> Steps[Intent]:
    request = _post(f"{_path(intent_id)}/report", report_body(said))
    reply = yield from _answered(request, setting, accepts=lambda reply: _shows(intent_id, reply))
    return _intent_of(reply, None)


# --- what all of them share


def _answered(
    request: Request, setting: Setting, *, accepts: Callable[[Reply], bool], within: float | None = None
) -> Steps[Reply]:
    """The 2xx for `request`, which is safe to repeat. Raises the exception for everything else."""
    asked = yield from ask(request, setting, within=setting.timeout if within is None else within, accepts=accepts)
    if isinstance(asked.came, Lost):
        raise _unavailable(asked.came, may_be_recorded=asked.maybe_arrived and request.method != "GET", key=None)
    if asked.came.status >= 300:
        _refuse(asked.came, None, after_lost=asked.maybe_arrived and request.method != "GET")
    return asked.came


def _intent_of(reply: Reply, key: str | None, *, after_lost: bool = False) -> Intent:
    if reply.status >= 300:
        _refuse(reply, key, after_lost=after_lost)
    body = reply.object
    assert body is not None, "only an answer with an intent is accepted"
    return Intent.read(body, request_key=key, replayed=reply.headers.get("idempotent-replayed") == "true")


def _refuse(reply: Reply, key: str | None, *, after_lost: bool) -> NoReturn:
    if reply.status >= 400:
        raise error_of(reply, request_key=key, after_lost=after_lost)
    found = errors.Unavailable(
        "Landed, or something before it, points to another address, which was not followed: see base_url.",
        code="redirected",
        status=reply.status,
        request_key=key,
    )
    found.may_be_recorded = after_lost
    raise found


def _unavailable(lost: Lost, *, may_be_recorded: bool, key: str | None) -> errors.Unavailable:
    found = errors.Unavailable(
        (_MAYBE if may_be_recorded else _NOT_RECORDED) + f" (The last answer: {lost.why}.)",
        code="unavailable" if lost.sent or not lost.why.endswith("429") else "rate_limited",
        retryable=True,
        request_key=key,
        retry_after=lost.retry_after,
    )
    found.may_be_recorded = may_be_recorded
    return found


_MAYBE: Final = (
    "Landed gave no usable answer. This request may have been recorded all the same: asking again is safe with the "
    "same request key, and with no other."
)
_NOT_RECORDED: Final = "Landed can't be reached at the moment; this request was not taken."


def _read(reply: Reply) -> Intent | None:
    try:
        return Intent.read(reply.object or {})
    except ValueError:
        return None


def _path(intent_id: str) -> str:
    # A model may have written it: nothing in it may lead to another address.
    return f"/intents/{quote(str(intent_id), safe='')}"


def _post(path: str, body: Mapping[str, Any]) -> Request:
    return Request("POST", path, headers=_JSON, content=encoded(body))


def _hold(seconds: float) -> float:
    """Whole seconds, as Prefer has them (RFC 7240 §4.3)."""
    return float(max(0, min(int(seconds), LONGEST_HOLD_S)))


def _prefer(seconds: float) -> dict[str, str]:
    return {"Prefer": f"wait={int(seconds)}"} if seconds >= 1 else {}


def _quoted(key: str) -> str:
    """As a quoted string (RFC 8941 §3.3.3). Raises ValueError for what can't be a request key."""
    if not (1 <= len(key) <= 255 and all("\x21" <= char <= "\x7e" for char in key)):
        raise ValueError("A request key is 1 to 255 visible ASCII characters.")
    escaped = key.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _query(filters: Mapping[str, Any]) -> dict[str, str]:
    return {name: _parameter(value) for name, value in filters.items() if value is not None}


def _parameter(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return time_text(value) or ""
    if isinstance(value, list | tuple | set | frozenset):
        return ",".join(map(str, value))
    return str(value)
