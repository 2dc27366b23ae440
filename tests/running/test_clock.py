"""The clock sweeps the database, whatever happens to it in between."""

import threading
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import OperationalError

from actions.notifying import running
from actions.sweep import Swept
from config import clockwork
from config.clockwork import Ticked
from config.management.commands import clock


def run_for(passes: list[Exception | None], monkeypatch: pytest.MonkeyPatch, beat: Path | None = None) -> list[int]:
    """Runs the clock until every pass of the list is over; returns how many there were, one entry each."""
    stop, done = threading.Event(), []

    def tick() -> Ticked:
        outcome = passes[len(done)]
        done.append(len(done))
        if len(done) == len(passes):
            stop.set()
        if outcome is not None:
            raise outcome
        return Ticked(0, 0, ())

    monkeypatch.setattr(clockwork, "tick", tick)
    clock.run(stop, every_s=0.01, beat=beat)
    return done


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("error", [OperationalError("the database is away"), RuntimeError("a bug")])
def test_an_error_of_one_pass_does_not_end_the_clock(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_for([error, None, None], monkeypatch) == [0, 1, 2]


@pytest.mark.django_db(transaction=True)
def test_only_a_pass_that_went_well_is_a_beat(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run_for([RuntimeError("a bug")], monkeypatch, tmp_path / "beat")
    assert not (tmp_path / "beat").exists()
    run_for([None], monkeypatch, tmp_path / "beat")
    assert (tmp_path / "beat").exists()


@pytest.mark.either_database
@pytest.mark.django_db(transaction=True)
def test_webhooks_leave_beside_a_sweep_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    stop, left = threading.Event(), threading.Event()

    def tick() -> Ticked:
        assert left.wait(5)
        stop.set()
        return Ticked(0, 0, ())

    monkeypatch.setattr(clockwork, "tick", tick)
    monkeypatch.setattr(running, "deliver_due", lambda **_: left.set())
    clock.run(stop, every_s=0.01)
    assert stop.is_set()


@pytest.fixture
def rings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    rung: list[str] = []
    monkeypatch.setattr("actions.jobs.ring", lambda queue: rung.append(queue) or True)
    return rung


@pytest.mark.parametrize(
    ("due", "expected"),
    [({}, []), ({"due_to_send": True}, ["send"]), ({"due_to_send": True, "due_to_check": True}, ["send", "check"])],
)
def test_a_pass_rings_for_what_is_due(
    due: dict[str, bool], expected: list[str], rings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actions.sweep.sweep", lambda: Swept(2))
    monkeypatch.setattr("reconciliation.sweep.sweep", lambda: Swept(1, **due))
    assert clockwork.tick() == Ticked(2, 1, tuple(expected))
    assert rings == expected


@pytest.mark.django_db
def test_manage_py_sweep_says_what_it_changed(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("sweep")
    assert capsys.readouterr().out.splitlines() == [
        "actions: 0 changed",
        "reconciliation: 0 changed",
        "e-mail: 0 notices sent",
        "webhooks: 0 tried",
        "rung: nothing",
    ]
