"""The one table of faults: what each does to the books, to the answer, and on the wire."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import urlencode

from sandbox import delivery
from sandbox.delivery import Deliver
from sandbox.wire import Response, error_response

Target = Literal["refund", "ledger", "listener"]


@dataclass(frozen=True)
class Wish:
    """A valid body of POST /v1/refunds; the amount is in minor units."""

    order: str
    amount_minor: int
    currency: str
    metadata: dict[str, object]


# Makes the faulty answer. The second argument is the true one: None if nothing was booked for this request.
MakeAnswer = Callable[[Wish, Response | None], Response]


@dataclass(frozen=True)
class Fault:
    """One row of the table.

    books: the refund is booked before the fault shows. keeps_answer: the faulty answer itself is stored with
    the key and replayed, because the service (not something on the way) produced it. A POST fault with
    neither is a refusal ahead of the books: key and ledger are not looked at. seconds: the default of the
    fault's own time; None if it has none.
    """

    name: str
    about: str
    target: Target = "refund"
    books: bool = False
    keeps_answer: bool = False
    entry_status: str = "succeeded"
    answer: MakeAnswer | None = None
    deliver: Deliver = delivery.send_whole
    answers: bool = True
    delays_answer: bool = False
    entry_fails_later: bool = False
    seconds: float | None = None

    @property
    def refuses(self) -> bool:
        return self.target == "refund" and not self.books and not self.keeps_answer


def _error(status: int, code: str, message: str, *headers: tuple[str, str]) -> MakeAnswer:
    return lambda wish, true: error_response(status, code, message, *headers)


def _html(status: int, title: str) -> MakeAnswer:
    page = f"<!DOCTYPE html>\n<html><head><title>{title}</title></head><body><h1>{title}</h1></body></html>\n"
    return lambda wish, true: Response(status, page.encode(), content_type="text/html; charset=utf-8")


def _wrong_amount(wish: Wish, true: Response | None) -> Response:
    content = json.loads(true.body) if true else {}
    content["amount_minor"] = wish.amount_minor + 100
    return Response(200, json.dumps(content).encode())


def _bad_gzip(wish: Wish, true: Response | None) -> Response:
    """A gzip header, then 0xff: deflate's reserved block type, so that no decoder gets a byte out of it."""
    assert true is not None
    body = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff" + b"\xff" * len(true.body)
    return replace(true, body=body, headers=(*true.headers, ("Content-Encoding", "gzip")))


def _redirect_307(wish: Wish, true: Response | None) -> Response:
    """Back to the same endpoint: a client that follows sends, and books, a second time."""
    headers = (("Location", "/v1/refunds?redirected=307"),)
    return Response(307, b"", headers=headers)


def _redirect_302(wish: Wish, true: Response | None) -> Response:
    """To a page that looks like a refund although nothing was booked: a client that follows is fooled."""
    fields = {"order": wish.order, "amount_minor": wish.amount_minor, "currency": wish.currency}
    return Response(302, b"", headers=(("Location", f"/v1/moved?{urlencode(fields)}"),))


_INTERNAL_ERROR = _error(500, "internal_error", "something went wrong on our side")

_ALL = (
    Fault("lose_response", "books, then closes without a byte", books=True, answers=False,
          deliver=delivery.close_without_a_byte),
    Fault("reset", "books, then resets the connection", books=True, answers=False, deliver=delivery.reset),
    Fault("silent", "books and never answers; holds the connection for `seconds` at most", books=True,
          answers=False, deliver=delivery.stay_silent, seconds=120),
    Fault("slow", "books, answers after `seconds`; the key is in use until then", books=True,
          delays_answer=True, seconds=8),
    Fault("trickle_headers", "books, answers one byte every `seconds`", books=True,
          deliver=delivery.trickle_headers, seconds=0.7),
    Fault("trickle_body", "books, sends the head at once and the body one byte every `seconds`", books=True,
          deliver=delivery.trickle_body, seconds=0.7),
    Fault("cut_body", "books, announces more bytes than it sends", books=True, deliver=delivery.cut_body),
    Fault("cut_without_length", "books, sends half of the JSON without a length", books=True,
          deliver=delivery.cut_without_length),
    Fault("bad_gzip", "books, answers with undecodable gzip", books=True, answer=_bad_gzip),
    Fault("html_200", "books, answers 200 with an HTML page", books=True, answer=_html(200, "Welcome")),
    Fault("wrong_amount_200", "books the right amount, answers 200 with another", books=True,
          keeps_answer=True, answer=_wrong_amount),
    Fault("error_500_booked", "books, answers 500; the key replays the 500", books=True, keeps_answer=True,
          answer=_INTERNAL_ERROR),
    Fault("error_500_not_booked", "books nothing, answers 500; the key replays the 500", keeps_answer=True,
          answer=_INTERNAL_ERROR),
    Fault("error_504_booked", "books, answers 504 with a proxy's HTML page", books=True,
          answer=_html(504, "504 Gateway Time-out")),
    Fault("reject_422", "refuses the refund",
          answer=_error(422, "refund_not_allowed", "this order cannot be refunded")),
    Fault("reject_401", "refuses the credentials",
          answer=_error(401, "unauthorized", "the API key is not valid")),
    Fault("conflict_409", "answers 409, books nothing",
          answer=_error(409, "conflict", "the order is being changed by another request")),
    Fault("too_many_429", "answers 429 with Retry-After, books nothing",
          answer=_error(429, "rate_limited", "too many requests", ("Retry-After", "1"))),
    Fault("redirect_307", "redirects the POST to the same endpoint, books nothing", answer=_redirect_307),
    Fault("redirect_302", "redirects to what looks like a refund, books nothing", answer=_redirect_302),
    Fault("pending", "books and answers a refund that stays pending", books=True, entry_status="pending"),
    Fault("pending_then_failed", "books and answers a pending refund that fails after `seconds`", books=True,
          entry_status="pending", entry_fails_later=True, seconds=2),
    Fault("already_refunded_400", "answers that the order was refunded before, books nothing",
          answer=_error(400, "already_refunded", "this order has already been refunded")),
    Fault("ledger_error", "the ledger answers 500 when asked for the order", target="ledger"),
    Fault("ledger_page_2_error", "the ledger's later pages for the order answer 500", target="ledger"),
    Fault("refuse_connection", "closes the listener for `seconds`", target="listener", seconds=1),
)  # fmt: skip

FAULTS: dict[str, Fault] = {fault.name: fault for fault in _ALL}
