"""Mail servers on the loopback interface: one that takes mail, and those that don't."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from email.policy import default
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope


@dataclass
class Box:
    """What a server took, and to whom it was addressed."""

    answer: str = "250 OK"
    mails: list[Message] = field(default_factory=list)
    addressed: list[list[str]] = field(default_factory=list)

    async def handle_DATA(self, server: SMTP, session: Any, envelope: Envelope) -> str:
        if self.answer.startswith("250"):
            self.addressed.append(sorted(envelope.rcpt_tos))
            self.mails.append(message_from_bytes(envelope.content or b"", policy=default))
        return self.answer


@contextmanager
def taking(box: Box) -> Iterator[int]:
    """A real SMTP server; its port."""
    controller = Controller(box, hostname="127.0.0.1", port=_free_port())
    controller.start()
    try:
        yield controller.port
    finally:
        controller.stop()


@contextmanager
def broken(*, says: bytes = b"", hangs: bool = False) -> Iterator[int]:
    """Accepts a connection, says so much, and then hangs or drops it."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_misbehave, args=(listener, says, hangs, over), daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            over.set()
    thread.join(timeout=5)


def _misbehave(listener: socket.socket, says: bytes, hangs: bool, over: threading.Event) -> None:
    listener.settimeout(0.1)
    while not over.is_set():
        try:
            connection, _ = listener.accept()
        except OSError:
            continue
        with connection:
            if says:
                connection.sendall(says)
            if hangs:
                over.wait(30)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def nobody_there() -> int:
    """A port at which nothing answers."""
    return _free_port()
