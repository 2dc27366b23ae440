"""POST /intents: what its fields may hold."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from actions.models import Intent
from tests.api.calling import Api, fields_of, make_api
from tests.api.test_proposing import confirm
from tests.factories import make_kind

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", 1),
        ("kind", None),
        ("kind", ...),
        ("subject", 4812),
        ("subject", True),
        ("subject", ""),
        ("subject", ["order-1"]),
        ("subject", "order\u200b-1"),
        ("amount", True),
        ("amount", []),
        ("amount", {"value": "5.00"}),
        ("amount", None),
        ("currency", 978),
        ("currency", "eur"),
        ("currency", "XXXX"),
        ("currency", None),
        ("params", None),
        ("params", []),
        ("params", "{}"),
        ("note", 5),
        ("note", None),
        ("note", "x" * 4_001),
        ("context", []),
        ("executor", "me"),
        ("executor", None),
        ("claim_token", 1),
        ("claim_token", "for landed"),
        ("send_before", "tomorrow"),
        ("send_before", "2030-01-01T00:00:00"),
        ("send_before", "2030-02-30T00:00:00Z"),
        ("send_before", "9999-12-31T23:59:59-23:00"),
        ("send_before", "2020-01-01T00:00:00Z"),
        ("send_before", 1_900_000_000),
        ("send_before", ""),
        ("repeat_of", "not-an-id"),
        ("repeat_of", 7),
        ("repeat_of", "0193b4e0-0000-7000-8000-000000000000"),
        ("colour", "red"),
        ("Amount", "50.00"),
    ],
)
def test_a_field_that_cannot_be_taken_is_named(api: Api, field: str, value: Any) -> None:
    assert field in fields_of(api.propose(**{field: value}))
    assert not Intent.objects.exists()


def test_all_wrong_fields_are_named_at_once(api: Api) -> None:
    answer = api.propose(amount=True, subject=1, colour="red", context={"run": 1.5, "ticket": None})
    assert fields_of(answer) == ["subject", "amount", "context.run", "context.ticket", "colour"]


def test_context_takes_three_texts_and_no_number_that_passes_for_one(api: Api) -> None:
    assert fields_of(api.propose_raw(_raw(api, '"context":{"run":1.5}'))) == ["context.run"]
    assert fields_of(api.propose(context={"colour": "red"})) == ["context.colour"]


@pytest.mark.parametrize("field", ["kind", "subject", "currency", "note", "executor", "claim_token", "send_before"])
def test_no_number_passes_for_a_text_whatever_its_digits(api: Api, field: str) -> None:
    raw = f"{json.dumps(api.body(**{field: ...}))[:-1]},{json.dumps(field)}:4812.5}}"
    assert fields_of(api.propose_raw(raw.encode())) == [field]


def test_params_hold_integers_only(api: Api) -> None:
    for number in ("1.5", "1e3", "9007199254740993"):
        assert fields_of(api.propose_raw(_raw(api, f'"params":{{"count":{number}}}'))) == ["params"], number


def test_params_are_held_to_the_kinds_schema() -> None:
    schema = {"type": "object", "required": ["reason"], "properties": {"reason": {"type": "string"}}}
    api = make_api(make_kind(params_schema=schema))
    assert fields_of(api.propose(params={"reason": 1})) == ["params.reason"]
    assert fields_of(api.propose(params={})) == ["params"]
    api.recorded(params={"reason": "late"})


def test_the_subject_may_be_left_out_where_params_name_it() -> None:
    api = make_api(make_kind(subject_from="order"))
    assert api.recorded(subject=..., params={"order": "order-9"})["subject"] == "order-9"
    assert fields_of(api.propose(subject="order-8", params={"order": "order-9"})) == ["subject"]
    assert fields_of(make_api().propose(subject=None)) == ["subject"]


def test_fields_that_may_be_left_out_may_also_be_null(api: Api) -> None:
    api.recorded(claim_token=None, send_before=None, repeat_of=None)


def test_send_before_is_taken_with_any_zone(api: Api) -> None:
    soon = (datetime.now(UTC) + timedelta(hours=1)).replace(microsecond=0)
    there = soon.astimezone(tz=None).isoformat()
    body = api.recorded(send_before=there)
    assert body["send_before"] == soon.isoformat().replace("+00:00", "Z")


def test_repeat_of_names_an_intent_of_ones_own(api: Api) -> None:
    first = api.intent()
    confirm(first)
    second = api.recorded(repeat_of=str(first.pk))
    assert Intent.objects.get(pk=second["id"]).repeat_of == first
    assert fields_of(make_api(api.kind).propose(subject="o-2", repeat_of=str(first.pk))) == ["repeat_of"]


def test_what_a_caller_wrote_comes_back_in_a_refusal_only_in_part(api: Api) -> None:
    answer = api.propose(amount="9" * 100_000)
    assert fields_of(answer) == ["amount"]
    assert len(answer.content) < 3_000


def _raw(api: Api, member: str) -> bytes:
    return f"{json.dumps(api.body())[:-1]},{member}}}".encode()
