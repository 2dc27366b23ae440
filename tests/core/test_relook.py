"""Which confirmed intents are looked up once afterwards: none, a share, those above a limit, all."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from actions import policy, snapshots, times
from actions.models import Intent, Kind, Result
from actions.outcomes import relook_lot
from actions.statuses import Status
from tests.core.steps import answer, read, submit
from tests.factories import make_agent, make_intent, make_kind

pytestmark = pytest.mark.django_db


def rules(**columns: Any) -> policy.Policy:
    return policy.read(snapshots.take(make_kind(**columns), now=times.now()).text)


def looks(found: policy.Policy, lot: int, amount_minor: int = 5_000) -> bool:
    return policy.relooks(found, amount_minor, "EUR", lot=lot)


@pytest.mark.parametrize(
    ("columns", "amount_minor", "of_a_hundred"),
    [
        ({"relook": "none"}, 60_000, 0),
        ({"relook": "share", "relook_percent": 1}, 5_000, 1),
        ({"relook": "share", "relook_percent": 25}, 60_000, 25),
        ({"relook": "share", "relook_percent": 99}, 5_000, 99),
        ({"relook": "above_limit"}, 50_000, 0),
        ({"relook": "above_limit"}, 50_001, 100),
        ({"relook": "all"}, 5_000, 100),
    ],
)
def test_of_a_hundred_lots_so_many_are_looked_up(
    columns: dict[str, Any], amount_minor: int, of_a_hundred: int
) -> None:
    found = rules(**columns)
    assert sum(looks(found, lot, amount_minor) for lot in range(100)) == of_a_hundred


@pytest.mark.parametrize("relook", ["share", "all", "above_limit"])
def test_where_nobody_can_look_nothing_is_looked_up(relook: str) -> None:
    found = rules(relook=relook, relook_percent=99 if relook == "share" else None)
    assert not looks(replace(found, look_up="none"), 0, 60_000)


def test_a_share_of_a_quarter_of_400_intents_is_about_a_hundred_and_the_same_every_time() -> None:
    kind = make_kind(relook="share", relook_percent=25)
    agent = make_agent(kind)
    intents = [make_intent(kind, agent) for _ in range(400)]
    found = policy.read(intents[0].policy.text)

    def drawn() -> list[Any]:
        return [row.pk for row in Intent.objects.filter(kind=kind).order_by("pk") if looks(found, relook_lot(row))]

    assert 60 < len(drawn()) < 140
    assert drawn() == drawn()


def test_the_lot_hangs_on_what_no_agent_sees_or_chooses() -> None:
    intent = make_intent()
    lots = set()
    for number in range(50):
        intent.payload_salt = f"{number:032x}"
        lots.add(relook_lot(intent))
    assert len(lots) > 10, "the id alone, which the agent is shown, says nothing"


def test_the_answer_of_one_in_the_share_plans_a_look_and_of_another_plans_none() -> None:
    kind = make_kind(relook="share", relook_percent=50)
    planned = set()
    for _ in range(40):
        intent = make_intent(kind)
        answer(submit(intent), Result.CONFIRMED)
        found = read(intent)
        assert found.status == Status.CONFIRMED
        assert (found.next_check_at is not None) is (relook_lot(found) < 50)
        planned.add(found.next_check_at is not None)
    assert planned == {True, False}


def test_snapshots_from_before_there_were_shares_are_read() -> None:
    kind = make_kind(relook="all")
    old = json.loads(snapshots.take(kind, now=times.now()).text)
    assert old.pop("relook_percent") is None
    found = policy.read(json.dumps(old))
    assert (found.relook, found.relook_percent, looks(found, 99)) == ("all", None, True)


WRONG = [
    {"relook": "share"},
    {"relook": "share", "relook_percent": 0},
    {"relook": "share", "relook_percent": 100},
    {"relook": "all", "relook_percent": 25},
    {"relook": "none", "relook_percent": 25},
]


@pytest.mark.parametrize("columns", WRONG)
def test_a_share_says_how_many_of_a_hundred_and_nothing_else_does(columns: dict[str, Any]) -> None:
    def refused(save: Callable[[], object]) -> bool:
        try:
            with transaction.atomic():
                save()
        except IntegrityError:
            return True
        return False

    kind = make_kind()
    assert refused(lambda: Kind.objects.filter(pk=kind.pk).update(**columns)), "the database itself"
    for name, value in columns.items():
        setattr(kind, name, value)
    with pytest.raises(ValidationError) as wrong:
        kind.full_clean()
    assert "relook_percent" in str(wrong.value.message_dict)
