"""Anchors: what was cut off or written anew shows against a file that somebody else keeps."""

import json
import threading
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from actions import history, times
from actions.models import Anchoring, Intent, Transition
from config import boot, children
from reconciliation import erasing
from reconciliation.anchoring import files, keys, schedule, writing
from reconciliation.models import Review
from reconciliation.reviews import commenting, verifying
from tests.core.life import whole_life
from tests.demo import Demo
from tests.factories import make_downstream, make_intent, make_person
from tests.history import forging
from tests.history.forging import forged
from tests.ledger.books import orphan

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def key(settings: Any, tmp_path: Path) -> Path:
    path = tmp_path / "anchor.key"
    keys.make(path)
    settings.LANDED_ANCHOR_KEY = str(path)
    return path


def anchor(tmp_path: Path, name: str = "anchor-1.jsonl") -> Path:
    call_command("anchor_history", to=tmp_path / name, stdout=StringIO())
    return tmp_path / name


def verify(path: Path, **options: Any) -> str:
    """What the command says; what it refuses with, when it does."""
    out = StringIO()
    try:
        call_command("verify_history", anchor=path, stdout=out, stderr=StringIO(), **options)
    except CommandError as broken:
        return f"{out.getvalue()}{broken}"
    return out.getvalue()


def test_what_is_as_it_was_and_what_came_since_hold(tmp_path: Path) -> None:
    intent, case = whole_life(), orphan(make_downstream())
    path = anchor(tmp_path)
    assert verify(path) == "All 2 histories hold.\n"
    commenting.comment(case.pk, person=make_person(), text="x")
    erasing.erase(intent.subject, reason="asked")
    make_intent()
    assert verify(path) == "All 3 histories hold.\n"


def test_a_history_that_was_cut_off_and_agrees_with_itself_is_found(tmp_path: Path) -> None:
    intent = whole_life()
    path = anchor(tmp_path)
    with forged(lambda: forging.cut_off(intent, 2)):
        assert history.faults(Intent.objects.get(pk=intent.pk)) == [], "by itself it holds"
        assert f"intent {intent.pk}: its chain was anchored with 9 rows and has 2: its end was cut off" in verify(
            path
        )
    assert "hold." in verify(path)


def test_a_history_that_was_written_anew_from_its_first_row_on_is_found(tmp_path: Path) -> None:
    intent = whole_life()
    last = history.rows_of(intent.pk)[-1]
    path = anchor(tmp_path)
    with forged(lambda: forging.write_anew(intent, actor_id="agent:99")):
        assert history.faults(Intent.objects.get(pk=intent.pk)) == [], "by itself it holds"
        assert f"reconciliation_decision {last.pk}: row 9 is not the one that was anchored" in verify(path)


def test_a_row_that_was_exchanged_for_another_at_the_end_is_found_however_long_it_is_now(tmp_path: Path) -> None:
    intent = whole_life()
    path = anchor(tmp_path)

    def forge() -> None:
        forging.write_anew(intent, reason="x")
        forging.cut_off(intent, 8)
        history.observe(intent.pk, "note", by="x", at=times.now())
        history.observe(intent.pk, "note", by="x", at=times.now())

    with forged(forge):
        assert "is not the one that was anchored" in verify(path)


def test_an_intent_that_is_gone_with_everything_is_found(tmp_path: Path) -> None:
    kept, gone = make_intent(), make_intent()
    path = anchor(tmp_path)
    with forged(lambda: forging.delete_whole(gone)):
        assert verifying.intent_faults(kept) == []
        assert f"intent {gone.pk}: it was anchored with 1 rows, and it is gone" in verify(path)


def test_a_case_that_is_gone_is_found(tmp_path: Path) -> None:
    case = orphan(make_downstream())
    path = anchor(tmp_path)
    with forged(lambda: forging.delete(Review.objects.filter(pk=case.pk))):
        assert f"case {case.pk}: it was anchored with 0 rows, and it is gone" in verify(path)


def test_it_says_when_and_how_much_and_binds_the_one_before(tmp_path: Path) -> None:
    whole_life()
    first, second = anchor(tmp_path), anchor(tmp_path, "anchor-2.jsonl")
    head = json.loads(second.read_text().splitlines()[0])
    assert (head["anchor"], head["intents"], head["cases"]) == ("landed-anchor-1", 1, 0)
    assert head["rows"]["actions_transition"] == 4
    assert head["previous"] == {"name": first.name, "digest": files.digest_of(first)}
    assert str(times.now().year) in head["made_at"]
    assert json.loads(first.read_text().splitlines()[0])["previous"] is None
    assert "hold." in verify(second)
    first.write_text(first.read_text().replace(files.digest_of(first), "0" * 64))
    assert f"{first} is not the anchor that {second} was written after" in verify(second)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda text: text.replace('",1,"', '",2,"'), "was changed since it was written"),
        (lambda text: text.replace('"intents":1', '"intents":2'), "was changed since it was written"),
        (lambda text: text.replace('"lines":2', '"lines":3'), "was changed since it was written"),
        (lambda text: "".join(text.splitlines(keepends=True)[:-1]), "is cut off"),
        (lambda text: text[: len(text) - 20], "is cut off"),
        (lambda text: text + "[]\n", "is cut off"),
        (lambda text: text.replace("landed-anchor-1", "landed-anchor-2"), "of another version"),
        (lambda text: "", "is no anchor"),
        (lambda text: "PNG", "is no anchor"),
    ],
)
def test_a_file_that_was_changed_says_nothing(tmp_path: Path, change: Any, why: str) -> None:
    make_intent()
    path = anchor(tmp_path)
    text = path.read_text()
    assert change(text) != text
    path.write_text(change(text))
    assert why in verify(path)


def test_an_anchor_made_anew_by_somebody_with_another_key_is_not_believed(
    tmp_path: Path, settings: Any, key: Path
) -> None:
    """Whoever has the database and its settings, and not the key, can't make one."""
    make_intent()
    settings.LANDED_ANCHOR_KEY = str(tmp_path / "other.key")
    keys.make(tmp_path / "other.key")
    path = anchor(tmp_path)
    assert "hold." in verify(path)
    assert "which is not trusted here" in verify(path, key=[key])
    settings.LANDED_ANCHOR_KEY = str(key)
    assert "which is not trusted here" in verify(path)
    settings.LANDED_ANCHOR_PUBLIC_KEYS = [str(tmp_path / "other.key.pub")]
    assert "hold." in verify(path), "a former key still counts"
    (own,) = keys.public_keys([key])
    (other,) = keys.public_keys([tmp_path / "other.key.pub"])
    path.write_text(path.read_text().replace(other, own))
    assert "was changed" in verify(path)


def test_the_signature_of_one_anchor_does_not_fit_another(tmp_path: Path) -> None:
    make_intent()
    first = anchor(tmp_path)
    make_intent()
    second = anchor(tmp_path, "anchor-2.jsonl")
    signatures = [json.loads(path.read_text().splitlines()[-1])["signature"] for path in (first, second)]
    second.write_text(second.read_text().replace(signatures[1], signatures[0]))
    assert "its signature is not one of the key" in verify(second)


@pytest.mark.either_database
def test_a_file_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    assert "can't be read: No such file" in verify(tmp_path / "none")
    assert "can't be read: No such file" in verify(anchor(tmp_path), key=[tmp_path / "none"])
    assert "holds no public key" in verify(tmp_path / "anchor-1.jsonl", key=[tmp_path / "anchor-1.jsonl"])


@pytest.mark.either_database
def test_it_is_there_whole_or_not_at_all_and_never_over_another(tmp_path: Path, monkeypatch: Any) -> None:
    make_intent()
    path = anchor(tmp_path)
    text = path.read_text()
    with pytest.raises(CommandError, match="is there already"):
        anchor(tmp_path)
    assert path.read_text() == text

    def broken() -> Any:
        yield files.INTENT, verifying.Anchored(1, 1, "x")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        files.write(tmp_path / "anchor-2.jsonl", {}, broken(), keys.private_key(tmp_path / "anchor.key"))
    assert sorted(found.name for found in tmp_path.iterdir()) == ["anchor-1.jsonl", "anchor.key", "anchor.key.pub"]


@pytest.mark.either_database
def test_a_key_is_its_owners_alone_and_never_written_over(tmp_path: Path, key: Path) -> None:
    assert key.stat().st_mode & 0o777 == 0o600
    with pytest.raises(CommandError, match="never written over"):
        call_command("anchor_history", new_key=key)
    out = StringIO()
    call_command("anchor_history", new_key=tmp_path / "new", stdout=out)
    (number,) = keys.public_keys([tmp_path / "new.pub"])
    assert number in out.getvalue()
    assert number in keys.public_keys([tmp_path / "new"]), "by the private one, too"
    key.chmod(0o640)
    with pytest.raises(CommandError, match="chmod 600"):
        anchor(tmp_path)


@pytest.mark.either_database
def test_several_clocks_of_a_demo_make_one_key(tmp_path: Path, settings: Any) -> None:
    settings.MODE, settings.LANDED_ANCHOR_KEY = "demo", str(tmp_path / "demo.key")
    start, found = threading.Barrier(4), []

    def clock() -> None:
        start.wait(10)
        found.append(keys.id_of(keys.private_key(writing.own_key()).public_key()))

    threads = [threading.Thread(target=clock) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert (len(found), len(set(found))) == (4, 1)


@pytest.mark.either_database
def test_without_a_key_or_a_folder_it_says_what_to_set(tmp_path: Path, settings: Any) -> None:
    with pytest.raises(CommandError, match="LANDED_ANCHORS"):
        call_command("anchor_history")
    settings.LANDED_ANCHOR_KEY = ""
    with pytest.raises(CommandError, match="LANDED_ANCHOR_KEY"):
        anchor(tmp_path)
    boot.refuse_to_anchor_unsigned()
    settings.LANDED_ANCHORS = str(tmp_path)
    with pytest.raises(boot.Unsafe, match="LANDED_ANCHOR_KEY"):
        boot.refuse_to_anchor_unsigned()


# --- on a schedule


@pytest.fixture
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.LANDED_ANCHORS = str(tmp_path / "anchors")
    settings.LANDED_ANCHORS_KEPT = 2
    return tmp_path / "anchors"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def make_due() -> None:
    Anchoring.objects.update(next_at=times.now() - timedelta(seconds=1))


def test_the_clock_writes_one_when_it_is_due_and_keeps_so_many(folder: Path) -> None:
    make_intent()
    assert schedule.write_due()
    assert not schedule.write_due(), "the next one is due in an hour"
    (first,) = names(folder)
    row = Anchoring.objects.get()
    assert (row.name, row.digest) == (first, files.digest_of(folder / first))
    for _ in range(2):
        make_due()
        assert schedule.write_due()
    assert len(names(folder)) == 2
    assert first not in names(folder)
    assert "hold." in verify(folder / names(folder)[-1])


@pytest.mark.either_database
def test_one_that_can_t_be_written_is_tried_again_in_a_minute(folder: Path) -> None:
    folder.write_text("no folder")
    assert not schedule.write_due()
    row = Anchoring.objects.get()
    assert "anchors" in row.problem
    assert timedelta(0) < row.next_at - times.now() <= timedelta(minutes=1)
    folder.unlink()
    make_due()
    assert schedule.write_due()
    assert Anchoring.objects.get().problem == ""


@pytest.mark.either_database
def test_it_is_off_unless_a_folder_is_named() -> None:
    assert not schedule.write_due()
    assert not Anchoring.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_several_clocks_at_once_write_one(folder: Path) -> None:
    make_intent()
    wrote: list[bool] = []
    start = threading.Barrier(4)

    def clock() -> None:
        try:
            start.wait(10)
            wrote.append(schedule.write_due())
        finally:
            connection.close()

    threads = [threading.Thread(target=clock) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(wrote) == [False, False, False, True]
    assert len(names(folder)) == 1


def test_what_is_committed_while_it_is_written_is_not_in_it(folder: Path) -> None:
    intent = make_intent()
    done = writing.write_into(folder)
    anchored = files.check(done.path, keys.public_keys([writing.own_key()]))
    (line,) = files.chains(anchored, files.INTENT)
    assert (line.owner, line.length, line.head) == (intent.pk, 1, Transition.objects.get().digest)
    assert list(files.chains(anchored, files.CASE)) == []


@pytest.mark.either_database
def test_the_demo_writes_anchors_into_its_data_folder(demo: Demo) -> None:
    assert children.wait_until(lambda: any((demo.data / "anchors").glob("anchor-*")), within_s=20, every_s=0.2)
    trusted = keys.public_keys([demo.data / "anchor.key.pub"])
    newest = writing.newest(demo.data / "anchors")
    assert newest is not None
    assert files.check(newest, trusted).head["intents"] > 0
