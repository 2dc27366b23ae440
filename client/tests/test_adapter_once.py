"""What makes two wishes the same, and what a model reads about them. No framework in here."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from landed_client import Intent, LimitExceeded, NotAllowed, NotNow, Unavailable, UnsettledDuplicate, telling
from landed_client.adapters import once
from landed_client.proposals import Proposing
from landed_client.testing import FakeLanded
from tests.stubborn import READS_LIKE_AN_ERROR

WISH: Proposing = {"kind": "refund", "subject": "order-1", "amount": "50.00", "currency": "EUR", "params": {"a": 1}}


def key(**other: Any) -> str:
    return once.request_key("run-1", {**WISH, **other})  # type: ignore[typeddict-item]


@pytest.mark.parametrize(
    "same",
    [{"amount": "50"}, {"amount": 50}, {"subject": " order-1 "}, {"note": "again"}, {"context": {"ticket": "T"}}],
    ids=str,
)
def test_another_spelling_is_the_same_wish(same: dict[str, Any]) -> None:
    assert key(**same) == key()


@pytest.mark.parametrize(
    "other",
    [
        {"amount": "50.01"},
        {"subject": "order-2"},
        {"params": {"a": 2}},
        {"currency": "USD"},
        {"kind": "transfer"},
        {"repeat_of": "0193"},
    ],
    ids=str,
)
def test_another_detail_is_another_wish(other: dict[str, Any]) -> None:
    assert key(**other) != key()


def test_another_run_is_another_wish_and_a_run_needs_a_name() -> None:
    assert once.in_run(WISH, "run-1")["request_key"] != once.in_run(WISH, "run-2")["request_key"]
    assert once.in_run({**WISH, "request_key": "mine", "context": {"run": "r"}}, "run-1")["context"] == {"run": "r"}
    with pytest.raises(ValueError, match="name"):
        once.in_run(WISH, "")


def test_arguments_that_wish_nothing_have_no_step() -> None:
    assert once.step_of({"intent_id": "0193"}) is None
    assert once.step_of({"kind": "refund", "amount": 50.0}) is None
    assert once.step_of({"kind": "refund", "subject": "order-1", "wait_s": 3}) is not None


@pytest.fixture
def intent(fake_landed: FakeLanded) -> Intent:
    fake_landed.script("order-1", "unknown")
    return fake_landed.client().actions.propose(**WISH, wait=2)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"status": "held", "next_step": "wait_for_person"},
        {"status": "of a newer server", "message": ""},
        {"status": "failed", "settled": True, "disputed": True, "message": ""},
        {"next_step": "of a newer server"},
    ],
    ids=str,
)
def test_what_is_open_is_never_told_as_over(intent: Intent, change: dict[str, Any]) -> None:
    text = telling.tell(replace(intent, **change))
    assert not READS_LIKE_AN_ERROR.search(text)
    for part in (
        "Don't repeat it and don't do anything in its place",
        f"intent {intent.id}",
        "asking for again from",
    ):
        assert part in text
    assert text.endswith(f'Tell the customer: "{intent.customer_message}"')


def test_an_open_action_of_somebody_else_is_told_without_its_record() -> None:
    at = datetime(2026, 11, 29, 12, 0, 30, tzinfo=UTC)
    error = UnsettledDuplicate("…", code="unsettled_duplicate", problem={"ask_again_at": at.isoformat()})
    text = telling.tell_error(error)
    assert "may have happened" in text
    assert text.endswith("It is worth asking for again from 2026-11-29 12:00:30 UTC on, not before.")
    assert not READS_LIKE_AN_ERROR.search(text)


@pytest.mark.parametrize("kind", [LimitExceeded, NotAllowed, NotNow, Unavailable])
def test_what_was_not_taken_is_told_so_unless_an_earlier_try_may_have_been(kind: Any) -> None:
    error = kind("Not like this.")
    assert telling.tell_error(error).startswith("Nothing was recorded and nothing was sent. Not like this.")
    error.may_be_recorded = True
    assert telling.tell_error(error) == telling.UNANSWERED
