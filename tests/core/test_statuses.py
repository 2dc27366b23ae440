"""The status table of DESIGN §3, written out a second time: this is the right value, not a copy of the code."""

import pytest

from actions.statuses import NOT_SENT, SETTLED, TRANSITIONS, UNSETTLED, Actor, Status, is_settled, may

_WITHDRAWS = {"agent", "application", "reviewer", "clock"}
RIGHT: dict[tuple[str, str], set[str]] = {
    ("", "recorded"): {"agent", "application"},
    ("", "held"): {"agent", "application"},
    ("", "submitted"): {"agent", "application"},
    ("held", "recorded"): {"reviewer"},
    ("held", "cancelled"): _WITHDRAWS,
    ("recorded", "cancelled"): _WITHDRAWS,
    ("recorded", "held"): {"checker", "reviewer", "worker"},
    # Decision 7: said not to be sent, and its own attempt or key says otherwise.
    ("recorded", "unknown"): {"checker"},
    ("held", "unknown"): {"checker"},
    ("recorded", "submitted"): {"worker", "caller"},
    ("recorded", "failed"): {"worker", "clock"},
    ("submitted", "recorded"): {"worker", "caller"},
    ("submitted", "confirmed"): {"worker", "caller", "checker"},
    ("submitted", "failed"): {"worker", "caller", "checker"},
    # "whoever opens an outcome review on it": a check, or a person.
    ("submitted", "unknown"): {"worker", "caller", "clock", "checker", "reviewer"},
    ("unknown", "submitted"): {"worker"},
    # A late answer is brought by a worker, or by the caller who sent it.
    ("unknown", "recorded"): {"worker", "caller"},
    ("unknown", "confirmed"): {"checker", "worker", "caller", "reviewer"},
    ("unknown", "failed"): {"checker", "worker", "caller", "reviewer"},
    ("confirmed", "failed"): {"reviewer", "administrator"},
    ("failed", "confirmed"): {"reviewer", "administrator"},
    # Another ledger entry is what settled it (decision 17).
    ("confirmed", "confirmed"): {"reviewer", "administrator"},
}
STATUSES = ["held", "recorded", "submitted", "unknown", "confirmed", "failed", "cancelled"]
ACTORS = ["agent", "application", "caller", "worker", "checker", "clock", "reviewer", "administrator"]


def test_the_table_is_the_designs_table() -> None:
    found = {(from_ or "", str(to)): {str(actor) for actor in who} for (from_, to), who in TRANSITIONS.items()}
    assert found == RIGHT


def test_there_are_these_statuses_and_roles_and_no_others() -> None:
    assert sorted(Status.values) == sorted(STATUSES)
    assert sorted(Actor.values) == sorted(ACTORS)


def test_settled_are_confirmed_failed_and_cancelled() -> None:
    assert {str(status) for status in SETTLED} == {"confirmed", "failed", "cancelled"}
    assert {str(status) for status in UNSETTLED} == {"held", "recorded", "submitted", "unknown"}
    assert {str(status) for status in NOT_SENT} == {"held", "recorded", "cancelled"}
    assert [status for status in STATUSES if is_settled(status)] == ["confirmed", "failed", "cancelled"]


@pytest.mark.parametrize("from_", [None, *STATUSES])
@pytest.mark.parametrize("to", STATUSES)
def test_each_role_may_do_what_the_table_says_and_nothing_else(from_: str | None, to: str) -> None:
    allowed = RIGHT.get((from_ or "", to), set())
    for actor in ACTORS:
        assert may(Actor(actor), Status(from_) if from_ else None, Status(to)) == (actor in allowed)


def test_an_agent_never_decides_an_outcome() -> None:
    """Rule 12: it may propose and withdraw; no more."""
    may_reach = {to for (_, to), who in RIGHT.items() if "agent" in who}
    assert may_reach == {"recorded", "held", "submitted", "cancelled"}
    assert all(from_ in {"", "held", "recorded"} for (from_, _), who in RIGHT.items() if "agent" in who)


def test_nothing_leads_out_of_cancelled_and_nothing_unsettles_what_is_settled() -> None:
    assert not [pair for pair in RIGHT if pair[0] == "cancelled"]
    settled = {"confirmed", "failed", "cancelled"}
    assert not [pair for pair in TRANSITIONS if pair[0] in settled and pair[1] not in settled]


def test_age_alone_settles_nothing_that_may_have_been_sent() -> None:
    """Rule 5: the clock never concludes from submitted or unknown."""
    by_clock = {pair for pair, who in TRANSITIONS.items() if Actor.CLOCK in who}
    assert all(not (from_ in {"submitted", "unknown"} and to in SETTLED) for from_, to in by_clock)
