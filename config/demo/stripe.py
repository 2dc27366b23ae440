"""A Stripe for the demo and the tests: localstripe as a process of its own, with payments to refund.

localstripe (a development dependency) keeps its state in memory, knows no idempotency keys and refunds more than was
paid: what Landed must not rely on is missing.
"""

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import requests

from config import children, parts
from config.supervisor import Part

SECRET = "sk_test_localstripe"  # noqa: S105  it takes any that begins with sk_
_TIMEOUT_S = 10
# As `python -m localstripe --from-scratch`, but on the loopback interface only, with or without IPv6, and
# without writing all it knows to /tmp at every change.
_PROGRAM = """
import sys
from aiohttp import web
from localstripe import resources, server
resources.Store.dump_to_disk = lambda store: None
web.run_app(server.app, host="127.0.0.1", port=int(sys.argv[1]), print=None)
"""


def start(log: Path) -> tuple["subprocess.Popen[bytes]", str]:
    """A running, empty localstripe and its base URL; it ends with us at the latest. Raises RuntimeError."""
    for _ in range(3):  # somebody may take the port before it does
        port = _free_port()
        process = children.start([sys.executable, "-c", _PROGRAM, str(port)], log=log)
        url = f"http://127.0.0.1:{port}"
        if children.wait_until(lambda url=url: _answers(url), within_s=15) and process.poll() is None:  # type: ignore[misc]
            return process, url
        children.stop([process], grace_s=1)
    raise RuntimeError(f"localstripe did not start:\n{log.read_text()}")


def part(port: int, *, log: Path) -> Part:
    """The same, as one of the demo's parts: started again when it dies, empty."""
    command = [sys.executable, "-c", _PROGRAM, str(port)]
    url = f"http://127.0.0.1:{port}/v1/charges"
    return Part("stripe", command, log=log, answers=lambda: parts.speaks_http(url), last=True)


def seed(
    base_url: str, *, amounts: tuple[tuple[int, str], ...] = ((20_000, "eur"),) * 8, secret: str = SECRET
) -> list[str]:
    """Makes a customer, and a payment by card for each amount as Stripe counts it. Returns the charges' ids."""
    stripe = Client(base_url, secret)
    card = stripe.card()
    customer = stripe.post("customers", email="customer@example.com", payment_method=card)["id"]
    return [stripe.charge(amount, currency, customer=customer, source=card) for amount, currency in amounts]


class Client:
    """As any program that speaks to Stripe; raises requests.HTTPError for a refusal."""

    def __init__(self, base_url: str, secret: str = SECRET) -> None:
        self._url = f"{base_url}/v1"
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers["Authorization"] = f"Bearer {secret}"

    def post(self, path: str, **fields: Any) -> dict[str, Any]:
        return self._read(self._session.post(f"{self._url}/{path}", data=fields, timeout=_TIMEOUT_S))

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        return self._read(self._session.get(f"{self._url}/{path}", params=query, timeout=_TIMEOUT_S))

    def card(self) -> str:
        number = {"card[number]": "4242424242424242", "card[exp_month]": 12, "card[exp_year]": 2050, "card[cvc]": 123}
        return str(self.post("payment_methods", type="card", **number)["id"])

    def charge(self, amount: int, currency: str, **fields: Any) -> str:
        return str(self.post("charges", amount=amount, currency=currency, **fields)["id"])

    def _read(self, reply: requests.Response) -> dict[str, Any]:
        reply.raise_for_status()
        found: dict[str, Any] = reply.json()
        return found


def _answers(url: str) -> bool:
    try:
        Client(url).get("charges", limit=1)
    except requests.ConnectionError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
