"""`with landed.executing(…) as action:` and its async twin; what they do is in `carrying_out`."""

import asyncio
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Literal

import anyio

from landed_client import carrying_out
from landed_client.carrying_out import FIRST_RENEWAL_S, Action, Terms
from landed_client.proposals import Proposing

if TYPE_CHECKING:
    from landed_client.aclient import AsyncLanded
    from landed_client.client import Landed


class Executing:
    """Claims before the body and reports after it, from the thread that runs it."""

    def __init__(self, landed: "Landed", fields: Proposing, terms: Terms) -> None:
        self._landed, self._fields, self._terms = landed, fields, terms
        self._over = threading.Event()

    def __enter__(self) -> Action:
        landed = self._landed
        self._action = landed._carry_out(carrying_out.begin(self._fields, landed._setting))
        self._leave_context = carrying_out.enter_context(self._action)
        self._renewer = threading.Thread(target=self._renew, daemon=True, name="landed-renew")
        self._renewer.start()
        return self._action

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        self._over.set()
        self._leave_context()
        landed = self._landed
        landed._carry_out(carrying_out.end(self._action, error, self._terms, landed._setting))
        return False

    def _renew(self) -> None:
        landed, left, rest = self._landed, self._terms.renew_for, FIRST_RENEWAL_S
        while left > 0 and not self._over.wait(rest):
            call = carrying_out.renewed(self._action, self._terms, landed._setting)
            if not landed._carry_out(call):
                return
            left, rest = left - rest, self._terms.renew_every


class AsyncExecuting:
    """The same for asyncio."""

    def __init__(self, landed: "AsyncLanded", fields: Proposing, terms: Terms) -> None:
        self._landed, self._fields, self._terms = landed, fields, terms

    async def __aenter__(self) -> Action:
        landed = self._landed
        self._action = await landed._carry_out(carrying_out.begin(self._fields, landed._setting))
        self._leave_context = carrying_out.enter_context(self._action)
        self._renewer = asyncio.create_task(self._renew())
        return self._action

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        self._renewer.cancel()
        self._leave_context()
        landed = self._landed
        # Whoever is cancelled still says that it doesn't know; `end` keeps that short.
        with anyio.CancelScope(shield=True):
            await landed._carry_out(carrying_out.end(self._action, error, self._terms, landed._setting))
        return False

    async def _renew(self) -> None:
        landed, left, rest = self._landed, self._terms.renew_for, FIRST_RENEWAL_S
        while left > 0:
            await anyio.sleep(rest)
            if not await landed._carry_out(carrying_out.renewed(self._action, self._terms, landed._setting)):
                return
            left, rest = left - rest, self._terms.renew_every
