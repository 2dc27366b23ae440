"""`manage.py demo`: everything on one machine, with the sandbox, seeded data and live traffic."""

import contextlib
import fcntl
import json
import os
import shutil
import socket
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection, connections

from config import migrating, parts, servers
from config.supervisor import NotReady, Part, Stopped, Supervisor

# Set for the second start of this process, whose settings are the demo's.
_MARK = "LANDED_DEMO"


class Command(BaseCommand):
    help = "Starts everything with made-up settings on the loopback interface, until SIGTERM."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=0, help="of the web server; a free one by default")
        parser.add_argument("--data", type=Path, metavar="DIR", help="kept between runs; var/demo by default")
        parser.add_argument("--fresh", action="store_true", help="empty the data folder first")
        parser.add_argument("--no-traffic", action="store_true", help="only what you propose yourself")
        parser.add_argument("--print-json", action="store_true", help="one line of JSON instead of the banner")
        parser.add_argument("--stripe", action="store_true", help="with localstripe beside the sandbox")
        parser.add_argument("--workers-rq", type=int, default=2, help="processes that send and check")
        parser.add_argument("--clocks", type=int, default=1, help="processes that sweep")

    def handle(self, *args: Any, **options: Any) -> None:
        data = (options["data"] or settings.BASE_DIR / "var" / "demo").resolve()
        if os.environ.get(_MARK) != str(os.getpid()):
            _start_over(data)
        data.mkdir(parents=True, exist_ok=True)
        with _only_one(data):
            if options["fresh"]:
                _empty(data)
            self._run(data, options)

    def _run(self, data: Path, options: dict[str, Any]) -> None:
        supervisor = Supervisor(grace_s=3.0)
        supervisor.obey_signals()
        try:
            facts = _start(supervisor, data, options)
            self._tell(facts, as_json=options["print_json"])
            supervisor.watch()
        except Stopped:
            return
        except NotReady as why:
            raise CommandError(str(why)) from None
        finally:
            supervisor.stop()
            servers.remove_socket_folder(data, servers.socket_of(settings.REDIS_URL))

    def _tell(self, facts: dict[str, Any], *, as_json: bool) -> None:
        self.stdout.write(json.dumps(facts) if as_json else _banner(facts))
        self.stdout.flush()


def _start_over(data: Path) -> None:
    """Becomes the demo's own process (same pid): settings are read once, so they must be right from the start."""
    for name in ("SECRET_KEY", "ALLOWED_HOSTS", "CSRF_TRUSTED_ORIGINS", "SECURE_SSL_REDIRECT", "EMAIL_URL"):
        os.environ.pop(name, None)
    os.environ.update({_MARK: str(os.getpid()), "LANDED_MODE": "demo", "LANDED_DATA": str(data)})
    os.environ["REDIS_URL"] = servers.redis_url(servers.socket_in(data))
    os.environ.setdefault("LANDED_CLOCK_S", "0.5")
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *sys.argv])  # noqa: S606


@contextlib.contextmanager
def _only_one(data: Path) -> Iterator[None]:
    with (data / "demo.lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CommandError(f"Another demo runs in {data}. Stop it, or use --data.") from None
        yield


def _empty(data: Path) -> None:
    if connection.vendor != "sqlite":
        raise CommandError("--fresh empties the data folder only. Empty the database at DATABASE_URL yourself.")
    for found in [*data.glob("landed.sqlite3*"), *data.glob("books.sqlite3*")]:
        found.unlink()
    # Anchors of a database that is no more would say that everything is gone.
    for folder in ("run", "anchors"):
        shutil.rmtree(data / folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _start(supervisor: Supervisor, data: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Starts and seeds everything; returns what there is to tell. Raises NotReady or Stopped."""
    from config.demo import seeding  # noqa: PLC0415  needs the demo's settings

    def log(name: str) -> Path:
        return parts.file_of(data, name, "log")

    sandbox_port, web_port = _free_port(), options["port"] or _free_port()
    sandbox_url, base_url = f"http://127.0.0.1:{sandbox_port}", f"http://127.0.0.1:{web_port}"
    redis_socket = servers.socket_of(settings.REDIS_URL)
    redis = parts.redis(redis_socket, log=log("redis"))
    sandbox = parts.sandbox(port=sandbox_port, books=data / "books.sqlite3", log=log("sandbox"))
    supervisor.launch(redis, sandbox)
    stripe_url = _start_stripe(supervisor, log("stripe")) if options["stripe"] else ""
    migrating.migrate()
    supervisor.check_stop()

    env = {"LANDED_PUBLIC_URL": base_url}
    web = parts.web(host="127.0.0.1", port=web_port, processes=1, threads=parts.WEB_THREADS, env=env, log=log("web"))
    workers = [
        parts.worker(n, beat=parts.file_of(data, f"worker-{n}", "beat"), env=env, log=log(f"worker-{n}"))
        for n in range(1, options["workers_rq"] + 1)
    ]
    clocks = [
        parts.clock(n, beat=parts.file_of(data, f"clock-{n}", "beat"), env=env, log=log(f"clock-{n}"))
        for n in range(1, options["clocks"] + 1)
    ]
    supervisor.launch(web, *workers, *clocks)
    # While they start: hashing six passwords takes a while.
    tokens = seeding.seed(sandbox_url=sandbox_url, stripe_url=stripe_url)
    known = seeding.known_request_keys()
    connections.close_all()
    supervisor.await_answers()
    _make_cases(base_url, sandbox_url, tokens["billing-bot"], known)
    supervisor.check_stop()
    if not options["no_traffic"]:
        supervisor.launch(_traffic(base_url, sandbox_url, tokens["billing-bot"], log("traffic")))
    return {
        "base_url": base_url,
        "sandbox_url": sandbox_url,
        "agent_token": tokens["support-bot"],
        "logins": seeding.logins(),
        "pid": os.getpid(),
        "data": str(data),
        "redis_url": settings.REDIS_URL,
        "worker_pids": [worker.pid for worker in workers],
        "clock_pids": [clock.pid for clock in clocks],
        "web_pid": web.pid,
        "redis_pid": redis.pid,
        "sandbox_pid": sandbox.pid,
    } | (_stripe_facts(stripe_url) if stripe_url else {})


def _start_stripe(supervisor: Supervisor, log: Path) -> str:
    """Starts localstripe and returns where it is; the workers find its key in their environment."""
    from config.demo import stripe  # noqa: PLC0415  a development dependency, needed here only

    port = _free_port()
    os.environ["LANDED_DEMO_STRIPE_KEY"] = stripe.SECRET
    supervisor.launch(stripe.part(port, log=log))
    return f"http://127.0.0.1:{port}"


def _stripe_facts(url: str) -> dict[str, Any]:
    from config.demo import stripe  # noqa: PLC0415

    return {"stripe_url": url, "stripe_charges": stripe.seed(url)}


def _make_cases(base_url: str, sandbox_url: str, token: str, known: frozenset[str]) -> None:
    from config.demo import cases, clients  # noqa: PLC0415

    cases.make_cases(clients.Landed(base_url, token), clients.Sandbox(sandbox_url), known=known)


def _traffic(base_url: str, sandbox_url: str, token: str, log: Path) -> Part:
    env = {
        "LANDED_DEMO_URL": base_url,
        "LANDED_DEMO_SANDBOX_URL": sandbox_url,
        "LANDED_DEMO_TOKEN": token,
    }
    return Part("traffic", [sys.executable, "-m", "config.demo.traffic"], env=env, log=log)


def _banner(facts: dict[str, Any]) -> str:
    logins = "\n".join(
        f"    {login['role']:<11}{login['username']:<8}{login['password']}" for login in facts["logins"]
    )
    return f"""
Landed runs at {facts["base_url"]}/

  The queue    {facts["base_url"]}/
  The API      {facts["base_url"]}/api/v1/docs
  The sandbox  {facts["sandbox_url"]}/v1/ledger
  Logs, data   {facts["data"]}/run

  Logins, known to everybody and good for this demo only:
{logins}

  Propose a refund whose answer gets lost, and see what became of it:

    curl -sX POST {facts["sandbox_url"]}/_control/faults -d '{{"order": "order-4812", "fault": "lose_response"}}'
    curl -sX POST {facts["base_url"]}/api/v1/intents \\
      -H 'Authorization: Bearer {facts["agent_token"]}' \\
      -H 'Content-Type: application/json' -H 'Idempotency-Key: "first-try"' -H 'Prefer: wait=10' \\
      -d '{{"kind": "refund", "subject": "order-4812", "amount": "50.00", "currency": "EUR"}}'

{_stripe_words(facts)}Ctrl-C stops all of it; the data stays for the next time (--fresh begins anew).
"""


def _stripe_words(facts: dict[str, Any]) -> str:
    if "stripe_url" not in facts:
        return ""
    charge, *others = facts["stripe_charges"]
    return f"""  Refund a card payment of 200.00 EUR, or a part of it, at {facts["stripe_url"]}
  (others: {", ".join(others[:3])}, …):

    curl -sX POST {facts["base_url"]}/api/v1/intents \\
      -H 'Authorization: Bearer {facts["agent_token"]}' \\
      -H 'Content-Type: application/json' -H 'Idempotency-Key: "first-card"' -H 'Prefer: wait=10' \\
      -d '{{"kind": "card_refund", "subject": "order-1", "amount": "20.00", "currency": "EUR",
           "params": {{"charge": "{charge}"}}}}'

"""
