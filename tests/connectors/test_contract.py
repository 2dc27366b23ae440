"""What holds for every connector there is, built in or installed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from actions import transport
from actions.connectors import registry
from actions.connectors.base import LOOK_UP_REASONS, REASONS, LookupFailed, Result, redact_call
from actions.transport import Phase, Reason

from .replies import broken, reply


@pytest.fixture(params=registry.names())
def connector(request):
    return registry.get(request.param)


@pytest.fixture
def read(connector):
    def judge(got):
        answer = connector.read(connector.example.target, connector.example.wanted, got)
        assert answer.reason in REASONS
        assert answer.http_status == got.status
        return answer

    return judge


def test_it_has_the_name_it_is_found_by(connector):
    assert registry.get(connector.name) is connector


def test_its_example_is_a_valid_configuration(connector):
    assert connector.check_config(connector.example.target.config) == []


def test_an_unknown_setting_is_a_problem(connector):
    config = {**connector.example.target.config, "no_such_setting": 1}
    assert any("no_such_setting" in problem for problem in connector.check_config(config))


def test_it_builds_the_same_bytes_every_time(connector):
    example = connector.example
    calls = [connector.build(example.target, example.wanted) for _ in range(2)]
    assert calls[0] == calls[1]
    transport.check(calls[0])
    assert calls[0].url.startswith(example.target.base_url)


def test_it_sends_the_intents_own_key(connector):
    target = replace(connector.example.target, dedupes=True)
    call = connector.build(target, replace(connector.example.wanted, idempotency_key="0193-the-key"))
    assert "0193-the-key" in json.dumps([*call.headers.values(), (call.body or b"").decode(), call.url])


def test_what_is_stored_of_a_call_holds_no_secret(connector):
    target = connector.example.target
    call = connector.build(target, connector.example.wanted)
    stored = json.dumps(redact_call(call, target))
    assert target.secret
    assert target.secret in json.dumps(dict(call.headers))
    assert target.secret not in stored
    assert connector.example.wanted.idempotency_key in stored
    assert target.secret not in repr(target)


def test_the_right_answer_confirms(connector, read):
    answer = read(reply(200, connector.example.confirmed))
    assert (answer.result, answer.reason, answer.differs) == (Result.CONFIRMED, "confirmed", ())
    assert answer.external_id
    assert answer.amount_minor == connector.example.wanted.amount_minor
    assert answer.currency == connector.example.wanted.currency


def test_a_replayed_confirmation_is_one(connector, read):
    assert read(reply(201, connector.example.confirmed, idempotent_replayed="true")).result is Result.CONFIRMED


def test_a_pending_answer_is_accepted_with_its_id(connector, read):
    if connector.example.accepted is None:
        pytest.skip("this downstream has no pending")
    answer = read(reply(200, connector.example.accepted))
    assert (answer.result, answer.reason) == (Result.ACCEPTED, "accepted")
    assert answer.external_id


def test_a_declined_one_is_refused(connector, read):
    if connector.example.declined is None:
        pytest.skip("this downstream never declines with a 2xx")
    answer = read(reply(200, connector.example.declined))
    assert (answer.result, answer.reason) == (Result.REFUSED, "declined_by_downstream")


def test_another_amount_is_no_answer_and_says_what_differs(connector, read):
    if connector.example.other_amount is None:
        pytest.skip("this downstream echoes no amount")
    answer = read(reply(200, connector.example.other_amount))
    assert (answer.result, answer.reason, answer.differs) == (
        Result.NO_ANSWER,
        "answer_differs",
        ("amount_minor",),
    )


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<h1>Sign in</h1>",
        b"null",
        b"true",
        b"7",
        b'"ok"',
        b"[]",
        b"{}",
        b'{"id": ',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"id": NaN}',
        b"1" * 10_000,
    ],
    ids=lambda body: repr(body[:12]),
)
def test_a_success_that_shows_nothing_is_no_answer(body, read):
    assert read(reply(200, body)).result is Result.NO_ANSWER


def test_a_half_sent_confirmation_is_no_answer(connector, read):
    whole = connector.example.confirmed.encode()
    assert all(read(reply(200, whole[:length])).result is Result.NO_ANSWER for length in range(len(whole)))


TABLE = [
    *((status, Result.REFUSED, "refused_by_downstream") for status in (400, 401, 403, 404, 405, 410, 415, 422)),
    *((status, Result.NO_ANSWER, "unclear_status") for status in (101, 402, 406, 408, 418, 423, 425, 431, 451)),
    (409, Result.NO_ANSWER, "conflict"),
    (429, Result.NO_ANSWER, "rate_limited"),
    *((status, Result.NO_ANSWER, "redirect") for status in (300, 301, 302, 303, 304, 307, 308)),
    *((status, Result.NO_ANSWER, "server_error") for status in (500, 501, 502, 503, 504, 520, 599)),
    *((status, Result.NO_ANSWER, "unclear_status") for status in (600, 999)),
]


@pytest.mark.parametrize(("status", "result", "reason"), TABLE)
def test_a_status_means(status, result, reason, read):
    answer = read(reply(status, b'{"error": {"code": "nothing known"}}'))
    assert (answer.result, answer.reason) == (result, reason)


@pytest.mark.parametrize("status", [status for status, *_ in TABLE])
def test_a_replayed_error_proves_nothing(status, read):
    answer = read(reply(status, b"{}", idempotent_replayed="true"))
    assert (answer.result, answer.reason) == (Result.NO_ANSWER, "replayed_error")


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase < Phase.FIRST_BYTE])
@pytest.mark.parametrize("reason", [reason for reason in Reason if reason is not Reason.OK])
def test_before_the_first_byte_it_was_not_sent(phase, reason, read):
    answer = read(broken(phase, reason))
    assert (answer.result, answer.reason) == (Result.NOT_SENT, reason)


@pytest.mark.parametrize("phase", [phase for phase in Phase if Phase.FIRST_BYTE <= phase < Phase.DONE])
@pytest.mark.parametrize("status", [None, 200, 400, 422, 503])
def test_after_the_first_byte_a_broken_call_is_no_answer_whatever_its_status(phase, status, connector, read):
    body = connector.example.confirmed.encode()  # even when all of it seems to be there
    answer = read(broken(phase, Reason.RESET, status, body))
    assert (answer.result, answer.reason) == (Result.NO_ANSWER, "reset")


def _look_up(connector, replies):
    asked, rest = [], iter(replies)

    def fetch(call):
        transport.check(call)
        asked.append(call)
        return next(rest)

    example = connector.example
    return asked, connector.look_up(example.target, example.wanted, fetch, by="key")


def test_a_look_up_follows_every_page(connector):
    bodies = connector.example.pages
    asked, pages = _look_up(connector, [reply(200, body) for body in bodies])
    seen = list(pages)
    assert [page.body for page in seen] == list(bodies)
    assert len({call.url for call in asked}) == len(bodies) > 1
    assert all(call.method == "GET" and call.body is None for call in asked)
    ours = [e for p in seen for e in p.entries if e.key == connector.example.wanted.idempotency_key]
    assert [(e.role, e.state) for e in ours] == [("effect", "final")]
    assert ours[0].amount_minor == connector.example.wanted.amount_minor
    assert ours[0].currency == connector.example.wanted.currency
    assert ours[0].entry_id
    assert ours[0] in seen[-1].entries


@pytest.mark.parametrize(
    "bad",
    [
        reply(503, b"busy"),
        reply(404, b"{}"),
        reply(206, b"{}"),
        reply(302, b"", location="/login"),
        reply(200, b"<h1>Sign in</h1>"),
        reply(200, b"{}"),
        reply(200, b'{"data": [1]}'),
        broken(Phase.BODY, Reason.CUT_BODY, 200, b'{"data": []'),
        broken(Phase.CONNECT, Reason.CONNECT_REFUSED),
    ],
    ids=lambda bad: f"{bad.status}-{bad.reason}",
)
def test_a_look_up_that_breaks_on_its_way_fails_and_keeps_what_it_saw(connector, bad):
    first = connector.example.pages[0]
    _, pages = _look_up(connector, [reply(200, first), bad])
    assert next(pages).body == first
    with pytest.raises(LookupFailed) as failed:
        list(pages)
    assert failed.value.reason in LOOK_UP_REASONS
    assert [page.body for page in failed.value.pages] == [first]
    assert failed.value.http_status == bad.status


@pytest.mark.parametrize("status", [202, 203, 206])
def test_a_page_that_is_not_plainly_whole_is_no_view(connector, status):
    _, pages = _look_up(connector, [reply(status, connector.example.pages[-1])])
    with pytest.raises(LookupFailed) as failed:
        list(pages)
    assert (failed.value.reason, failed.value.http_status) == ("http_error", status)


def test_a_ledger_that_goes_in_a_circle_is_left(connector):
    circle = [reply(200, connector.example.pages[0])] * 5
    _, pages = _look_up(connector, circle)
    with pytest.raises(LookupFailed) as failed:
        list(pages)
    assert failed.value.reason == "repeated_cursor"
    assert len(failed.value.pages) == 2


def test_every_reason_has_a_sentence():
    for text in (*REASONS.values(), *LOOK_UP_REASONS.values()):
        assert text.endswith(".")
        assert text[0].isupper()
    assert "ok" not in REASONS
    assert set(Reason) - {Reason.OK} <= set(REASONS)
