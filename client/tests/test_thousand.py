"""A bad line between the client and Landed itself: whatever it does, one proposal is one intent."""

import asyncio
import os
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest

from landed_client import AsyncLanded, Intent, LandedError
from landed_client.retrying import Setting
from landed_client.testing import Server
from tests.proxy import FATES, Proxy

# LANDED_CLIENT_SEED: to throw the die again as it fell.
SEED = int(os.environ.get("LANDED_CLIENT_SEED", "4812"))
PROPOSALS = 1_000
TRY_S = 2.0


@dataclass
class Proposed:
    subject: str
    intent: Intent | None = None
    error: LandedError | None = None


@pytest.fixture
def patient_server(landed_server: Server) -> Server:
    landed_server.allow_per_minute(100_000)
    return landed_server


def test_a_thousand_proposals_over_a_bad_line_are_a_thousand_intents(patient_server: Server) -> None:
    asyncio.run(_propose_and_count(patient_server))


async def _propose_and_count(server: Server) -> None:
    where = urlsplit(server.base_url)
    upstream = (str(where.hostname), int(where.port or 0))
    setting = Setting(timeout=20, try_timeout=TRY_S, first_pause=0.02, longest_pause=0.5)
    async with (
        Proxy(upstream, seed=SEED, delay_s=TRY_S + 0.5) as proxy,
        AsyncLanded(f"http://127.0.0.1:{proxy.port}", server.token, setting=setting) as client,
    ):
        turns = asyncio.Semaphore(12)
        proposed = await asyncio.gather(*(_propose(client, f"bad-line-{n}", turns) for n in range(PROPOSALS)))
    async with AsyncLanded(server.base_url, server.token) as direct:
        found = await _all_of_the_run(direct)
        keys = [one.intent.request_key for one in proposed[::40] if one.intent]
        again = [await direct.actions.find(request_key=str(key)) for key in keys]

    assert [one.error for one in proposed if one.error] == []
    assert set(proxy.fates) == {*FATES, "pass_on"}, "every fate must have been met"
    assert sum(proxy.fates.values()) > PROPOSALS
    assert len(found) == PROPOSALS
    assert {one.subject: one.intent.id for one in proposed if one.intent} == {one.subject: one.id for one in found}
    assert [one.id for one in again if one] == [one.intent.id for one in proposed[::40] if one.intent]


async def _propose(client: AsyncLanded, subject: str, turns: asyncio.Semaphore) -> Proposed:
    async with turns:
        try:
            intent = await client.actions.propose(
                kind="transfer",
                subject=subject,
                amount="5.00",
                currency="EUR",
                params={"payee": "anna"},
                context={"run": "bad-line"},
                executor="caller",
            )
        except LandedError as error:
            return Proposed(subject, error=error)
    return Proposed(subject, intent)


async def _all_of_the_run(client: AsyncLanded) -> list[Intent]:
    page = await client.actions.list(run="bad-line", limit=100)
    found = list(page.data)
    while page.next_cursor:
        page = await client.actions.list(run="bad-line", limit=100, cursor=page.next_cursor)
        found += page.data
    return found
