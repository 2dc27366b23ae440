"""The cases that a person has skipped: not offered to them again in this session."""

from django.contrib.sessions.backends.base import SessionBase

_KEY, _MOST = "skipped", 200


def skip(session: SessionBase, review_id: int) -> None:
    """The newest ones are kept; what was skipped long ago may be offered again."""
    session[_KEY] = [*(pk for pk in skipped(session) if pk != review_id), review_id][-_MOST:]


def skipped(session: SessionBase) -> list[int]:
    return list(session.get(_KEY, []))
