"""DESIGN §7's first step: everything that a look showed → one verdict."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciliation.models import Verdict
from reconciliation.verdicts import Candidate, Facts, Look, facts_digest, judge

SENT = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
LAST = SENT + timedelta(seconds=30)
FACTS = Facts(key="key-1", subject="order-1", amount_minor=5_000, currency="EUR", first_sent_at=SENT)
LATE = Look(complete=True, started_at=LAST + timedelta(seconds=60, microseconds=1), last_possible_send=LAST, lag_s=60)
EARLY = replace(LATE, started_at=LAST)


def entry(number: int = 1, **fields: Any) -> Candidate:
    found: dict[str, Any] = {
        "id": number,
        "entry_id": f"re_{number}",
        "role": "effect",
        "state": "final",
        "key": "key-1",
        "subject": "order-1",
        "amount_minor": 5_000,
        "currency": "EUR",
        "booked_at": SENT + timedelta(seconds=1),
    }
    return Candidate(**(found | fields))


def unkeyed(number: int = 1, **fields: Any) -> Candidate:
    return entry(number, **({"key": ""} | fields))


def foreign(number: int) -> Candidate:
    return entry(number, key=f"other-{number}", subject="order-1")


# by key

BY_KEY: list[tuple[str, list[Candidate], Verdict, tuple[str, ...]]] = [
    ("ours", [entry()], Verdict.MATCH, ()),
    ("ours, without a subject in the book", [entry(subject="")], Verdict.MATCH, ()),
    ("ours, without a time", [entry(booked_at=None)], Verdict.MATCH, ()),
    ("ours, booked long before: the key is ours", [entry(booked_at=SENT - timedelta(days=1))], Verdict.MATCH, ()),
    ("ours, others could own it: the key is ours", [entry(others=3)], Verdict.MATCH, ()),
    ("pending", [entry(state="pending")], Verdict.PENDING, ()),
    ("less", [entry(amount_minor=4_999)], Verdict.PARTIAL, ("amount",)),
    ("less and pending", [entry(amount_minor=1, state="pending")], Verdict.PARTIAL, ("amount",)),
    ("more", [entry(amount_minor=5_001)], Verdict.MISMATCH, ("amount",)),
    ("no amount", [entry(amount_minor=None)], Verdict.MISMATCH, ("amount",)),
    ("another currency", [entry(currency="USD")], Verdict.MISMATCH, ("currency",)),
    ("no currency", [entry(currency="")], Verdict.MISMATCH, ("currency",)),
    ("less in another currency", [entry(currency="USD", amount_minor=1)], Verdict.MISMATCH, ("currency", "amount")),
    ("another order", [entry(subject="order-2")], Verdict.MISMATCH, ("subject",)),
    ("less on another order", [entry(subject="order-2", amount_minor=1)], Verdict.MISMATCH, ("subject", "amount")),
    ("a line of the order", [entry(subject="order-1/line-1")], Verdict.MISMATCH, ("subject",)),
    ("settles another intent", [entry(taken=True)], Verdict.MISMATCH, ("settles_another",)),
    ("twice", [entry(1), entry(2)], Verdict.DUPLICATE, ()),
    ("twice, one pending", [entry(1), entry(2, state="pending")], Verdict.DUPLICATE, ()),
    ("twice with other amounts", [entry(1), entry(2, amount_minor=1)], Verdict.DUPLICATE, ()),
    ("three times", [entry(1), entry(2), entry(3)], Verdict.DUPLICATE, ()),
    ("one failed and one that worked", [entry(1, state="failed"), entry(2)], Verdict.MATCH, ()),
    ("a reversal with our key", [entry(role="reversal")], Verdict.MISMATCH, ("type",)),
    ("the effect and a reversal with our key", [entry(1), entry(2, role="reversal")], Verdict.MISMATCH, ("type",)),
    ("a fee with our key", [entry(1), entry(2, role="fee")], Verdict.MISMATCH, ("type",)),
    ("a type that nobody knows", [entry(role="unknown")], Verdict.MISMATCH, ("type",)),
]


@pytest.mark.parametrize("look", [LATE, EARLY], ids=["late", "early"])
@pytest.mark.parametrize(("name", "shown", "verdict", "differs"), BY_KEY, ids=[case[0] for case in BY_KEY])
def test_an_entry_with_our_key_is_ours_early_or_late(
    name: str, shown: list[Candidate], verdict: Verdict, differs: tuple[str, ...], look: Look
) -> None:
    found = judge(FACTS, shown, look)
    assert (found.verdict, found.differs, found.by) == (verdict, differs, "key")
    assert set(found.candidates) == {one.id for one in shown}


def test_the_entry_that_a_match_rests_on_is_named() -> None:
    found = judge(FACTS, [entry(4, state="failed"), foreign(5), entry(6)], LATE)
    assert (found.verdict, found.entry, found.entry_failed) == (Verdict.MATCH, 6, False)


def test_only_failed_entries_with_our_key_say_that_it_did_not_happen() -> None:
    failed = [entry(1, state="failed"), entry(2, state="failed")]
    assert judge(FACTS, failed, EARLY).verdict is Verdict.TOO_EARLY, "another attempt's may still show"
    found = judge(FACTS, failed, LATE)
    assert (found.verdict, found.entry_failed, found.entry) == (Verdict.MATCH, True, 2)


def test_the_id_that_the_downstream_gave_us_names_our_entry_as_well() -> None:
    facts = replace(FACTS, external_id="re_7")
    assert judge(facts, [unkeyed(7), unkeyed(8)], EARLY).verdict is Verdict.MATCH
    assert judge(facts, [unkeyed(7, state="pending")], EARLY).verdict is Verdict.PENDING
    assert judge(facts, [unkeyed(7, amount_minor=1)], EARLY).verdict is Verdict.PARTIAL
    assert judge(facts, [unkeyed(7), entry(8)], EARLY).verdict is Verdict.DUPLICATE


def test_an_empty_id_names_nothing() -> None:
    assert judge(FACTS, [unkeyed(1, entry_id="", subject="order-2")], LATE).verdict is Verdict.ABSENT


def test_one_of_ours_among_130_entries_is_found() -> None:
    shown = [foreign(number) for number in range(1, 131)]
    shown[117] = entry(118)
    found = judge(FACTS, shown, LATE)
    assert (found.verdict, found.entry, found.candidates) == (Verdict.MATCH, 118, (118,))


def test_130_entries_of_others_are_not_ours() -> None:
    assert judge(FACTS, [foreign(number) for number in range(130)], LATE).verdict is Verdict.ABSENT
    assert judge(FACTS, [foreign(number) for number in range(130)], EARLY).verdict is Verdict.TOO_EARLY


def test_130_entries_without_keys_are_ambiguous_and_all_named() -> None:
    found = judge(FACTS, [unkeyed(number) for number in range(1, 131)], LATE)
    assert (found.verdict, len(found.candidates), found.entry) == (Verdict.AMBIGUOUS, 130, None)


# by subject


def test_a_match_by_subject_alone_needs_everything_to_fit() -> None:
    found = judge(FACTS, [unkeyed()], EARLY)
    assert (found.verdict, found.entry, found.by) == (Verdict.MATCH, 1, "subject")
    assert judge(FACTS, [unkeyed(state="pending")], EARLY).verdict is Verdict.PENDING


@pytest.mark.parametrize(
    "short_of",
    [
        {"amount_minor": 4_999},
        {"amount_minor": 5_001},
        {"amount_minor": None},
        {"currency": "USD"},
        {"currency": ""},
        {"booked_at": None},
        {"others": 1},
        {"others": 7},
        {"amount_minor": 4_999, "state": "pending"},
    ],
)
def test_anything_less_is_ambiguous(short_of: dict[str, Any]) -> None:
    found = judge(FACTS, [unkeyed(**short_of)], LATE)
    assert (found.verdict, found.candidates, found.entry) == (Verdict.AMBIGUOUS, (1,), None)


@pytest.mark.parametrize("fields", [{}, {"amount_minor": None, "currency": ""}, {"booked_at": None}])
def test_a_type_that_nobody_knows_with_our_money_is_no_absence(fields: dict[str, Any]) -> None:
    found = judge(FACTS, [unkeyed(role="unknown", **fields)], LATE)
    assert (found.verdict, found.candidates, found.entry) == (Verdict.AMBIGUOUS, (1,), None)
    assert "type" in found.differs
    assert judge(FACTS, [unkeyed(1), unkeyed(2, role="unknown")], LATE).verdict is Verdict.AMBIGUOUS


def test_two_entries_without_a_key_are_ambiguous_although_one_fits() -> None:
    assert judge(FACTS, [unkeyed(1), unkeyed(2)], LATE).verdict is Verdict.AMBIGUOUS
    assert judge(FACTS, [unkeyed(1), unkeyed(2, amount_minor=1)], LATE).verdict is Verdict.AMBIGUOUS
    assert judge(FACTS, [unkeyed(1), unkeyed(2, booked_at=None)], LATE).verdict is Verdict.AMBIGUOUS


def test_one_that_fits_beside_one_that_was_not_carried_out_is_ambiguous_for_either_may_be_ours() -> None:
    found = judge(FACTS, [unkeyed(1, state="failed"), unkeyed(2)], LATE)
    assert (found.verdict, found.entry, found.candidates) == (Verdict.AMBIGUOUS, None, (2, 1))


@pytest.mark.parametrize(
    "fields",
    [
        {"amount_minor": 4_999},
        {"subject": "order-2"},
        {"key": "other-1"},
        {"taken": True},
        {"known_before": True},
        {"booked_at": SENT - timedelta(days=1)},
    ],
)
def test_one_that_was_not_carried_out_and_can_t_be_ours_disturbs_no_match(fields: dict[str, Any]) -> None:
    found = judge(FACTS, [unkeyed(1, state="failed", **fields), unkeyed(2)], LATE)
    assert (found.verdict, found.entry) == (Verdict.MATCH, 2)


def test_one_without_a_key_that_was_not_carried_out_is_by_itself_as_if_nothing_were_there() -> None:
    failed = unkeyed(9, state="failed")
    assert judge(FACTS, [failed], LATE).verdict is Verdict.ABSENT
    assert judge(FACTS, [failed], EARLY).verdict is Verdict.TOO_EARLY
    assert judge(FACTS, [failed, entry(1)], LATE).entry == 1, "the key is ours"


def test_ambiguous_says_what_differs() -> None:
    assert judge(FACTS, [unkeyed(1, amount_minor=1), unkeyed(2, currency="USD")], LATE).differs == (
        "amount",
        "currency",
    )


def test_when_we_do_not_know_when_it_was_sent_the_time_can_t_fit() -> None:
    assert judge(replace(FACTS, first_sent_at=None), [unkeyed()], LATE).verdict is Verdict.AMBIGUOUS


@pytest.mark.parametrize(
    "of_somebody_else",
    [
        {"key": "other"},
        {"subject": "order-2"},
        {"subject": "order-1/line-1"},
        {"subject": ""},
        {"taken": True},
        {"role": "reversal"},
        {"role": "fee"},
        {"role": "unknown", "amount_minor": 4_999},
        {"role": "unknown", "booked_at": SENT - timedelta(seconds=61), "known_before": True},
        {"state": "failed", "amount_minor": 4_999},
        {"booked_at": SENT - timedelta(seconds=61), "known_before": True},
        {"booked_at": SENT - timedelta(days=3), "amount_minor": 4_999},
        {"booked_at": SENT + timedelta(days=3), "amount_minor": 4_999},
    ],
)
def test_what_can_t_be_ours_is_as_if_it_were_not_there(of_somebody_else: dict[str, Any]) -> None:
    other = unkeyed(9, **of_somebody_else)
    assert judge(FACTS, [other], LATE).verdict is Verdict.ABSENT
    assert judge(FACTS, [other], EARLY).verdict is Verdict.TOO_EARLY
    assert judge(FACTS, [other, unkeyed(1)], LATE).entry == 1
    assert judge(FACTS, [other, entry(1)], LATE).entry == 1


@pytest.mark.parametrize(("seconds", "verdict"), [(60, Verdict.MATCH), (61, Verdict.AMBIGUOUS)])
def test_a_downstreams_clock_may_be_a_minute_behind(seconds: int, verdict: Verdict) -> None:
    assert judge(FACTS, [unkeyed(booked_at=SENT - timedelta(seconds=seconds))], LATE).verdict is verdict


def test_what_was_booked_days_later_is_not_ours_without_a_person() -> None:
    """Support's own refund of the same amount, made by hand: it fits in all but the time."""
    later = unkeyed(booked_at=SENT + timedelta(days=3))
    assert judge(FACTS, [later], LATE).verdict is Verdict.AMBIGUOUS


def test_another_entry_than_the_id_that_the_downstream_gave_us_is_not_ours() -> None:
    assert judge(replace(FACTS, external_id="re_9"), [unkeyed(1)], LATE).verdict is Verdict.ABSENT


def test_without_an_amount_there_is_too_little_to_tell_by() -> None:
    assert judge(replace(FACTS, amount_minor=None, currency=""), [unkeyed(1)], LATE).verdict is Verdict.AMBIGUOUS


def test_our_id_under_somebody_elses_key_is_a_mismatch() -> None:
    found = judge(replace(FACTS, external_id="re_7"), [entry(7, key="other", entry_id="re_7")], LATE)
    assert (found.verdict, found.differs) == (Verdict.MISMATCH, ("key",))


def test_our_key_outweighs_what_fits_by_subject() -> None:
    found = judge(FACTS, [unkeyed(1), entry(2, amount_minor=1)], LATE)
    assert (found.verdict, found.candidates) == (Verdict.PARTIAL, (2,))


# nothing there


@pytest.mark.parametrize(
    ("started", "verdict"),
    [
        (LAST - timedelta(seconds=1), Verdict.TOO_EARLY),
        (LAST, Verdict.TOO_EARLY),
        (LAST + timedelta(seconds=59), Verdict.TOO_EARLY),
        (LAST + timedelta(seconds=60), Verdict.TOO_EARLY),
        (LAST + timedelta(seconds=60, microseconds=1), Verdict.ABSENT),
        (LAST + timedelta(days=1), Verdict.ABSENT),
    ],
)
def test_nothing_found_is_an_absence_only_from_a_look_that_began_after_the_lag(
    started: datetime, verdict: Verdict
) -> None:
    """Rule 6: past the last possible send, not the first; and it is the look's beginning that counts."""
    assert judge(FACTS, [], replace(LATE, started_at=started)).verdict is verdict


@pytest.mark.parametrize(
    "shown",
    [[], [entry()], [unkeyed()], [entry(1), entry(2)], [foreign(1)]],
    ids=["none", "ours", "fits", "two", "foreign"],
)
def test_a_look_of_which_a_page_failed_says_nothing_whatever_it_showed(shown: list[Candidate]) -> None:
    for look in (LATE, EARLY):
        found = judge(FACTS, shown, replace(look, complete=False))
        assert (found.verdict, found.entry) == (Verdict.UNAVAILABLE, None)


def test_the_order_of_the_entries_changes_nothing() -> None:
    shown = [unkeyed(1), foreign(2), entry(3, amount_minor=1), entry(4, state="failed")]
    found = judge(FACTS, shown, LATE)
    assert judge(FACTS, shown[::-1], LATE).verdict is found.verdict
    assert facts_digest(shown) == facts_digest(shown[::-1])


@pytest.mark.parametrize(
    "changed",
    [
        {"state": "pending"},
        {"amount_minor": 5_001},
        {"amount_minor": None},
        {"currency": "USD"},
        {"key": ""},
        {"subject": "order-2"},
        {"role": "reversal"},
        {"taken": True},
        {"entry_id": "re_9"},
    ],
)
def test_other_facts_have_another_digest(changed: dict[str, Any]) -> None:
    assert facts_digest([entry(**changed)]) != facts_digest([entry()])
    assert facts_digest([]) != facts_digest([entry()]) != facts_digest([entry(), entry()])


def test_when_an_entry_was_looked_at_by_which_row_is_no_fact() -> None:
    assert facts_digest([entry(1)]) == facts_digest([replace(entry(1), id=99)])
