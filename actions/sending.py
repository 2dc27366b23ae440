"""Sends what was claimed, once. Touches no database; runs in threads."""

import logging
from dataclasses import replace
from typing import cast

from actions import (
    transport,
)
from actions.connectors import registry
from actions.connectors.base import (
    LooksFirst,
    LookupFailed,
)
from actions.handing import Came, Claimed, Objection

log = logging.getLogger(__name__)


def send(claimed: Claimed) -> Came:
    """Looks first, where the connector does, and sends once. Touches no database; runs in a thread."""
    if claimed.look_first and (objection := _look_first(claimed)) is not None:
        return objection
    return transport.send(claimed.call, claimed.limits)


def _look_first(claimed: Claimed) -> Objection | None:
    """What speaks against sending it now. What can't be seen does as well: then it is tried again later."""

    def fetch(call: transport.Call) -> transport.Reply:
        if call.method not in ("GET", "HEAD"):
            raise ValueError(f"a look before sending changes nothing: {call.method}")
        left = claimed.look_until - transport.boot_clock()
        if left <= 0:
            raise LookupFailed("deadline", "there was no time left for it")
        return transport.send(call, replace(claimed.limits, deadline_s=left, send_by=None))

    connector = cast(LooksFirst, registry.get(claimed.connector))
    try:
        message = connector.object_to(claimed.target, claimed.wanted, fetch)
    except LookupFailed as failed:
        return Objection("not_checked_first", f"{failed.reason}: {failed.message}")
    except Exception as bug:
        log.exception("connector %s can't look before sending", claimed.connector)
        return Objection("not_checked_first", repr(bug))
    return Objection("person_first", message) if message else None
