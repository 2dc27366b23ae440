"""What PostgreSQL need not run again: the list of it, and how it is chosen."""

import re
from pathlib import Path

import pytest

from tests.plugin import on_one_database
from tests.statements import Function, Met, choose, oddity, shape


def test_every_function_that_one_database_is_enough_for_is_there() -> None:
    gone = set()
    for name in on_one_database():
        file, _, function = name.partition("::")
        path = Path(file)
        if not path.is_file() or not re.search(rf"^def {re.escape(function)}\(", path.read_text(), re.MULTILINE):
            gone.add(name)
    assert gone == set(), "renamed or deleted: take the lines out, or run `make choose`"


def function(name: str, *met: str, cost: float = 1.0, there: bool = True, always: bool = False) -> Function:
    found: set[Met] = {(one, "some", "") for one in met}
    return Function(name, cost, there=there, always=always, met=found)


def test_what_nobody_else_meets_stays() -> None:
    assert choose([function("alone", "a"), function("other", "b")]) == set()


def test_two_meet_everything_and_the_cheapest_of_them_stay() -> None:
    functions = [function(f"costs {cost}", "a", cost=cost) for cost in (3, 1, 2)]
    assert choose(functions) == {"costs 3"}


def test_who_always_runs_counts_and_who_never_could_does_not() -> None:
    always = [function(f"always {n}", "a", always=True) for n in (1, 2)]
    assert choose([*always, function("meets it too", "a")]) == {"meets it too"}
    browser = [function(f"browser {n}", "a", there=False) for n in (1, 2)]
    assert choose([*browser, function("meets it too", "a")]) == set()


def test_another_end_of_a_statement_is_another_thing_to_meet() -> None:
    found = [function(str(n), "a") for n in (1, 2, 3)]
    found[2].met.add(("a", "IntegrityError", ""))
    assert choose(found) in ({"1"}, {"2"})


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
