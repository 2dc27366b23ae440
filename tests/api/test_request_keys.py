"""The header Idempotency-Key."""

import pytest

from actions.models import Intent, Kind
from actions.statuses import Actor
from actions.withdrawing import cancel
from tests.api.calling import Api, make_api, new_key, problem

pytestmark = pytest.mark.django_db


def test_the_same_key_and_payload_gives_the_same_intent_back(api: Api) -> None:
    key = new_key()
    first, second = api.propose(key=key), api.propose(key=key)
    assert (first.status_code, second.status_code) == (201, 200)
    assert second["Idempotent-Replayed"] == "true"
    assert second["Location"] == first["Location"]
    assert second.json()["id"] == first.json()["id"]
    assert second.json()["differs"] == []
    assert Intent.objects.count() == 1


def test_a_replay_shows_the_intent_as_it_is_now(api: Api) -> None:
    key = new_key()
    first = api.propose(key=key).json()
    api.post(f"/intents/{first['id']}/cancel")
    assert api.propose(key=key).json()["status"] == "cancelled"


def test_another_note_binds_nothing_and_is_named(api: Api) -> None:
    key = new_key()
    api.propose(key=key, note="late")
    again = api.propose(key=key, note="very late", context={"run": "r-2"})
    assert (again.status_code, again.json()["differs"]) == (200, ["note"])
    assert Intent.objects.get().note == "late"


def test_the_same_key_with_another_amount_names_the_amount_and_sends_nothing(api: Api) -> None:
    key = new_key()
    first = api.propose(key=key).json()
    body = problem(api.propose(key=key, amount="49.99"), 422, "key_reused")
    assert body["differs"] == ["amount"]
    assert (body["intent"]["id"], body["intent"]["amount"]) == (first["id"], "50.00")
    assert Intent.objects.count() == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("subject", "order-2"),
        ("currency", "USD"),
        ("params", {"reason": "late"}),
        ("executor", "caller"),
        ("amount", True),
        ("amount", "1e2"),
        ("subject", 7),
    ],
)
def test_under_a_used_key_whatever_differs_is_named_even_when_it_could_not_be_taken(
    api: Api, field: str, value: object
) -> None:
    key = new_key()
    api.propose(key=key)
    assert problem(api.propose(key=key, **{field: value}), 422, "key_reused")["differs"] == [field]


def test_the_same_amount_written_otherwise_is_the_same_payload(api: Api) -> None:
    key = new_key()
    api.propose(key=key, amount="50.00")
    for same in ("50", "50.0", 50):
        assert api.propose(key=key, amount=same).status_code == 200, same


def test_a_replay_ends_before_everything_that_could_refuse_it(api: Api) -> None:
    key = new_key()
    api.propose(key=key)
    Kind.objects.update(paused=True)
    api.agent.kinds.clear()
    api.agent.paused = True
    api.agent.save()
    assert api.propose(key=key).status_code == 200


def test_two_agents_may_use_the_same_key(api: Api) -> None:
    other, key = make_api(), new_key()
    assert api.propose(key=key).status_code == 201
    assert other.propose(key=key).status_code == 201


def test_a_refused_proposal_leaves_its_key_free(api: Api) -> None:
    key = new_key()
    assert api.propose(key=key, amount="0").status_code == 422
    assert api.propose(key=key).status_code == 201


def test_a_cancelled_intent_keeps_its_key(api: Api) -> None:
    key = new_key()
    first = api.propose(key=key).json()
    cancel(first["id"], actor=Actor.AGENT, actor_id="agent:1", reason="cancelled_by_agent")  # type: ignore[arg-type]
    assert api.propose(key=key).json()["id"] == first["id"]
    assert api.propose().status_code == 201


def test_without_a_key_nothing_is_recorded(api: Api) -> None:
    problem(api.propose_raw(b'{"kind": "refund"}', Idempotency_Key=None), 400, "missing_idempotency_key")


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        '""',
        '"',
        '"open',
        '"a" "b"',
        '"a","b"',
        "a,b",
        "a b",
        '"a b"',
        '"a\\b"',
        '"a";q=1',
        "k" * 256,
        f'"{"k" * 256}"',
        "k\u00e9y",
        "k\x7f",
        "k\ty",
    ],
)
def test_a_key_of_another_form_is_refused(api: Api, text: str) -> None:
    problem(api.propose_raw(b"{}", Idempotency_Key=text), 400, "bad_idempotency_key")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("abc", "abc"),
        ('"abc"', "abc"),
        (' "abc" ', "abc"),
        ('"a\\"b\\\\c"', 'a"b\\c'),
        ('"a,b"', "a,b"),
        ("8e03978e-40d5-43dd-bc93-6894a57f9324", "8e03978e-40d5-43dd-bc93-6894a57f9324"),
        ("!#$%&'*+-.^_`|~/:;=?@(){}[]<>", "!#$%&'*+-.^_`|~/:;=?@(){}[]<>"),
        ("k" * 255, "k" * 255),
    ],
)
def test_a_quoted_and_a_bare_key_are_read(api: Api, text: str, key: str) -> None:
    assert api.propose(key=text).status_code == 201
    assert Intent.objects.get().request_key == key


def test_the_key_is_looked_at_after_the_body_and_before_its_fields(api: Api) -> None:
    problem(api.propose_raw(b"{", Idempotency_Key=None), 400, "bad_json")
    problem(api.propose_raw(b'{"colour": 1}', Idempotency_Key=None), 400, "missing_idempotency_key")
