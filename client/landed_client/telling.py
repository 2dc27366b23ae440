"""What a model reads about an action: plain sentences from an intent, or from what kept it from being recorded. Pure.

The texts of the adapters; the MCP server has its own (`mcp/texts.py`), which name its tools. A model does a second
time whatever it reads as an error, so of an action whose outcome is open these texts never say "failed", "error",
"timed out" or "try again": they say that it may have happened, that it must not be repeated or replaced, that a
repeat is refused, when its record is worth reading again, and what the customer may be told.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from landed_client import errors
from landed_client.intents import Intent

# What is told when a call ended and nothing is known of it: a framework's own time-out, a bug, a cancelled run.
UNANSWERED: Final = (
    "No answer came back from this call. The action may be on record and it may have happened. Don't repeat it and "
    "don't do anything in its place: a repeat will be refused while it is open. End your turn; its record will show "
    'what came of it. Tell the customer: "Your request is being processed; there is no need to ask for it a second '
    'time."'
)
NOTHING_RECORDED: Final = "Nothing was recorded and nothing was sent."

_EARLIER: Final[Mapping[str, str]] = {
    # It may be settled by now: what is told of it was read after the refusal.
    "unsettled_duplicate": "Nothing was recorded and nothing was sent by this call: when it was made, an earlier "
    "action on the same subject was open, and a repeat is refused until that one is settled, in whatever words it is "
    "asked for. About the earlier one:",
    "already_done": "Nothing was recorded and nothing was sent by this call: the same action was done before. About "
    "the earlier one:",
    "key_reused": "Nothing was recorded and nothing was sent by this call: its request key stands for an earlier "
    "action with other details. About the earlier one:",
}


def tell(intent: Intent, *, refused: str | None = None) -> str:
    """What to say of `intent` as it was read. Never raises; a status that isn't known is told as open.

    `refused`: the code (`unsettled_duplicate`, `already_done`, `key_reused`) when a new proposal was refused because
    of this intent: then the text begins by saying that nothing was recorded now.
    """
    parts = (_EARLIER.get(refused or ""), _standing(intent), _next(intent), _record(intent), _customer(intent))
    return " ".join(part for part in parts if part)


def tell_error(error: errors.LandedError, *, earlier: Intent | None = None) -> str:
    """What to say when a call raised. `earlier`: the intent that stood in the way, where it was read meanwhile."""
    found = earlier or getattr(error, "intent", None)
    if isinstance(found, Intent):
        return tell(found, refused=error.code)
    if isinstance(error, errors.UnsettledDuplicate):
        return f"{_EARLIER['unsettled_duplicate']} {_SOMEBODY_ELSES}{_worth_reading(error.ask_again_at)}"
    if isinstance(error, errors.AlreadyDone):
        return f"{NOTHING_RECORDED} The same action was done before. {_NOT_AGAIN}"
    if error.may_be_recorded or isinstance(error, errors.OutcomeUnknown):
        return UNANSWERED
    return f"{NOTHING_RECORDED} {_why(error)}"


def _standing(intent: Intent) -> str:
    return intent.message or _WITHOUT_A_MESSAGE[intent.outcome]


_WITHOUT_A_MESSAGE: Final[Mapping[str, str]] = {
    "confirmed": "It is done and confirmed.",
    "failed": "It was refused or is proven not done; it had no effect.",
    "cancelled": "It was withdrawn before anything was sent.",
    "pending": "It may have happened; what became of it is not known yet. A repeat will be refused.",
}
_NOT_AGAIN: Final = "Don't repeat it and don't do anything in its place."
_SOMEBODY_ELSES: Final = f"it belongs to somebody else, and it may have happened. {_NOT_AGAIN}"


def _next(intent: Intent) -> str:
    if intent.may_propose_again and intent.done:
        return "If it is still wanted, propose it again and name this one in repeat_of."
    if intent.done or intent.step in ("send", "report"):
        return ""
    if intent.step == "wait_for_person":
        return f"{_NOT_AGAIN} Waiting won't help now: a person decides, so end your turn."
    return _NOT_AGAIN


def _record(intent: Intent) -> str:
    return f"Its record is intent {intent.id}.{'' if intent.done else _worth_reading(intent.ask_again_at)}"


def _worth_reading(at: datetime | None) -> str:
    if at is None:
        return ""
    return f" It is worth asking for again from {at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC on, not before."


def _customer(intent: Intent) -> str:
    return f'Tell the customer: "{intent.customer_message}"' if intent.customer_message else ""


def _why(error: errors.LandedError) -> str:
    if isinstance(error, errors.Refused) and error.fields:
        wrong = " ".join(f"{name}: {why}" for name, why in error.fields.items())
        return f"These fields can't be taken: {wrong} Correct them if you can; otherwise tell a person."
    if isinstance(error, errors.LimitExceeded):
        return f"{error.message} Don't split it or put it differently: a person has to raise the limit."
    if isinstance(error, errors.Unavailable):
        return f"{error.message} The same call may be made again later, unchanged."
    return f"{error.message} Asking for it in other words changes nothing; tell a person."
