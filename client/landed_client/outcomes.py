"""From an intent to what a caller may believe: the confirmed one is returned, everything else is raised by name."""

from landed_client import errors
from landed_client.intents import Intent


def confirmed(intent: Intent) -> Intent:
    """`intent` if it is confirmed.

    Raises Failed or Cancelled for what is settled and did not happen, Held for what a person has to approve before
    it is sent, OutcomeUnknown for all else.
    """
    if intent.outcome == "confirmed":
        return intent
    raise error_of(intent)


def error_of(intent: Intent) -> errors.LandedError:
    """What an intent that is not confirmed is raised as; its message is the server's own."""
    if intent.outcome == "failed":
        return errors.Failed(intent.message or "It did not happen.", intent=intent)
    if intent.outcome == "cancelled":
        return errors.Cancelled(intent.message or "It was withdrawn before anything was sent.", intent=intent)
    if intent.status == "held" and not intent.disputed:
        return errors.Held(intent.message or _HELD, intent=intent)
    return errors.OutcomeUnknown(intent.message or _UNKNOWN, intent=intent)


_HELD = "It is recorded and has not been sent: a person has to approve it first. Don't propose it again."
_UNKNOWN = (
    "It may have happened. Don't repeat it or replace it: a repeat will be refused. Read its record again later."
)
