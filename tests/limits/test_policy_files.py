"""Limits in a policy file."""

import pytest

from actions.models import Agent
from tests.policy_files.conftest import Apply, apply, blocks, example

__all__ = ["apply"]
pytestmark = pytest.mark.django_db

(LIMITS,) = (f"\n{text}" for text in blocks("limits.md", "toml"))
STORED = {
    "open": 20,
    "velocity": {"intents": 60, "minutes": 10},
    "amounts": {
        "EUR": {"per_action": 10_000, "per_day": 100_000, "per_subject_day": 10_000},
        "KWD": {"per_day": 0},
    },
    "kinds": {"refund": {"open": 5, "amounts": {"JPY": {"per_action": 800}}}},
}


def test_a_file_sets_them_in_the_currency_itself_and_shows_the_difference(apply: Apply) -> None:
    done = apply(example() + LIMITS)
    assert done.code == 0, done.error
    assert Agent.objects.get(name="support-bot").limits == STORED
    assert '    limits.kinds.refund.amounts.JPY.per_action = "800"' in done.out.splitlines()
    assert "Nothing to change." in apply(example() + LIMITS).out
    # A file that says nothing of limits leaves them alone, and says that there are some.
    assert '    (not in the file) limits.amounts.EUR.per_day = "1000.00"' in apply(example()).out.splitlines()
    changed = apply(example() + LIMITS.replace('"1000.00"', '"2000"').replace("open = 20 ", "# "))
    assert '    limits.amounts.EUR.per_day: "1000.00" → "2000.00"' in changed.out.splitlines()
    assert "    limits.open: 20 → (not set)" in changed.out.splitlines()
    assert Agent.objects.get().history.count() == 3  # type: ignore[attr-defined]  # made, its kinds, this


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        ("amounts.EUR = { per_action = 100 }", "amounts.EUR.per_action: Write the amount as a string"),
        ('amounts.EUR = { per_action = "1.005" }', "amounts.EUR.per_action: 1.005 has more decimals"),
        ('amounts.EUR = { per_hour = "1" }', "amounts.EUR: Only per_action, per_day, per_subject_day."),
        ('amounts.EUR = { per_action = "2", per_day = "1" }', "per_action: It is above per_day"),
        ('amounts.EUR = { per_subject_day = "2", per_day = "1" }', "per_subject_day: It is above per_day"),
        ('amounts.EUR = { per_action = "2", per_subject_day = "1" }', "per_action: It is above per_subject_day"),
        ('amounts.EUR = "1"', "amounts.EUR: Write a table"),
        ('amounts.XXX = { per_day = "1" }', "amounts.XXX"),
        ("amounts = 5", "This is an integer; it must be a table of currencies"),
        ("open = -1", "open: A whole number from 0"),
        ("open = true", "open: A whole number from 0"),
        ("velocity = { intents = 0, minutes = 1 }", "velocity.intents: A whole number from 1"),
        ("velocity = { intents = 5, minutes = 100000 }", "velocity.minutes: A whole number from 1"),
        ("velocity = { intents = 5 }", "velocity: Both intents and minutes"),
        ("per_day = 5", "per_day: There is no such limit"),
        ("kinds.nonsense = { open = 5 }", "kinds.nonsense: There is no such kind."),
        ("kinds.refund = { velocity = { intents = 5, minutes = 5 } }", "kinds.refund.velocity: There is no such"),
        ("kinds.refund = { kinds.refund = { open = 5 } }", "kinds.refund.kinds: There is no such"),
        ("kinds.refund = 5", "kinds.refund"),
        ("kinds = []", "it must be a table of kinds"),
    ],
)
def test_nonsense_is_refused_with_its_place(apply: Apply, limits: str, sentence: str) -> None:
    done = apply(example() + f"[agent.limits]\n{limits}\n")
    assert done.code == 1
    assert "[[agent]] support-bot, limits" in done.error
    assert sentence in done.error, done.error
    assert not Agent.objects.exists()
