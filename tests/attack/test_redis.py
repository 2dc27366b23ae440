"""Redis is a doorbell: whatever it says or doesn't say, work goes on and nothing is sent twice."""

import contextlib
import json
import pickle
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import django_rq
import pytest
import redis

from actions import jobs
from actions.models import Intent
from actions.statuses import Status
from config.children import wait_until
from config.worker import Runner
from reconciliation.jobs import check_due
from tests.flow.world import World
from tests.running.test_worker import Noting
from tests.servers import Redis

pytestmark = pytest.mark.either_database


class Forgetful:
    """In front of a real Redis: forwards every command; while `drops` lasts, an answer is lost and the connection
    closed, so that the client sends the same command again."""

    def __init__(self, server: Path, own: Path) -> None:
        self.server, self.drops, self.dropped = server, 0, 0
        self.words = (b"RPUSH", b"EXEC", b"SET")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(own))
        self.listener.listen(64)
        self.url = f"unix://{own}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self._serve, args=[client], daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        upstream = socket.socket(socket.AF_UNIX)
        upstream.connect(str(self.server))
        lose = False
        with client, upstream, contextlib.suppress(OSError):
            while True:
                ready, _, _ = select.select([client, upstream], [], [], 30)
                if not ready:
                    return
                for one in ready:
                    data = one.recv(65_536)
                    if not data:
                        return
                    if one is client:
                        lose = lose or any(word in data.upper() for word in self.words)
                        upstream.sendall(data)
                    elif lose and self.drops > 0:
                        self.drops -= 1
                        self.dropped += 1
                        return
                    else:
                        lose = False
                        client.sendall(data)

    def close(self) -> None:
        self.listener.close()


@pytest.fixture
def forgetful(
    own_redis: Redis, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Forgetful]:
    found = Forgetful(own_redis.socket, own_redis.socket.parent / "p.sock")
    for queue in settings.RQ_QUEUES.values():
        monkeypatch.setitem(queue, "URL", f"{found.url}?socket_timeout=1&socket_connect_timeout=1")
    yield found
    found.close()


def burst() -> None:
    Runner([jobs.send_due, check_due]).run(burst=True)


def test_rings_whose_answers_are_lost_eleven_times_give_one_post_each(
    world: World, forgetful: Forgetful, own_redis: Redis
) -> None:
    for n in range(5):
        forgetful.drops = 11
        world.propose(f"order-{n}")
        own = redis.Redis.from_url(own_redis.url)
        own.delete("landed:bell:send")
        jobs.ring(jobs.SEND)
    forgetful.drops = 3
    for _ in range(3):
        burst()
    forgetful.drops = 0
    burst()
    assert forgetful.dropped > 0
    assert set(Intent.objects.values_list("status", flat=True)) == {Status.CONFIRMED}
    assert [len(world.sandbox.requests(f"order-{n}")) for n in range(5)] == [1] * 5


def test_a_lost_answer_never_costs_a_proposer_more_than_seconds(world: World, forgetful: Forgetful) -> None:
    forgetful.drops = 10_000
    begun = time.monotonic()
    assert world.propose("order-9").status == Status.RECORDED
    assert time.monotonic() - begun < 20


POISON: dict[str, Callable[["redis.Redis[bytes]"], object]] = {
    "pickled": lambda r: _job(r, data=pickle.dumps(("os.getpid", None, (), {}))),
    "not compressed": lambda r: _job(r, data=b"\x00\xff" * 50),
    "no such function": lambda r: _job(r, data=_json("no.such.function", [], {})),
    "ours with wild arguments": lambda r: _job(r, data=_json("actions.jobs.send_due", ["x" * 100], {"y": {}})),
    "ours with an endless budget as text": lambda r: _job(r, data=_json("actions.jobs.send_due", ["inf"], {})),
    "five megabytes": lambda r: _job(r, data=_json("actions.jobs.send_due", ["x" * 5_000_000], {})),
    "a hash without fields": lambda r: (r.hset("rq:job:p", "a", "b"), r.rpush("rq:queue:send", "p")),
    "a job that is not there": lambda r: r.rpush("rq:queue:send", "nothing"),
    "an id that is no text": lambda r: r.rpush("rq:queue:send", b"\xff\xfe\x00"),
    "a job that is a list": lambda r: (r.rpush("rq:job:p", "x"), r.rpush("rq:queue:send", "p")),
    "a queue that is a text": lambda r: r.set("rq:queue:send", "x"),
    "suspended": lambda r: r.set("rq:suspended", "1"),
    "a registry that is a text": lambda r: (r.set("rq:failed:send", "x"), r.set("rq:wip:send", "x")),
}


def _json(name: str, args: list[Any], kwargs: dict[str, Any]) -> bytes:
    return json.dumps([name, None, args, kwargs]).encode()


def _job(client: "redis.Redis[bytes]", *, data: bytes) -> None:
    fields = {"data": data, "created_at": "2026-01-01T00:00:00Z", "origin": "send", "status": "queued"}
    client.hset("rq:job:p", mapping=fields)  # type: ignore[arg-type]
    client.rpush("rq:queue:send", "p")


def test_a_poisoned_queue_costs_no_ring_and_no_worker(worker: Noting, bells: Redis) -> None:
    """One worker takes all of it, one after the other."""
    with redis.Redis.from_url(bells.url) as client:
        for name, poison in POISON.items():
            client.flushall()
            before = worker.count("ring") + worker.count("own")
            for _ in range(3):
                poison(client)
            with contextlib.suppress(redis.RedisError):
                django_rq.get_queue("send").enqueue_call("tests.running.noting.note", result_ttl=0)
            answered = wait_until(lambda: worker.count("ring") + worker.count("own") > before, within_s=10)  # noqa: B023  asked at once
            assert answered, f"{name}: by the ring, or by itself while rings can't come"
            assert worker.process.poll() is None, name


def test_a_redis_that_is_full_only_delays(worker: Noting, bells: Redis) -> None:
    """PING is answered, and every write refused: no ring comes, and the worker has to look by itself."""
    with redis.Redis.from_url(bells.url) as client:
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", "1")
        assert not jobs.ring(jobs.SEND)
        assert worker.wait_for("own", within_s=10)
        client.config_set("maxmemory", "0")
    assert wait_until(lambda: jobs.ring(jobs.CHECK), within_s=5)
    assert worker.process.poll() is None


def test_a_redis_that_became_a_replica_only_delays(worker: Noting, bells: Redis) -> None:
    """After a failover the old master answers PING and reads, and takes no writes."""
    with redis.Redis.from_url(bells.url) as client:
        client.execute_command("REPLICAOF", "127.0.0.1", "1")
        assert worker.wait_for("own", within_s=10)
        client.execute_command("REPLICAOF", "NO", "ONE")
    assert worker.process.poll() is None


def test_a_bell_that_never_goes_out_only_delays(worker: Noting, bells: Redis) -> None:
    """Thinning rings is a courtesy: a bell that stays in Redis must not silence them for good."""
    with redis.Redis.from_url(bells.url) as client:
        client.set("landed:bell:send", "1")
        assert wait_until(lambda: jobs.ring(jobs.SEND) and _queued(client), within_s=15, every_s=0.5)


def _queued(client: "redis.Redis[bytes]") -> bool:
    return bool(client.llen("rq:queue:send")) or client.ttl("landed:bell:send") > 0
