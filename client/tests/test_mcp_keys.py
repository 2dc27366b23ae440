"""Which request key a proposal goes out under."""

import pytest

pytest.importorskip("mcp")

from landed_client.mcp import keys
from landed_client.mcp.keys import Names, Place, Recent

NAMES = Names()


def key(step: str | None = "1", run: str | None = "r", subject: str | None = "order-1", **params: str) -> str | None:
    return keys.derived(Place(run, step), kind="refund", subject=subject, params=params or None)


def test_the_same_step_of_the_same_run_has_the_same_key() -> None:
    assert key() == key()
    assert key() is not None
    assert len({key(), key(step="2"), key(run="other")}) == 3


def test_one_constant_step_id_leaves_two_subjects_two_actions() -> None:
    assert key(step="call_1", subject="order-1") != key(step="call_1", subject="order-2")
    assert key(step="call_1", subject=None, order="1") != key(step="call_1", subject=None, order="2")


def test_a_subject_that_is_spelled_differently_the_second_time_is_the_same() -> None:
    assert key(subject="Order-1 ") == key(subject="order-1")


def test_a_run_or_a_step_alone_gives_no_key() -> None:
    assert key(run=None) is None
    assert key(step=None) is None


def test_run_and_step_are_read_from_the_meta_of_the_request() -> None:
    assert Place.read({"landed/run": "r", "landed/step": 7}, NAMES) == Place("r", "7")
    named = Names(run_meta="x/thread", step_meta="x/call", run="process")
    assert Place.read({"x/call": "c"}, named) == Place("process", "c")


def test_what_mcp_numbers_itself_is_not_used() -> None:
    assert Place.read({"progressToken": 3, "progress_token": 3, "requestId": 3}, NAMES) == Place(None, None)


@pytest.mark.parametrize("odd", [None, "", "x" * 201, True, {}, [], 1.5])
def test_what_names_nothing_is_not_taken_for_a_name(odd: object) -> None:
    assert Place.read({"landed/run": odd, "landed/step": odd}, NAMES) == Place(None, None)


def test_a_key_of_the_models_own_is_kept_apart_and_one_of_ours_comes_back_as_it_was() -> None:
    assert keys.of_the_model("refund-1") == "mcp-m-refund-1"
    assert keys.of_the_model("mcp-m-refund-1") == "mcp-m-refund-1"
    ours = keys.minted()
    assert keys.of_the_model(ours) == ours


def test_the_very_same_proposal_keeps_its_key_until_ten_minutes_after_the_answer() -> None:
    now = [0.0]
    memory = Recent(lambda: now[0])
    assert memory.key_for("r", {"kind": "refund"}, "k1").text == "k1"
    assert memory.key_for("other run", {"kind": "refund"}, "k2").text == "k2"
    now[0] = 1e9
    assert memory.key_for("r", {"kind": "refund"}, "k3").text == "k1"
    memory.answered("k1")
    now[0] += keys.KEPT_FOR_S - 1
    assert memory.key_for("r", {"kind": "refund"}, "k4") == keys.Key("k1", seen=True)
    assert memory.key_for("r", {"kind": "refund"}, "k4") == keys.Key("k1", seen=False)
    memory.answered("k1")
    now[0] += keys.KEPT_FOR_S + 1
    assert memory.key_for("r", {"kind": "refund"}, "k5").text == "k5"


def test_what_is_forgotten_is_a_new_one() -> None:
    memory = Recent()
    memory.key_for("r", {"kind": "refund"}, "k1")
    memory.forget("k1")
    assert memory.key_for("r", {"kind": "refund"}, "k2").text == "k2"


def test_the_memory_is_bounded() -> None:
    memory = Recent()
    for number in range(keys._MOST + 5):
        memory.key_for(None, {"number": number}, str(number))
    assert len(memory._kept) == keys._MOST
