"""How far a call got, whatever the peer does. Every misbehaviour is a real one, on a real socket."""

from __future__ import annotations

import gzip
import os
import signal
import socket
import threading
import time
import tracemalloc
from dataclasses import replace
from http.client import NotConnected

import pytest

from actions import transport, wire
from actions.transport import Call, Limits, Phase, Reason, boot_clock

from .peers import (
    Peer,
    answer,
    breaks_encryption,
    closes,
    in_turn,
    replies,
    resets,
    resets_after,
    silent,
    stalls_after,
    trickles,
)

GOOD = answer(b'{"id":"re_1"}')


def test_a_whole_answer_is_complete(post, limits):
    with Peer(replies(GOOD)) as peer:
        reply = transport.send(post(peer.url), limits)
    assert (reply.phase, reply.reason, reply.status) == (Phase.DONE, Reason.OK, 200)
    assert reply.complete
    assert reply.maybe_sent
    assert reply.body == b'{"id":"re_1"}'
    assert reply.headers["content-type"] == "application/json"
    head, _, body = peer.requests[0].partition(b"\r\n\r\n")
    assert body == b'{"amount_minor":500}'
    assert head.startswith(b"POST /v1/refunds HTTP/1.1\r\n")
    assert b"Connection: close" in head
    assert b"Accept-Encoding: identity" in head
    assert f"Host: 127.0.0.1:{peer.port}".encode() in head


def test_a_whole_answer_over_tls_is_complete(post, limits, certificate, tls_with):
    with Peer(replies(GOOD), tls=tls_with(certificate)) as peer:
        reply = transport.send(post(peer.url), replace(limits, ca_file=str(certificate)))
    assert reply.complete, reply
    assert len(peer.requests) == 1


# Before the first byte: nothing was sent, and that is certain.


def test_a_refused_connection_was_not_sent(post, limits):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    reply = transport.send(post(f"http://127.0.0.1:{port}/"), limits)
    assert (reply.phase, reply.reason, reply.maybe_sent) == (Phase.CONNECT, Reason.CONNECT_REFUSED, False)
    assert reply.status is None


def test_an_unknown_host_was_not_sent(post, limits):
    reply = transport.send(post("http://nothing.invalid/"), limits)
    assert (reply.phase, reply.maybe_sent) == (Phase.RESOLVE, False)
    assert reply.reason in (
        Reason.DNS,
        Reason.DNS_TIMEOUT,
    )  # the latter where the network's resolver is silent


def test_a_resolver_that_hangs_ends_at_the_connect_timeout(post, limits, monkeypatch):
    real = socket.getaddrinfo

    def hang(host, *args, **kwargs):  # the machine's resolver can't be made to hang without root
        if kwargs.get("flags", 0) & socket.AI_NUMERICHOST:
            return real(host, *args, **kwargs)
        time.sleep(3)
        raise socket.gaierror("too late")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    started = time.monotonic()
    reply = transport.send(post("http://slow.example/"), replace(limits, connect_timeout_s=0.4))
    assert time.monotonic() - started < 1
    assert (reply.phase, reply.reason, reply.maybe_sent) == (Phase.RESOLVE, Reason.DNS_TIMEOUT, False)


def test_a_host_that_accepts_no_connection_in_time_was_not_sent(post, limits):
    with socket.socket() as listener:  # a full backlog: further SYNs are dropped
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for sock in waiting:
            sock.setblocking(False)
            sock.connect_ex(listener.getsockname())
        time.sleep(0.05)
        reply = transport.send(
            post(f"http://127.0.0.1:{listener.getsockname()[1]}/"), replace(limits, connect_timeout_s=0.4)
        )
        for sock in waiting:
            sock.close()
    assert (reply.phase, reply.reason, reply.maybe_sent) == (Phase.CONNECT, Reason.CONNECT_TIMEOUT, False)
    assert reply.elapsed_ms < 1000


def test_a_silent_address_leaves_time_for_the_next_one(post, limits, monkeypatch):
    with socket.socket() as full, Peer(replies(GOOD)) as peer:
        full.bind(("127.0.0.2", peer.port))
        full.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for sock in waiting:
            sock.setblocking(False)
            sock.connect_ex(full.getsockname())
        time.sleep(0.05)
        both = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, peer.port)) for host in ("127.0.0.2", "127.0.0.1")]
        monkeypatch.setattr(wire, "resolve", lambda *_: both)
        reply = transport.send(post(f"http://two.example:{peer.port}/"), limits)
        for sock in waiting:
            sock.close()
    assert reply.complete, reply


def test_a_stalled_tls_handshake_was_not_sent(post, limits):
    with Peer(silent, read_requests=False) as peer:
        url = peer.url.replace("http:", "https:")
        reply = transport.send(post(url), replace(limits, connect_timeout_s=0.5))
    assert (reply.phase, reply.reason, reply.maybe_sent) == (Phase.HANDSHAKE, Reason.TLS_TIMEOUT, False)
    assert reply.elapsed_ms < 1000


def test_a_trickled_tls_handshake_ends_at_the_connect_timeout(post, limits):
    record = b"\x16\x03\x03\x10\x00" + b"\x02" * 200
    with Peer(trickles(record, every=0.1), read_requests=False) as peer:
        url = peer.url.replace("http:", "https:")
        reply = transport.send(post(url), replace(limits, connect_timeout_s=0.5))
    assert (reply.reason, reply.maybe_sent) == (Reason.TLS_TIMEOUT, False)
    assert reply.elapsed_ms < 1000


def test_a_peer_that_speaks_no_tls_was_sent_nothing(post, limits):
    with Peer(replies(b"HTTP/1.1 400 Bad Request\r\n\r\n"), read_requests=False) as peer:
        reply = transport.send(post(peer.url.replace("http:", "https:")), limits)
    assert (reply.phase, reply.reason, reply.maybe_sent) == (Phase.HANDSHAKE, Reason.TLS_FAILED, False)


def test_an_untrusted_certificate_was_not_sent(post, limits, certificate, tls_with):
    with Peer(replies(GOOD), tls=tls_with(certificate)) as peer:
        reply = transport.send(post(peer.url), limits)
    assert (reply.phase, reply.reason, reply.maybe_sent) == (Phase.HANDSHAKE, Reason.TLS_CERTIFICATE, False)
    assert peer.requests == []


def test_a_certificate_for_another_host_was_not_sent(post, limits, certificate_of_another, tls_with):
    with Peer(replies(GOOD), tls=tls_with(certificate_of_another)) as peer:
        reply = transport.send(post(peer.url), replace(limits, ca_file=str(certificate_of_another)))
    assert (reply.reason, reply.maybe_sent) == (Reason.TLS_CERTIFICATE, False)
    assert peer.requests == []


def test_old_tls_is_not_spoken(certificate):
    assert wire.tls_context(str(certificate)).minimum_version == wire.ssl.TLSVersion.TLSv1_2


def test_a_missing_file_of_roots_was_not_sent(post, limits):
    reply = transport.send(post("https://127.0.0.1:1/"), replace(limits, ca_file="/nowhere.pem"))
    assert (reply.phase, reply.reason, reply.maybe_sent) == (Phase.START, Reason.TLS_SETUP, False)


def test_past_send_by_not_one_byte_arrives(post, limits):
    with Peer(replies(GOOD)) as peer:
        reply = transport.send(post(peer.url), replace(limits, send_by=boot_clock() - 0.001))
        peer.closed_by_client.wait(2)
    assert (reply.reason, reply.maybe_sent) == (Reason.TOO_LATE, False)
    assert reply.phase < Phase.FIRST_BYTE
    assert peer.requests == []
    assert peer.closed_by_client.is_set()


def test_send_by_is_looked_at_after_connecting_and_not_before(post, limits, monkeypatch):
    """A process that sleeps while it connects must not send when it wakes."""
    opened = wire._open

    def slow(addresses, trace):
        time.sleep(0.3)
        return opened(addresses, trace)

    monkeypatch.setattr(wire, "_open", slow)
    with Peer(replies(GOOD)) as peer:
        reply = transport.send(post(peer.url), replace(limits, send_by=boot_clock() + 0.15))
    assert (reply.phase, reply.reason) == (Phase.CONNECT, Reason.TOO_LATE)
    assert peer.requests == []


def test_send_by_holds_for_a_reused_connection_too(post, limits):
    reuse = replace(limits, reuse=True)
    with Peer(replies(GOOD), keep_alive=True) as peer:
        transport.send(post(peer.url), reuse)
        reply = transport.send(post(peer.url), replace(reuse, send_by=boot_clock() - 0.001))
    assert (reply.reason, reply.maybe_sent) == (Reason.TOO_LATE, False)
    assert len(peer.requests) == 1


# From the first byte on: it may have been sent, and it is sent once.

AFTER = [
    ("closes after the POST", closes, Reason.CLOSED, Phase.SENT, None),
    ("resets after the POST", resets, Reason.RESET, Phase.SENT, None),
    ("is silent", silent, Reason.READ_TIMEOUT, Phase.SENT, None),
    ("closes inside the status line", replies(b"HTTP/1.1 20"), Reason.CLOSED, Phase.HEADERS, None),
    ("closes inside the headers", replies(b"HTTP/1.1 422 No\r\nX: "), Reason.CLOSED, Phase.HEADERS, None),
    ("closes between headers", replies(b"HTTP/1.1 422 No\r\nX: y\r\n"), Reason.CLOSED, Phase.HEADERS, None),
    ("speaks another protocol", replies(b"220 smtp ready\r\n"), Reason.BAD_RESPONSE, Phase.HEADERS, None),
    ("stalls inside the headers", stalls_after(b"HTTP/1.1 200"), Reason.DEADLINE, Phase.HEADERS, None),
    (
        "says 100 for ever",
        trickles(b"HTTP/1.1 100 C\r\n\r\n" * 40, 0.02),
        Reason.DEADLINE,
        Phase.HEADERS,
        None,
    ),
    ("stalls before the body", stalls_after(answer(b"", length=9)), Reason.DEADLINE, Phase.BODY, 200),
    ("stalls inside the body", stalls_after(answer(b"{", length=9)), Reason.DEADLINE, Phase.BODY, 200),
    ("resets inside the body", resets_after(answer(b"{", length=9)), Reason.RESET, Phase.BODY, 200),
    ("cuts the body", replies(answer(b'{"id":', length=40)), Reason.CUT_BODY, Phase.BODY, 200),
    (
        "cuts a chunked body",
        replies(answer(b'9\r\n{"id":', "Transfer-Encoding: chunked", length=-1)),
        Reason.CUT_BODY,
        Phase.BODY,
        200,
    ),
    (
        "ends between chunks",
        replies(answer(b"1\r\n{\r\n", "Transfer-Encoding: chunked", length=-1)),
        Reason.CUT_BODY,
        Phase.BODY,
        200,
    ),
    (
        "sends garbage for chunks",
        replies(answer(b"-7\r\nzz\r\n" * 9, "Transfer-Encoding: chunked", length=-1)),
        None,
        Phase.BODY,
        200,
    ),
    (
        "sends bad gzip",
        replies(answer(b"no gzip", "Content-Encoding: gzip")),
        Reason.BODY_UNDECODABLE,
        Phase.BODY,
        200,
    ),
    (
        "sends cut gzip",
        replies(answer(gzip.compress(b'{"id":"re_1"}')[:-5], "Content-Encoding: gzip")),
        Reason.BODY_UNDECODABLE,
        Phase.BODY,
        200,
    ),
    (
        "uses a coding nobody asked for",
        replies(answer(b"x", "Content-Encoding: br")),
        Reason.BODY_UNDECODABLE,
        Phase.BODY,
        200,
    ),
    (
        "sends a gzip bomb",
        replies(answer(gzip.compress(b" " * 30_000_000), "Content-Encoding: gzip")),
        Reason.BODY_TOO_LARGE,
        Phase.BODY,
        200,
    ),
    ("sends too much", replies(answer(b" " * 1_100_000)), Reason.BODY_TOO_LARGE, Phase.BODY, 200),
    ("contradicts itself on length", replies(answer(b"x", "Content-Length: 7")), None, Phase.HEADERS, None),
]


@pytest.mark.parametrize(
    ("script", "reason", "phase", "status"), [row[1:] for row in AFTER], ids=[row[0] for row in AFTER]
)
def test_it_may_have_been_sent_once_when_the_peer(script, reason, phase, status, post, limits):
    with Peer(script) as peer:
        reply = transport.send(post(peer.url), replace(limits, deadline_s=0.8))
        time.sleep(0.05)
    assert reply.maybe_sent
    assert not reply.complete
    assert reply.reason == reason or reason is None, reply
    assert reply.reason is not Reason.OK
    assert (reply.phase, reply.status) == (phase, status), reply
    assert reply.elapsed_ms < 1200
    assert (peer.connections, len(peer.requests)) == (1, 1)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (breaks_encryption, Reason.TLS_BROKEN),
        (closes, Reason.CLOSED),
        (silent, Reason.READ_TIMEOUT),
        (trickles(GOOD, every=0.1), Reason.DEADLINE),
        # Without a length the end of the stream is the end of the body, and here nobody vouches for it.
        (replies(answer(b"{}", length=-1)), Reason.CUT_BODY),
    ],
    ids=["a broken record", "closing", "silence", "trickling", "an unannounced end"],
)
def test_over_tls_it_may_have_been_sent_after(script, reason, post, limits, certificate, tls_with):
    with Peer(script, tls=tls_with(certificate)) as peer:
        reply = transport.send(
            post(peer.url), replace(limits, connect_timeout_s=1, deadline_s=1.2, ca_file=str(certificate))
        )
    assert reply.reason is reason, reply
    assert reply.maybe_sent
    assert not reply.complete
    assert (peer.connections, len(peer.requests)) == (1, 1)


@pytest.mark.parametrize(
    ("script", "phase", "status"),
    [
        (trickles(GOOD, every=0.7), Phase.HEADERS, None),
        (trickles(b" " * 100, every=0.1, start=answer(b"", length=100)), Phase.BODY, 200),
        (
            trickles(b"1\r\nx\r\n" * 50, 0.03, answer(b"", "Transfer-Encoding: chunked", length=-1)),
            Phase.BODY,
            200,
        ),
    ],
    ids=["headers", "body", "chunks"],
)
def test_trickling_does_not_stretch_the_deadline(script, phase, status, post, limits):
    with Peer(script) as peer:
        started = time.monotonic()
        reply = transport.send(post(peer.url), replace(limits, deadline_s=1.0))
        assert 0.9 < time.monotonic() - started < 1.3
    assert (reply.phase, reply.reason, reply.status) == (phase, Reason.DEADLINE, status)
    assert len(peer.requests) == 1


def test_a_peer_that_stops_reading_a_large_request_ends_at_the_deadline(post, limits):
    with Peer(lambda conn: time.sleep(2), read_requests=False) as peer:
        reply = transport.send(post(peer.url, b"x" * 30_000_000), replace(limits, deadline_s=0.8))
    assert (reply.phase, reply.reason, reply.maybe_sent) == (Phase.FIRST_BYTE, Reason.SEND_TIMEOUT, True)
    assert reply.elapsed_ms < 1200


def test_a_peer_that_resets_inside_a_large_request_may_have_got_it(post, limits):
    def script(conn):
        conn.recv(1000)
        resets(conn)

    with Peer(script, read_requests=False) as peer:
        reply = transport.send(post(peer.url, b"x" * 30_000_000), limits)
    assert (reply.phase, reply.reason, reply.maybe_sent) == (Phase.FIRST_BYTE, Reason.RESET, True)
    assert peer.connections == 1


def test_what_arrived_of_a_cut_body_is_kept_as_evidence(post, limits):
    with Peer(replies(answer(b'{"id":"re_1', length=90))) as peer:
        reply = transport.send(post(peer.url), limits)
    assert (reply.status, reply.body) == (200, b'{"id":"re_1')


def test_a_body_too_large_is_cut_at_the_cap(post, limits):
    with Peer(replies(answer(b"x" * 5000))) as peer:
        reply = transport.send(post(peer.url), replace(limits, body_cap=1000))
    assert (len(reply.body), reply.reason) == (1000, Reason.BODY_TOO_LARGE)


def test_a_body_as_large_as_the_cap_is_whole(post, limits):
    with Peer(replies(answer(b"x" * 1000))) as peer:
        reply = transport.send(post(peer.url), replace(limits, body_cap=1000))
    assert (reply.complete, len(reply.body)) == (True, 1000)


def test_a_gzip_bomb_does_not_fill_the_memory(post, limits):
    bomb = answer(gzip.compress(b" " * 60_000_000), "Content-Encoding: gzip")
    with Peer(replies(bomb)) as peer:
        tracemalloc.start()
        try:
            reply = transport.send(post(peer.url), limits)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert reply.reason is Reason.BODY_TOO_LARGE
    assert peak < 8_000_000


# Whole answers that are not what one hoped for.


def test_good_gzip_is_unpacked(post, limits):
    with Peer(replies(answer(gzip.compress(b'{"id":"re_1"}'), "Content-Encoding: gzip"))) as peer:
        reply = transport.send(post(peer.url), limits)
    assert (reply.complete, reply.body) == (True, b'{"id":"re_1"}')


def test_html_with_200_is_whole_and_the_connector_judges_it(post, limits):
    with Peer(replies(answer(b"<h1>Sign in</h1>"))) as peer:
        reply = transport.send(post(peer.url), limits)
    assert (reply.complete, reply.status, reply.body) == (True, 200, b"<h1>Sign in</h1>")


def test_a_cut_without_a_length_can_not_be_seen_here_without_tls(post, limits):
    """Hence strict JSON in every connector: half an object does not parse."""
    with Peer(replies(answer(b'{"id":', length=-1))) as peer:
        reply = transport.send(post(peer.url), limits)
    assert (reply.complete, reply.body) == (True, b'{"id":')


def test_an_empty_answer_is_whole(post, limits):
    with Peer(replies(b"HTTP/1.1 204 No Content\r\nContent-Encoding: gzip\r\n\r\n")) as peer:
        reply = transport.send(post(peer.url), limits)
    assert (reply.complete, reply.status, reply.body) == (True, 204, b"")


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
def test_redirects_are_not_followed(status, post, limits):
    with Peer(replies(GOOD)) as elsewhere:
        moved = answer(b"", f"Location: {elsewhere.url}", status=status)
        with Peer(replies(moved)) as peer:
            reply = transport.send(post(peer.url), limits)
    assert (reply.complete, reply.status) == (True, int(status[:3]))
    assert reply.headers["location"] == elsewhere.url
    assert (len(peer.requests), elsewhere.connections) == (1, 0)


@pytest.mark.parametrize("status", ["408 Timeout", "425 Early", "429 Slow", "500 Oops", "502 Bad", "503 Busy"])
def test_nothing_is_retried_whatever_the_status(status, post, limits):
    with Peer(replies(answer(b"{}", "Retry-After: 0", status=status))) as peer:
        reply = transport.send(post(peer.url), limits)
        time.sleep(0.05)
    assert (reply.complete, reply.status) == (True, int(status[:3]))
    assert (peer.connections, len(peer.requests)) == (1, 1)


def test_a_look_up_is_not_retried_either(limits):
    with Peer(closes) as peer:
        reply = transport.send(Call("GET", peer.url + "?a=b", {}), limits)
        time.sleep(0.05)
    assert reply.maybe_sent
    assert [request.split(b" ")[1] for request in peer.requests] == [b"/v1/refunds?a=b"]


# Connections.


def test_without_reuse_every_call_has_its_own_connection(post, limits):
    with Peer(replies(GOOD), keep_alive=True) as peer:
        for _ in range(3):
            assert transport.send(post(peer.url), limits).complete
    assert peer.connections == 3


def test_with_reuse_one_connection_serves_many_calls(post, limits):
    with Peer(replies(GOOD), keep_alive=True) as peer:
        for _ in range(3):
            assert transport.send(post(peer.url), replace(limits, reuse=True)).complete
    assert (peer.connections, len(peer.requests)) == (1, 3)


def test_a_connection_belongs_to_one_thread(post, limits):
    reuse = replace(limits, reuse=True)
    with Peer(replies(GOOD), keep_alive=True) as peer:
        transport.send(post(peer.url), reuse)
        other = threading.Thread(target=lambda: (transport.send(post(peer.url), reuse), transport.close_idle()))
        other.start()
        other.join()
    assert peer.connections == 2


def test_a_connection_is_not_taken_into_a_forked_process(post, limits):
    reuse = replace(limits, reuse=True)
    with Peer(replies(GOOD), keep_alive=True) as peer:
        transport.send(post(peer.url), reuse)
        child = os.fork()
        if child == 0:
            os._exit(0 if wire.idle.take(next(iter(wire.idle.connections))) is None else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert transport.send(post(peer.url), reuse).complete
    assert peer.connections == 1


def test_a_connection_never_opens_itself_again_in_mid_request(limits):
    with Peer(replies(GOOD)) as peer:
        connection = wire.Connection("127.0.0.1", peer.port, None)
        now = boot_clock()
        connection.begin(wire.Trace(connect_until=now + 1, until=now + 1, send_by=None))
        with pytest.raises(NotConnected):
            connection.request("POST", "/")
    assert peer.connections == 0


def test_a_connection_that_the_peer_has_closed_meanwhile_is_not_used(post, limits):
    reuse = replace(limits, reuse=True)
    with Peer(replies(GOOD)) as peer:
        assert transport.send(post(peer.url), reuse).complete
        time.sleep(0.1)
        assert transport.send(post(peer.url), reuse).complete
    assert (peer.connections, len(peer.requests)) == (2, 2)


def test_a_stale_connection_that_dies_after_the_first_byte_is_not_sent_again(post, limits):
    answers = replies(GOOD), resets
    with Peer(in_turn(*answers), keep_alive=True) as peer:
        reuse = replace(limits, reuse=True)
        assert transport.send(post(peer.url), reuse).complete
        reply = transport.send(post(peer.url, b"second"), reuse)
        time.sleep(0.1)
    assert reply.maybe_sent
    assert reply.reason in (Reason.RESET, Reason.CLOSED)
    assert peer.connections == 1
    assert sum(request.endswith(b"second") for request in peer.requests) == 1


def test_a_connection_is_not_kept_after_a_broken_answer(post, limits):
    answers = replies(answer(b"no gzip", "Content-Encoding: gzip")), replies(GOOD)
    with Peer(in_turn(*answers), keep_alive=True) as peer:
        reuse = replace(limits, reuse=True)
        assert not transport.send(post(peer.url), reuse).complete
        assert transport.send(post(peer.url), reuse).complete
    assert peer.connections == 2


def test_proxies_in_the_environment_are_ignored(post, limits, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with Peer(replies(GOOD)) as peer:
        assert transport.send(post(peer.url), limits).complete


def test_netrc_is_not_read(post, limits, monkeypatch, tmp_path):
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login a password b\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    with Peer(replies(GOOD)) as peer:
        assert transport.send(post(peer.url), limits).complete
    assert b"authorization" not in peer.requests[0].lower()


# Interruptions from outside.


class JobTimeoutError(Exception):
    """As rq raises it: a plain Exception out of a signal handler."""


@pytest.mark.parametrize("raised", [JobTimeoutError, TimeoutError, KeyboardInterrupt])
@pytest.mark.parametrize(
    "script",
    [silent, stalls_after(b"HTTP/1.1 2"), stalls_after(answer(b"{", length=9))],
    ids=["waiting", "headers", "body"],
)
def test_an_exception_from_a_signal_handler_passes_and_the_connection_is_closed(script, raised, post, limits):
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals arrive in the main thread only")

    def alarm(*_):
        raise raised("the job's time is over")

    with Peer(lambda conn: (script(conn), peer.closed_by_client.set())) as peer:
        before = signal.signal(signal.SIGALRM, alarm)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            with pytest.raises(raised, match="the job's time is over"):
                transport.send(post(peer.url), Limits(connect_timeout_s=5, deadline_s=5))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert peer.closed_by_client.wait(1)
    assert len(peer.requests) == 1


# Calls that can't be made.


@pytest.mark.parametrize(
    "call",
    [
        Call("POST", "ftp://127.0.0.1/", {}),
        Call("POST", "http:///path", {}),
        Call("POST", "http://u:p@127.0.0.1/", {}),
        Call("POST", "http://127.0.0.1/#x", {}),
        Call("POST", "http://127.0.0.1/a b", {}),
        Call("POST", "http://127.0.0.1/\r\nX: y", {}),
        Call("POST", "http://127.0.0.1/ä", {}),
        Call("POST", "http://127.0.0.1:99999/", {}),
        Call("POST", "http://" + "a" * 64 + ".example/", {}),
        Call("PO ST", "http://127.0.0.1/", {}),
        Call("POST\r\n", "http://127.0.0.1/", {}),
        Call("POST", "http://127.0.0.1/", {"X": "a\r\nY: b"}),
        Call("POST", "http://127.0.0.1/", {"X": "ä"}),
        Call("POST", "http://127.0.0.1/", {"X:": "a"}),
        Call("POST", "http://127.0.0.1/", {"x": "a", "X": "b"}),
        Call("POST", "http://127.0.0.1/", {"Content-Length": "1"}),
        Call("POST", "http://127.0.0.1/", {"Transfer-Encoding": "chunked"}),
        Call("POST", "http://127.0.0.1/", {"Host": "elsewhere"}),
    ],
    ids=lambda call: repr((call.method, call.url[:40], dict(call.headers))),
)
def test_a_malformed_call_is_refused_before_anything_happens(call, limits, monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: pytest.fail("it went to the network"))
    with pytest.raises(ValueError):
        transport.send(call, limits)


# Words.


def test_phases_are_ordered_by_time_and_not_by_spelling():
    assert list(Phase) == sorted(Phase, key=lambda phase: phase.rank)
    assert Phase.BODY > Phase.FIRST_BYTE > Phase.HANDSHAKE >= Phase.HANDSHAKE
    assert Phase.DONE >= "sent"
    assert max(Phase.BODY, Phase.RESOLVE) is Phase.BODY


def test_every_reason_has_a_sentence():
    assert set(transport.REASONS) == set(Reason)
    assert all(text.endswith(".") and text[0].isupper() for text in transport.REASONS.values())


def test_the_boot_clock_moves_forward():
    assert boot_clock() <= boot_clock()
