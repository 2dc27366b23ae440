"""What a person reads when something is refused. The one place where the pages map errors to words and codes."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User

from actions.errors import (
    BadDecision,
    Invalid,
    LandedError,
    NotFound,
    PersonNotAllowed,
    ReviewClosed,
    ReviewHeld,
    SeenIsStale,
)


@dataclass(frozen=True)
class Refusal:
    """`text` says what to do about it. `owner` and `until` say who holds the case, where that is why."""

    title: str
    text: str
    status: int
    owner: User | None = None
    until: datetime | None = None
    note_is_homeless: bool = False


_STATUS: Mapping[type[LandedError], int] = {
    PersonNotAllowed: 403,
    NotFound: 404,
    BadDecision: 422,
    Invalid: 422,
}
_NOTHING = "Nothing was decided"
_TITLES: Mapping[type[LandedError], str] = {
    SeenIsStale: f"{_NOTHING}: the facts have changed since you opened this page.",
    ReviewHeld: f"{_NOTHING}: somebody else has this case.",
    ReviewClosed: f"{_NOTHING}: this case is closed.",
    PersonNotAllowed: f"{_NOTHING}: your role may not do this.",
    BadDecision: f"{_NOTHING}: this can't be decided like that.",
}
_TEXTS: Mapping[type[LandedError], str] = {
    SeenIsStale: "The new ones are below. Look at them, then decide again; your note is still there.",
    ReviewHeld: "Your note is in the comment field below, so that it isn't lost.",
    ReviewClosed: "What was decided, and by whom, is below. Your note is in the comment field.",
}


def words(refused: LandedError) -> Refusal:
    kind = type(refused)
    own = refused.message if refused.message != refused.title else ""
    owner = refused.details.get("owner") or refused.details.get("by")
    until = refused.details.get("until")
    return Refusal(
        title=str(refused.details.get("words") or _TITLES.get(kind, refused.title)),
        text=" ".join(filter(None, [own, _TEXTS.get(kind, "")])),
        status=_STATUS.get(kind, 409),
        owner=owner if isinstance(owner, User) else None,
        until=until if isinstance(until, datetime) else None,
        note_is_homeless=kind in (ReviewHeld, ReviewClosed),
    )
