"""`AsyncLanded`: the same as `Landed`, for programs that await, under asyncio."""

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, TypeVar, Unpack

import anyio
import httpx

from landed_client import outcomes, steps
from landed_client.carrying_out import Exceptions, Terms
from landed_client.executing import AsyncExecuting
from landed_client.filters import Filters
from landed_client.intents import Claim, Events, Intent, Page
from landed_client.proposals import Proposing
from landed_client.reporting import Reporting
from landed_client.retrying import Setting
from landed_client.transport import (
    LARGEST_BODY,
    TOO_LARGE,
    TOO_SLOW,
    api_url,
    arguments_of,
    lost_by,
    reply_of,
    settings_of_http,
)
from landed_client.wire import Lost, Pause, Reply, Request, Steps

T = TypeVar("T")


class AsyncLanded:
    """A connection to one Landed, as one agent. Belongs to one event loop.

    `base_url`: where it is, without `/api/v1`. `timeout`: seconds for one call and all its tries; what a call is
    asked to wait comes on top. `transport`: httpx's, for tests. `setting`, `sleep`: how to try, for tests.
    """

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        timeout: float = 30.0,
        transport: httpx.AsyncBaseTransport | None = None,
        setting: Setting | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._url = api_url(base_url)
        self._http = httpx.AsyncClient(transport=transport, **settings_of_http(token))
        self._setting = setting or Setting(timeout=timeout)
        self._sleep = sleep
        self.actions = AsyncActions(self)

    def __repr__(self) -> str:
        return f"AsyncLanded({self._url!r})"

    async def __aenter__(self) -> "AsyncLanded":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def me(self) -> dict[str, Any]:
        """The agent, its scopes and what is left of its limits."""
        return await self._carry_out(steps.me(self._setting))

    async def kinds(self) -> list[dict[str, Any]]:
        """The kinds that this agent may propose, with the schemas of their params."""
        return await self._carry_out(steps.kinds(self._setting))

    def executing(
        self,
        *,
        definite: Exceptions = (),
        not_sent: Exceptions = (),
        lease_s: int = 30,
        renew_for: float = 900.0,
        **proposal: Unpack[Proposing],
    ) -> AsyncExecuting:
        """For callers who execute: `async with landed.executing(kind=…, subject=…) as action:`

        Recorded and claimed before the body runs, in one call; reported after it. The body sends with
        `action.idempotency_key` and may say how it ended (`action.confirmed(external_id=…)`). One that returns
        without a word is confirmed. One that raises: `definite` exceptions are a refusal, `not_sent` ones mean that
        nothing left this machine, and after all others, interrupts and cancellation included, it is unknown; the
        exception goes on in any case. While it runs the lease is renewed to `lease_s` seconds, for `renew_for`
        seconds at most: a body that hangs becomes unknown too.

        Entering raises what `propose` raises and, where the request key stands for an earlier run's intent,
        AlreadyDone, Failed, Cancelled, Held or MayHaveHappened; then the body does not run. A report that can't be
        delivered is logged and kept as `action.unreported`; it never takes the place of the body's own result.
        """
        return AsyncExecuting(self, proposal, Terms(definite, not_sent, lease_s, renew_for))

    async def _carry_out(self, call: Steps[T]) -> T:
        came: Reply | Lost | None = None
        try:
            while True:
                step = call.send(came)
                came = await self._do(step)
        except StopIteration as end:
            found: T = end.value
            return found

    async def _do(self, step: Request | Pause) -> Reply | Lost | None:
        if isinstance(step, Request):
            return await self._send(step)
        await self._sleep(step.seconds)
        return None

    async def _send(self, request: Request) -> Reply | Lost:
        try:
            with anyio.fail_after(request.timeout):
                async with self._http.stream(**arguments_of(request, self._url)) as response:
                    content = bytearray()
                    async for part in response.aiter_bytes():
                        content += part
                        if len(content) > LARGEST_BODY:
                            return TOO_LARGE
                    return reply_of(response, bytes(content))
        except TimeoutError:
            return TOO_SLOW
        except httpx.RequestError as error:
            return lost_by(error)


class AsyncActions:
    """What an agent does with its actions. `propose`, `get` and `wait` never raise for what became of one."""

    def __init__(self, landed: AsyncLanded) -> None:
        self._landed = landed
        self._setting = landed._setting

    async def propose(self, *, wait: float = 0.0, **proposal: Unpack[Proposing]) -> Intent:
        """Records what is to be done; returns its record, with `wait` as it is that many seconds later at most.

        Answers that are lost are asked for again with the same request key, and then looked for by it, so one call
        makes one intent at most. Without `request_key` one is minted; it is on the intent and on every exception.

        Raises UnsettledDuplicate, AlreadyDone, LimitExceeded, Refused, NotAllowed, NotNow; Unavailable when it can't
        be told whether it was recorded. TypeError and ValueError for fields that mean nothing, before anything is
        sent.
        """
        return await self._landed._carry_out(steps.propose(proposal, self._setting, wait=wait))

    async def perform(self, *, wait: float = 30.0, **proposal: Unpack[Proposing]) -> Intent:
        """Proposes, waits, and returns the intent only if it is confirmed.

        Raises what `propose` raises; Failed and Cancelled when it is settled and did not happen; Held when a person
        has to approve it first; OutcomeUnknown when it is not known at the end of `wait` seconds.
        """
        return outcomes.confirmed(await self.propose(wait=wait, **proposal))

    async def get(self, intent_id: str) -> Intent:
        """The intent as it is now. Raises NotFound, Unavailable."""
        return await self._landed._carry_out(steps.get(intent_id, self._setting))

    async def wait(self, intent_id: str, timeout: float = 30.0) -> Intent:
        """The intent once it is settled, or once somebody has to claim it before anything more happens.

        When `timeout` seconds are over it is returned as it is then: not settled, and that is no failure. Raises
        NotFound, and Unavailable when it could not be read even once.
        """
        return await self._landed._carry_out(steps.wait(intent_id, timeout, self._setting))

    async def result(self, intent_id: str, timeout: float = 30.0) -> Intent:
        """Waits, and returns the intent only if it is confirmed; raises as `perform` does."""
        return outcomes.confirmed(await self.wait(intent_id, timeout))

    async def find(self, *, request_key: str) -> Intent | None:
        """What was recorded under this request key; None when nothing was, as of now."""
        return await self._landed._carry_out(steps.find(request_key, self._setting))

    async def list(self, **filters: Unpack[Filters]) -> Page:
        """One page of this agent's intents and its group's, newest first."""
        return await self._landed._carry_out(steps.list_intents(filters, self._setting))

    async def history(self, intent_id: str) -> dict[str, Any]:
        """Changes of status, attempts and looks into the books, as the API writes them."""
        return await self._landed._carry_out(steps.history(intent_id, self._setting))

    async def cancel(self, intent_id: str) -> Intent:
        """Withdraws what was never sent. Raises TooLate once it may have been."""
        return await self._landed._carry_out(steps.cancel(intent_id, self._setting))

    async def claim(self, intent_id: str, *, claim_token: str, lease_s: int | None = None) -> Claim:
        """Claims an intent that the caller carries out: whoever holds the token may send it while the lease lasts.

        The same token again gives the same claim. Raises MayHaveHappened when another one claimed it, Held while a
        person has to approve it, TooLate, NotNow.
        """
        return await self._landed._carry_out(steps.claim(intent_id, claim_token, self._setting, lease_s=lease_s))

    async def renew(self, intent_id: str, *, attempt: int, claim_token: str, lease_s: int | None = None) -> Claim:
        """More time for an open attempt. Raises MayHaveHappened when its lease is over."""
        call = steps.renew(intent_id, attempt, claim_token, self._setting, lease_s=lease_s)
        return await self._landed._carry_out(call)

    async def report(self, intent_id: str, **said: Unpack[Reporting]) -> Intent:
        """Says what came of an attempt; repeatable. No usable answer is `unknown`, never `failed`."""
        return await self._landed._carry_out(steps.report(intent_id, said, self._setting))

    async def events(self, *, after: int = 0, limit: int | None = None, wait: float = 0.0) -> Events:
        """What changed for this agent's intents after this position, in commit order."""
        return await self._landed._carry_out(steps.events(after, self._setting, limit=limit, hold=wait))
