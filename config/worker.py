"""The worker: RQ's SimpleWorker, made to outlive its Redis.

RQ's own loop sleeps for up to a minute when Redis fails, and ends when it fails at the wrong moment. A ring
is only a hint, so here a failing Redis ends one RQ worker, and `Runner` looks into the database itself until
another one can begin.
"""

import logging
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import django_rq
from django.conf import settings
from django.db import close_old_connections
from redis.exceptions import RedisError
from rq import SimpleWorker
from rq.exceptions import DequeueTimeout, StopRequested
from rq.job import Job
from rq.queue import Queue
from rq.serializers import JSONSerializer
from rq.worker.base import DequeueStrategy, WorkerStatus

from actions import loop
from config import beats

log = logging.getLogger(__name__)

# How long one BLPOP waits, and how long any answer may take: what finds a frozen Redis.
_DEQUEUE_S, _ANSWER_S = 1, 2
# From here on without Redis the worker looks into the database itself.
_PATIENCE_S = 2.0
_LONGEST_WAIT_S = 1.0
# How much of a look of our own goes on before Redis is tried again.
_BUDGET_S = 5.0

Jobs = Sequence[Callable[..., object]]


class RingWorker(SimpleWorker):
    """Runs jobs in this process and thread. `lost` when it ended because Redis failed."""

    runner: "Runner"
    lost = False

    @property
    def dequeue_timeout(self) -> int:
        return _DEQUEUE_S

    @property
    def connection_timeout(self) -> int:
        return _ANSWER_S

    def dequeue_job_and_maintain_ttl(
        self, timeout: int | None, max_idle_time: int | None = None
    ) -> tuple[Job, Queue] | None:
        """As RQ's, but when Redis fails it ends this worker (None) instead of sleeping."""
        if self.lost:
            return None  # in the middle of a job: what that ring stood for is looked at first
        try:
            self.set_state(WorkerStatus.IDLE)
            while True:
                super().heartbeat()
                self.runner.alive()
                if self.should_run_maintenance_tasks:
                    self.run_maintenance_tasks()  # type: ignore[no-untyped-call]
                try:
                    found = self.queue_class.dequeue_any(
                        self._ordered_queues,
                        timeout,
                        connection=self.connection,
                        job_class=self.job_class,
                        serializer=self.serializer,
                        death_penalty_class=self.death_penalty_class,
                    )
                except DequeueTimeout:
                    self.runner.in_touch()  # not before: a queue that can't be read may well take a heartbeat
                    continue
                if found is not None:
                    found[0].redis_server_version = self.get_redis_server_version()  # type: ignore[no-untyped-call]
                return found
        except RedisError as away:
            self.lose(away)
            return None

    def execute_job(self, job: Job, queue: Queue) -> None:
        """The bookkeeping around a job may fail with Redis; what the job did is in the database."""
        with self.runner.busy():
            close_old_connections()
            try:
                super().execute_job(job, queue)
            except RedisError as away:
                self.lose(away)
            finally:
                close_old_connections()
            if self.lost:
                self.runner.owe_a_look()  # the ring is off the queue, and perhaps nothing was done for it
            else:
                self.runner.in_touch()

    def heartbeat(self, timeout: int | None = None, pipeline: Any = None) -> None:
        try:
            super().heartbeat(timeout, pipeline)
        except RedisError as away:
            self.lose(away)

    # Policy pauses downstreams, kinds and agents, in the database; a key in Redis must not stop the work.
    def check_for_suspension(self, burst: bool) -> None: ...

    def lose(self, away: RedisError) -> None:
        if not self.lost:
            log.warning("Redis fails: %s", away)
        self.lost = True

    def teardown(self) -> None:
        if self.lost:
            return  # nobody to take leave of, and asking would take as long again
        try:
            super().teardown()  # type: ignore[no-untyped-call]
        except RedisError as away:
            self.lose(away)

    # No thread that listens for commands: it would end when Redis freezes, and nothing here needs it.
    def subscribe(self) -> None: ...
    def unsubscribe(self) -> None: ...

    # The runner's handlers are in place; RQ's would ask Redis from inside a signal handler.
    def _install_signal_handlers(self) -> None: ...


class Runner:
    """One worker process: RQ workers, one after the other, until it is told to stop."""

    def __init__(self, jobs: Jobs, *, beat: Path | None = None) -> None:
        self._jobs = jobs
        self._beat = beat
        self._stop_asked_at: float | None = None
        self._busy = 0
        self._last_touch = self._last_look = time.monotonic()
        self._owes_a_look = False
        self._losses = 0
        self._worker: RingWorker | None = None

    def obey_signals(self) -> None:
        """SIGTERM and SIGINT end it after the job in hand; a second one, a second later, at once."""
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._stop_asked_at is not None and now - self._stop_asked_at > 1:
            raise SystemExit(1)
        self._stop_asked_at = self._stop_asked_at or now
        loop.stopping.set()
        if self._worker is not None:
            self._worker._stop_requested = True
        if not self._busy:
            raise StopRequested

    def busy(self) -> "_Busy":
        """While this is held, a signal waits for the end of the work instead of breaking into it."""
        return _Busy(self)

    def alive(self) -> None:
        beats.beat(self._beat)

    def in_touch(self) -> None:
        """Rings can come: Redis was waited on for one, or one was answered."""
        self._last_touch, self._losses = time.monotonic(), 0

    def owe_a_look(self) -> None:
        self._owes_a_look = True

    def run(self, *, burst: bool = False) -> None:
        """Works until stopped; with `burst` until the queues are empty (without Redis: one own look)."""
        try:
            while self._stop_asked_at is None:
                lost = not self._work(burst)
                if burst:
                    return self.look() if lost else None
                # RQ may also have given up over something else: a job that it can't read, or a Redis that answers
                # and refuses (it is full, a replica, or holds something else under RQ's keys).
                self._losses = min(10, self._losses + 1)
                self._look_if_due()
                if lost:
                    self._bridge()
                if self._stop_asked_at is None:
                    time.sleep(min(_LONGEST_WAIT_S, 0.05 * 2**self._losses))
        except StopRequested:
            return None
        return None

    def _work(self, burst: bool) -> bool:
        """One RQ worker's life. False: Redis failed."""
        try:
            self._worker = worker = _make_worker(self)
            # In turn, so that a steady stream of sendings never keeps checks waiting.
            worker.work(burst=burst, logging_level="WARNING", dequeue_strategy=DequeueStrategy.ROUND_ROBIN)
        except RedisError as away:
            log.warning("Redis fails: %s", away)
            return False
        return not worker.lost

    def _bridge(self) -> None:
        """Until Redis takes writes again: looks into the database ourselves."""
        wait_s = 0.1
        while self._stop_asked_at is None:
            self._look_if_due()
            if _answers():
                log.warning("Redis answers again")
                return
            time.sleep(wait_s)
            wait_s = min(_LONGEST_WAIT_S, wait_s * 2)

    def _look_if_due(self) -> None:
        """A look of our own, when a ring was lost or none could come for a while. Whether Redis answers says little:
        what counts is whether rings come through it."""
        now = time.monotonic()
        if self._owes_a_look or (now - self._last_touch > _PATIENCE_S and now - self._last_look > _LONGEST_WAIT_S):
            self._owes_a_look = False
            self.look()

    def look(self) -> None:
        """Runs every job once, here, without a ring."""
        with self.busy():
            for job in self._jobs:
                close_old_connections()
                try:
                    job(budget_s=_BUDGET_S)
                except Exception:
                    log.exception("a look of our own failed; the next one comes")
                if self._stop_asked_at is not None:
                    return
        self._last_look = time.monotonic()
        beats.beat(self._beat)


class _Busy:
    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def __enter__(self) -> None:
        self._runner._busy += 1

    def __exit__(self, *_: object) -> None:
        self._runner._busy -= 1


def _make_worker(runner: Runner) -> RingWorker:
    queues = [django_rq.get_queue(name) for name in settings.RQ_QUEUES]
    worker = RingWorker(
        queues,
        connection=queues[0].connection,
        serializer=JSONSerializer,  # rq's own command defaults to pickle
        worker_ttl=60,
        log_job_description=False,
    )
    worker.runner = runner
    return worker


def _answers() -> bool:
    try:
        with django_rq.get_connection(next(iter(settings.RQ_QUEUES))) as connection:
            # A write: one that is full, or became a replica, answers PING.
            return bool(connection.set("landed:takes-writes", "1", ex=60))
    except (RedisError, OSError):
        return False
