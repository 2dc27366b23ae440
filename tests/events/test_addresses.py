"""Where a webhook must not go."""

import socket
from typing import Any

import pytest

from actions import times
from actions.models import DeliveryTry
from actions.notifying import addresses, posting
from actions.notifying.claiming import Claimed
from actions.transport import Call
from config import boot
from tests.events.making import deliver, make_endpoint
from tests.events.receiving import Receiver, receiving
from tests.events.test_delivering import tell
from tests.factories import make_agent

PRIVATE = [
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "0",
    "0.0.0.0",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:a9fe:a9fe]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[fec0::1]",
    "224.0.0.1",
    "[ff02::1]",
    "255.255.255.255",
    "240.0.0.1",
    "192.0.0.192",
    "168.63.129.16",  # public by its number, and inside every virtual machine of Azure
    "[::ffff:168.63.129.16]",
]


@pytest.mark.parametrize("host", PRIVATE)
def test_a_private_address_is_refused_however_it_is_spelt(host: str) -> None:
    assert "is not a public address" in addresses.fault(f"https://{host}/hooks")
    reply = post(f"http://{host}:9/hooks")
    assert (reply.status, reply.maybe_sent) == (None, False)
    assert "not a public address" in reply.detail


@pytest.mark.parametrize("address", ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"])
def test_a_public_address_is_not(address: str) -> None:
    addresses.vet(address)
    assert addresses.fault("https://receiver.example/hooks") == ""


@pytest.mark.parametrize(
    "url",
    ["ftp://a.example/", "https://me:secret@a.example/", "https:///x", "https://a.example/#x", "https://a b/", ""],
)
def test_what_is_no_address_of_a_receiver_is_refused(url: str) -> None:
    assert addresses.fault(url)


def test_on_a_host_without_ipv6_the_other_addresses_of_a_name_still_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("requests_hardened.ip_filter.allowed_gai_family", lambda: socket.AF_INET)
    addresses.vet("2606:2800:21f:cb07:6820:80da:af6b:8b2c")
    for inside in ("::1", "fd00:ec2::254", "fec0::1", "fe80::1%eth0", "ff02::1", "::ffff:7f00:1"):
        with pytest.raises(addresses.AddressRefused):
            addresses.vet(inside)


def test_production_sends_over_https_only_and_knows_no_private_receivers(settings: Any) -> None:
    settings.MODE = "production"
    assert "https only" in addresses.fault("http://receiver.example/hooks")
    settings.LANDED_PRIVATE_RECEIVERS = ["127.0.0.1:8000"]
    assert any("LANDED_PRIVATE_RECEIVERS" in problem for problem in boot.settings_problems())


def post(url: str) -> Any:
    return posting.post(Claimed(1, 1, 1, times.now(), Call("POST", url, {}, b"{}")))


@pytest.fixture(autouse=True)
def _db(db: None) -> None:
    """`times.now` asks the database."""


def test_a_name_that_leads_inside_is_refused_and_nothing_is_sent(receiver: Receiver, settings: Any) -> None:
    url = receiver.url.replace("127.0.0.1", "localhost")
    reply = post(url)
    assert (reply.status, receiver.came) == (None, [])
    assert "not a public address" in reply.detail
    settings.LANDED_PRIVATE_RECEIVERS = [url.removeprefix("http://").split("/")[0]]
    assert post(url).status == 204, "unless the setting names it"


def test_a_name_that_changes_between_the_look_and_the_connection_gains_nothing(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is resolved once; what was looked at is what is connected to."""
    port = int(receiver.place.split(":")[1])
    resolved: list[str] = []
    real = socket.getaddrinfo

    def rebinding(host: Any, *args: Any, **kwargs: Any) -> Any:
        if host != "rebinding.example":
            return real(host, *args, **kwargs)
        if kwargs.get("flags", 0) & socket.AI_NUMERICHOST:
            raise socket.gaierror
        resolved.append(host)
        # TEST-NET addresses are private to the library; a documentation one that isn't can't be reached from here.
        inside = "127.0.0.1" if len(resolved) > 1 else "93.184.215.14"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (inside, port))]

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    connected: list[Any] = []

    def connect(self: socket.socket, address: Any) -> None:
        connected.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr("actions.wire._TimedSocket.connect", connect, raising=False)
    assert post(f"http://rebinding.example:{port}/").status is None
    assert (connected, len(resolved)) == ([("93.184.215.14", port)], 1)
    post(f"http://rebinding.example:{port}/")
    assert connected == [("93.184.215.14", port)], "and now that it leads inside, nothing is connected to"


def test_of_several_addresses_one_private_one_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    both = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.215.14", 9)),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.1", 9)),
    ]
    monkeypatch.setattr("actions.wire.resolve", lambda *_: both)
    assert "10.0.0.1" in post("http://mixed.example:9/").detail


def test_an_endpoint_that_was_allowed_once_is_refused_when_it_is_no_more(receiver: Receiver, settings: Any) -> None:
    agent = make_agent()
    make_endpoint(agent, receiver.url)
    tell(agent)
    settings.LANDED_PRIVATE_RECEIVERS = []
    assert deliver() == 1
    assert receiver.came == []
    assert "not a public address" in DeliveryTry.objects.get().error


def test_environment_proxies_are_not_asked(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert post(receiver.url).status == 204
        assert proxy.came == []
