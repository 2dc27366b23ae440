"""A JSON API over HTTP, integrated by configuration alone: JMESPath, checked by `config`. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from actions.connectors.base import Answer, By, Example, Fetch, Notice, Page, Target, Wanted
from actions.connectors.http_json import answer, look_up, request, webhook
from actions.connectors.http_json import config as rules
from actions.connectors.http_json.example import EXAMPLE
from actions.transport import Call, Reply


class HttpJson:
    name = "http_json"

    @property
    def example(self) -> Example:
        return EXAMPLE

    def check_config(self, config: Mapping[str, Any]) -> list[str]:
        return rules.check(config)

    def build(self, target: Target, wanted: Wanted) -> Call:
        return request.build(target, wanted)

    def read(self, target: Target, wanted: Wanted, reply: Reply) -> Answer:
        return answer.read(target, wanted, reply)

    def look_up(self, target: Target, wanted: Wanted, fetch: Fetch, *, by: By) -> Iterator[Page]:
        return look_up.look_up(target, wanted, fetch, by=by)

    def look_back(
        self, target: Target, fetch: Fetch, *, since: datetime, cursor: str | None = None
    ) -> Iterator[Page]:
        return look_up.look_back(target, fetch, since=since, cursor=cursor)

    def hear(
        self, target: Target, *, headers: Mapping[str, str], body: bytes, secrets: Sequence[str], now: datetime
    ) -> Notice:
        return webhook.hear(target, headers=headers, body=body, secrets=secrets, now=now)


CONNECTOR = HttpJson()
