"""Several that change the same policy at the same moment."""

import itertools
import threading
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from actions.locking import for_change
from actions.models import Agent, Downstream, Kind
from actions.policy_files import applying, planning, reading
from actions.policy_files.planning import Plan
from actions.policy_files.shown import lines_of
from tests.core.steps import race
from tests.policy_files.conftest import Ended, apply_file, example, history_counts

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "policy.toml"
    found.write_text(example())
    return found


def test_six_runs_at_once_make_the_rows_once(file: Path) -> None:
    results = race(6, lambda _: apply_file(file))
    assert [getattr(found, "error", found) for found in results] == [""] * 6
    assert (Downstream.objects.count(), Kind.objects.count(), Agent.objects.count()) == (1, 1, 1)
    # A new agent with kinds has two rows.
    assert history_counts() == {"Downstream": 1, "Kind": 1, "Agent": 2}
    assert sum(isinstance(found, Ended) and "Applied." in found.out for found in results) == 1


def test_files_with_the_same_rows_in_another_order_never_lock_each_other_out(tmp_path: Path) -> None:
    head = '[[downstream]]\nname = "{}"\ntitle = "{}"\nconnector = "http_json"\nbase_url = "https://{}.example"\n'
    config = example().split("[downstream.config]")[1].split("[[kind]]")[0]
    names = ["alpha", "beta", "gamma"]
    files = []
    for index in range(4):
        order = names if index % 2 else names[::-1]
        files.append(tmp_path / f"{index}.toml")
        files[-1].write_text(
            "".join(f"{head.format(name, f'T{index}', name)}[downstream.config]{config}" for name in order)
        )
    for _ in range(3):
        results = race(4, lambda index: apply_file(files[index]))
        assert [getattr(found, "error", found) for found in results] == [""] * 4
        # All or nothing: whoever came last, its titles are everywhere.
        assert len(set(Downstream.objects.values_list("title", flat=True))) == 1
    assert Downstream.objects.count() == 3


def test_what_changed_between_showing_and_writing_is_shown_again_before_it_is_applied(file: Path) -> None:
    apply_file(file)
    text = example().replace('title = "Refund"', 'title = "Ours"')
    shown: list[list[str]] = []

    def show(plan: Plan) -> None:
        shown.append(lines_of(plan))
        if len(shown) == 1:
            Kind.objects.update(title="Theirs")

    applying.apply(reading.read(text), reason="apply_policy x", show=show)
    titles = [line.strip() for lines in shown for line in lines if "title:" in line]
    assert titles == ['title: "Refund" → "Ours"', 'title: "Theirs" → "Ours"']
    assert Kind.objects.get().title == "Ours"


def test_nothing_is_locked_while_the_diff_is_shown(file: Path) -> None:
    """It may stand in a pager for hours; workers lock the downstream when they claim."""
    apply_file(file)
    free: list[bool] = []

    def lock() -> None:
        try:
            with transaction.atomic():
                for_change(Downstream).get()
                free.append(True)
        finally:
            connection.close()

    def show(plan: Plan) -> None:
        thread = threading.Thread(target=lock, daemon=True)
        thread.start()
        thread.join(10)

    changed = example().replace('title = "Payments"', 'title = "New"')
    applying.apply(reading.read(changed), reason="apply_policy x", show=show)
    assert free == [True]
    assert Downstream.objects.get().title == "New"


def test_columns_that_the_file_does_not_change_keep_what_others_wrote_meanwhile(file: Path) -> None:
    apply_file(file)
    text = example().replace('title = "Refund"', 'title = "Ours"')

    def show(plan: Plan) -> None:
        Kind.objects.update(paused=True, pause_reason="Incident 12")

    applying.apply(reading.read(text), reason="apply_policy x", show=show)
    kind = Kind.objects.get()
    assert (kind.title, kind.paused) == ("Ours", True)


def test_what_breaks_in_the_middle_undoes_what_was_written_before(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object, **__: object) -> None:
        raise DatabaseError("the disk is full")

    monkeypatch.setattr(Agent, "save", breaks)
    with pytest.raises(DatabaseError, match="the disk is full"):
        apply_file(file)
    assert not Downstream.objects.exists()
    assert history_counts() == {"Downstream": 0, "Kind": 0, "Agent": 0}


def test_a_name_that_is_taken_in_that_very_moment_is_looked_at_again(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the rows were read and before ours are judged; it is no fault of the file."""
    in_order, calls = planning._in_order, itertools.count()

    def taken(rows: Any) -> Any:
        if next(calls) == 1:  # under the locks; this row goes with the transaction that fails over it
            Downstream.objects.create(name="payments", title="Theirs")
        return in_order(rows)

    monkeypatch.setattr(planning, "_in_order", taken)
    assert apply_file(file).error == ""
    assert Downstream.objects.get().title == "Payments"


def test_endless_interference_ends_with_an_error_and_no_change(file: Path) -> None:
    from actions.policy_files.tables import PolicyRefused

    apply_file(file)
    text = example().replace('title = "Refund"', 'title = "Ours"')
    count = 0

    def show(plan: Plan) -> None:
        nonlocal count
        count += 1
        Kind.objects.update(title=f"Theirs {count}")

    with pytest.raises(PolicyRefused, match="Somebody else keeps changing"):
        applying.apply(reading.read(text), reason="apply_policy x", show=show)
    assert Kind.objects.get().title == f"Theirs {count}"
