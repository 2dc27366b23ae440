"""`apply_policy`: what it changes, what it leaves alone, what history says."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection

from actions import policy_changes, transitions
from actions.models import Agent, Downstream, Kind
from actions.proposals import Proposal
from actions.recording import record
from actions.statuses import Actor, Status
from tests.factories import make_downstream, make_intent, make_kind
from tests.policy_files.conftest import DOCS, Apply, example, history_counts, stored

pytestmark = pytest.mark.django_db


def test_the_documents_example_applies_and_works(apply: Apply) -> None:
    done = apply(example())
    assert done.code == 0, done.error
    assert done.out.splitlines()[-2:] == ["3 created, 0 changed, 0 unchanged", "Applied."]
    kind = Kind.objects.get(name="refund")
    assert kind.downstream.name == "payments"
    assert kind.limits["EUR"] == {"review_above": 50_000, "two_people_above": 500_000, "approve_above": 1_000_000}
    assert kind.limits["JPY"]["review_above"] == 80_000
    agent = Agent.objects.get(name="support-bot")
    assert [k.name for k in agent.kinds.all()] == ["refund"]
    found = record(
        Proposal(kind="refund", subject="order-4812", amount="50.00", currency="EUR"), agent=agent, request_key="r-1"
    )
    assert found.intent.status == "recorded"


def test_a_second_run_changes_nothing_and_writes_no_history(apply: Apply) -> None:
    apply(example())
    before = stored()
    again = apply(example())
    assert again.out.splitlines()[-2:] == ["0 created, 0 changed, 3 unchanged", "Nothing to change."]
    assert stored() == before


def test_what_differs_in_a_json_column_only_by_spelling_is_no_change(apply: Apply) -> None:
    """PostgreSQL gives back 1e2 as 100."""
    text = example() + '[[kind]]\nname = "other"\ntitle = "Other"\ndownstream = "payments"\n'
    text += "params_schema = { properties = { share = { maximum = 1e2, multipleOf = 1e-7, minimum = -0.0 } } }\n"
    assert apply(text).code == 0
    assert "Nothing to change." in apply(text).out


def test_the_diff_shows_each_field_old_and_new(apply: Apply) -> None:
    apply(example())
    changed = (
        example()
        .replace('review_above = "500.00"', 'review_above = "600.00"')
        .replace('JPY = { review_above = "80000", two_people_above = "800000", approve_above = "1600000" }', "")
        .replace("send_before_s = 86400", 'send_before_s = "none"')
        .replace('path = "/v1/refunds"', 'path = "/v2/refunds"')
        .replace('kinds = ["refund"]', "kinds = []")
    )
    done = apply(changed)
    assert done.out.splitlines() == [
        "downstream payments: changed",
        '    config.send.path: "/v1/refunds" → "/v2/refunds"',
        "kind refund: changed",
        '    limits.EUR.review_above: "500.00" → "600.00"',
        '    limits.JPY.approve_above: "1600000" → (not set)',
        '    limits.JPY.review_above: "80000" → (not set)',
        '    limits.JPY.two_people_above: "800000" → (not set)',
        "    send_before_s: 86400 → none",
        "agent support-bot: changed",
        '    kinds: ["refund"] → []',
        "warning: The environment variable PAYMENTS_KEY is not set in this web process; "
        "the workers need it to send and to look up.",
        "0 created, 3 changed, 0 unchanged",
        "Applied.",
    ]
    kind = Kind.objects.get()
    assert (kind.send_before_s, set(kind.limits)) == (None, {"EUR"})


def test_true_is_not_one(apply: Apply) -> None:
    """In Python they are equal, so a comparison would miss it."""
    text = example().replace("[kind.params_schema]", "[kind.params_schema]\nconst = 1")
    apply(text)
    done = apply(text.replace("const = 1", "const = true"))
    assert "    params_schema.const: 1 → true" in done.out.splitlines()
    assert Kind.objects.get().params_schema["const"] is True


def test_a_created_row_is_shown_with_every_field_defaults_included(apply: Apply) -> None:
    lines = apply(example()).out.splitlines()
    assert "    max_concurrency = 8" in lines
    assert '    config.headers.Authorization = "Bearer {secret}"' in lines
    assert '    limits.EUR.review_above = "500.00"' in lines
    assert "    paused = false" in lines


@pytest.mark.parametrize("option", ["--dry-run", "--check"])
def test_dry_runs_change_nothing(apply: Apply, option: str) -> None:
    before = stored()
    done = apply(example(), option)
    assert "kind refund: created" in done.out
    assert stored() == before
    apply(example())
    before = stored()
    done = apply(example().replace('"500.00"', '"600.00"'), option)
    assert '"500.00" → "600.00"' in done.out
    assert stored() == before


def test_a_dry_run_ends_with_0_and_a_check_with_3_when_something_differs(apply: Apply) -> None:
    assert apply(example(), "--dry-run").code == 0
    assert apply(example(), "--check").code == 3
    apply(example())
    assert apply(example(), "--check").code == 0


@pytest.mark.either_database
def test_the_process_ends_with_that_code(tmp_path: Path) -> None:
    """`call_command` doesn't show it. Without a table there is nothing to differ, so the database may be empty."""
    environment = os.environ | {"LANDED_MODE": "test", "DATABASE_URL": f"sqlite:///{tmp_path / 'new.sqlite3'}"}

    def manage(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=DOCS.parent,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    shutil.copyfile(str(connection.settings_dict["NAME"]), tmp_path / "new.sqlite3")
    file = tmp_path / "policy.toml"
    file.write_text(example())
    codes = [manage("apply_policy", str(file), *o).returncode for o in (["--check"], ["--dry-run"], [], ["--check"])]
    assert codes == [3, 0, 0, 0]
    file.write_text("[[kinds]]\n")
    refused = manage("apply_policy", str(file))
    assert (refused.returncode, "Did you mean kind?" in refused.stderr) == (1, True)


def test_rows_that_the_file_does_not_name_are_left_alone_and_listed(apply: Apply) -> None:
    kind = make_kind(name="chargeback")
    before = Kind.objects.filter(pk=kind.pk).values().get()
    done = apply(example())
    assert "not in the file, left alone: kind chargeback" in done.out.splitlines()
    assert Kind.objects.filter(pk=kind.pk).values().get() == before
    assert kind.history.count() == 1  # type: ignore[attr-defined]


def test_keys_that_the_file_does_not_name_are_left_alone_and_shown(apply: Apply) -> None:
    apply(example())
    Kind.objects.update(paused=True, pause_reason="Incident 12", absence_spacing_s=77)
    lines = apply(example().replace("absences_needed = 2", "absences_needed = 3")).out.splitlines()
    kind = Kind.objects.get()
    assert (kind.paused, kind.pause_reason, kind.absence_spacing_s) == (True, "Incident 12", 77)
    assert kind.absences_needed == 3
    assert {"    (not in the file) paused = true", "    (not in the file) absence_spacing_s = 77"} <= set(lines)
    apply(example().replace('title = "Refund"', 'title = "Refund"\npaused = false\npause_reason = ""'))
    assert not Kind.objects.get().paused


def test_history_names_the_file_and_nobody(apply: Apply) -> None:
    apply(example(), name="rules.toml")
    apply(example().replace('"Refund"', '"Refunds"').replace('"Support bot"', '"Bot"'), name="rules.toml")
    for row in (Downstream.objects.get(), Kind.objects.get(), Agent.objects.get()):
        for entry in row.history.all():  # type: ignore[attr-defined]
            assert entry.history_user is None
            assert entry.history_change_reason.startswith("apply_policy /")
            assert entry.history_change_reason.endswith("/rules.toml")
    assert [entry.title for entry in Kind.objects.get().history.all()] == ["Refunds", "Refund"]  # type: ignore[attr-defined]


def test_a_path_too_long_for_history_keeps_its_end(apply: Apply) -> None:
    apply(example(), name=f"{'deep/' * 30}rules.toml")
    reason = Kind.objects.get().history.get().history_change_reason  # type: ignore[attr-defined]
    assert len(reason) == 100
    assert reason.startswith("apply_policy /")
    assert reason.endswith("deep/rules.toml")


def test_an_agent_whose_kinds_change_gets_one_row_of_history_that_shows_them(apply: Apply) -> None:
    text = example() + '[[kind]]\nname = "transfer"\ntitle = "Transfer"\ndownstream = "payments"\n'
    apply(text)
    before = history_counts()
    apply(text.replace('kinds = ["refund"]', 'kinds = ["transfer"]'))
    assert history_counts() == before | {"Agent": before["Agent"] + 1}
    newest = Agent.objects.get().history.first()  # type: ignore[attr-defined]
    assert [through.kind.name for through in newest.kinds.all()] == ["transfer"]


def test_one_bad_row_and_nothing_is_changed(apply: Apply) -> None:
    apply(example())
    before = stored()
    text = (
        example().replace('title = "Payments"', 'title = "New"').replace('kinds = ["refund"]', 'kinds = ["refunds"]')
    )
    done = apply(text)
    assert done.code == 1
    assert "[[agent]] support-bot, kinds: There is no kind 'refunds', here or in the file. Did you mean refund?" in (
        done.error
    )
    assert stored() == before


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('account = "acct_1"', 'account = "acct_2"', "account"),
        ("https://payments.example", "https://other.example", "base_url"),
        ('look_up = "key"', 'look_up = "none"', "look_up"),
        ('path = "/v1/refunds"', 'path = "/v2/refunds"', "config"),
        ("PAYMENTS_KEY", "OTHER_KEY", "secret_env"),
        ("absence_conclusive = true", "absence_conclusive = false", "absence_conclusive"),
    ],
)
def test_what_would_strand_unsettled_intents_is_refused_with_their_number(
    apply: Apply, old: str, new: str, named: str
) -> None:
    apply(example())
    make_intent(Kind.objects.get())
    make_intent(Kind.objects.get())
    before = stored()
    for options in ((), ("--dry-run",)):
        done = apply(example().replace(old, new), *options)
        assert done.code == 1
        assert f"2 intents of this downstream are not settled; until then these can't change: {named}." in done.error
        assert stored() == before
    # The rest of a downstream can change meanwhile.
    assert apply(example().replace("lag_s = 60", "lag_s = 90")).code == 0


def test_identity_changes_once_everything_is_settled(apply: Apply) -> None:
    apply(example())
    intent = make_intent(Kind.objects.get())
    transitions.apply(
        intent.pk,
        expected=Status.RECORDED,
        to=Status.CANCELLED,
        actor=Actor.CLOCK,
        actor_id="clock",
        reason="expired",
    )
    assert apply(example().replace('"acct_1"', '"acct_2"')).code == 0
    assert Downstream.objects.get().account == "acct_2"


@pytest.mark.parametrize("new_row", [True, False])
def test_a_kind_with_unsettled_intents_moves_to_no_other_downstream(apply: Apply, new_row: bool) -> None:
    apply(example())
    make_intent(Kind.objects.get())
    head, rest = example().split("[[kind]]")
    if new_row:
        text = head + head.replace('name = "payments"', 'name = "bank"') + "[[kind]]" + rest
    else:
        make_downstream(name="bank")
        text = head + "[[kind]]" + rest
    done = apply(text.replace('downstream = "payments"', 'downstream = "bank"'))
    assert done.error.splitlines()[1:] == [
        "  [[kind]] refund, downstream: 1 intent of this kind is not settled; until then its downstream can't change."
    ]
    assert Kind.objects.get().downstream.name == "payments"
    assert Downstream.objects.filter(name="bank").exists() is not new_row


def test_warnings_are_those_of_the_admin(apply: Apply) -> None:
    text = example().replace('look_up = "key"', 'look_up = "none"').replace("dedupes = true", "dedupes = false")
    lines = apply(text.replace("dedupe_window_s = 86400", "")).out.splitlines()
    expected = policy_changes.warnings_about_downstream(Downstream.objects.get())
    assert len(expected) == 2
    assert [line.removeprefix("warning: ") for line in lines if line.startswith("warning: ")] == expected


def test_text_in_the_database_can_not_play_tricks_on_the_terminal(apply: Apply) -> None:
    apply(example())
    Kind.objects.update(title="Re\x1b[2Jfund\u202e", pause_reason="\x9b2J")
    out = apply(example()).out
    assert "\\u001b[2J" in out
    assert "⟨U+202E⟩" in out
    assert "⟨U+009B⟩2J" in out
    assert not any(char in out for char in "\x1b\u202e\x9b")


def test_a_secret_in_the_database_is_not_printed(apply: Apply) -> None:
    apply(example())
    config = Downstream.objects.get().config
    config["headers"]["Authorization"] = "Bearer abcdef0123456789"
    Downstream.objects.update(config=config)
    out = apply(example()).out
    assert '    config.headers.Authorization: "[masked]" → "Bearer {secret}"' in out.splitlines()
    assert "abcdef" not in out
