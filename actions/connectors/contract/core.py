"""What every connector has to do: build a call, read an answer, look into a ledger. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from actions import transport
from actions.connectors import registry
from actions.connectors.base import (
    LOOK_UP_REASONS,
    REASONS,
    Answer,
    Connector,
    LookupFailed,
    Page,
    Result,
    redact_call,
)
from actions.connectors.contract.asking import SHOWS_NOTHING, Check, broken, reply, same
from actions.transport import Call, Phase, Reason, Reply

_ERRORS: Final = (
    *((status, Result.REFUSED, "refused_by_downstream") for status in (400, 401, 403, 404, 405, 410, 415, 422)),
    *((status, Result.NO_ANSWER, "unclear_status") for status in (101, 402, 406, 408, 418, 423, 425, 431, 451)),
    (409, Result.NO_ANSWER, "conflict"),
    (429, Result.NO_ANSWER, "rate_limited"),
    *((status, Result.NO_ANSWER, "redirect") for status in (300, 301, 302, 303, 304, 307, 308)),
    *((status, Result.NO_ANSWER, "server_error") for status in (500, 501, 502, 503, 504, 520, 599)),
    *((status, Result.NO_ANSWER, "unclear_status") for status in (600, 999)),
)


def _read(connector: Connector, got: Reply) -> Answer:
    answer = connector.read(connector.example.target, connector.example.wanted, got)
    assert answer.reason in REASONS, f"{answer.reason!r} is none of base.REASONS"
    same(answer.http_status, got.status, "the answer's http_status")
    return answer


def _judged(connector: Connector, got: Reply, result: Result, reason: str) -> Answer:
    answer = _read(connector, got)
    same((answer.result, answer.reason), (result, reason), f"status {got.status}, {got.phase.name}, {got.reason}")
    return answer


# What it says of itself


def it_has_the_name_it_is_found_by(connector: Connector) -> None:
    assert registry.get(connector.name) is connector, f"{connector.name!r} finds another connector"


def its_example_is_a_valid_configuration(connector: Connector) -> None:
    same(connector.check_config(connector.example.target.config), [], "problems of the example's config")


def an_unknown_setting_is_a_problem(connector: Connector) -> None:
    config = {**connector.example.target.config, "no_such_setting": 1}
    problems = connector.check_config(config)
    assert any("no_such_setting" in problem for problem in problems), f"no_such_setting is not named in {problems}"


# Sending


def it_builds_the_same_bytes_every_time(connector: Connector) -> None:
    example = connector.example
    calls = [connector.build(example.target, example.wanted) for _ in range(2)]
    same(calls[0], calls[1], "the second call")
    transport.check(calls[0])
    assert calls[0].url.startswith(example.target.base_url), f"{calls[0].url} is not below base_url"


def it_sends_the_intents_own_key(connector: Connector) -> None:
    target = replace(connector.example.target, dedupes=True)
    call = connector.build(target, replace(connector.example.wanted, idempotency_key="0193-the-key"))
    sent = json.dumps([*call.headers.values(), (call.body or b"").decode(), call.url])
    assert "0193-the-key" in sent, "the idempotency key is not sent"


def what_is_stored_of_a_call_holds_no_secret(connector: Connector) -> None:
    target, wanted = connector.example.target, connector.example.wanted
    call = connector.build(target, wanted)
    stored = json.dumps(redact_call(call, target))
    assert target.secret, "the example has no secret"
    assert target.secret in json.dumps(dict(call.headers)), "the secret is not sent in a header"
    assert target.secret not in stored, "the secret would be stored"
    assert wanted.idempotency_key in stored, "the key is masked as if it were a secret"


# Reading answers


def the_right_answer_confirms(connector: Connector) -> None:
    wanted = connector.example.wanted
    answer = _judged(connector, reply(200, connector.example.confirmed), Result.CONFIRMED, "confirmed")
    same(answer.differs, (), "what differs")
    assert answer.external_id, "a confirmation without the downstream's id"
    same((answer.amount_minor, answer.currency), (wanted.amount_minor, wanted.currency), "the confirmed amount")


def a_replayed_confirmation_is_one(connector: Connector) -> None:
    _judged(
        connector,
        reply(201, connector.example.confirmed, idempotent_replayed="true"),
        Result.CONFIRMED,
        "confirmed",
    )


def a_pending_answer_is_accepted_with_its_id(connector: Connector) -> None:
    if connector.example.accepted is not None:
        answer = _judged(connector, reply(200, connector.example.accepted), Result.ACCEPTED, "accepted")
        assert answer.external_id, "accepted without the downstream's id"


def a_declined_one_is_refused(connector: Connector) -> None:
    if connector.example.declined is not None:
        _judged(connector, reply(200, connector.example.declined), Result.REFUSED, "declined_by_downstream")


def another_amount_is_no_answer_and_says_what_differs(connector: Connector) -> None:
    if connector.example.other_amount is not None:
        answer = _judged(connector, reply(200, connector.example.other_amount), Result.NO_ANSWER, "answer_differs")
        same(answer.differs, ("amount_minor",), "what differs")


def a_success_that_shows_nothing_is_no_answer(connector: Connector) -> None:
    for body in SHOWS_NOTHING:
        same(_read(connector, reply(200, body)).result, Result.NO_ANSWER, f"200 with {body[:12]!r}")


def a_half_sent_confirmation_is_no_answer(connector: Connector) -> None:
    whole = connector.example.confirmed.encode()
    for length in range(len(whole)):
        same(_read(connector, reply(200, whole[:length])).result, Result.NO_ANSWER, f"the first {length} bytes")


def an_error_means_what_its_status_means(connector: Connector) -> None:
    for status, result, reason in _ERRORS:
        _judged(connector, reply(status, b'{"error": {"code": "nothing known"}}'), result, reason)


def a_replayed_error_proves_nothing(connector: Connector) -> None:
    for status, *_ in _ERRORS:
        _judged(connector, reply(status, b"{}", idempotent_replayed="true"), Result.NO_ANSWER, "replayed_error")


def before_the_first_byte_it_was_not_sent(connector: Connector) -> None:
    for phase in (phase for phase in Phase if phase < Phase.FIRST_BYTE):
        for reason in (reason for reason in Reason if reason is not Reason.OK):
            _judged(connector, broken(phase, reason), Result.NOT_SENT, reason)


def after_the_first_byte_a_broken_call_is_no_answer_whatever_its_status(connector: Connector) -> None:
    body = connector.example.confirmed.encode()  # even when all of it seems to be there
    for phase in (phase for phase in Phase if Phase.FIRST_BYTE <= phase < Phase.DONE):
        for status in (None, 200, 400, 422, 503):
            _judged(connector, broken(phase, Reason.RESET, status, body), Result.NO_ANSWER, "reset")


# Looking up


def _look_up(connector: Connector, replies: Iterable[Reply]) -> tuple[list[Call], Iterator[Page]]:
    asked: list[Call] = []
    rest = iter(replies)

    def fetch(call: Call) -> Reply:
        transport.check(call)
        asked.append(call)
        return next(rest)

    example = connector.example
    return asked, connector.look_up(example.target, example.wanted, fetch, by="key")


def _failure(pages: Iterator[Page]) -> LookupFailed:
    found: LookupFailed | None = None
    try:
        list(pages)
    except LookupFailed as failed:
        found = failed
    assert found is not None, "a look-up that broke was taken for a whole view"
    assert found.reason in LOOK_UP_REASONS, f"{found.reason!r} is none of base.LOOK_UP_REASONS"
    return found


def a_look_up_follows_every_page(connector: Connector) -> None:
    wanted, bodies = connector.example.wanted, connector.example.pages
    asked, pages = _look_up(connector, [reply(200, body) for body in bodies])
    seen = list(pages)
    same([page.body for page in seen], list(bodies), "the bodies of the pages")
    assert len({call.url for call in asked}) == len(bodies) > 1, "the example needs pages, each at its own address"
    assert all(call.method == "GET" and call.body is None for call in asked), "a look-up only reads"
    ours = [e for page in seen for e in page.entries if e.key == wanted.idempotency_key]
    same([(e.role, e.state) for e in ours], [("effect", "final")], "the entries with the intent's key")
    same((ours[0].amount_minor, ours[0].currency), (wanted.amount_minor, wanted.currency), "the entry's amount")
    assert ours[0].entry_id, "an entry without its id"
    assert ours[0] in seen[-1].entries, "the example's last page holds the entry"


def a_look_up_that_breaks_on_its_way_fails_and_keeps_what_it_saw(connector: Connector) -> None:
    first = connector.example.pages[0]
    for bad in (
        reply(503, b"busy"),
        reply(404, b"{}"),
        reply(206, b"{}"),
        reply(302, b"", location="/login"),
        reply(200, b"<h1>Sign in</h1>"),
        reply(200, b"{}"),
        reply(200, b'{"data": [1]}'),
        broken(Phase.BODY, Reason.CUT_BODY, 200, b'{"data": []'),
        broken(Phase.CONNECT, Reason.CONNECT_REFUSED),
    ):
        _, pages = _look_up(connector, [reply(200, first), bad])
        same(next(pages).body, first, "the first page")
        failed = _failure(pages)
        same([page.body for page in failed.pages], [first], "the pages of the failure")
        same(failed.http_status, bad.status, "the failure's http_status")


def a_page_that_is_not_plainly_whole_is_no_view(connector: Connector) -> None:
    for status in (202, 203, 206):
        _, pages = _look_up(connector, [reply(status, connector.example.pages[-1])])
        failed = _failure(pages)
        same((failed.reason, failed.http_status), ("http_error", status), f"a page with {status}")


def a_ledger_that_goes_in_a_circle_is_left(connector: Connector) -> None:
    _, pages = _look_up(connector, [reply(200, connector.example.pages[0])] * 5)
    failed = _failure(pages)
    same((failed.reason, len(failed.pages)), ("repeated_cursor", 2), "the same page again and again")


CHECKS: Final[tuple[Check, ...]] = (
    it_has_the_name_it_is_found_by,
    its_example_is_a_valid_configuration,
    an_unknown_setting_is_a_problem,
    it_builds_the_same_bytes_every_time,
    it_sends_the_intents_own_key,
    what_is_stored_of_a_call_holds_no_secret,
    the_right_answer_confirms,
    a_replayed_confirmation_is_one,
    a_pending_answer_is_accepted_with_its_id,
    a_declined_one_is_refused,
    another_amount_is_no_answer_and_says_what_differs,
    a_success_that_shows_nothing_is_no_answer,
    a_half_sent_confirmation_is_no_answer,
    an_error_means_what_its_status_means,
    a_replayed_error_proves_nothing,
    before_the_first_byte_it_was_not_sent,
    after_the_first_byte_a_broken_call_is_no_answer_whatever_its_status,
    a_look_up_follows_every_page,
    a_look_up_that_breaks_on_its_way_fails_and_keeps_what_it_saw,
    a_page_that_is_not_plainly_whole_is_no_view,
    a_ledger_that_goes_in_a_circle_is_left,
)
