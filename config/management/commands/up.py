"""`manage.py up`: web, worker and clock on one machine, and a Redis unless there is one."""

import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection, connections

from config import boot, migrating, parts, servers
from config.supervisor import NotReady, Part, Stopped, Supervisor


class Command(BaseCommand):
    help = "Runs everything on this machine until SIGTERM."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument("--workers", type=int, default=1, help="web processes (SQLite: one)")
        parser.add_argument("--threads", type=int, default=parts.WEB_THREADS, help="per web process")
        parser.add_argument("--workers-rq", type=int, default=1, help="processes that send and check")
        parser.add_argument("--grace", type=float, default=4.0, help="seconds that a stop waits for work in hand")

    def handle(self, *args: Any, **options: Any) -> None:
        if connection.vendor == "sqlite" and options["workers"] > 1:
            raise CommandError("SQLite is for one web process; use --threads, or PostgreSQL for --workers.")
        prepare()
        supervisor = Supervisor(grace_s=options["grace"])
        supervisor.obey_signals()
        socket = servers.socket_in(settings.DATA_DIR)
        try:
            for together in _parts(options, socket):
                supervisor.start(*together)
            self.stdout.write(f"Landed answers at http://{options['host']}:{options['port']}/")
            self.stdout.flush()
            supervisor.watch()
        except Stopped:
            return
        except NotReady as why:
            raise CommandError(str(why)) from None
        finally:
            supervisor.stop()
            servers.remove_socket_folder(settings.DATA_DIR, socket)


def prepare() -> None:
    """Everything that must hold before a part starts. Raises boot.Unsafe."""
    early = [*boot.mode_problems(), *(boot.settings_problems() if settings.MODE == "production" else ())]
    if early:
        raise boot.Unsafe("\n".join(["Landed refuses to start:", *(f"- {problem}" for problem in early)]))
    settings.DATA_DIR.mkdir(parents=True, exist_ok=True)
    migrating.migrate()
    if settings.MODE == "production" and not _has_files():
        call_command("collectstatic", interactive=False, verbosity=0)
    boot.refuse_unsafe()
    connections.close_all()


def _has_files() -> bool:
    return settings.STATIC_ROOT is not None and any(settings.STATIC_ROOT.glob("*"))


def _parts(options: dict[str, Any], socket: Path) -> list[list[Part]]:
    """Groups, each of which starts once the one before answers."""
    groups: list[list[Part]] = []
    env = dict(os.environ)
    if parts.given_redis_url() is None:
        env["REDIS_URL"] = servers.redis_url(socket)
        groups.append([parts.redis(socket)])
    groups.append(
        [
            parts.web(
                host=options["host"],
                port=options["port"],
                processes=options["workers"],
                threads=options["threads"],
                env=env,
            ),
            *(
                parts.worker(n, beat=parts.file_of(settings.DATA_DIR, f"worker-{n}", "beat"), env=env)
                for n in range(1, options["workers_rq"] + 1)
            ),
            parts.clock(1, beat=parts.file_of(settings.DATA_DIR, "clock-1", "beat"), env=env),
        ]
    )
    return groups
