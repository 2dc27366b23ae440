"""The whole product path against a Stripe: a real one in its words and its state, without its idempotency keys."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest
import requests

from actions import dispatch, history, transport
from actions.connectors.base import LookupFailed, Notice
from actions.connectors.stripe import CONNECTOR
from actions.models import Intent
from actions.statuses import Status
from reconciliation.models import Review, Verdict
from tests.stripe import proxy as faults
from tests.stripe.proxy import Proxy
from tests.stripe.world import StripeWorld

pytestmark = pytest.mark.either_database


def attempt_of(intent: Intent) -> tuple[str, str]:
    attempt = intent.attempts.get()
    return attempt.result, attempt.reason


def unknown(world: StripeWorld, subject: str, fault: faults.Fault) -> Intent:
    world.proxy.order(fault)
    intent = world.refund(subject)
    world.send()
    found = world.read(intent)
    assert found.status == Status.UNKNOWN
    return found


def until_absence_counts(world: StripeWorld, intent: Intent) -> Intent:
    for _ in range(2):
        world.later(5)
        world.check(intent)
    return world.read(intent)


def test_a_refund_of_a_charge_is_confirmed(world: StripeWorld) -> None:
    intent = world.refund("order-1")
    world.send()
    found, (refund,) = world.read(intent), world.refunds()
    assert (found.status, found.external_id, found.settled_amount_minor) == ("confirmed", refund["id"], 5_000)
    assert refund["metadata"] == {
        "landed_key": intent.idempotency_key,
        "landed_intent": str(intent.pk),
        "landed_subject": "order-1",
    }
    (sent,) = world.proxy.posts()
    assert sent.headers["Idempotency-Key"] == intent.idempotency_key
    assert sent.headers["Stripe-Version"] == "2026-06-24.dahlia"
    assert dict(parse_qsl(sent.body.decode()))["amount"] == "5000"
    assert history.faults(found) == []


def test_a_payment_intent_in_yen_is_refunded_in_yen(world: StripeWorld) -> None:
    card = world.stripe.card()
    customer = world.stripe.post("customers", email="c@example.com", payment_method=card)["id"]
    payment = world.stripe.post(
        "payment_intents", amount=2_000, currency="jpy", customer=customer, payment_method=card, confirm="true"
    )["id"]
    intent = world.refund("order-2", "500", "JPY", payment_intent=payment)
    world.send()
    assert world.read(intent).status == Status.CONFIRMED
    assert [(one["amount"], one["currency"]) for one in world.refunds(payment_intent=payment)] == [(500, "jpy")]


def test_krona_are_refunded_by_the_hundred_and_not_by_a_hundredth(world: StripeWorld) -> None:
    charge = world.stripe.charge(200_000, "isk", source=world.stripe.card())  # 2000 ISK
    intent = world.refund("order-3", "500", "ISK", charge=charge)
    world.send()
    found, (refund,) = world.read(intent), world.refunds(charge=charge)
    assert (found.status, found.settled_amount_minor, refund["amount"]) == ("confirmed", 500, 50_000)


@pytest.mark.parametrize(
    "fault",
    [faults.lose_answer(), faults.error_after_forwarding(), faults.cut_answer(), faults.delay(1.0)],
    ids=["lost", "500 and yet done", "cut", "late"],
)
def test_without_a_usable_answer_it_is_found_by_our_metadata(world: StripeWorld, fault: faults.Fault) -> None:
    intent = unknown(world, "order-4", fault)
    check = world.check(intent)
    assert (check.verdict, check.grounds_data["by"]) == (Verdict.MATCH, "key")
    found, (refund,) = world.read(intent), world.refunds()
    assert (found.status, found.settled_by, found.external_id) == ("confirmed", "ledger", refund["id"])
    assert world.posts(intent) == 1
    assert history.faults(found) == []


def test_what_stripe_never_got_is_absent_and_fails(world: StripeWorld) -> None:
    intent = unknown(world, "order-5", faults.error_instead(500, kind="api_error"))
    found = until_absence_counts(world, intent)
    assert (found.status, found.settled_by) == ("failed", "absence")
    assert (world.refunds(), world.posts(intent)) == ([], 1)


def test_a_refund_that_a_clerk_made_meanwhile_is_not_taken_for_ours(world: StripeWorld) -> None:
    intent = unknown(world, "order-6", faults.error_instead(503, kind="api_error"))
    world.stripe.post("refunds", charge=world.charge, amount=5_000)
    assert until_absence_counts(world, intent).settled_by == "absence"


def test_of_130_refunds_ours_is_found_on_the_second_page(world: StripeWorld) -> None:
    intent = unknown(world, "order-7", faults.lose_answer())
    (ours,) = world.refunds()
    make_oldest(world.proxy.upstream, ours["id"])
    for number in range(129):
        world.stripe.post("refunds", charge=world.charge, amount=5_000, **{"metadata[landed_key]": f"key-{number}"})
    assert world.check(intent).verdict == Verdict.MATCH
    assert world.read(intent).external_id == ours["id"]
    first, second = world.proxy.gets("/v1/refunds")
    assert parse_qs(urlsplit(first.path).query) == {"charge": [world.charge], "limit": ["100"]}
    assert parse_qs(urlsplit(second.path).query)["starting_after"] != [ours["id"]]
    assert world.posts(intent) == 1


def make_oldest(url: str, refund: str) -> None:
    """localstripe lists by this field of its own."""
    headers = {"Authorization": "Bearer sk_test_localstripe"}
    requests.post(f"{url}/v1/refunds/{refund}", json={"date": 1}, headers=headers, timeout=5).raise_for_status()


def test_a_second_page_that_breaks_proves_nothing(world: StripeWorld) -> None:
    intent = unknown(world, "order-8", faults.error_instead(500, kind="api_error"))
    for _ in range(101):
        world.stripe.post("refunds", charge=world.charge, amount=1)
    world.later(5)
    world.proxy.order(faults.Fault(), method="GET")
    world.proxy.order(faults.error_instead(500, kind="api_error"), method="GET")
    assert world.check(intent).verdict == Verdict.UNAVAILABLE
    assert world.read(intent).status == Status.UNKNOWN


def test_already_refunded_is_the_effect_of_somebody_else(world: StripeWorld) -> None:
    world.proxy.order(faults.error_instead(400, "charge_already_refunded"))
    intent = world.refund("order-9")
    world.send()
    found = world.read(intent)
    assert (found.status, attempt_of(found)) == ("failed", ("refused", "effect_exists_elsewhere"))


def test_a_disputed_payment_is_refused_for_that_reason(world: StripeWorld) -> None:
    world.proxy.order(faults.error_instead(400, "charge_disputed"))
    intent = world.refund("order-10")
    world.send()
    assert attempt_of(world.read(intent)) == ("refused", "payment_disputed")


def test_after_a_lock_timeout_it_is_sent_again_with_its_key(world: StripeWorld) -> None:
    world.proxy.order(faults.error_instead(429, "lock_timeout", Stripe_Should_Retry="true"))
    intent = world.refund("order-11")
    world.send()
    assert (world.read(intent).status, attempt_of(intent)) == ("recorded", ("not_sent", "not_processed"))
    world.later(600)
    world.send()
    assert (world.read(intent).status, world.posts(intent), len(world.refunds())) == ("confirmed", 2, 1)


def test_a_charge_that_does_not_exist_is_never_refunded(world: StripeWorld) -> None:
    intent = world.refund("order-12", charge="ch_doesnotexist")
    world.send()
    assert world.read(intent).status in (Status.RECORDED, Status.HELD)
    assert world.proxy.posts() == []


def as_pending(world: StripeWorld) -> faults.Fault:
    """The refund is made, and is pending at localstripe as well as in the answer."""
    return faults.changed(lambda refund: world.stripe.post(f"refunds/{refund['id']}", status="pending"))


@pytest.mark.parametrize(
    ("later", "status"), [("succeeded", "confirmed"), ("failed", "failed"), ("canceled", "failed")]
)
def test_a_pending_refund_is_waited_for_to_its_end(world: StripeWorld, later: str, status: str) -> None:
    world.proxy.order(as_pending(world))
    intent = world.refund("order-13")
    world.send()
    (refund,) = world.refunds()
    found = world.read(intent)
    assert (found.status, found.external_id, attempt_of(found)) == (
        "submitted",
        refund["id"],
        ("accepted", "accepted"),
    )
    assert world.check(intent).verdict == Verdict.PENDING
    world.stripe.post(f"refunds/{refund['id']}", status=later)
    world.later(5)
    world.check(intent)
    assert world.read(intent).status == status


def test_a_refund_that_fails_after_it_was_confirmed_is_in_question(world: StripeWorld) -> None:
    intent = world.refund("order-16")
    world.send()
    (refund,) = world.refunds()
    assert world.read(intent).status == Status.CONFIRMED
    world.stripe.post(f"refunds/{refund['id']}", status="failed")
    world.later(5)
    world.check(intent)
    assert world.read(intent).disputed
    assert [r.code for r in Review.objects.get(intent=intent).reasons.all()] == ["contradiction"]


def test_a_refund_that_something_in_between_doubled_is_for_a_person(world: StripeWorld) -> None:
    intent = unknown(world, "order-14", faults.doubled_and_lost())
    assert world.check(intent).verdict == Verdict.DUPLICATE
    assert world.read(intent).status == Status.UNKNOWN
    assert [r.code for r in Review.objects.get(intent=intent).reasons.all()] == ["duplicate"]


def test_a_refund_in_the_currency_of_another_payment_is_not_sent(world: StripeWorld) -> None:
    """Stripe takes no currency with a refund: 50.00 of whatever the payment was in would go."""
    intent = world.refund("order-15", "50.00", "USD")
    world.send()
    assert world.read(intent).status == Status.HELD
    assert (world.proxy.posts(), world.refunds()) == ([], [])


# The look before sending, on the connector itself.


def look(world: StripeWorld, amount: int = 5_000, currency: str = "EUR", **params: str) -> str:
    wanted = replace(
        CONNECTOR.example.wanted, amount_minor=amount, currency=currency, params=params or {"charge": world.charge}
    )
    limits = transport.Limits(connect_timeout_s=0.5, deadline_s=2)
    found = CONNECTOR.object_to(
        dispatch.target_of(world.downstream), wanted, lambda call: transport.send(call, limits)
    )
    assert world.proxy.posts() == [], "a look changes nothing"
    return found


def test_a_look_compares_with_what_is_left_of_the_payment(world: StripeWorld) -> None:
    assert look(world, 20_000) == ""
    assert look(world, 20_001).startswith("Only 200.00 EUR of this payment are left")
    world.stripe.post("refunds", charge=world.charge, amount=19_000)
    assert look(world, 1_000) == ""
    assert look(world, 1_001).startswith("Only 10.00 EUR of this payment are left")
    world.stripe.post("refunds", charge=world.charge, amount=1_000)
    assert look(world, 1) == "This payment of 200.00 EUR is refunded in full already."


def test_a_look_sees_a_dispute(world: StripeWorld) -> None:
    world.proxy.order(faults.changed(lambda charge: {**charge, "disputed": True}), method="GET")
    assert look(world).startswith("The payer disputes this payment")


def test_a_look_at_a_payment_intent_sees_its_charge(world: StripeWorld) -> None:
    card = world.stripe.card()
    customer = world.stripe.post("customers", email="c@example.com", payment_method=card)["id"]
    fields = {"amount": 500, "currency": "jpy", "customer": customer, "payment_method": card}
    paid = world.stripe.post("payment_intents", **fields, confirm="true")["id"]
    assert look(world, 500, "JPY", payment_intent=paid) == ""
    assert look(world, 501, "JPY", payment_intent=paid).startswith("Only 500 JPY")
    assert look(world, 500, "EUR", payment_intent=paid).startswith("The payment was made in JPY")
    unpaid = world.stripe.post("payment_intents", **fields)["id"]
    assert look(world, 500, "JPY", payment_intent=unpaid).startswith("Nothing was collected")


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (faults.lose_answer(), "reset"),
        (faults.cut_answer(), "cut_body"),
        (faults.error_instead(500, kind="api_error"), "http_error"),
        (faults.error_instead(429, "rate_limit"), "http_error"),
    ],
)
def test_a_look_that_does_not_come_through_is_no_go(world: StripeWorld, fault: faults.Fault, reason: str) -> None:
    world.proxy.order(fault, method="GET")
    with pytest.raises(LookupFailed) as failed:
        look(world)
    assert failed.value.reason == reason


# Webhooks, as localstripe signs them.


def test_an_event_that_stripe_signed_is_verified(localstripe: str, proxy: Proxy) -> None:
    with Mailbox() as mailbox:
        secret = "whsec_of_this_endpoint"
        hook = {"url": mailbox.url, "secret": secret, "events[]": "payout.created"}
        requests.post(f"{localstripe}/_config/webhooks/test", data=hook, timeout=5).raise_for_status()
        headers = {"Authorization": "Bearer sk_test_localstripe"}
        made = requests.post(
            f"{localstripe}/v1/payouts", data={"amount": 5, "currency": "eur"}, headers=headers, timeout=5
        ).json()
        signed, body = mailbox.wait()
    notice = hear(signed, body, secret)
    assert (notice.topic, notice.external_ids, notice.entries) == ("payout.created", (made["id"],), ())
    assert notice.delivery_id == json.loads(body)["id"]


def hear(headers: dict[str, str], body: bytes, secret: str) -> Notice:
    target = CONNECTOR.example.target
    return CONNECTOR.hear(target, headers=headers, body=body, secrets=[secret], now=datetime.now(tz=UTC))


class Mailbox:
    """Takes one delivery."""

    def __enter__(self) -> Mailbox:
        mailbox, self._came = self, threading.Event()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                mailbox.got = {name.lower(): value for name, value in self.headers.items()}, body
                self.send_response(200)
                self.end_headers()
                mailbox._came.set()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def wait(self) -> tuple[dict[str, str], bytes]:
        assert self._came.wait(10)
        return self.got

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
