"""Answers that stall, trickle, can't be decrypted or lead elsewhere: what each leaves on the intent."""

import json
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from actions import dispatch, history, transport, wire
from actions.models import Attempt, Downstream, Intent
from reconciliation.models import Verdict
from tests import factories
from tests.flow.world import World
from tests.transport.peers import Peer, answer, breaks_encryption, replies, silent, trickles


def sent_to(
    world: World, peer: Peer, *, scheme: str = "http", connect_timeout_ms: int = 3_000
) -> tuple[Intent, Attempt]:
    """An intent that was sent to `peer` instead of the sandbox, and its only attempt."""
    Downstream.objects.update(base_url=f"{scheme}://127.0.0.1:{peer.port}", connect_timeout_ms=connect_timeout_ms)
    intent = world.propose("order-1")
    world.send()
    found = world.read(intent)
    assert history.faults(found) == []
    return found, found.attempts.get()


def test_of_a_body_that_stalled_the_http_status_is_kept_as_evidence(world: World) -> None:
    Downstream.objects.update(deadline_ms=700)
    world.sandbox.order_fault("order-1", "trickle_body", seconds=60)
    intent = world.propose("order-1")
    world.send()
    found, attempt = world.read(intent), intent.attempts.get()
    assert (found.status, found.status_reason, found.settled) == ("unknown", "deadline", False)
    assert (attempt.result, attempt.phase, attempt.http_status) == ("no_answer", "body", 201)
    said = json.loads(intent.evidence.get(kind="answer").text)
    assert (said["status"], said["phase"], said["reason"]) == (201, "body", "deadline")
    assert said["headers"]["content-type"] == "application/json", "whatever came is kept"
    assert world.posts(intent) == 1
    assert history.faults(found) == []


def test_one_byte_every_0_7_s_is_given_up_at_the_deadline_and_the_place_is_free_again(world: World) -> None:
    """No single read is ever late: only a deadline over everything ends this, long before the peer would."""
    with Peer(trickles(b"HTTP/1.1", every=0.7)) as peer:
        away = factories.make_downstream(
            base_url=f"http://127.0.0.1:{peer.port}",
            config=world.downstream.config,
            secret_env=world.downstream.secret_env,
            deadline_ms=1_000,
        )
        trickled = World(world.sandbox, away, factories.make_kind(away), world.clock).propose("order-1")
        after = world.propose("order-2")
        began = time.monotonic()
        assert dispatch.run(budget_s=10, slots=1) == 2
    assert 0.9 < time.monotonic() - began < 4
    found, attempt = world.read(trickled), trickled.attempts.get()
    assert (found.status, found.status_reason, attempt.http_status) == ("unknown", "deadline", None)
    assert attempt.closed_at is not None
    assert attempt.closed_at < attempt.lease_until, "given up by its own sender, not by the clock"
    assert (world.read(after).status, world.posts(after)) == ("confirmed", 1)
    assert len(peer.requests) == 1


# TLS


def test_a_peer_that_stalls_the_handshake_was_sent_nothing(world: World) -> None:
    with Peer(silent, read_requests=False) as peer:
        found, attempt = sent_to(world, peer, scheme="https", connect_timeout_ms=400)
    assert (found.status, found.status_reason, found.first_maybe_sent_at) == ("recorded", "not_sent", None)
    assert (attempt.result, attempt.reason, attempt.phase) == ("not_sent", "tls_timeout", "handshake")
    assert found.next_attempt_at is not None, "it is sent later"


def test_a_peer_with_an_untrusted_certificate_was_sent_nothing(
    world: World, certificate: Path, tls_with: Callable[[Path], ssl.SSLContext]
) -> None:
    with Peer(replies(answer(b'{"id":"re_1"}')), tls=tls_with(certificate)) as peer:
        found, attempt = sent_to(world, peer, scheme="https")
    assert (found.status, found.status_reason, found.first_maybe_sent_at) == ("recorded", "not_sent", None)
    assert (attempt.result, attempt.reason, attempt.phase) == ("not_sent", "tls_certificate", "handshake")
    assert peer.requests == []


def test_an_answer_that_can_t_be_decrypted_is_no_answer(
    world: World,
    certificate: Path,
    tls_with: Callable[[Path], ssl.SSLContext],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transport, "tls_context", lambda _: wire.tls_context(str(certificate)))
    with Peer(breaks_encryption, tls=tls_with(certificate)) as peer:
        found, attempt = sent_to(world, peer, scheme="https")
    assert (found.status, found.status_reason) == ("unknown", "tls_broken")
    assert (attempt.result, attempt.http_status) == ("no_answer", None)
    assert (peer.connections, len(peer.requests)) == (1, 1)


# Redirects


@pytest.mark.parametrize("fault", ["redirect_307", "redirect_302"])
def test_a_redirect_is_one_post_and_never_ends_as_confirmed(world: World, fault: str) -> None:
    """307 leads where a second POST would be booked; 302 to a page that looks like the refund asked for."""
    world.sandbox.order_fault("order-1", fault)
    intent = world.propose("order-1")
    world.send()
    assert (world.read(intent).status, world.posts(intent)) == ("unknown", 1)
    assert intent.attempts.get().http_status == int(fault[-3:])
    for _ in range(2):
        world.later(5)
        world.check(intent)
    assert [t.to_status for t in intent.transitions.all()] == ["recorded", "submitted", "unknown", "failed"]
    assert (world.posts(intent), world.booked(intent)) == (1, [])


@pytest.mark.parametrize("status", ["301 Moved Permanently", "303 See Other", "308 Permanent Redirect"])
def test_a_redirect_to_where_it_would_be_booked_is_not_followed(world: World, status: str) -> None:
    moved = answer(b"", f"Location: {world.sandbox.url}/v1/refunds", status=status)
    with Peer(replies(moved)) as peer:
        found, attempt = sent_to(world, peer)
    assert (found.status, attempt.result, attempt.http_status) == ("unknown", "no_answer", int(status[:3]))
    assert (len(peer.requests), world.posts(found), world.booked(found)) == (1, 0, [])


def test_a_ledger_that_redirects_says_nothing(world: World) -> None:
    """Where the redirect leads, there is an entry that would settle it."""
    world.sandbox.order_fault("order-1", "lose_response")
    intent = world.propose("order-1")
    world.send()
    ledger = f"{world.sandbox.url}/v1/ledger?order=order-1"
    with Peer(replies(answer(b"", f"Location: {ledger}", status="302 Found"))) as peer:
        Downstream.objects.update(base_url=f"http://127.0.0.1:{peer.port}")
        assert world.check(intent).verdict == Verdict.UNAVAILABLE
    assert world.read(intent).status == "unknown"
