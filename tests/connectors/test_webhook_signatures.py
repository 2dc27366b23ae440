"""Who may say something by webhook: signatures, times and secrets; and what a genuine one is read as."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks import Webhook

from actions.connectors import http_json, stripe
from actions.connectors.base import Unverified
from sandbox import books, webhooks

NOW = datetime(2026, 11, 30, 12, 0, 0, 500_000, tzinfo=UTC)
SECONDS = int(NOW.timestamp())

# Stripe

STRIPE = stripe.CONNECTOR
EVENT = json.loads(STRIPE.example.webhook.body)  # type: ignore[union-attr]
REFUND = EVENT["data"]["object"]
CHARGE = json.loads(STRIPE.example.look.clear[0])  # type: ignore[union-attr]
SECRET = "whsec_5tR1p3"


def v1(body, *, at=SECONDS, secret=SECRET):
    return hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()


def hear(event, header=None, *, secrets=(SECRET,), now=NOW, account="", **more):
    body = event if isinstance(event, bytes) else json.dumps({**event, **more}).encode()
    headers = {"stripe-signature": header if header is not None else f"t={SECONDS},v1={v1(body)}"}
    target = replace(STRIPE.example.target, account=account)
    return STRIPE.hear(target, headers=headers, body=body, secrets=secrets, now=now)


BODY = json.dumps(EVENT).encode()
GOOD = v1(BODY)
OTHER = v1(BODY, secret="whsec_other")


@pytest.mark.parametrize(
    "header",
    [
        f"t={SECONDS},v1={GOOD}",
        f"t={SECONDS},v1={OTHER},v1={GOOD}",
        f"t={SECONDS},v1={GOOD},v1={OTHER}",
        f"v1={GOOD},t={SECONDS}",
        f"t={SECONDS}, v1={GOOD}, v0=1234",
    ],
)
def test_one_fitting_signature_is_enough(header):
    assert hear(BODY, header).delivery_id == "evt_1"


@pytest.mark.parametrize(
    "header",
    [
        "",
        f"t={SECONDS}",
        f"v1={GOOD}",
        f"t={SECONDS},v1=",
        f"t={SECONDS},v1={OTHER}",
        f"t={SECONDS},v0={GOOD}",
        f"t={SECONDS},v1={GOOD[:-1]}",
        f"t={SECONDS},v1={GOOD.upper()}",
        f"t={SECONDS + 1},v1={GOOD}",
        f"t={SECONDS},t={SECONDS},v1={GOOD}",
        f"t={SECONDS}.0,v1={GOOD}",
        f"t=-{SECONDS},v1={GOOD}",
        f"t=,v1={GOOD}",
        f"t=now,v1={GOOD}",
        f"t={'9' * 30},v1={GOOD}",
        f"t={SECONDS},v1=é{GOOD}",
        f"t={SECONDS},v1=\ud800",
    ],
)
def test_no_other_header_is_believed(header):
    with pytest.raises(Unverified):
        hear(BODY, header)


def test_any_of_several_secrets_will_do_and_an_empty_one_never():
    assert hear(BODY, secrets=("whsec_new", SECRET)).delivery_id == "evt_1"
    for secrets in ((), ("",), ("whsec_new",)):
        with pytest.raises(Unverified):
            hear(BODY, secrets=secrets)
    with pytest.raises(Unverified):
        hear(BODY, f"t={SECONDS},v1={v1(BODY, secret='')}", secrets=("",))


@pytest.mark.parametrize(("away", "believed"), [(299, True), (300, True), (301, False), (10**6, False)])
def test_what_was_signed_more_than_five_minutes_away_is_not_believed(away, believed):
    for seconds in (away, -away):
        at, now = SECONDS - seconds, datetime.fromtimestamp(SECONDS, tz=UTC)
        header = f"t={at},v1={v1(BODY, at=at)}"
        if believed:
            assert hear(BODY, header, now=now).sent_at == now - timedelta(seconds=seconds)
        else:
            with pytest.raises(Unverified, match="too far"):
                hear(BODY, header, now=now)


@pytest.mark.parametrize("topic", ["refund.created", "refund.updated", "refund.failed", "charge.refund.updated"])
def test_an_event_about_a_refund_shows_it(topic):
    notice = hear(EVENT, type=topic)
    assert (notice.topic, notice.keys, notice.subjects) == (topic, ("key-1",), ("order-4812",))
    assert notice.external_ids == ("re_1", "ch_1", "pi_1")
    (entry,) = notice.entries
    assert (entry.entry_id, entry.state, entry.amount_minor, entry.currency) == ("re_1", "final", 5000, "EUR")


def test_a_refund_that_failed_later_says_so():
    notice = hear(EVENT, type="refund.failed", data={"object": {**REFUND, "status": "failed"}})
    assert [entry.state for entry in notice.entries] == ["failed"]


def test_an_event_that_is_delivered_late_is_as_old_as_it_was():
    """Each delivery is signed anew; what the event shows is from when it was made."""
    notice = hear(EVENT, created=SECONDS - 86_400)
    assert (notice.sent_at - notice.as_of).total_seconds() == 86_400  # type: ignore[operator]
    assert hear(EVENT, created=None).as_of is None


def test_a_refund_by_somebody_else_names_no_intent():
    notice = hear(EVENT, request={"id": None, "idempotency_key": None}, data={"object": {**REFUND, "metadata": {}}})
    assert (notice.keys, notice.subjects, notice.external_ids) == ((), (), ("re_1", "ch_1", "pi_1"))


def test_a_charge_that_was_refunded_is_known_by_the_key_of_the_request_that_did_it():
    notice = hear(EVENT, type="charge.refunded", data={"object": CHARGE})
    assert (notice.topic, notice.keys, notice.entries) == ("charge.refunded", ("key-1",), ())
    assert notice.external_ids == ("ch_1", "pi_1")


def test_a_charge_of_an_older_version_lists_its_refunds():
    charge = {**CHARGE, "refunds": {"object": "list", "data": [REFUND]}}
    notice = hear(EVENT, type="charge.refunded", data={"object": charge}, request="req_1")
    assert (notice.keys, [entry.entry_id for entry in notice.entries]) == (("key-1",), ["re_1"])


def test_a_dispute_names_the_payment():
    dispute = {"id": "dp_1", "object": "dispute", "charge": "ch_1", "payment_intent": {"id": "pi_1"}, "amount": 5}
    notice = hear(EVENT, type="charge.dispute.created", data={"object": dispute}, request=None)
    assert (notice.topic, notice.keys, notice.entries) == ("charge.dispute.created", (), ())
    assert notice.external_ids == ("dp_1", "ch_1", "pi_1")


def test_an_event_of_another_connected_account_names_nothing_of_ours():
    assert hear(EVENT, account="acct_1").keys == ("key-1",), "it says of no other account"
    body = json.dumps({**EVENT, "account": "acct_2"}).encode()
    for account in ("acct_1", ""):
        notice = hear(body, account=account)
        assert (notice.delivery_id, notice.topic) == ("evt_1", "refund.created")
        assert (notice.keys, notice.external_ids, notice.entries) == ((), (), ())
    assert hear(body, account="acct_2").keys == ("key-1",)


@pytest.mark.parametrize(
    "change",
    [
        {"id": None},
        {"id": {"x": 1}},
        {"data": None},
        {"data": {"object": None}},
        {"data": {"object": {**REFUND, "amount": 50.5}}},
        {"data": {"object": {**REFUND, "metadata": [1]}}},
        {"type": ["refund.created"]},
        {"request": {"idempotency_key": ["key-1"]}},
    ],
)
def test_a_genuine_event_that_can_not_be_read_is_a_value_error(change):
    with pytest.raises(ValueError):
        hear(EVENT, **change)


# http_json, by Standard Webhooks

JSON = http_json.CONNECTOR
RING = "whsec_" + base64.b64encode(b"a secret of the sandbox").decode()
BELL = json.loads(JSON.example.webhook.body)  # type: ignore[union-attr]


def configured(**webhook):
    config = {**deepcopy(dict(JSON.example.target.config)), "webhook": webhook}
    return replace(JSON.example.target, config=config)


def ring(event, *, secrets=(RING,), now=NOW, target=JSON.example.target, sign=RING, **headers):
    body = event if isinstance(event, bytes) else json.dumps(event).encode()
    signed = {
        "webhook-id": "evt_1",
        "webhook-timestamp": str(SECONDS),
        "webhook-signature": Webhook(sign).sign("evt_1", NOW, body.decode()),
    } | {name.replace("_", "-"): value for name, value in headers.items()}
    return JSON.hear(target, headers=signed, body=body, secrets=secrets, now=now)


def test_what_the_sandbox_sends_is_read():
    """As `sandbox.webhooks` puts it together and signs it."""
    entry = books.Entry(
        "re_7", "refund", "order-7", 5_000, "EUR", "failed", "key-7", NOW.timestamp(), {"intent": "0193"}
    )
    content = {"type": "refund.failed", "timestamp": books.iso(SECONDS), "data": books.ledger_json(entry)}
    body = json.dumps(content, separators=(",", ":"))
    headers = {
        "webhook-id": "evt_7",
        "webhook-timestamp": str(SECONDS),
        "webhook-signature": webhooks.sign(RING, "evt_7", str(SECONDS), body),
    }
    notice = JSON.hear(JSON.example.target, headers=headers, body=body.encode(), secrets=(RING,), now=NOW)
    assert (notice.delivery_id, notice.topic) == ("evt_7", "refund.failed")
    assert notice.sent_at == datetime.fromtimestamp(SECONDS, tz=UTC)
    assert (notice.keys, notice.subjects, notice.external_ids) == (("key-7",), ("order-7",), ("re_7",))
    assert notice.as_of == notice.sent_at
    (shown,) = notice.entries
    assert (shown.role, shown.state, shown.amount_minor, shown.currency) == ("effect", "failed", 5_000, "EUR")
    assert shown.booked_at == NOW


def test_the_library_takes_the_same_deliveries():
    """The verification here is the library's but for its clock: at its own time both say the same."""
    now = datetime.now(tz=UTC)
    body = json.dumps(BELL)
    headers = {
        "webhook-id": "evt_1",
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": "v2,AAAA " + Webhook(RING).sign("evt_1", now, body),
    }
    Webhook(RING).verify(body, headers)
    assert JSON.hear(JSON.example.target, headers=headers, body=body.encode(), secrets=(RING,), now=now).keys


@pytest.mark.parametrize(
    "headers",
    [
        {"webhook_id": "evt_2"},
        {"webhook_id": ""},
        {"webhook_id": "evt\n1"},
        {"webhook_id": "e" * 300},
        {"webhook_timestamp": str(SECONDS + 1)},
        {"webhook_timestamp": ""},
        {"webhook_timestamp": "nan"},
        {"webhook_timestamp": f"{SECONDS}.5"},
        {"webhook_timestamp": "9" * 40},
        {"webhook_signature": ""},
        {"webhook_signature": "v1"},
        {"webhook_signature": "v1,"},
        {"webhook_signature": "v1,not base64"},
        {"webhook_signature": "v1,é \ud800"},
        {"webhook_signature": "v1a," + "A" * 44},
    ],
)
def test_no_other_headers_are_believed(headers):
    with pytest.raises(Unverified):
        ring(BELL, **headers)


def test_without_an_id_nothing_is_believed_even_if_it_is_signed():
    signature = Webhook(RING).sign("None", NOW, json.dumps(BELL))
    with pytest.raises(Unverified, match="webhook-id"):
        ring(BELL, webhook_id="", webhook_signature=signature)


def test_old_and_new_secret_both_count_while_it_is_changed():
    new = "whsec_" + base64.b64encode(b"a new secret").decode()
    assert ring(BELL, secrets=(new, RING)).keys == ("key-1",)
    assert ring(BELL, secrets=(new, RING), sign=new).keys == ("key-1",)
    for secrets in ((), ("",), ("whsec_",), ("whsec_!",), ("geheim-ä",), (new,)):
        with pytest.raises(Unverified):
            ring(BELL, secrets=secrets)


@pytest.mark.parametrize("away", [timedelta(seconds=301), timedelta(days=1)])
def test_a_delivery_from_another_time_is_not_believed(away):
    assert ring(BELL, now=NOW + timedelta(seconds=299)).keys
    for now in (NOW + away, NOW - away):
        with pytest.raises(Unverified, match="too far"):
            ring(BELL, now=now)


def test_without_a_webhook_section_nothing_is_heard():
    config = {name: part for name, part in JSON.example.target.config.items() if name != "webhook"}
    with pytest.raises(Unverified, match="no webhook section"):
        ring(BELL, target=replace(JSON.example.target, config=config))


def test_an_event_can_show_several_entries_or_none():
    row = BELL["data"]
    target = configured(topic="kind", entries="rows")
    notice = ring({"kind": "batch", "rows": [row, {**row, "id": "re_2", "idempotency_key": None}]}, target=target)
    assert (notice.topic, notice.keys, notice.external_ids) == ("batch", ("key-1",), ("re_1", "re_2"))
    assert notice.subjects == ("order-4812",)
    for empty in ([1], {"kind": "ping"}, {"kind": "ping", "rows": None}, {"kind": "ping", "rows": []}):
        assert ring(empty, target=target).entries == ()
    plain = ring({"rows": [], "timestamp": SECONDS}, target=configured(entries="rows"))
    assert (plain.topic, plain.as_of) == ("", None)


@pytest.mark.parametrize(("said", "known"), [(SECONDS - 9, True), ("2026-11-30T11:59:51Z", True), ("now", False)])
def test_an_event_says_when_it_was(said, known):
    notice = ring({**BELL, "timestamp": said})
    assert notice.as_of == (datetime.fromtimestamp(SECONDS - 9, tz=UTC) if known else None)


def test_an_event_can_have_a_shape_of_its_own():
    entry = {"id": "ref", "key": "payload.key", "amount_minor": "cents", "currency": "cur"}
    target = configured(entries="event", entry=entry)
    event = {"event": {"ref": "x1", "payload": {"key": "key-9"}, "cents": 5, "cur": "eur"}}
    (shown,) = ring(event, target=target).entries
    assert (shown.entry_id, shown.key, shown.amount_minor, shown.currency) == ("x1", "key-9", 5, "EUR")


@pytest.mark.parametrize(
    "event",
    [
        b"not json",
        b'{"data": 7}',
        b'{"data": {"amount_minor": 5.5}}',
        b'{"data": {"id": {"x": 1}}}',
        b'{"data": {"currency": "EUR"}}',
        b'{"data": [{"id": "x"}, 7]}',
        b'{"type": {"x": 1}, "data": null}',
    ],
)
def test_a_genuine_delivery_that_can_not_be_read_is_a_value_error(event):
    with pytest.raises(ValueError):
        ring(event)


@pytest.mark.parametrize(
    ("webhook", "problem"),
    [
        ({"topic": "type"}, "webhook: 'entries' is a required property"),
        ({"entries": "data", "secret": "x"}, "webhook: Additional properties"),
        ({"entries": "data", "at": "data["}, "webhook.at: 'data[' is not a JMESPath expression"),
        ({"entries": "data["}, "webhook.entries: 'data[' is not a JMESPath expression"),
        ({"entries": "data", "topic": "nonsense(x)"}, "webhook.topic: there is no JMESPath function nonsense()"),
        ({"entries": "data", "entry": {"id": "a..b"}}, "webhook.entry.id: 'a..b' is not a JMESPath"),
        ({"entries": "data", "entry": {"status": "s"}}, "webhook.entry: status and states go together"),
        ({"entries": "data", "entry": {"amount": "a"}}, "webhook.entry: a decimal amount needs its currency"),
    ],
)
def test_a_wrong_webhook_section_is_told_in_plain_words(webhook, problem):
    problems = JSON.check_config(configured(**webhook).config)
    assert any(found.startswith(problem) for found in problems), problems


def test_without_a_look_up_a_webhook_says_itself_how_an_entry_is_read():
    config = {name: part for name, part in JSON.example.target.config.items() if name != "look_up"}
    assert JSON.check_config(config) == [
        "webhook: without look_up it needs an entry of its own, to say how one is read"
    ]
    assert JSON.check_config({**config, "webhook": {"entries": "data", "entry": {"id": "id"}}}) == []
