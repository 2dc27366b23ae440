"""The request itself: network, no database."""

from typing import Final

from actions import transport
from actions.notifying import addresses
from actions.notifying.claiming import Claimed
from actions.transport import Limits, Phase, Reason, Reply

CONNECT_S: Final = 5.0
DEADLINE_S: Final = 10.0
# Of what a receiver answers nobody needs more.
_BODY_CAP: Final = 16_384


def post(claimed: Claimed) -> Reply:
    """Sends one delivery, once, within its deadline; no redirects, no proxies, no private addresses."""
    call = claimed.call
    if wrong := addresses.fault(call.url):
        # It was fine when it was entered; what counts is what is allowed now.
        return Reply(Phase.START, Reason.CONNECT_FAILED, None, {}, b"", 0, wrong)
    return transport.send(call, Limits(CONNECT_S, DEADLINE_S, body_cap=_BODY_CAP, vet=addresses.vetting(call.url)))
