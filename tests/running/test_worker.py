"""The worker answers rings, and losing Redis only delays it."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import django_rq
import pytest
import redis
from rq.job import Job
from rq.serializers import DefaultSerializer

from actions import jobs
from config import beats
from config.children import wait_until
from tests.servers import Redis

pytestmark = pytest.mark.either_database


@dataclass
class Noting:
    process: "subprocess.Popen[bytes]"
    notes: Path
    beat: Path

    def count(self, word: str) -> int:
        return self.notes.read_text().split().count(word) if self.notes.exists() else 0

    def wait_for(self, word: str, count: int = 1, within_s: float = 8) -> bool:
        return wait_until(lambda: self.count(word) >= count, within_s=within_s)


@pytest.fixture
def bells(own_redis: Redis, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Redis:
    """A Redis of this test's own, with this process's rings going to it."""
    for queue in settings.RQ_QUEUES.values():
        monkeypatch.setitem(queue, "URL", f"{own_redis.url}&socket_timeout=1&socket_connect_timeout=1")
    return own_redis


@pytest.fixture
def start_worker(
    bells: Redis, spawn: Callable[..., "subprocess.Popen[bytes]"], tmp_path: Path
) -> Callable[[], Noting]:
    def start() -> Noting:
        notes, beat, began = tmp_path / "notes", tmp_path / "beat", time.time()
        process = spawn(
            [sys.executable, "-m", "tests.running.noting", str(notes), str(beat)],
            env={"REDIS_URL": bells.url, "DJANGO_SETTINGS_MODULE": "config.settings"},
            log=tmp_path / "worker.log",
        )
        assert wait_until(lambda: beats.seen(beat, since=began), within_s=15), (tmp_path / "worker.log").read_text()
        return Noting(process, notes, beat)

    return start


@pytest.fixture
def worker(start_worker: Callable[[], Noting]) -> Noting:
    return start_worker()


def ring(function: str = "note") -> Job:
    queue = django_rq.get_queue("send")
    return queue.enqueue_call(f"tests.running.noting.{function}", result_ttl=0)


def test_a_ring_is_answered_at_once(worker: Noting) -> None:
    ring()
    assert worker.wait_for("ring", within_s=2)


def test_the_worker_goes_on_after_redis_was_killed_and_came_back_empty(worker: Noting, bells: Redis) -> None:
    bells.kill()
    time.sleep(0.5)
    bells.start()
    assert wait_until(lambda: registered(bells) == [worker.process.pid], within_s=6)
    ring()
    assert worker.wait_for("ring", within_s=2)


def registered(bells: Redis) -> list[int | None]:
    from config.worker import RingWorker

    with redis.Redis.from_url(bells.url) as connection:
        return [found.pid for found in RingWorker.all(connection=connection)]


def test_without_redis_the_worker_looks_by_itself(worker: Noting, bells: Redis) -> None:
    bells.kill()
    assert worker.wait_for("own", count=2, within_s=8)
    assert worker.process.poll() is None


def test_a_frozen_redis_is_noticed_and_bridged(worker: Noting, bells: Redis) -> None:
    bells.freeze()
    assert worker.wait_for("own", within_s=10)
    bells.thaw()
    ring()
    assert worker.wait_for("ring", within_s=8)


def test_redis_lost_in_the_middle_of_a_job_does_not_end_the_worker(worker: Noting, bells: Redis) -> None:
    ring("note_slowly")
    time.sleep(0.5)
    bells.kill()
    assert worker.wait_for("ring")
    assert worker.wait_for("own")
    assert worker.process.poll() is None


def test_a_stop_waits_for_the_job_in_hand(worker: Noting) -> None:
    ring("note_slowly")
    time.sleep(0.5)
    worker.process.terminate()
    assert worker.process.wait(5) == 0
    assert worker.count("ring") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_worker_stops_within_a_second(start_worker: Callable[[], Noting], number: int) -> None:
    """A machine that does much else may need longer, now and then; a worker that waits on would every time."""
    took: list[float] = []
    while len(took) < 4 and (not took or took[-1] > 1):
        worker = start_worker()
        began = time.monotonic()
        worker.process.send_signal(number)
        assert worker.process.wait(30) == 0
        took.append(time.monotonic() - began)
    assert min(took) <= 1, took


def test_a_worker_stops_while_redis_is_away(worker: Noting, bells: Redis) -> None:
    bells.kill()
    assert worker.wait_for("own")
    worker.process.terminate()
    assert worker.process.wait(3) == 0


def test_a_pickled_job_is_never_unpickled(worker: Noting, bells: Redis) -> None:
    with redis.Redis.from_url(bells.url) as connection:
        from rq import Queue

        evil = Queue("send", connection=connection, serializer=DefaultSerializer)
        evil.enqueue_call("tests.running.noting.note")
    assert not worker.wait_for("ring", within_s=1)
    ring()
    assert worker.wait_for("ring", within_s=4)


@pytest.mark.parametrize("queue", [jobs.SEND, jobs.CHECK])
def test_a_ring_is_one_short_lived_json_job(queue: str) -> None:
    assert jobs.ring(queue)
    assert jobs.ring(queue)
    (job,) = django_rq.get_queue(queue).jobs
    stored = job.connection.hgetall(job.key)
    import zlib

    assert json.loads(zlib.decompress(stored[b"data"]))[2:] == [[], {}]
    assert (job.result_ttl, job.failure_ttl, job.retries_left) == (0, 0, None)
    assert 0 < job.ttl <= 60


def test_a_ring_without_redis_says_so_and_does_not_raise(bells: Redis) -> None:
    bells.kill()
    assert jobs.ring("send") is False


def test_a_ring_gives_up_on_a_frozen_redis(bells: Redis) -> None:
    bells.freeze()
    began = time.monotonic()
    assert jobs.ring("send") is False
    assert time.monotonic() - began < 3


def test_every_ring_has_a_short_patience(settings: Any) -> None:
    for name in settings.RQ_QUEUES:
        kwargs = django_rq.get_connection(name).connection_pool.connection_kwargs
        assert (kwargs["socket_timeout"], kwargs["socket_connect_timeout"]) == (1.0, 1.0)
