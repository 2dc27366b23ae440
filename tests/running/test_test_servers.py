"""The tests' own footing."""

import sqlite3
from pathlib import Path

import psycopg
import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from actions import triggers
from actions.models import Downstream, Kind, PolicySnapshot
from tests import flushing, template


def make_history() -> PolicySnapshot:
    downstream = Downstream.objects.create(name="payments", connector="http_json", base_url="http://127.0.0.1:1")
    kind = Kind.objects.create(name="refund", title="Refund", downstream=downstream)
    return PolicySnapshot.objects.create(digest="d", kind=kind, text="{}", created_at=timezone.now())


@pytest.mark.django_db
def test_migrate_writes_no_rows_that_flushing_would_lose() -> None:
    assert flushing.rows_kept_after_migrate() == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("_round", [1, 2])
def test_a_transactional_test_finds_no_rows_of_the_one_before(_round: int) -> None:
    assert not PolicySnapshot.objects.exists()
    make_history()
    assert triggers.missing() == []


@pytest.mark.django_db(transaction=True)
def test_history_is_append_only_in_the_tests_too() -> None:
    snapshot = make_history()
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        snapshot.delete()


@pytest.mark.django_db(transaction=True)
def test_another_process_sees_what_was_committed(database_url: str) -> None:
    make_history()
    query = "SELECT digest FROM actions_policysnapshot"
    if connection.vendor == "sqlite":
        with sqlite3.connect(database_url.removeprefix("sqlite:///")) as file:
            assert file.execute(query).fetchall() == [("d",)]
    else:
        with psycopg.connect(database_url) as other:
            assert other.execute(query).fetchall() == [("d",)]


@pytest.mark.django_db
def test_the_database_is_as_durable_as_in_production() -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            assert Path(connection.settings_dict["NAME"]).is_file()
            found = [cursor.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]
            assert found == ["wal", 2]
        else:
            cursor.execute("SHOW synchronous_commit")
            assert cursor.fetchone() == ("on",)


def test_whoever_waits_for_a_database_that_can_not_be_migrated_is_told_why_at_once(tmp_path: Path) -> None:
    (tmp_path / "template.sqlite3").mkdir()
    process = template.begin(tmp_path, "")
    with pytest.raises(RuntimeError, match=r"(?s)can't be migrated.*unable to open database file"):
        template.copy(tmp_path, "", str(tmp_path / "copy.sqlite3"))
    assert process.wait(timeout=20) == 1
