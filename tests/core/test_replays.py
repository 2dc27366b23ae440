"""When a key is sent again by machine, as a table."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from actions import policy, replays
from actions.models import Downstream, Kind
from actions.policy import Policy
from actions.replays import Sending

_KIND = {name: getattr(Kind(), name) for name in policy.OF_KIND}
_DOWNSTREAM = {name: getattr(Downstream(), name) for name in policy.OF_DOWNSTREAM}
POLICY = Policy(
    **_KIND | _DOWNSTREAM | {"dedupes": True, "dedupe_window_s": 86_400},
    kind="refund",
    downstream="payments",
    config_digest="",
)
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
SILENT = Sending(harmless=False, refused=False, reason="read_timeout")
REFUSED = Sending(harmless=True, refused=True, reason="refused_by_downstream")
NOT_SENT = Sending(harmless=True, refused=False, reason="dns")
STORED = Sending(harmless=False, refused=False, reason="replayed_error")


def after(*sendings: Sending, sent_ago_s: float = 0, **rules: object) -> int | None:
    """Seconds until the next replay; None: there is none."""
    found: Policy = replace(POLICY, **({"replay": "in_window", "replay_schedule": [5, 15, 60]} | rules))
    first = NOW - timedelta(seconds=sent_ago_s)
    at = replays.next_at(found, sendings, first_maybe_sent_at=first, deadline_ms=3_000, now=NOW)
    return None if at is None else round((at - NOW).total_seconds())


@pytest.mark.parametrize(
    ("sendings", "seconds"),
    [
        ([SILENT], 5),
        ([SILENT, SILENT], 15),
        ([SILENT, NOT_SENT], 15),
        ([SILENT, REFUSED], 15),
        ([SILENT, REFUSED, SILENT], 60),
        ([NOT_SENT, NOT_SENT, SILENT], 5),  # those before it used up nothing
        ([SILENT, STORED], 15),
        ([SILENT, STORED, STORED], None),
        ([SILENT, REFUSED, REFUSED], None),
        ([SILENT] * 4, None),
        ([], None),
    ],
)
def test_as_often_as_the_kind_says_and_not_to_hear_the_same_again(
    sendings: list[Sending], seconds: int | None
) -> None:
    assert after(*sendings) == seconds


@pytest.mark.parametrize("reason", ["key_used_otherwise", "duplicate_request", "answer_differs", "unreadable_2xx"])
def test_an_answer_that_would_come_again_the_same_is_not_asked_for_again(reason: str) -> None:
    assert after(replace(SILENT, reason=reason)) is None


@pytest.mark.parametrize(
    ("sent_ago_s", "seconds"), [(0, 5), (86_400 - 9, 5), (86_400 - 8, None), (86_400, None), (200_000, None)]
)
def test_it_begins_a_whole_deadline_before_the_window_ends(sent_ago_s: int, seconds: int | None) -> None:
    assert after(SILENT, sent_ago_s=sent_ago_s) == seconds


@pytest.mark.parametrize("rules", [{"replay": "never"}, {"dedupes": False}, {"dedupe_window_s": None}])
def test_only_where_the_kind_asks_for_it_and_the_downstream_says_for_how_long(rules: dict[str, object]) -> None:
    assert after(SILENT, **rules) is None


def test_a_window_that_became_shorter_counts_and_one_that_became_longer_does_not() -> None:
    def last(window_s: int) -> datetime | None:
        return replays.last_moment(POLICY, NOW, deadline_ms=3_000, window_s=window_s)

    assert last(60) == NOW + timedelta(seconds=57)
    assert last(10**6) == NOW + timedelta(seconds=86_400 - 3)
    assert policy.replay_safe_until(POLICY, NOW) == NOW + timedelta(days=1)
