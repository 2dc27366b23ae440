"""`python -m sandbox --port N --books FILE`: one line of JSON once it listens, then service until SIGTERM."""

import argparse
import functools
import json
import os
import resource
import signal
import sqlite3
import sys
import threading

from sandbox.listener import HOST, Listener
from sandbox.server import serve_connection
from sandbox.service import Service
from sandbox.store import Store
from sandbox.webhooks import deliver_for_ever


def main() -> None:
    arguments = _read_arguments()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    _raise_file_limit()
    try:
        service = Service(Store(arguments.books), Listener(arguments.port))
    except (OSError, sqlite3.Error) as error:
        sys.exit(f"sandbox: cannot start: {error}")
    _start(functools.partial(service.listener.serve, functools.partial(serve_connection, service)))
    _start(functools.partial(deliver_for_ever, service.store, service.webhook_bell))
    ready = {"url": f"http://{HOST}:{service.listener.port}", "pid": os.getpid()}
    print(json.dumps(ready), flush=True)
    stop.wait()
    service.store.close_for_good()
    # Not sys.exit: threads that hold a connection or wait for the books must not delay the end.
    os._exit(0)


def _start(target: functools.partial[None]) -> None:
    threading.Thread(target=target, daemon=True).start()


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m sandbox", description="a payments service with faults to order")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--books", default=None, metavar="FILE", help="SQLite file; without it, memory only")
    return parser.parse_args()


def _raise_file_limit() -> None:
    """Every held connection costs a file descriptor, and the usual soft limit is low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else min(65_536, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


if __name__ == "__main__":
    main()
