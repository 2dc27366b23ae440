"""`manage.py clock`: sweeps the database every LANDED_CLOCK_S seconds. May run on every host."""

import logging
import signal
import threading
import time
from argparse import ArgumentParser
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import DatabaseError, InterfaceError, close_old_connections, connection

from actions.notifying import running
from config import beats, boot, clockwork
from reconciliation import mailing
from reconciliation.anchoring import schedule as anchoring

log = logging.getLogger(__name__)

_LONGEST_WAIT_S = 5.0
# Notices of a few seconds are one e-mail.
_MAIL_S = 5.0
# As often as that it is asked whether an anchor is due.
_ANCHOR_S = 15.0


class Command(BaseCommand):
    help = "Finds what is due or stuck, again and again, until SIGTERM."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--beat", type=Path, metavar="FILE", help="touched after every pass that went well")

    def handle(self, *args: Any, beat: Path | None, **options: Any) -> None:
        boot.refuse_unsafe()
        boot.refuse_to_anchor_unsigned()
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        run(stop, every_s=settings.LANDED_CLOCK_S, beat=beat)


def run(stop: threading.Event, *, every_s: float, beat: Path | None = None) -> None:
    """Ticks until `stop` is set. No error of one pass ends it; while passes fail they come less often.

    E-mail, webhooks and anchors leave from threads beside it: whoever hangs there delays no sweep.
    """
    beside: list[tuple[Callable[[], object], float]] = [
        (mailing.run, max(every_s, _MAIL_S)),
        (partial(running.deliver_due, stop=stop), every_s),
    ]
    if anchoring.is_on():
        beside.append((anchoring.write_due, min(_ANCHOR_S, settings.LANDED_ANCHOR_EVERY_S)))
    for act, pause_s in beside:
        threading.Thread(target=_beside, args=(act, stop), kwargs={"every_s": pause_s}, daemon=True).start()
    failures = 0
    while not stop.is_set():
        started = time.monotonic()
        failures = 0 if _try_once(beat) else failures + 1
        wait_s = max(every_s, min(_LONGEST_WAIT_S, 0.5 * 2**failures)) if failures else every_s
        stop.wait(max(0.0, wait_s - (time.monotonic() - started)))


def _beside(act: Callable[[], object], stop: threading.Event, *, every_s: float) -> None:
    while not stop.wait(every_s):
        try:
            close_old_connections()
            act()
        except Exception:
            log.exception("what leaves beside the sweep did not, the next pass comes")
            connection.close()
    connection.close()


def _try_once(beat: Path | None) -> bool:
    try:
        close_old_connections()
        clockwork.tick()
        beats.beat(beat)
    except (DatabaseError, InterfaceError) as away:
        log.error("this pass failed, the next one comes: %s", away)
        # Not kept for reuse: a connection that broke in the middle may seem usable.
        connection.close()
        return False
    except Exception:
        log.exception("this pass failed, the next one comes")
        return False
    return True
