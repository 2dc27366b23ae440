"""Which exception an answer becomes. The only place where an HTTP status or a problem's code meets a class."""

from collections.abc import Mapping
from typing import Any, Final

from landed_client import errors
from landed_client.errors import LandedError
from landed_client.wire import Reply

_BY_CODE: Final[Mapping[str, type[LandedError]]] = {
    "unsettled_duplicate": errors.UnsettledDuplicate,
    "already_done": errors.AlreadyDone,
    "limit_exceeded": errors.LimitExceeded,
    "key_reused": errors.KeyReused,
    "too_late": errors.TooLate,
    "not_approved": errors.Held,
    "may_have_happened": errors.MayHaveHappened,
    "lease_over": errors.MayHaveHappened,
    # Its time is over and it was never sent: nothing about it is open.
    "past_send_before": errors.TooLate,
}
_BY_STATUS: Final[Mapping[int, type[LandedError]]] = {
    401: errors.NotAllowed,
    403: errors.NotAllowed,
    404: errors.NotFound,
    405: errors.Refused,
    409: errors.NotNow,
}

# What a model has to know beside the server's own sentence.
_ADDED: Final[Mapping[type[LandedError], str]] = {
    errors.UnsettledDuplicate: (
        " Nothing was recorded now. Don't repeat it in other words or in another way: that one may have happened, "
        "and its record will show it."
    ),
}

# The key is looked up only after these: who is refused for one of them hears nothing of what the key stands for.
_BEFORE_THE_KEY: Final = frozenset({400, 401, 403, 404, 405, 413, 415, 429})


def error_of(reply: Reply, *, request_key: str | None, after_lost: bool = False) -> LandedError:
    """The exception for a 4xx. `after_lost`: an earlier try of the same call may have got through."""
    problem = reply.object or {}
    code = problem.get("code")
    kind = _BY_CODE.get(code if isinstance(code, str) else "") or _BY_STATUS.get(reply.status, errors.Refused)
    found = kind(
        _sentence(problem, reply.status) + _ADDED.get(kind, ""),
        code=code if isinstance(code, str) else f"http_{reply.status}",
        retryable=problem.get("retryable") is True,
        status=reply.status,
        problem=problem,
        request_key=request_key,
    )
    found.may_be_recorded = after_lost and reply.status in _BEFORE_THE_KEY
    return found


def _sentence(problem: Mapping[str, Any], status: int) -> str:
    for name in ("detail", "title"):
        if isinstance(problem.get(name), str) and problem[name]:
            return str(problem[name])
    return f"Landed, or something before it, answered with HTTP {status} and no explanation."
