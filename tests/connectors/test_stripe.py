"""Stripe, from tables of what it says. Which of it is documented where stands in the connector's own docstrings."""

from __future__ import annotations

import json
from dataclasses import replace
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest
from iso4217 import Currency

from actions.connectors.base import LookupFailed, NotSendable, Result
from actions.connectors.stripe import CONNECTOR
from actions.connectors.stripe.amounts import from_stripe, to_stripe
from actions.money import BadAmount
from actions.transport import Phase, Reason

from .replies import broken, reply

TARGET, WANTED = CONNECTOR.example.target, CONNECTOR.example.wanted
GOOD = json.loads(CONNECTOR.example.confirmed)
BY_INTENT = replace(WANTED, params={"payment_intent": "pi_1"})


def sent(wanted=WANTED, target=TARGET):
    return dict(parse_qsl((CONNECTOR.build(target, wanted).body or b"").decode(), strict_parsing=True))


def judge(body, status=200, wanted=WANTED, **headers):
    return CONNECTOR.read(TARGET, wanted, reply(status, body, **headers))


def error(status, code=None, kind="invalid_request_error", **headers):
    answer = judge({"error": {"type": kind, "code": code, "message": "Something."}}, status, **headers)
    return answer.result, answer.reason


# What goes out.


def test_a_refund_is_asked_for_as_a_form():
    call = CONNECTOR.build(TARGET, WANTED)
    assert (call.method, call.url) == ("POST", "https://api.stripe.com/v1/refunds")
    assert dict(call.headers) == {
        "Accept": "application/json",
        "Authorization": "Bearer sk_test_made_up",
        "Stripe-Version": "2026-06-24.dahlia",
        "Content-Type": "application/x-www-form-urlencoded",
        "Idempotency-Key": "key-1",
    }
    assert sent() == {
        "charge": "ch_1",
        "amount": "5000",
        "reason": "requested_by_customer",
        "metadata[landed_key]": "key-1",
        "metadata[landed_intent]": "0193-intent",
        "metadata[landed_subject]": "order-4812",
    }


def test_the_note_of_the_order_is_encoded():
    wanted = replace(WANTED, subject="order-1&amount=1/ä b")
    assert b"&amount=1" not in (CONNECTOR.build(TARGET, wanted).body or b"")
    assert sent(wanted)["metadata[landed_subject]"] == "order-1&amount=1/ä b"


def test_a_payment_intent_can_be_refunded():
    assert sent(BY_INTENT)["payment_intent"] == "pi_1"
    assert "charge" not in sent(BY_INTENT)


def test_a_payment_that_was_no_charge_of_a_card_has_another_prefix():
    assert sent(replace(WANTED, params={"charge": "py_3Nx"}))["charge"] == "py_3Nx"


def test_a_connected_account_is_named_in_a_header():
    assert CONNECTOR.build(replace(TARGET, account="acct_9"), WANTED).headers["Stripe-Account"] == "acct_9"


def test_without_a_configuration_the_version_is_pinned_all_the_same():
    target = replace(TARGET, config={})
    assert CONNECTOR.build(target, WANTED).headers["Stripe-Version"] == "2026-06-24.dahlia"
    assert "reason" not in sent(target=target)
    older = replace(TARGET, config={"version": "2022-11-15"})
    assert CONNECTOR.build(older, WANTED).headers["Stripe-Version"] == "2022-11-15"


def test_a_platform_can_take_transfer_and_fee_back_with_it():
    target = replace(TARGET, config={"reverse_transfer": True, "refund_application_fee": False})
    assert sent(target=target)["reverse_transfer"] == "true"
    assert sent(target=target)["refund_application_fee"] == "false"


@pytest.mark.parametrize(
    ("wanted", "target", "code"),
    [
        (replace(WANTED, params={}), TARGET, "bad_request"),
        (replace(WANTED, params={"charge": None}), TARGET, "bad_request"),
        (replace(WANTED, params={"charge": "ch_1", "payment_intent": "pi_1"}), TARGET, "bad_request"),
        (replace(WANTED, params={"charge": "pi_1"}), TARGET, "bad_request"),
        (replace(WANTED, params={"charge": "ch_1/refunds?x="}), TARGET, "bad_request"),
        (replace(WANTED, params={"charge": "ch_1\n"}), TARGET, "bad_request"),
        (replace(WANTED, params={"charge": ["ch_1"]}), TARGET, "bad_request"),
        (replace(WANTED, params={"payment_intent": "ch_1"}), TARGET, "bad_request"),
        (replace(WANTED, amount_minor=None), TARGET, "bad_request"),
        (replace(WANTED, currency=None), TARGET, "bad_request"),
        (replace(WANTED, idempotency_key="k" * 256), TARGET, "bad_request"),
        (replace(WANTED, idempotency_key="schlüssel"), TARGET, "bad_request"),
        (replace(WANTED, amount_minor=5_124, currency="KWD"), TARGET, "bad_amount"),
        (WANTED, replace(TARGET, secret=None), "secret_missing"),
        (WANTED, replace(TARGET, secret=""), "secret_missing"),
        (WANTED, replace(TARGET, secret="hush\nhush"), "bad_request"),
        (WANTED, replace(TARGET, account="acct\n1"), "bad_request"),
        (WANTED, replace(TARGET, config={"version": "newest"}), "bad_config"),
        (WANTED, replace(TARGET, base_url="ftp://api.stripe.com"), "bad_request"),
    ],
)
def test_what_can_not_be_sent_says_why(wanted, target, code):
    with pytest.raises(NotSendable) as refused:
        CONNECTOR.build(target, wanted)
    assert refused.value.code == code
    assert "hush" not in refused.value.message


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"verison": "2026-06-24.dahlia"}, "verison: there is no such setting"),
        ({"version": 20260624}, "version: an API version"),
        ({"version": "2026-06-24.dahlia\n"}, "version: an API version"),
        ({"reason": "late"}, "reason: one of duplicate"),
        ({"reason": ["duplicate"]}, "reason: one of duplicate"),
        ({"reverse_transfer": "yes"}, "reverse_transfer: true or false"),
    ],
)
def test_a_wrong_configuration_is_told_in_plain_words(config, problem):
    (found,) = CONNECTOR.check_config(config)
    assert found.startswith(problem)


# Amounts: Stripe's are not ISO 4217's everywhere.


@pytest.mark.parametrize(
    ("minor", "currency", "theirs"),
    [
        (5_000, "EUR", 5_000),
        (500, "JPY", 500),
        (500, "KRW", 500),
        (5, "ISK", 500),  # no decimals, and sent with two
        (5, "UGX", 500),
        (500_00, "MGA", 500),  # two decimals by ISO 4217, none at Stripe
        (175_00, "HUF", 175_00),
        (800_45, "TWD", 800_45),
        (500_000, "IDR", 500_000),
        (5_120, "KWD", 5_120),
        (1_000, "BHD", 1_000),
    ],
)
def test_an_amount_is_said_as_stripe_counts_it_and_read_back_the_same(minor, currency, theirs):
    assert (to_stripe(minor, currency), from_stripe(theirs, currency)) == (theirs, minor)
    wanted = replace(WANTED, amount_minor=minor, currency=currency)
    assert sent(wanted)["amount"] == str(theirs)
    answer = judge({**GOOD, "amount": theirs, "currency": currency.lower()}, wanted=wanted)
    assert (answer.result, answer.amount_minor, answer.currency) == (Result.CONFIRMED, minor, currency)


@pytest.mark.parametrize(
    ("minor", "currency"),
    [
        (5_124, "KWD"),
        (1, "TND"),
        (50_050, "MGA"),
        (5_000, "IQD"),
        (5_000, "LYD"),
        (5_000, "CLF"),
        (100, "XAU"),
        (1, "??"),
    ],
)
def test_what_can_not_be_said_exactly_is_not_sent(minor, currency):
    with pytest.raises(BadAmount):
        to_stripe(minor, currency)


@pytest.mark.parametrize(("amount", "currency"), [(550, "ISK"), (5, "UGX"), (5, "LYD"), (5, "???")])
def test_an_amount_that_stripe_can_not_mean_is_not_read(amount, currency):
    with pytest.raises(BadAmount):
        from_stripe(amount, currency)


def test_of_all_currencies_in_force_three_are_counted_otherwise_and_five_are_not_sent():
    differ, unsaid = {"ISK": 100, "UGX": 100, "MGA": 0.01}, {"CLF", "IQD", "LYD", "UYI", "UYW"}
    in_force = {found.code: found.exponent for found in Currency if found.exponent is not None}
    for code, decimals in in_force.items():
        one = 10**decimals * 100
        if code in unsaid:
            with pytest.raises(BadAmount):
                to_stripe(one, code)
        else:
            assert to_stripe(one, code) == one * differ.get(code, 1), code
            assert from_stripe(to_stripe(one, code), code) == one, code
    assert set(differ) | unsaid <= set(in_force)
    assert len(in_force) > 150


# What comes back.


def test_a_refund_that_echoes_ours_confirms():
    answer = judge(GOOD)
    assert (answer.result, answer.external_id, answer.differs) == (Result.CONFIRMED, "re_1", ())
    assert judge(GOOD, wanted=BY_INTENT).result is Result.CONFIRMED


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ({"id": None}, ("id",)),
        ({"amount": 5001}, ("amount_minor",)),
        ({"amount": None}, ("amount_minor",)),
        ({"currency": "usd"}, ("currency",)),
        ({"currency": None}, ("amount_minor", "currency")),
        ({"charge": "ch_2"}, ("charge",)),
        ({"charge": None}, ("charge",)),
        ({"metadata": {}}, ("key",)),
        ({"metadata": None}, ("key",)),
        ({"metadata": {"landed_key": "key-2"}}, ("key",)),
        ({"id": None, "amount": 1, "charge": "ch_2"}, ("id", "amount_minor", "charge")),
        ({"status": "failed", "amount": 1}, ("amount_minor",)),
    ],
)
def test_a_success_about_something_else_is_no_answer(change, differs):
    answer = judge({**GOOD, **change})
    assert (answer.result, answer.reason, answer.differs) == (Result.NO_ANSWER, "answer_differs", differs)


def test_asked_for_by_payment_intent_it_has_to_be_echoed():
    assert judge({**GOOD, "payment_intent": "pi_2"}, wanted=BY_INTENT).differs == ("payment_intent",)
    assert judge({**GOOD, "payment_intent": None}, wanted=BY_INTENT).differs == ("payment_intent",)


@pytest.mark.parametrize(
    ("status", "result", "reason"),
    [
        ("succeeded", Result.CONFIRMED, "confirmed"),
        ("pending", Result.ACCEPTED, "accepted"),
        ("requires_action", Result.ACCEPTED, "accepted"),
        ("failed", Result.REFUSED, "declined_by_downstream"),
        ("canceled", Result.REFUSED, "declined_by_downstream"),
        ("refunded", Result.NO_ANSWER, "unknown_state"),
        (None, Result.NO_ANSWER, "unknown_state"),
        (True, Result.NO_ANSWER, "unknown_state"),
    ],
)
def test_its_status_says_how_far_it_is(status, result, reason):
    answer = judge({**GOOD, "status": status})
    assert (answer.result, answer.reason, answer.external_id) == (result, reason, "re_1")
    assert answer.differs == (("status",) if reason == "unknown_state" else ())


@pytest.mark.parametrize(
    "change",
    [
        {"object": "charge"},
        {"object": None},
        {"amount": "5000"},
        {"amount": 50.5},
        {"amount": True},
        {"currency": "euro"},
        {"currency": "iqd"},
        {"metadata": ["landed_key"]},
        {"metadata": {"landed_key": {"x": 1}}},
        {"id": {"x": 1}},
        {"status": {"x": 1}},
    ],
)
def test_what_is_no_refund_is_unreadable(change):
    answer = judge({**GOOD, **change})
    assert (answer.result, answer.reason) == (Result.NO_ANSWER, "unreadable_2xx")


def test_other_success_statuses_say_nothing():
    for status in (202, 204, 206):
        assert (judge(GOOD, status).result, judge(GOOD, status).reason) == (Result.NO_ANSWER, "unclear_status")


def test_a_replayed_success_is_the_first_ones():
    answer = judge(GOOD, idempotent_replayed="true")
    assert (answer.result, answer.external_id) == (Result.CONFIRMED, "re_1")
    assert judge({**GOOD, "status": "pending"}, idempotent_replayed="true").result is Result.ACCEPTED


def test_an_answer_to_an_intent_that_names_no_payment_raises_nothing():
    assert judge(GOOD, wanted=replace(WANTED, params={})).reason == "unreadable_2xx"


REFUSED = (Result.REFUSED, "refused_by_downstream")
ELSEWHERE = (Result.REFUSED, "effect_exists_elsewhere")
DISPUTED = (Result.REFUSED, "payment_disputed")
UNPROCESSED = (Result.NOT_SENT, "not_processed")
CONFLICT = (Result.NO_ANSWER, "conflict")
UNCLEAR = (Result.NO_ANSWER, "unclear_status")


@pytest.mark.parametrize(
    ("status", "kind", "code", "meaning"),
    [
        (400, "invalid_request_error", "charge_already_refunded", ELSEWHERE),
        (400, "invalid_request_error", "charge_disputed", DISPUTED),
        (400, "invalid_request_error", "refund_disputed_payment", DISPUTED),
        (400, "invalid_request_error", "parameter_invalid_integer", REFUSED),
        (400, "invalid_request_error", None, REFUSED),  # more than is left
        (400, "invalid_request_error", "balance_insufficient", REFUSED),
        (401, "invalid_request_error", None, REFUSED),
        (401, "invalid_request_error", "api_key_expired", REFUSED),
        (402, "card_error", "card_declined", REFUSED),
        (402, "invalid_request_error", None, REFUSED),
        (402, "something_new", None, UNCLEAR),
        (403, "invalid_request_error", None, REFUSED),
        (404, "invalid_request_error", "resource_missing", REFUSED),
        (424, "invalid_request_error", None, UNCLEAR),
        # The key.
        (400, "idempotency_error", None, (Result.NO_ANSWER, "key_used_otherwise")),
        (409, "idempotency_error", None, (Result.NO_ANSWER, "key_used_otherwise")),
        (409, "idempotency_error", "idempotency_key_in_use", CONFLICT),
        (409, "invalid_request_error", "idempotency_key_in_use", CONFLICT),
        (400, "idempotency_error", "idempotency_key_in_use", CONFLICT),
        (429, "idempotency_error", "idempotency_key_in_use", CONFLICT),
        (409, "invalid_request_error", None, CONFLICT),
        # Too fast.
        (429, "invalid_request_error", "rate_limit", UNPROCESSED),
        (400, "invalid_request_error", "rate_limit", UNPROCESSED),
        (429, "invalid_request_error", "lock_timeout", UNPROCESSED),
        (409, "invalid_request_error", "lock_timeout", CONFLICT),
        (400, "invalid_request_error", "lock_timeout", CONFLICT),
        (429, "invalid_request_error", None, (Result.NO_ANSWER, "rate_limited")),
        # Broken.
        (400, "api_error", None, (Result.NO_ANSWER, "server_error")),
        (402, "api_error", "charge_already_refunded", (Result.NO_ANSWER, "server_error")),
        (500, "api_error", None, (Result.NO_ANSWER, "server_error")),
        (500, "invalid_request_error", "charge_already_refunded", (Result.NO_ANSWER, "server_error")),
        (503, "invalid_request_error", "rate_limit", (Result.NO_ANSWER, "server_error")),
        (503, "invalid_request_error", "lock_timeout", (Result.NO_ANSWER, "server_error")),
        (302, "invalid_request_error", "charge_already_refunded", (Result.NO_ANSWER, "redirect")),
    ],
)
def test_an_error_means_what_stripe_documents(status, kind, code, meaning):
    assert error(status, code, kind) == meaning


def test_the_limiters_header_is_enough():
    assert error(429, None, stripe_rate_limited_reason="endpoint-rate") == UNPROCESSED
    assert error(500, None, "api_error", stripe_rate_limited_reason="global-rate")[0] is Result.NO_ANSWER


@pytest.mark.parametrize(
    ("status", "kind", "code", "advice", "meaning"),
    [
        (429, "invalid_request_error", "lock_timeout", "true", UNPROCESSED),
        (429, "invalid_request_error", "lock_timeout", "false", CONFLICT),
        (429, "invalid_request_error", "rate_limit", "false", UNPROCESSED),
        (429, "invalid_request_error", None, "true", (Result.NO_ANSWER, "rate_limited")),
        (429, "invalid_request_error", None, "false", (Result.NO_ANSWER, "rate_limited")),
        (409, "invalid_request_error", None, "false", CONFLICT),
        (500, "api_error", None, "false", (Result.NO_ANSWER, "server_error")),
        (500, "api_error", None, "true", (Result.NO_ANSWER, "server_error")),
        (402, "card_error", "card_declined", "false", REFUSED),
        (402, "card_error", "card_declined", "true", UNCLEAR),
        (400, "invalid_request_error", "charge_already_refunded", "true", UNCLEAR),
        (400, "invalid_request_error", None, " True ", UNCLEAR),
        (400, "invalid_request_error", None, "", REFUSED),
    ],
)
def test_the_advice_to_retry_only_ever_makes_it_more_careful(status, kind, code, advice, meaning):
    assert error(status, code, kind, stripe_should_retry=advice) == meaning


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, "charge_already_refunded"), (402, "card_declined"), (429, "rate_limit"), (409, "idempotency_key_in_use")],
)
def test_a_replayed_error_proves_nothing_new(status, code):
    assert error(status, code, idempotent_replayed="true") == (Result.NO_ANSWER, "replayed_error")


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b'{"error": "charge_already_refunded"}', b'{"error": {"code": ["charge_disputed"]}}'],
)
def test_an_error_that_does_not_show_is_judged_by_its_status(body):
    assert judge(body, 400).reason == "refused_by_downstream"
    assert judge(body, 402).reason == "unclear_status"
    assert judge(body, 429).reason == "rate_limited"


def test_a_broken_answer_is_not_read_for_codes():
    body = b'{"error": {"type": "invalid_request_error", "code": "charge_already_refunded"}}'
    answer = CONNECTOR.read(TARGET, WANTED, broken(Phase.BODY, Reason.CUT_BODY, 400, body))
    assert (answer.result, answer.reason) == (Result.NO_ANSWER, "cut_body")


# Looking up.


def page(*refunds, more=False):
    return reply(200, {"object": "list", "url": "/v1/refunds", "data": list(refunds), "has_more": more})


def looked_up(*replies, wanted=WANTED, target=TARGET, by="key"):
    asked, rest = [], iter(replies)

    def fetch(call):
        asked.append(call)
        return next(rest)

    return list(CONNECTOR.look_up(target, wanted, fetch, by=by)), asked


@pytest.mark.parametrize("by", ["key", "subject"])
def test_the_payments_refunds_are_listed_and_never_searched(by):
    others = {**GOOD, "id": "re_0", "metadata": {}}
    pages, asked = looked_up(page(others, more=True), page(GOOD), by=by, target=replace(TARGET, account="acct_9"))
    assert [urlsplit(call.url).path for call in asked] == ["/v1/refunds"] * 2
    assert [parse_qs(urlsplit(call.url).query) for call in asked] == [
        {"charge": ["ch_1"], "limit": ["100"]},
        {"charge": ["ch_1"], "limit": ["100"], "starting_after": ["re_0"]},
    ]
    assert all(call.headers["Stripe-Account"] == "acct_9" for call in asked)
    assert all(call.headers["Stripe-Version"] == "2026-06-24.dahlia" for call in asked)
    assert [(e.entry_id, e.key, e.subject) for p in pages for e in p.entries] == [
        ("re_0", None, None),
        ("re_1", "key-1", "order-4812"),
    ]


def test_a_payment_intents_refunds_are_asked_for_by_it():
    _, (call,) = looked_up(page(), wanted=BY_INTENT)
    assert parse_qs(urlsplit(call.url).query) == {"payment_intent": ["pi_1"], "limit": ["100"]}


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("succeeded", "final"),
        ("pending", "pending"),
        ("requires_action", "pending"),
        ("failed", "failed"),
        ("canceled", "failed"),
        ("something_new", "pending"),
        (None, "pending"),
    ],
)
def test_an_entry_is_as_far_as_its_status_says(status, state):
    ((found,), _) = looked_up(page({**GOOD, "status": status}))
    (entry,) = found.entries
    assert (entry.role, entry.state, entry.amount_minor, entry.currency) == ("effect", state, 5000, "EUR")
    assert entry.booked_at is not None
    assert entry.raw["charge"] == "ch_1"


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (reply(404, {"error": {"code": "resource_missing"}}), "bad_question"),
        (reply(429, b""), "http_error"),
        (reply(200, {"data": []}), "unreadable_page"),
        (reply(200, {"data": {}, "has_more": False}), "unreadable_page"),
        (reply(200, {"data": [], "has_more": "no"}), "unreadable_page"),
        (reply(200, {"data": [], "has_more": True}), "unreadable_entry"),
        (page({**GOOD, "id": None}, more=True), "unreadable_entry"),
        (page({**GOOD, "object": "charge"}), "unreadable_entry"),
        (page({**GOOD, "amount": 50.5}), "unreadable_entry"),
        (page({**GOOD, "amount": 550, "currency": "isk"}), "unreadable_entry"),
        (broken(Phase.SENT, Reason.READ_TIMEOUT), "read_timeout"),
    ],
)
def test_a_page_that_can_not_be_read_is_no_view(bad, reason):
    with pytest.raises(LookupFailed) as failed:
        looked_up(page(GOOD, more=True), bad)
    assert failed.value.reason == reason
    assert [len(seen.entries) for seen in failed.value.pages] == [1]


@pytest.mark.parametrize(
    ("wanted", "target"), [(replace(WANTED, params={}), TARGET), (WANTED, replace(TARGET, secret=None))]
)
def test_a_question_that_can_not_be_put_is_not_asked(wanted, target):
    for ask in (
        lambda: looked_up(wanted=wanted, target=target),
        lambda: CONNECTOR.object_to(target, wanted, lambda _: pytest.fail("it asked")),
    ):
        with pytest.raises(LookupFailed) as failed:
            ask()
        assert failed.value.reason == "bad_query"


# Looking before sending.

CHARGE = json.loads(CONNECTOR.example.look.clear[0])  # type: ignore[union-attr]


def objection(charge, wanted=WANTED, status=200):
    if wanted is BY_INTENT and status == 200:
        charge = {"id": "pi_1", "object": "payment_intent", "latest_charge": charge}
    return CONNECTOR.object_to(TARGET, wanted, lambda _: reply(status, charge))


@pytest.mark.parametrize("wanted", [WANTED, BY_INTENT], ids=["charge", "payment_intent"])
@pytest.mark.parametrize(
    ("change", "against"),
    [
        ({}, ""),
        ({"amount_refunded": 15_000}, ""),
        ({"amount_refunded": 15_001}, "Only 49.99 EUR of this payment are left to refund, less than the 50.00 EUR"),
        ({"amount_refunded": 20_000}, "This payment of 200.00 EUR is refunded in full already."),
        ({"disputed": True}, "The payer disputes this payment"),
        ({"currency": "usd"}, "The payment was made in USD, and Stripe would refund it in USD, not in EUR."),
        ({"currency": "jpy"}, "The payment was made in JPY"),
    ],
)
def test_what_speaks_against_a_refund_is_said(wanted, change, against):
    found = objection({**CHARGE, **change}, wanted)
    assert found.startswith(against)
    assert bool(found) is bool(against)


def test_where_the_amounts_differ_from_iso_4217s_they_are_compared_in_ours():
    wanted = replace(WANTED, amount_minor=5, currency="ISK")
    charge = {**CHARGE, "currency": "isk", "amount": 1000}
    assert objection(charge, wanted) == ""
    assert objection({**charge, "amount_refunded": 600}, wanted).startswith("Only 4 ISK")


def test_a_payment_intent_that_collected_nothing_has_nothing_to_refund():
    assert objection(None, BY_INTENT).startswith("Nothing was collected")


def test_a_payment_that_stripe_does_not_know_is_for_a_person():
    missing = {"error": {"type": "invalid_request_error", "code": "resource_missing"}}
    assert objection(missing, status=404) == "Stripe knows no charge ch_1 in this account."
    assert objection(missing, BY_INTENT, 404) == "Stripe knows no payment intent pi_1 in this account."


def test_a_refusal_that_did_not_arrive_whole_is_none():
    missing = b'{"error": {"type": "invalid_request_error", "code": "resource_missing"}}'
    with pytest.raises(LookupFailed) as failed:
        CONNECTOR.object_to(TARGET, WANTED, lambda _: broken(Phase.BODY, Reason.RESET, 404, missing))
    assert failed.value.reason == "reset"


@pytest.mark.parametrize(
    ("charge", "status"),
    [
        ({**CHARGE, "id": "ch_2"}, 200),
        ({**CHARGE, "object": "refund"}, 200),
        ({**CHARGE, "disputed": None}, 200),
        ({**CHARGE, "disputed": "no"}, 200),
        ({**CHARGE, "amount": None}, 200),
        ({**CHARGE, "amount_refunded": "0"}, 200),
        ({**CHARGE, "currency": None}, 200),
        ({**CHARGE, "currency": "iqd", "disputed": False}, 200),
        ({"error": {"code": "resource_missing"}}, 400),
        ({"error": {"code": "something_else"}}, 404),
        ({}, 404),
    ],
)
def test_what_can_not_be_told_lets_nothing_go(charge, status):
    wanted = replace(WANTED, currency="IQD") if charge.get("currency") == "iqd" else WANTED
    with pytest.raises(LookupFailed):
        objection(charge, wanted, status)


def test_a_charge_that_is_not_shown_with_its_payment_intent_is_not_guessed():
    with pytest.raises(LookupFailed, match="not a charge"):
        objection("ch_1", BY_INTENT)


def test_the_payment_intent_is_asked_for_together_with_its_charge():
    asked = []

    def fetch(call):
        asked.append(call.url)
        return reply(200, {"id": "pi_1", "object": "payment_intent", "latest_charge": CHARGE})

    assert CONNECTOR.object_to(TARGET, BY_INTENT, fetch) == ""
    assert asked == ["https://api.stripe.com/v1/payment_intents/pi_1?expand%5B%5D=latest_charge"]
