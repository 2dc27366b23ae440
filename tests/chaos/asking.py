"""HTTP as a client of one's own would speak it: short, without retries of its own."""

import json
from typing import Any

import urllib3

NoAnswer = urllib3.exceptions.HTTPError


class Http:
    """For any number of threads."""

    def __init__(self, *, threads: int) -> None:
        self._pool = urllib3.PoolManager(num_pools=8, maxsize=threads, retries=False, block=False)

    def send(
        self, method: str, url: str, body: Any = None, *, timeout_s: float, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Status and document ({} where it is none). Raises NoAnswer."""
        data = None if body is None else json.dumps(body).encode()
        sent = {"Content-Type": "application/json", **(headers or {})}
        reply = self._pool.request(method, url, body=data, headers=sent, timeout=timeout_s, redirect=False)
        try:
            found = json.loads(reply.data)
        except ValueError:
            found = {}
        return reply.status, found if isinstance(found, dict) else {}
