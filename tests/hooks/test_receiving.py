"""POST /webhooks/{downstream}: proven or refused, kept once, whatever it says."""

import json
import logging
from datetime import timedelta
from typing import Any

import pytest
import requests
from django.db import DataError
from django.test import Client

from actions import times
from actions.connectors import registry
from actions.connectors.base import Notice
from actions.models import Downstream, Evidence, Intent
from actions.statuses import Status
from reconciliation import entries
from reconciliation.models import Delivery, LedgerEntry
from tests.api.calling import problem
from tests.api.test_outage import database_away
from tests.core.steps import race
from tests.factories import make_downstream
from tests.hooks.hooking import FOREIGN, OLD_SECRET, SECRET, Hooks, Says, event, new_id, sign

NOTHING: dict[str, Any] = {}


def refused(hooks: Hooks, answer: Any) -> None:
    """401, nothing that helps to forge, and nothing kept."""
    body = problem(answer, 401, "unauthenticated")
    assert body["detail"] == "The delivery could not be verified."
    assert answer["WWW-Authenticate"] == "Signature"
    assert (Delivery.objects.count(), Evidence.objects.count(), LedgerEntry.objects.count()) == (0, 0, 0)


def test_a_signed_delivery_is_kept_with_its_entries_and_its_body_as_evidence(hooks: Hooks) -> None:
    intent = hooks.unknown()
    before = times.now()
    body = event(hooks.entry(intent), topic="refund.created")
    answer = hooks.deliver(body, delivery_id="evt_a")
    assert (answer.status_code, answer.content, answer["Cache-Control"]) == (204, b"", "no-store")
    delivery, entry = Delivery.objects.get(), LedgerEntry.objects.get()
    assert (delivery.downstream, delivery.delivery_id, delivery.topic) == (
        hooks.downstream,
        "evt_a",
        "refund.created",
    )
    assert delivery.received_at >= before
    assert delivery.about_data == {
        "keys": [intent.idempotency_key],
        "external_ids": [entry.entry_id],
        "subjects": [],
        "entries": [entry.pk],
        "differs": [],
    }
    assert (delivery.evidence.kind, delivery.evidence.intent_id) == ("webhook", intent.pk)
    assert json.loads(delivery.evidence.text) == json.loads(body)
    assert (entry.source, entry.evidence_id) == ("webhook evt_a", delivery.evidence_id)


def test_it_asks_for_no_token_no_session_and_no_csrf_token(hooks: Hooks) -> None:
    answer = hooks.deliver(NOTHING, Authorization="Bearer nonsense", Cookie="sessionid=nonsense")
    assert answer.status_code == 204
    assert not answer.cookies


# --- proof


def test_a_body_that_was_changed_on_the_way_is_refused(hooks: Hooks) -> None:
    intent = hooks.unknown()
    body = event(hooks.entry(intent, amount_minor=5_000))
    headers = sign(body, "evt_a", times.now())
    refused(hooks, hooks.post(body.replace(b"5000", b"5001"), headers))
    assert hooks.read(intent).status == Status.UNKNOWN


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_delivery_without_one_of_its_headers_is_refused(hooks: Hooks, name: str) -> None:
    body = event({})
    headers = sign(body, "evt_a", times.now())
    del headers[name]
    refused(hooks, hooks.post(body, headers))


def test_another_secret_or_another_id_than_was_signed_is_refused(hooks: Hooks) -> None:
    refused(hooks, hooks.deliver(NOTHING, secret=FOREIGN))
    body = event({})
    refused(hooks, hooks.post(body, sign(body, "evt_a", times.now()) | {"webhook-id": "evt_b"}))
    refused(hooks, hooks.post(b"", {}))


@pytest.mark.parametrize(("seconds", "status"), [(-290, 204), (290, 204), (-310, 401), (310, 401)])
def test_the_signed_time_may_be_off_by_five_minutes_and_no_more(hooks: Hooks, seconds: int, status: int) -> None:
    answer = hooks.deliver(NOTHING, at=times.now() + timedelta(seconds=seconds))
    assert answer.status_code == status
    assert Delivery.objects.count() == (status == 204)


def test_while_the_secret_is_exchanged_both_count_and_afterwards_the_new_one_alone(hooks: Hooks) -> None:
    def accepts(secret: str) -> bool:
        return bool(hooks.deliver(NOTHING, secret=secret).status_code == 204)

    assert (accepts(SECRET), accepts(OLD_SECRET)) == (True, False), "the old one is not named yet"
    Downstream.objects.update(webhook_old_secret_env="LANDED_TEST_WEBHOOKS_OLD")
    assert (accepts(SECRET), accepts(OLD_SECRET), accepts(FOREIGN)) == (True, True, False)
    Downstream.objects.update(webhook_old_secret_env="")
    assert (accepts(SECRET), accepts(OLD_SECRET)) == (True, False)


def test_a_secret_that_is_not_set_here_is_our_fault_and_the_sender_tries_again(
    hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LANDED_TEST_WEBHOOKS")
    answer = hooks.deliver(NOTHING)
    problem(answer, 503, "unavailable")
    assert int(answer["Retry-After"]) >= 1
    # An empty secret would let anybody sign.
    monkeypatch.setenv("LANDED_TEST_WEBHOOKS", "")
    assert hooks.deliver(NOTHING).status_code == 503


def test_another_downstreams_secret_proves_nothing(hooks: Hooks) -> None:
    other = make_downstream(config=hooks.downstream.config, webhook_secret_env="LANDED_TEST_WEBHOOKS_OLD")
    refused(hooks, hooks.deliver(NOTHING, name=other.name))
    assert hooks.deliver(NOTHING, name=other.name, secret=OLD_SECRET).status_code == 204


# --- who sends webhooks


def test_no_downstream_and_one_without_webhooks_are_the_same_404(
    hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = make_downstream(config=hooks.downstream.config)
    answers = [hooks.deliver(NOTHING, name=name) for name in ("nobody", silent.name, "%00", "a b", "%ff", "x" * 300)]

    class Deaf:
        """A connector from before there were webhooks."""

    monkeypatch.setattr(registry, "get", lambda _: Deaf())
    answers.append(hooks.deliver(NOTHING))
    assert len({answer.content for answer in answers}) == 1
    problem(answers[0], 404, "not_found")


def test_a_connector_that_is_not_installed_is_our_fault(hooks: Hooks) -> None:
    Downstream.objects.update(connector="gone")
    problem(hooks.deliver(NOTHING), 503, "unavailable")


def test_a_paused_downstream_is_heard_all_the_same(hooks: Hooks) -> None:
    Downstream.objects.update(paused=True)
    assert hooks.deliver(NOTHING).status_code == 204


def test_only_post_is_taken(hooks: Hooks) -> None:
    problem(Client().get(f"/api/v1/webhooks/{hooks.downstream.name}"), 405, "method_not_allowed")


# --- once


def test_the_same_delivery_again_changes_nothing(hooks: Hooks) -> None:
    intent = hooks.unknown()
    body = event(hooks.entry(intent))
    for _ in range(3):
        assert hooks.deliver(body, delivery_id="evt_a").status_code == 204
    assert (Delivery.objects.count(), LedgerEntry.objects.count()) == (1, 1)
    assert hooks.checks(intent) == ["match"]
    assert Evidence.objects.filter(kind="webhook").count() == 1
    # A second endpoint at the same provider may count its deliveries alike.
    other = make_downstream(config=hooks.downstream.config, webhook_secret_env="LANDED_TEST_WEBHOOKS")
    assert hooks.deliver(NOTHING, delivery_id="evt_a", name=other.name).status_code == 204
    assert Delivery.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_of_the_same_delivery_many_times_at_once_one_is_kept_and_all_are_answered_204(
    transactional_db: None, hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    intent = hooks.unknown()
    body = event(hooks.entry(intent))
    headers = sign(body, "evt_a", times.now())
    real = entries.store

    def slowly(*args: Any, **more: Any) -> Any:
        found = real(*args, **more)
        time.sleep(0.1)  # so that all of them have looked and found nothing
        return found

    monkeypatch.setattr(entries, "store", slowly)
    answers = race(5, lambda _: Hooks(hooks.downstream, hooks.kind, hooks.clock).post(body, headers).status_code)
    assert answers == [204] * 5
    assert (Delivery.objects.count(), LedgerEntry.objects.count()) == (1, 1)
    assert Evidence.objects.filter(kind="webhook").count() == 1, "nothing is left of those that lost"
    assert hooks.checks(intent) == ["match"]
    hooks.sound(intent, Status.CONFIRMED)


# --- what can't be read


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b'{"type":"a","type":"b","data":null}',
        event("a text"),
        event({"id": "re_1", "type": "refund", "status": "succeeded", "amount_minor": 10**30, "currency": "EUR"}),
        event({"id": "re_\x00", "type": "refund", "status": "succeeded"}),
    ],
)
def test_a_genuine_one_that_cant_be_read_or_stored_is_kept_for_people_and_not_asked_for_again(
    hooks: Hooks, body: bytes
) -> None:
    for _ in range(2):
        assert hooks.deliver(body, delivery_id="evt_a").status_code == 204
    delivery = Delivery.objects.get()
    assert (delivery.outcome, delivery.next_try_at) == ("unreadable", None)
    assert delivery.evidence.text
    assert not LedgerEntry.objects.exists()


def test_what_the_database_does_not_take_is_kept_as_well(hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise DataError("out of range")

    monkeypatch.setattr(entries, "store", full)
    intent = hooks.unknown()
    assert hooks.tell(intent).outcome == "unreadable"
    assert hooks.read(intent).status == Status.UNKNOWN


def test_a_bug_of_the_connectors_keeps_nothing_and_is_delivered_again(
    hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it was verified is not known then."""

    def broken(*_: Any, **__: Any) -> Any:
        raise KeyError("a bug")

    monkeypatch.setattr(type(registry.get("http_json")), "hear", broken)
    problem(hooks.deliver(NOTHING), 500, "internal")
    assert not Delivery.objects.exists()


def test_a_body_over_the_cap_is_refused(hooks: Hooks) -> None:
    body = b'{"type":"x","data":null,"more":"' + b"x" * 1_048_576 + b'"}'
    problem(hooks.deliver(body), 413, "body_too_large")


def test_a_chunked_body_is_named_as_what_is_wrong(hooks: Hooks) -> None:
    body = problem(hooks.post(b"", {"Transfer-Encoding": "chunked"}), 400, "bad_request")
    assert "Content-Length" in body["detail"]


@pytest.mark.django_db(transaction=True)
def test_while_the_database_is_away_the_sender_is_told_to_come_again(
    transactional_db: None, live: str, hooks: Hooks
) -> None:
    intent = hooks.unknown()
    body = event(hooks.entry(intent))
    address, headers = f"{live}/api/v1/webhooks/{hooks.downstream.name}", sign(body, "evt_a", times.now())
    with database_away():
        away = requests.post(address, data=body, headers=headers, timeout=30)
    assert (away.status_code, away.json()["code"]) == (503, "unavailable")
    assert int(away.headers["Retry-After"]) >= 1
    assert requests.post(address, data=body, headers=headers, timeout=30).status_code == 204
    hooks.sound(intent, Status.CONFIRMED)


# --- secrets and strangers' words


def test_no_secret_reaches_the_evidence_or_the_log(hooks: Hooks, caplog: pytest.LogCaptureFixture) -> None:
    Downstream.objects.update(webhook_old_secret_env="LANDED_TEST_WEBHOOKS_OLD")
    body = event(None, topic=f"{SECRET} {OLD_SECRET} sk_test_never_to_be_stored 4242424242424242")
    with caplog.at_level(logging.DEBUG):
        assert hooks.deliver(body).status_code == 204
        assert hooks.deliver(body, secret=FOREIGN).status_code == 401
        assert hooks.deliver(body[:-1]).status_code == 204
    said = caplog.text + "".join(Evidence.objects.values_list("text", flat=True))
    assert Evidence.objects.count() == 2
    for secret in (SECRET, OLD_SECRET, FOREIGN, "sk_test_never_to_be_stored", "4242424242424242"):
        assert secret not in said
    assert "is not verified" in caplog.text


@pytest.mark.parametrize(("given", "kept"), [("evt_a" * 100, "digest:"), ("evt_\x00", "digest:"), ("", "digest:")])
def test_names_that_no_database_takes_alike_are_kept_as_they_can_be(
    hooks: Hooks, monkeypatch: pytest.MonkeyPatch, given: str, kept: str
) -> None:
    notice = Notice(given, times.now(), topic="\ud800" + "x" * 300, keys=("k\x00", "\ud800", "k" * 400))
    monkeypatch.setattr(registry, "get", lambda _: Says(notice))
    for _ in range(2):
        assert hooks.deliver(NOTHING).status_code == 204
    delivery = Delivery.objects.get()
    assert delivery.delivery_id.startswith(kept)
    assert len(delivery.topic) == 100
    assert len(delivery.about_data["keys"]) == 3


def test_a_kept_delivery_says_for_ever_what_it_said(hooks: Hooks) -> None:
    from tests.core.test_triggers import refused as by_the_database

    hooks.tell(hooks.unknown())
    assert by_the_database(lambda: Delivery.objects.update(about="{}"))
    assert by_the_database(lambda: Delivery.objects.update(delivery_id=new_id()))
    assert by_the_database(lambda: Delivery.objects.update(outcome="known")), "once applied"
    assert by_the_database(lambda: Delivery.objects.all()._raw_delete("default"))
    assert Intent.objects.exists()
