from __future__ import annotations

import json
import threading
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from actions import transport
from actions.connectors.base import LookupFailed, NotSendable, Result, Wanted
from actions.connectors.http_json import CONNECTOR
from actions.transport import Limits

from .replies import reply

TARGET, WANTED = CONNECTOR.example.target, CONNECTOR.example.wanted
GOOD = json.loads(CONNECTOR.example.confirmed)


def configured(*changes, drop=(), **target):
    """The example's target, with `("send.path", value)` set and paths in `drop` removed."""
    config = deepcopy(dict(TARGET.config))
    for path, value in changes:
        *parents, last = path.split(".")
        place = config
        for name in parents:
            place = place.setdefault(name, {})
        place[last] = value
    for path in drop:
        *parents, last = path.split(".")
        place = config
        for name in parents:
            place = place[name]
        del place[last]
    return replace(TARGET, config=config, **target)


def judge(body, status=200, target=TARGET, wanted=WANTED, **headers):
    return CONNECTOR.read(target, wanted, reply(status, body, **headers))


# What goes out.


def test_it_sends_what_the_configuration_says():
    call = CONNECTOR.build(TARGET, WANTED)
    assert (call.method, call.url) == ("POST", "https://payments.example/v1/refunds")
    assert call.headers["Authorization"] == "Bearer sk_test_123"
    assert call.headers["Idempotency-Key"] == "key-1"
    assert call.headers["Content-Type"] == "application/json"
    assert call.body == (
        b'{"amount_minor":5000,"currency":"EUR","metadata":{"intent":"0193-intent"},"order":"order-4812"}'
    )


def test_500_yen_go_out_as_500():
    call = CONNECTOR.build(TARGET, replace(WANTED, amount_minor=500, amount="500", currency="JPY"))
    assert json.loads(call.body or b"")["amount_minor"] == 500


def test_a_decimal_amount_goes_out_as_it_was_written():
    target = configured(("send.body", "{value: amount, unit: currency}"))
    assert CONNECTOR.build(target, WANTED).body == b'{"unit":"EUR","value":"50.00"}'


def test_params_can_go_into_body_and_path():
    target = configured(
        ("send.path", "/v1/charges/{params.charge}/refunds"),
        ("send.body", "{why: params.reason, nothing: params.x}"),
    )
    call = CONNECTOR.build(target, replace(WANTED, params={"charge": "ch/../1?x", "reason": "late"}))
    assert call.url == "https://payments.example/v1/charges/ch%2F..%2F1%3Fx/refunds"
    assert call.body == b'{"nothing":null,"why":"late"}'


def test_nulls_can_be_left_out():
    target = configured(("send.omit_nulls", True))
    body = CONNECTOR.build(target, replace(WANTED, amount_minor=None, amount=None, currency=None)).body
    assert body == b'{"metadata":{"intent":"0193-intent"},"order":"order-4812"}'


@pytest.mark.parametrize("charge", [None, "", "..", ".", True, ["x"], "a\nb"])
def test_a_path_without_a_usable_value_is_not_sent(charge):
    target = configured(("send.path", "/v1/charges/{params.charge}/refunds"))
    with pytest.raises(NotSendable, match=r"path|text|ids"):
        CONNECTOR.build(target, replace(WANTED, params={"charge": charge}))


@pytest.mark.parametrize(
    ("target", "wanted", "code"),
    [
        (replace(TARGET, secret=None), WANTED, "secret_missing"),
        (replace(TARGET, secret="hush\nhush"), WANTED, "bad_request"),
        (replace(TARGET, config={}), WANTED, "bad_config"),
        (configured(drop=["send.key_header"]), WANTED, "key_not_sent"),
        (configured(("send.body", "subject")), WANTED, "bad_request"),
        (configured(("send.body", "{n: sum(params.list)}")), WANTED, "bad_request"),
        (TARGET, replace(WANTED, idempotency_key="schlüssel"), "bad_request"),
        (configured(("send.body", "params")), replace(WANTED, params={"n": 2**60}), "bad_request"),
        (replace(TARGET, base_url="ftp://payments.example"), WANTED, "bad_request"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_can_not_be_sent_says_why(target, wanted, code):
    with pytest.raises(NotSendable) as refused:
        CONNECTOR.build(target, wanted)
    assert refused.value.code == code
    assert "hush" not in refused.value.message


def test_a_secret_is_not_a_template():
    target = replace(TARGET, secret="{account}", account="acct_1")
    assert CONNECTOR.build(target, WANTED).headers["Authorization"] == "Bearer {account}"


# What comes back.


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ({"id": None}, ("id",)),
        ({"id": ""}, ("id",)),
        ({"amount_minor": 5001}, ("amount_minor",)),
        ({"amount_minor": None}, ("amount_minor",)),
        ({"amount_minor": -5000}, ("amount_minor",)),
        ({"currency": "USD"}, ("currency",)),
        ({"currency": None}, ("currency",)),
        ({"order": "order-1"}, ("subject",)),
        ({"idempotency_key": "key-0"}, ("key",)),
        ({"id": None, "currency": "USD", "order": None}, ("id", "currency", "subject")),
        ({"status": "failed", "amount_minor": 1}, ("amount_minor",)),
        ({"status": "pending", "id": None}, ("id",)),
    ],
)
def test_a_success_about_something_else_is_no_answer(change, differs):
    answer = judge({**GOOD, **change})
    assert (answer.result, answer.reason, answer.differs) == (Result.NO_ANSWER, "answer_differs", differs)


@pytest.mark.parametrize(
    "change",
    [
        {"amount_minor": True},
        {"amount_minor": 5000.0},
        {"amount_minor": "5000"},
        {"amount_minor": [5000]},
        {"amount_minor": 10**30},
        {"currency": 978},
        {"currency": "euro"},
        {"id": True},
        {"id": {"x": 1}},
        {"id": "x" * 300},
        {"id": "re\n1"},
        {"id": "re\u202e1"},
    ],
)
def test_a_value_of_the_wrong_sort_is_unreadable(change):
    answer = judge({**GOOD, **change})
    assert (answer.result, answer.reason) == (Result.NO_ANSWER, "unreadable_2xx")


@pytest.mark.parametrize(
    "text",
    [
        CONNECTOR.example.confirmed.replace('"id"', '"id":"re_0","id"'),
        CONNECTOR.example.confirmed.replace("1795000000", "NaN"),
        CONNECTOR.example.confirmed.replace("re_1", "re\\u0000"),
        CONNECTOR.example.confirmed.replace("re_1", "re\\ud800"),
        CONNECTOR.example.confirmed + "{}",
    ],
    ids=["duplicate keys", "NaN", "NUL", "half a surrogate", "two documents"],
)
def test_json_that_is_not_strict_is_unreadable(text):
    answer = judge(text)
    assert (answer.result, answer.reason) == (Result.NO_ANSWER, "unreadable_2xx")


def test_an_unknown_state_is_no_answer():
    answer = judge({**GOOD, "status": "queued"})
    assert (answer.result, answer.reason, answer.differs) == (Result.NO_ANSWER, "unknown_state", ("status",))
    assert answer.external_id == "re_1"


def test_true_is_not_1_among_states():
    target = configured(("answer.status", "done"), ("answer.confirmed", [True]), ("answer.failed", [0]))
    assert judge({**GOOD, "done": True}, target=target).result is Result.CONFIRMED
    assert judge({**GOOD, "done": 1}, target=target).reason == "unknown_state"
    assert judge({**GOOD, "done": False}, target=target).reason == "unknown_state"


def test_currencies_are_compared_in_capitals():
    assert judge({**GOOD, "currency": "eur"}).result is Result.CONFIRMED


def test_a_number_can_be_an_id():
    assert judge({**GOOD, "id": 77}).external_id == "77"


def test_a_decimal_echo_is_read_by_its_digits():
    target = configured(("answer.amount", "value"), drop=["answer.amount_minor"])
    for text in ('"50.00"', "50.00", "50", '"50.000"'):
        assert judge(json.dumps(GOOD)[:-1] + f', "value": {text}}}', target=target).amount_minor == 5000
    for text in ('"50,00"', "5e1", "50.001", "true", '""', '"-"'):
        answer = judge(json.dumps(GOOD)[:-1] + f', "value": {text}}}', target=target)
        assert answer.result is Result.NO_ANSWER, text
    yen = replace(WANTED, amount_minor=500, amount="500", currency="JPY")
    assert judge({**GOOD, "currency": "JPY", "value": "500"}, target=target, wanted=yen).result is Result.CONFIRMED


def test_money_without_an_echo_is_not_confirmed_unless_the_id_is_trusted_alone():
    plain = {"send": TARGET.config["send"], "answer": {"id": "id"}}
    assert judge({"id": "x"}, target=replace(TARGET, config=plain)).differs == ("amount_minor", "currency")
    trusting = {**plain, "answer": {"id": "id", "amount_minor": "amount_minor", "trust_id_alone": True}}
    target = replace(TARGET, config=trusting)
    assert judge({"id": "x"}, target=target).result is Result.CONFIRMED
    assert judge({"id": "x", "amount_minor": 1}, target=target).differs == ("amount_minor",)


def test_an_intent_without_money_needs_only_the_id():
    target = replace(TARGET, config={"send": TARGET.config["send"], "answer": {"id": "message.id"}})
    wanted = Wanted(intent_id="i", idempotency_key="k", kind="mail", subject="customer-1")
    answer = judge({"message": {"id": "m-1"}}, target=target, wanted=wanted)
    assert (answer.result, answer.external_id) == (Result.CONFIRMED, "m-1")


def test_202_without_a_state_says_pending():
    target = configured(drop=["answer.status", "answer.confirmed", "answer.pending", "answer.failed"])
    assert judge(GOOD, 202, target).result is Result.ACCEPTED
    assert judge(GOOD, 201, target).result is Result.CONFIRMED


# The configuration knows better.


def test_already_refunded_elsewhere_is_a_refusal_of_its_own_sort():
    answer = judge({"error": {"code": "already_refunded"}}, 400)
    assert (answer.result, answer.reason) == (Result.REFUSED, "effect_exists_elsewhere")


def test_a_key_used_otherwise_is_no_refusal():
    answer = judge({"error": {"code": "key_reused"}}, 422)
    assert (answer.result, answer.reason) == (Result.NO_ANSWER, "key_used_otherwise")


def test_a_replayed_known_error_still_proves_nothing():
    answer = judge({"error": {"code": "already_refunded"}}, 400, idempotent_replayed="true")
    assert (answer.result, answer.reason) == (Result.NO_ANSWER, "replayed_error")


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"error": "already_refunded"}', b"[]", b'{"error": {"code": 1}}'])
def test_a_known_error_that_does_not_show_is_judged_by_its_status(body):
    assert judge(body, 400).reason == "refused_by_downstream"


def test_a_rate_limit_can_mean_not_processed():
    target = configured(("known_errors", [{"status": 429, "result": "not_processed"}]))
    answer = judge(b"slow down", 429, target)
    assert (answer.result, answer.reason) == (Result.NOT_SENT, "not_processed")


def test_a_success_status_can_carry_an_error():
    rule = {"status": 200, "when": "ok == `false`", "result": "refused"}
    target = configured(("known_errors", [rule]))
    assert judge({"ok": False}, 200, target).reason == "refused_by_downstream"
    assert judge(GOOD, 200, target).result is Result.CONFIRMED


def test_a_condition_has_to_be_true_and_not_merely_something():
    rule = {"status": 400, "when": "error", "result": "no_answer"}
    assert judge({"error": "x"}, 400, configured(("known_errors", [rule]))).result is Result.REFUSED


def test_statuses_can_be_moved_both_ways():
    target = configured(("refused", [402, 409]), ("no_answer", [404]))
    assert judge(b"", 402, target).result is Result.REFUSED
    assert judge(b"", 409, target).result is Result.REFUSED
    assert (judge(b"", 404, target).result, judge(b"", 404, target).reason) == (
        Result.NO_ANSWER,
        "unclear_status",
    )


# Looking up, over real sockets.


class Ledger:
    """A ledger of `count` refunds in pages; `spoil(number, page)` may change or replace a page."""

    def __init__(self, count, spoil=lambda number, page: page):
        self.rows = [{**GOOD, "id": f"re_{n}", "idempotency_key": f"key-{n}"} for n in range(count)]
        self.spoil, self.asked = spoil, []

    def __enter__(self):
        ledger = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                ledger.asked.append(self.path)
                query = {k: v[0] for k, v in parse_qs(urlsplit(self.path).query).items()}
                rows, limit = ledger.rows, int(query["limit"])
                start = next((n + 1 for n, r in enumerate(rows) if r["id"] == query.get("starting_after")), 0)
                page = {"data": rows[start : start + limit], "has_more": start + limit < len(rows)}
                got = ledger.spoil(len(ledger.asked), page)
                status, body = got if isinstance(got, tuple) else (200, json.dumps(got).encode())
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.target = replace(TARGET, base_url=f"http://127.0.0.1:{self.server.server_port}/")
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def look_up(self, by="subject", target=None):
        limits = Limits(connect_timeout_s=1, deadline_s=2)
        return CONNECTOR.look_up(target or self.target, WANTED, lambda call: transport.send(call, limits), by=by)


def failure(pages):
    with pytest.raises(LookupFailed) as failed:
        list(pages)
    return failed.value


def test_130_entries_come_over_all_their_pages():
    with Ledger(130) as ledger:
        pages = list(ledger.look_up())
    assert [len(page.entries) for page in pages] == [100, 30]
    assert [e.entry_id for page in pages for e in page.entries] == [f"re_{n}" for n in range(130)]
    assert ledger.asked == [
        "/v1/ledger?order=order-4812&limit=100",
        "/v1/ledger?order=order-4812&limit=100&starting_after=re_99",
    ]
    assert pages[0].url.endswith(ledger.asked[0])


def test_a_key_is_asked_for_by_itself():
    with Ledger(1) as ledger:
        list(ledger.look_up("key"))
    assert ledger.asked == ["/v1/ledger?idempotency_key=key-1&limit=100"]


def test_an_empty_ledger_is_one_empty_page():
    with Ledger(0) as ledger:
        assert [page.entries for page in ledger.look_up()] == [()]


@pytest.mark.parametrize(
    ("spoilt", "reason", "status"),
    [
        ((500, b"oops"), "http_error", 500),
        ((200, b'{"data": ['), "unreadable_page", 200),
        ({"data": {}, "has_more": False}, "unreadable_page", 200),
        ({"data": None, "has_more": False}, "unreadable_page", 200),
        ({"data": []}, "unreadable_page", 200),
        ({"data": [], "has_more": "no"}, "unreadable_page", 200),
        ({"data": [], "has_more": True}, "unreadable_page", 200),
        ({"data": ["re_1"], "has_more": False}, "unreadable_entry", 200),
        ({"data": [{"id": "x", "amount_minor": 5.5}], "has_more": False}, "unreadable_entry", 200),
        ({"data": [{"id": "x", "amount_minor": True}], "has_more": False}, "unreadable_entry", 200),
        ({"data": [{"id": "x", "currency": "??"}], "has_more": False}, "unreadable_entry", 200),
    ],
)
def test_a_second_page_that_fails_spoils_the_view_and_keeps_the_first(spoilt, reason, status):
    with Ledger(130, lambda number, page: page if number == 1 else spoilt) as ledger:
        failed = failure(ledger.look_up())
    assert (failed.reason, failed.http_status) == (reason, status)
    assert [len(page.entries) for page in failed.pages] == [100]


def test_a_cursor_that_comes_again_ends_the_look_up():
    with Ledger(130, lambda number, page: {**page, "data": page["data"][-1:] or [GOOD], "has_more": True}) as ledger:
        ledger.rows = ledger.rows[:100]
        failed = failure(ledger.look_up())
    assert failed.reason == "repeated_cursor"
    assert len(ledger.asked) <= 3


def test_pages_without_end_are_not_followed_for_ever():
    def endless(number, page):
        return {"data": [{**GOOD, "id": f"x{number}"}], "has_more": True}

    with Ledger(1, endless) as ledger:
        config = configured(("look_up.max_pages", 4)).config
        failed = failure(ledger.look_up(target=replace(ledger.target, config=config)))
    assert (failed.reason, len(failed.pages), len(ledger.asked)) == ("too_many_pages", 4, 4)


def test_a_ledger_that_can_not_be_reached_says_so():
    with Ledger(1) as ledger:
        target = ledger.target
    failed = failure(ledger.look_up(target=target))
    assert (failed.reason, failed.http_status, failed.pages) == ("connect_refused", None, ())


def test_a_cursor_alone_can_say_that_there_is_more():
    target = configured(("look_up.cursor", "next"), drop=["look_up.more"])
    replies = iter([reply(200, {"data": [GOOD], "next": "abc"}), reply(200, {"data": [GOOD], "next": None})])
    assert len(list(CONNECTOR.look_up(target, WANTED, lambda _: next(replies), by="key"))) == 2


def test_a_missing_resource_can_mean_absent_where_the_configuration_says_how_it_shows():
    target = configured(
        (
            "look_up.key",
            {"path": "/v1/by-key/{idempotency_key}", "absent": {"status": 404, "when": "code == 'none'"}},
        ),
        ("look_up.items", "[@]"),
        drop=["look_up.more", "look_up.cursor", "look_up.cursor_param"],
    )

    def ask(got):
        return list(CONNECTOR.look_up(target, WANTED, lambda _: got, by="key"))

    assert [page.entries for page in ask(reply(404, {"code": "none"}))] == [()]
    assert [e.entry_id for page in ask(reply(200, GOOD)) for e in page.entries] == ["re_1"]
    with pytest.raises(LookupFailed, match="404"):
        ask(reply(404, b"<h1>no such route</h1>"))


def test_a_question_with_an_empty_filter_is_not_asked():
    target = configured(("look_up.subject.query", {"order": "params.order"}))
    failed = failure(CONNECTOR.look_up(target, WANTED, lambda _: pytest.fail("it asked"), by="subject"))
    assert failed.reason == "bad_query"


def test_what_is_not_offered_is_not_asked():
    target = configured(drop=["look_up"])
    failed = failure(CONNECTOR.look_up(target, WANTED, lambda _: pytest.fail("it asked"), by="subject"))
    assert failed.reason == "not_offered"


def test_a_look_back_says_since_when_and_needs_its_own_question():
    asked = []

    def fetch(call):
        asked.append(call.url)
        return reply(200, {"data": [GOOD], "has_more": False})

    since = datetime(2026, 11, 30, 11, 5, 7, 123456, tzinfo=UTC)
    (page,) = CONNECTOR.look_back(TARGET, fetch, since=since)
    assert [found.entry_id for found in page.entries] == ["re_1"]
    assert parse_qs(urlsplit(asked[0]).query)["since"] == ["2026-11-30T11:05:07Z"]
    for missing in ("look_up.recent", "look_up"):
        failed = failure(CONNECTOR.look_back(configured(drop=[missing]), fetch, since=since))
        assert failed.reason == "not_offered"
    assert len(asked) == 1


def entry(**change):
    got = reply(200, {"data": [{**GOOD, **change}], "has_more": False})
    (page,) = CONNECTOR.look_up(TARGET, WANTED, lambda _: got, by="key")
    return page.entries[0]


@pytest.mark.parametrize(
    ("said", "role"),
    [("refund", "effect"), ("reversal", "reversal"), ("fee", "fee"), ("tip", "unknown"), (None, "unknown")],
)
def test_roles_are_translated(said, role):
    assert entry(type=said).role == role


@pytest.mark.parametrize(
    ("said", "state"),
    [("succeeded", "final"), ("failed", "failed"), ("queued", "pending"), (None, "pending")],
)
def test_an_unknown_state_of_an_entry_is_neither_final_nor_failed(said, state):
    assert entry(status=said).state == state


@pytest.mark.parametrize(
    ("said", "when"),
    [
        (1795000000, datetime(2026, 11, 18, 11, 6, 40, tzinfo=UTC)),
        ("2026-11-18T11:06:40Z", datetime(2026, 11, 18, 11, 6, 40, tzinfo=UTC)),
        ("2026-11-18T12:06:40+01:00", datetime(2026, 11, 18, 11, 6, 40, tzinfo=UTC)),
        ("2026-11-18T12:06:40", None),
        ("2026-11-18", None),
        ("yesterday", None),
        (1795000000000, None),
        (True, None),
        (1.5, None),
        (None, None),
        (-1, None),
        ("0001-01-01T00:00:00+23:00", None),
    ],
)
def test_times_are_read_only_where_there_is_nothing_to_guess(said, when):
    assert entry(created=said).booked_at == when


def test_an_entry_keeps_what_it_was_made_of():
    assert entry(note="hello").raw["note"] == "hello"


# Checking a configuration.


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        (replace(TARGET, config={}), "config: 'send' is a required property"),
        (
            configured(("send.method", "GET")),
            "send.method: 'GET' is not one of ['POST', 'PUT', 'PATCH', 'DELETE']",
        ),
        (
            configured(("send.pth", "/x")),
            "send: Additional properties are not allowed ('pth' was unexpected)",
        ),
        (configured(("send.path", "v1/refunds")), "send.path: 'v1/refunds' does not match"),
        (configured(drop=["answer.id"]), "answer: 'id' is a required property"),
        (
            configured(("send.body", "{order: subject")),
            "send.body: '{order: subject' is not a JMESPath expression",
        ),
        (configured(("answer.id", "data[")), "answer.id: 'data[' is not a JMESPath expression"),
        (configured(("look_up.entry.key", "a..b")), "look_up.entry.key: 'a..b' is not a JMESPath expression"),
        (configured(("send.body", "{n: amout_minor}")), "send.body: nothing is called 'amout_minor'"),
        (
            configured(("send.body", "{n: to_strng(amount)}")),
            "send.body: there is no JMESPath function to_strng()",
        ),
        (configured(("look_up.key.query", {"k": "key"})), "look_up.key.query.k: nothing is called 'key'"),
        (configured(("send.path", "/v1/{order}/x")), "send.path: nothing is called 'order'"),
        (configured(("headers", {"X": "{password}"})), "headers.X: {password} is unknown"),
        (configured(("headers", {"X": "a\nb"})), "headers.X: only visible ASCII"),
        (configured(("headers", {"X": "ü"})), "headers.X: only visible ASCII"),
        (configured(drop=["answer.confirmed"]), "answer: status and confirmed go together"),
        (configured(drop=["answer.status", "answer.confirmed"]), "answer: pending and failed need status"),
        (configured(("answer.failed", ["pending"])), "answer: a state stands in two"),
        (configured(("answer.amount", "value")), "answer: give amount (a decimal) or amount_minor"),
        (
            configured(("answer.amount", "v"), drop=["answer.amount_minor", "answer.currency"]),
            "answer: a decimal amount needs its currency",
        ),
        (configured(("refused", [500])), "refused[0]: 500 is greater than the maximum of 499"),
        (
            configured(("refused", [402]), ("no_answer", [402])),
            "refused and no_answer: a status stands in both",
        ),
        (
            configured(("known_errors", [{"status": 400, "result": "refused", "reason": "nonsense"}])),
            "known_errors[0].reason: for refused it is one of",
        ),
        (
            configured(("known_errors", [{"status": 200, "result": "refused"}])),
            "known_errors[0]: a success status needs a when",
        ),
        (configured(("known_errors", [{"status": 400, "result": "confirmed"}])), "known_errors[0].result:"),
        (configured(drop=["look_up.cursor"]), "look_up: cursor and cursor_param go together"),
        (configured(drop=["look_up.key", "look_up.subject"]), "look_up: say how to ask"),
        (
            configured(("look_up.recent.query", {"k": "subject"})),
            "look_up.recent.query.k: nothing is called 'subject'; there are since, account",
        ),
        (configured(("look_up.key.query", {"k": "since"})), "look_up.key.query.k: nothing is called 'since'"),
        (configured(("look_up.recent.absent", {})), "look_up.recent: Additional properties are not allowed"),
        (configured(drop=["look_up.entry.roles"]), "look_up.entry: role and roles go together"),
    ],
)
def test_a_wrong_configuration_is_told_in_plain_words(target, problem):
    problems = CONNECTOR.check_config(target.config)
    assert any(found.startswith(problem) for found in problems), problems


@pytest.mark.parametrize(
    "body",
    [
        "{a: params.x.y[0], b: to_string(amount), c: 'text', d: `1`, e: params.a || kind, f: [kind]}",
        "{a: params.list[*].name, b: params.list[?n > `1`] | [0], c: sort_by(params.list, &n), d: !params.x}",
        "params",
        "merge(params, {x: join('-', [kind, subject])})",
    ],
)
def test_a_right_expression_is_not_complained_about(body):
    assert CONNECTOR.check_config(configured(("send.body", body)).config) == []


def test_a_configuration_without_look_up_is_fine():
    assert CONNECTOR.check_config(configured(drop=["look_up", "known_errors", "webhook"]).config) == []
