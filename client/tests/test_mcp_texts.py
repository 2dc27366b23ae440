"""What a model reads: for every status and next step, and for every refusal."""

import inspect
import json
import re
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest

pytest.importorskip("mcp")

from landed_client import errors
from landed_client.intents import Step
from landed_client.mcp import answers, main, texts, tools
from landed_client.mcp.texts import Facts
from landed_client.problems import error_of
from landed_client.testing import FakeLanded
from landed_client.wire import Reply

FORBIDDEN = re.compile(r"fail|error|try again|retry|retrie|did not work|unsuccessful|time.?d? ?out", re.IGNORECASE)
AT = datetime(2026, 11, 30, 12, 0, 30, tzinfo=UTC)
OPEN_STATUSES = ("held", "recorded", "submitted", "unknown", "confirmed", "failed", "cancelled", "something_new")
STEPS = (*get_args(Step), "something_new")


@pytest.mark.parametrize("disputed", [False, True])
@pytest.mark.parametrize("at", [AT, None])
def test_no_text_about_an_open_action_can_be_taken_for_a_no(at: datetime | None, disputed: bool) -> None:
    for status, step in product(OPEN_STATUSES, STEPS):
        text = texts.about(Facts(status, "pending", step, disputed, ask_again_at=at))  # type: ignore[arg-type]
        assert not FORBIDDEN.search(text), (status, step, text)
        assert "don't" in text.lower(), (status, step, text)
        assert "customer_message" in text


def test_an_unknown_one_may_have_happened_and_the_text_says_what_to_do() -> None:
    text = texts.about(Facts("unknown", "pending", "wait", ask_again_at=AT))
    for part in (
        "may have happened",
        "Don't repeat it",
        "in its place",
        "a repeat will be refused",
        "at 2026-11-30T12:00:30Z",
        "Tell the customer",
    ):
        assert part in text


@pytest.mark.parametrize("status", ["unknown", "submitted", "something_new", "confirmed", "failed"])
def test_whatever_may_have_been_sent_is_not_to_be_repeated(status: str) -> None:
    assert "a repeat will be refused" in texts.about(Facts(status, "pending", "wait"))


def test_a_held_one_ends_the_turn() -> None:
    text = texts.about(Facts("held", "pending", "wait_for_person", ask_again_at=AT))
    assert "nothing has been sent" in text
    assert "end your turn" in text


def test_only_a_settled_one_is_called_failed() -> None:
    assert "failed" in texts.about(Facts("failed", "failed", "done", may_propose_again=True))
    assert "may be proposed again" not in texts.about(Facts("failed", "failed", "done"))
    assert "may be proposed again" not in texts.about(Facts("cancelled", "cancelled", "done"))
    for end, again in product(("confirmed", "cancelled"), (False, True)):
        assert not FORBIDDEN.search(texts.about(Facts(end, end, "done", may_propose_again=again)))  # type: ignore[arg-type]


def _classes() -> list[type[errors.LandedError]]:
    return [one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, errors.LandedError)]


@pytest.mark.parametrize("kind", [one for one in _classes() if not issubclass(one, errors.NotDone)])
@pytest.mark.parametrize("maybe", [False, True])
def test_no_refusal_can_be_taken_for_a_no_about_the_action(kind: type[errors.LandedError], maybe: bool) -> None:
    error = kind("The server's own sentence: it failed, try again.")
    error.may_be_recorded = maybe
    now = Facts("unknown", "pending", "wait", ask_again_at=AT)
    for answer in (answers.refused(error, None, key="k"), answers.unread(error), answers.not_listed(error)):
        assert not FORBIDDEN.search(answer.what_to_do), answer.what_to_do
        assert "server's own" not in answer.what_to_do
    for text in (texts.duplicate(now, step="wait", ask_again_at=None), texts.too_late(now), texts.refusal(error)):
        assert not FORBIDDEN.search(text)


def test_what_may_be_recorded_is_never_said_not_to_be() -> None:
    for kind in (errors.NotAllowed, errors.Refused, errors.NotFound):
        error = kind("…")
        error.may_be_recorded = True
        assert "Nothing was recorded" not in texts.refusal(error)
        assert answers.refused(error, None, key=None).recorded == "maybe"


def test_without_an_answer_of_landed_the_very_same_call_is_safe_and_the_text_says_so() -> None:
    maybe, no = (texts.unavailable(may_be_recorded=one) for one in (True, False))
    assert "It may have been recorded" in maybe
    assert "It may have been recorded" not in no
    for text in (maybe, no):
        assert "the very same arguments" in text
        assert "is safe" in text
        assert not FORBIDDEN.search(text)


def test_a_duplicate_that_is_not_ours_to_see_is_still_not_to_be_repeated() -> None:
    text = texts.duplicate(None, step="wait_for_person", ask_again_at=AT)
    assert "may have happened" in text
    assert "refused as well" in text
    assert "2026-11-30T12:00:30Z" in text


def _constant_texts() -> list[str]:
    found: list[Any] = [value for value in vars(texts).values() if isinstance(value, str)]
    return [
        text for text in found if " " in text and text not in (texts.__doc__, texts._FAILED, texts._FAILED_FOR_GOOD)
    ]


def test_neither_do_the_texts_that_a_model_reads_beforehand_use_these_words() -> None:
    described = [tool.description or "" for tool in tools.listed()]
    schemas = [str(tool.input_schema) for tool in tools.listed()]
    for text in (*_constant_texts(), *described, *schemas):
        assert not FORBIDDEN.search(text), text


def test_only_four_sorts_of_results_are_errors_of_the_call() -> None:
    kinds = {
        one.__name__: answers.result_of(one("…")) for one in _classes() if one.__init__ is errors.LandedError.__init__
    }  # type: ignore[misc]
    assert {name for name, result in kinds.items() if result in answers.ERRORS} == {
        "NotAllowed",
        "NotFound",
        "Refused",
    }
    assert answers.result_of(errors.Unavailable("…")) in answers.ERRORS
    assert answers.result_of(errors.AlreadyDone("…")) not in answers.ERRORS
    assert answers.result_of(errors.OutcomeUnknown("…")) not in answers.ERRORS
    assert answers.result_of(errors.Held("…")) not in answers.ERRORS


def test_the_annotations_say_what_the_tools_do() -> None:
    by_name = {tool.name: tool.annotations for tool in tools.listed()}
    assert set(by_name) == {"propose_action", "get_action", "wait_for_action", "list_unsettled", "cancel_action"}
    for name in ("get_action", "wait_for_action", "list_unsettled"):
        assert by_name[name] is not None
        assert by_name[name].read_only_hint  # type: ignore[union-attr]
    hints = by_name["propose_action"]
    assert hints is not None
    assert (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint) == (
        False,
        True,
        False,
        True,
    )
    assert all(tool.output_schema for tool in tools.listed())


def _refused_with(code: str, **more: Any) -> answers.Answer:
    """The answer for a problem as the server writes it."""
    problem = {"code": code, "detail": "It failed, try again.", "retryable": False} | more
    error = error_of(Reply(409, {}, json.dumps(problem).encode()), request_key="k")
    return answers.refused(error, getattr(error, "intent", None), key="k")


def test_what_is_already_done_shows_the_one_that_did_it() -> None:
    fake = FakeLanded()
    with fake.client() as client:
        client.actions.propose(kind="refund", subject="order-1", amount="5.00", currency="EUR", wait=5)
    answer = _refused_with("already_done", intent=fake.intents()[0])
    assert (answer.result, answer.recorded) == ("already_done", "no")
    assert answer.intent is not None
    assert answer.intent.outcome == "confirmed"
    assert "Don't propose it again" in answer.what_to_do


def test_a_limit_is_told_as_data_and_the_text_says_not_to_split_it() -> None:
    resets = "2026-12-01T00:00:00Z"
    answer = _refused_with("limit_exceeded", limit="100.00", remaining="3.10", resets_at=resets)
    assert (answer.limit, answer.remaining) == ("100.00", "3.10")
    assert answer.resets_at is not None
    assert "Don't split it" in answer.what_to_do
    assert not re.search(r"\d", answer.what_to_do)


def test_the_page_names_every_tool_argument_result_and_setting() -> None:
    page = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text()
    names = set(tools.TOOLS)
    for tool in tools.TOOLS.values():
        names |= set(tool.takes.model_fields)
    results = {*get_args(answers.Result), "actions"}
    settings = set(re.findall(r"LANDED_[A-Z_]+", main._USAGE))
    missing = [name for name in sorted(names | results | settings) if f"`{name}`" not in page]
    assert missing == []
    is_error = dict(re.findall(r"^\| `(\w+)` \| (yes|no) \|", page, re.MULTILINE))
    assert {name for name, said in is_error.items() if said == "yes"} == answers.ERRORS
    assert set(is_error) == results
