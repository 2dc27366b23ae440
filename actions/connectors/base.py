"""What every connector shares: the words it speaks in, and the table that reads an answer's status. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, Protocol, runtime_checkable
from urllib.parse import quote, quote_plus

from actions import transport
from actions.canonical import canonical
from actions.redaction import MASK
from actions.transport import Call, Reply

Fetch = Callable[[Call], Reply]
By = Literal["key", "subject"]


class Result(StrEnum):
    """What an attempt came to."""

    CONFIRMED = "confirmed"
    ACCEPTED = "accepted"  # the downstream has it and has not finished
    REFUSED = "refused"
    NOT_SENT = "not_sent"  # or proven not processed
    NO_ANSWER = "no_answer"  # whatever proves nothing


# What an answer's `reason` can be, beside the transport's own.
REASONS: Mapping[str, str] = {
    **{str(reason): text for reason, text in transport.REASONS.items() if reason is not transport.Reason.OK},
    "confirmed": "The downstream says that it is done, with an id and the right amount.",
    "accepted": "The downstream has taken it on and has not finished.",
    "refused_by_downstream": "The downstream refused it.",
    "declined_by_downstream": "The downstream took it on and says that it did not succeed.",
    "effect_exists_elsewhere": "Refused, because the same effect exists already, by another request.",
    "payment_disputed": "Refused, because the payer disputes the payment; a person has to look at that first.",
    "not_processed": "The downstream says that it did not process the request.",
    "unreadable_2xx": "The status says success, but the body can't be read.",
    "answer_differs": "The status says success, but the body does not show that it is about this intent.",
    "unknown_state": "The status says success, but the body names a state that is not known here.",
    "replayed_error": "The downstream repeated a stored error, which proves nothing about this attempt.",
    "conflict": "The downstream reports a conflict, perhaps with this very request still running.",
    "rate_limited": "The downstream limits the rate; whether it processed the request is not known.",
    "server_error": "The downstream, or something before it, broke down; whether it acted is not known.",
    "redirect": "The downstream pointed elsewhere; nothing was followed.",
    "unclear_status": "The HTTP status says nothing about whether it happened.",
    "key_used_otherwise": "The downstream knows this key from a request with another content.",
    "connector_error": "Our connector broke over the answer; it proves nothing until somebody has read it.",
    "person_first": "Something speaks against sending it now; nothing was sent, and a person looks first.",
    "not_checked_first": "What has to be looked at before sending could not be seen; nothing was sent.",
    "duplicate_request": "The downstream says that a first request exists: its outcome has to be looked up.",
}

# Why a look-up gave no complete view, beside the transport's reasons.
LOOK_UP_REASONS: Mapping[str, str] = {
    **{str(reason): text for reason, text in transport.REASONS.items() if reason is not transport.Reason.OK},
    "connector_error": "Our connector broke over it.",
    "not_offered": "The connector is not set up to look up in this way.",
    "bad_query": "The question could not be put together; nothing was asked.",
    "http_error": "The downstream answered with an HTTP error.",
    "bad_question": "The downstream refused this question, with an HTTP status that says nothing about its books.",
    "unreadable_page": "A page could not be read.",
    "unreadable_entry": "An entry could not be read.",
    "repeated_cursor": "The pages go in a circle.",
    "too_many_pages": "There are more pages than are followed.",
    "service_incomplete": "The service that looked says that it did not see everything.",
}


@dataclass(frozen=True)
class Target:
    """A downstream as a connector sees it; `secret` is the value, read from the environment by the caller."""

    name: str
    base_url: str
    account: str = ""
    secret: str | None = field(default=None, repr=False)
    config: Mapping[str, Any] = field(default_factory=dict)
    dedupes: bool = False
    connect_timeout_s: float = 3.0
    deadline_s: float = 20.0


@dataclass(frozen=True)
class Wanted:
    """What a connector may know of an intent. `amount` is the decimal text of `amount_minor`."""

    intent_id: str
    idempotency_key: str
    kind: str
    subject: str
    amount_minor: int | None = None
    amount: str | None = None
    currency: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Answer:
    result: Result
    reason: str  # one of REASONS
    external_id: str | None = None
    amount_minor: int | None = None
    currency: str | None = None
    differs: tuple[str, ...] = ()  # names of what is missing or other than wanted
    http_status: int | None = None


@dataclass(frozen=True)
class Entry:
    """One row of the downstream's ledger, in our words."""

    entry_id: str | None
    role: Literal["effect", "reversal", "fee", "unknown"]
    state: Literal["final", "pending", "failed"]
    key: str | None
    subject: str | None
    amount_minor: int | None
    currency: str | None
    booked_at: datetime | None  # aware, UTC
    raw: Mapping[str, Any]


@dataclass(frozen=True)
class Page:
    url: str
    http_status: int
    entries: tuple[Entry, ...]
    body: str  # what was seen, for evidence
    unread: int = 0  # rows that could not be read; only where a look goes on without them
    after: str | None = None  # where the next page begins, if a look back can go on from there


class NotSendable(Exception):
    """Our own validation says that it can't be sent. Nothing was."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class LookupFailed(Exception):
    """The look-up gave no complete view, so it proves nothing. `pages` are those seen before."""

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        http_status: int | None = None,
        pages: tuple[Page, ...] = (),
        body: str = "",
    ) -> None:
        super().__init__(message)
        self.reason, self.message, self.http_status = reason, message, http_status
        self.pages, self.body = pages, body


@dataclass(frozen=True)
class Example:
    """What a connector shows of itself; the contract test runs on it. Bodies are those of the downstream."""

    target: Target  # with a complete config
    wanted: Wanted
    confirmed: str  # body of a 2xx that settles `wanted`
    accepted: str | None  # the same, pending
    declined: str | None  # the same, did not succeed
    other_amount: str | None  # the same, with another amount; None where the downstream echoes none
    pages: tuple[str, ...]  # of a look-up, in order; the last holds the one entry with the intent's key
    look: ExampleLook | None = None  # for a connector that looks first
    webhook: ExampleWebhook | None = None  # for one that hears webhooks
    recent: tuple[str, ...] = ()  # for one that looks back: bodies of its pages, where they are others than `pages`


@dataclass(frozen=True)
class ExampleLook:
    """Bodies of the 200s that a look before sending `wanted` is answered with, in order."""

    clear: tuple[str, ...]
    against: tuple[str, ...]


@dataclass(frozen=True)
class ExampleWebhook:
    """A delivery that says what became of `wanted`. `sign`: headers for a body, signed at a time with a secret."""

    body: str
    secret: str = field(repr=False)
    sign: Callable[[bytes, datetime, str], Mapping[str, str]]


class Connector(Protocol):
    """Speaks to one sort of downstream. Everything but `fetch` is pure."""

    @property
    def name(self) -> str: ...

    @property
    def example(self) -> Example: ...

    def check_config(self, config: Mapping[str, Any]) -> list[str]:
        """What is wrong with `config`, in plain words; empty when nothing is."""
        ...

    def build(self, target: Target, wanted: Wanted) -> Call:
        """The same call, byte for byte, every time. Raises NotSendable."""
        ...

    def read(self, target: Target, wanted: Wanted, reply: Reply) -> Answer:
        """What `reply` proves. Never raises on anything a downstream sends."""
        ...

    def look_up(self, target: Target, wanted: Wanted, fetch: Fetch, *, by: By) -> Iterator[Page]:
        """Every page there is, in order. Raises LookupFailed when the view is not complete.

        The downstream's filter is not trusted to have worked: entries may be about other intents.
        """
        ...


@runtime_checkable
class LooksFirst(Protocol):
    """A connector that looks at something right before sending, beside what `Connector` asks for."""

    def object_to(self, target: Target, wanted: Wanted, fetch: Fetch) -> str:
        """Why a person has to look before this is sent, in plain words; "" to send it. Changes nothing downstream.

        Raises LookupFailed when it can't be told: then it is not sent now, and tried again later.
        """
        ...


@runtime_checkable
class LooksBack(Protocol):
    """A connector that can look through a ledger for everything, whoever did it, beside what `Connector` asks for."""

    def look_back(
        self, target: Target, fetch: Fetch, *, since: datetime, cursor: str | None = None
    ) -> Iterator[Page]:
        """Every page of what was booked since then, in any order; what is older does no harm. It only reads.

        `cursor`: only the pages behind the one with this `after`, which an earlier look with the same `since` gave. A
        connector whose pages have no `after` is never asked for that, and need not take it.

        Raises LookupFailed when the view is not complete, or when it is not set up to look back (`not_offered`). A
        cursor that the downstream refuses is a `bad_question`: the whole is asked for anew.
        """
        ...


@dataclass(frozen=True)
class Notice:
    """What a verified webhook said: a reason to look, and where no look-up exists, evidence.

    `keys`: idempotency keys of intents that it names; `entries`: rows of the ledger as it shows them.
    """

    delivery_id: str  # the sender's own, the same when it is delivered again
    sent_at: datetime  # aware, UTC: when the sender signed it
    topic: str = ""
    keys: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    external_ids: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()
    as_of: datetime | None = None  # when things were as it shows them, if it says: delivered late, it is signed anew


class Unverified(Exception):
    """A webhook that is not proven to be from the downstream, or too old. The text says why, without secrets."""


@runtime_checkable
class HearsWebhooks(Protocol):
    """A connector whose downstream sends webhooks, beside what `Connector` asks for."""

    def hear(
        self, target: Target, *, headers: Mapping[str, str], body: bytes, secrets: Sequence[str], now: datetime
    ) -> Notice:
        """Verifies a delivery against any of `secrets` and reads it. `headers`: names in lower case.

        Raises Unverified for a wrong signature or a time too far from `now`, ValueError for a body that can't be read
        although it is genuine.
        """
        ...


REFUSED_STATUSES = frozenset({400, 401, 403, 404, 405, 410, 415, 422})


def classify(reply: Reply, *, refused: Collection[int] = REFUSED_STATUSES) -> Answer | None:
    """What a reply proves by itself (DESIGN §6). None: a whole 2xx, which only its body can judge."""
    if not reply.maybe_sent:
        return Answer(Result.NOT_SENT, str(reply.reason))
    if not reply.complete or reply.status is None:
        return Answer(Result.NO_ANSWER, str(reply.reason), http_status=reply.status)
    if 200 <= reply.status < 300:
        return None
    if is_replayed(reply):
        return Answer(Result.NO_ANSWER, "replayed_error", http_status=reply.status)
    if reply.status in refused:
        return Answer(Result.REFUSED, "refused_by_downstream", http_status=reply.status)
    return Answer(Result.NO_ANSWER, _unclear(reply.status), http_status=reply.status)


def _unclear(status: int) -> str:
    named = {409: "conflict", 429: "rate_limited"}
    by_class = {3: "redirect", 5: "server_error"}
    return named.get(status) or by_class.get(status // 100, "unclear_status")


def is_replayed(reply: Reply) -> bool:
    """The downstream says that this answer is a stored one (IETF idempotency-key draft; Stripe's header)."""
    return reply.headers.get("idempotent-replayed", "").strip().lower() == "true"


def text_of(body: bytes) -> str:
    """A body as text that every database stores; what is not UTF-8 shows as U+FFFD."""
    return body.decode("utf-8", "replace").replace("\x00", "\ufffd")


_SECRET_HEADER = re.compile(r"authorization|cookie|secret|token|signature|password|api-?key", re.IGNORECASE)


def redact_call(call: Call, target: Target) -> dict[str, Any]:
    """What was sent, fit to be stored: secret headers and the secret's value, however spelt, are masked."""
    spellings = _spellings(target.secret) if target.secret else ()

    def mask(text: str) -> str:
        for spelling in spellings:
            text = text.replace(spelling, MASK)
        return text

    return {
        "method": call.method,
        "url": mask(call.url),
        "headers": {
            name: MASK if _SECRET_HEADER.search(name) else mask(value) for name, value in call.headers.items()
        },
        "body": None if call.body is None else mask(text_of(call.body)),
    }


def _spellings(secret: str) -> tuple[str, ...]:
    forms = {secret, quote(secret, safe=""), quote(secret), quote_plus(secret), canonical(secret)[1:-1]}
    return tuple(sorted(forms, key=len, reverse=True))
