"""What PostgreSQL need not run again: the list of it, and how it is chosen."""

import re
from pathlib import Path

import pytest

from tests.plugin import function_of, on_one_database
from tests.statements import Met, Noted, choose, lines, oddity, shape


def test_every_function_that_one_database_is_enough_for_is_there() -> None:
    gone = set()
    for name in map(function_of, on_one_database()):
        file, _, function = name.partition("::")
        path = Path(file)
        if not path.is_file() or not re.search(rf"^def {re.escape(function)}\(", path.read_text(), re.MULTILINE):
            gone.add(name)
    assert gone == set(), "renamed or deleted: take the lines out, or run `make choose`"


def noted(
    name: str, *met: str, cost: float = 1.0, there: bool = True, always: bool = False, end: str = "some"
) -> Noted:
    found: frozenset[Met] = frozenset((one, end, "") for one in met)
    return Noted(name, cost, there=there, always=always, met=found)


def test_what_nobody_else_meets_stays() -> None:
    assert choose([noted("alone", "a"), noted("other", "b")]) == set()


def test_the_cheapest_meets_everything_once() -> None:
    assert choose([noted(f"costs {cost}", "a", cost=cost) for cost in (3, 1, 2)]) == {"costs 3", "costs 2"}
    both = noted("costs 2 and meets both", "a", "b", cost=2)
    assert choose([noted("a", "a", cost=1.5), both, noted("b", "b", cost=1.5)]) == {"a", "b"}


def test_who_always_runs_counts_and_who_never_could_does_not() -> None:
    assert choose([noted("always", "a", always=True), noted("meets it too", "a")]) == {"meets it too"}
    assert choose([noted("browser", "a", there=False), noted("meets it too", "a")]) == set()


def test_another_end_of_a_statement_is_another_thing_to_meet() -> None:
    assert choose([noted("1", "a"), noted("2", "a", end="IntegrityError")]) == set()


def test_a_function_of_which_nothing_stays_is_one_line() -> None:
    tests = [noted(name, "a") for name in ("t.py::all[1]", "t.py::all[2]", "t.py::some[1]", "t.py::some[2]")]
    assert lines(tests, {"t.py::all[1]", "t.py::all[2]", "t.py::some[2]"}) == ["t.py::all", "t.py::some[2]"]


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("SELECT 1 WHERE x IN (%s)", "SELECT 1 WHERE x IN (%s, %s, %s)", True),
        ("INSERT INTO x VALUES (%s, %s)", "INSERT INTO x VALUES (%s, %s), (%s, %s)", True),
        ("SELECT x FROM y LIMIT 21", "SELECT x FROM y LIMIT 500", True),
        ('SAVEPOINT "s140_x1"', 'SAVEPOINT "s139_x20"', True),
        ("SELECT x FROM y WHERE x = %s", "SELECT x FROM y WHERE z = %s", False),
        ("SELECT x FROM y", "SELECT x FROM y FOR UPDATE", False),
    ],
)
def test_statements_are_alike_but_for_how_much_they_carry(one: str, other: str, alike: bool) -> None:
    assert (shape(one) == shape(other)) is alike


def test_values_that_databases_differ_about_are_another_thing_to_meet() -> None:
    ordinary = [("order-1", 5000, None, True), {"a": "x"}, None]
    assert {oddity(values) for values in ordinary} == {""}
    odd = ["Zoë", "a\x00b", "x" * 5_000, {"a": "Zoë"}, ("x", ["\n"])]
    assert {oddity(values) for values in odd} == {"odd text"}
    assert oddity((2**40,)) == "big number"
