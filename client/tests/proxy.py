"""A proxy before the real server that loses, cuts, delays, repeats and mixes up answers, by a seeded die."""

import asyncio
import contextlib
import random
import socket
import struct
from collections import Counter
from collections.abc import Awaitable, Callable

# What becomes of a request, and how many in a thousand. Each costs the server a request more, so they are few.
FATES = {
    "lose_request": 20,
    "lose_answer": 30,
    "reset": 15,
    "cut_answer": 15,
    "delay": 5,
    "bad_gateway": 15,
    "send_request_twice": 25,
    "send_answer_twice": 30,
    "send_another_answer": 15,
}


class Proxy:
    """Listens on a free port of this machine and passes everything on to `upstream`, fate permitting."""

    def __init__(self, upstream: tuple[str, int], *, seed: int, delay_s: float) -> None:
        self._upstream, self._delay_s = upstream, delay_s
        self._die = random.Random(seed)
        self._last = b""
        self.fates: Counter[str] = Counter()

    async def __aenter__(self) -> "Proxy":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self._one(reader, writer):
                pass
        with contextlib.suppress(ConnectionError):
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; whether the connection goes on."""
        request = await _message(reader)
        fate = self._throw()
        self.fates[fate] += 1
        fated: dict[str, Callable[[bytes, asyncio.StreamWriter], Awaitable[bool]]] = {
            "lose_request": self._lose_request,
            "lose_answer": self._lose_answer,
            "reset": self._reset,
            "cut_answer": self._cut_answer,
            "delay": self._delay,
            "bad_gateway": self._bad_gateway,
            "send_request_twice": self._send_request_twice,
            "send_answer_twice": self._send_answer_twice,
            "send_another_answer": self._send_another_answer,
        }
        return await fated.get(fate, self._pass_on)(request, writer)

    def _throw(self) -> str:
        number = self._die.randrange(1_000)
        for fate, share in FATES.items():
            if number < share:
                return fate
            number -= share
        return "pass_on"

    async def _pass_on(self, request: bytes, writer: asyncio.StreamWriter) -> bool:
        self._last = await self._ask(request)
        return await _write(writer, self._last)

    async def _lose_request(self, request: bytes, writer: asyncio.StreamWriter) -> bool:
        return False

    async def _lose_answer(self, request: bytes, writer: asyncio.StreamWriter) -> bool:
        await self._ask(request)
        return False

    async def _reset(self, request: bytes, writer: asyncio.StreamWriter) -> bool:
        await self._ask(request)
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False

    async def _cut_answer(self, request: bytes, writer: asyncio.StreamWriter) -> bool:
        answer = await self._ask(request)
        await _write(writer, answer[: self._die.randrange(1, len(answer))])
        return False

    async def _delay(self, request: bytes, writer: asyncio.StreamWriter) -> bool:
        answer = await self._ask(request)
        await asyncio.sleep(self._delay_s)
        return await _write(writer, answer)

    async def _bad_gateway(self, request: bytes, writer: asyncio.StreamWriter) -> bool:
        await self._ask(request)
        return await _write(writer, b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 4\r\n\r\noops")

    async def _send_request_twice(self, request: bytes, writer: asyncio.StreamWriter) -> bool:
        _, answer = await asyncio.gather(self._ask(request), self._ask(request))
        return await _write(writer, answer)

    async def _send_answer_twice(self, request: bytes, writer: asyncio.StreamWriter) -> bool:
        answer = await self._ask(request)
        return await _write(writer, answer + answer)

    async def _send_another_answer(self, request: bytes, writer: asyncio.StreamWriter) -> bool:
        answer = await self._ask(request)
        return await _write(writer, self._last or answer)

    async def _ask(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(*self._upstream)
        try:
            writer.write(request)
            await writer.drain()
            return await _message(reader)
        finally:
            writer.close()


async def _write(writer: asyncio.StreamWriter, content: bytes) -> bool:
    writer.write(content)
    await writer.drain()
    return True


async def _message(reader: asyncio.StreamReader) -> bytes:
    """A whole HTTP/1.1 message with a Content-Length, as both sides here send."""
    head = await reader.readuntil(b"\r\n\r\n")
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return head + await reader.readexactly(int(value))
    return head
