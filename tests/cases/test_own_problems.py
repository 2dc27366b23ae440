"""What is no amount, and what is no JSON with one meaning: no two of them are refused in the same words."""

import pytest

from actions.models import Intent
from tests.api.calling import Api, make_api

pytestmark = pytest.mark.django_db

# What is written, in JSON → what the refusal's sentence says of it.
AMOUNTS = {
    "1e2": "'1e2' is not an amount",
    '"1E2"': "'1E2' is not an amount",
    '"1,00"': "'1,00' is not an amount",
    '"NaN"': "'NaN' is not an amount",
    '" 5.00 "': "' 5.00 ' is not an amount",
    '"٥.٠٠"': "'٥.٠٠' is not an amount",
    '"1_000.00"': "'1_000.00' is not an amount",
    "10.999": "10.999 has more decimals than EUR has (2)",
    "true": "A decimal string",
}
BODIES = {
    b'{"amount":NaN}': "NaN is not JSON",
    b'\xef\xbb\xbf{"kind":"refund"}': "byte-order mark",
    b'{"note":"a\\u0000b"}': "the character NUL",
    b'{"note":"\\ud800"}': "half of a surrogate pair",
    b'{"amount":"5.00","amount":"500.00"}': "'amount' appears twice",
    b'{"params":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}": "nested deeper than 64 levels",
}


@pytest.fixture
def api() -> Api:
    return make_api()


def test_each_amount_that_is_none_names_the_field_and_is_told_from_the_others(api: Api) -> None:
    told = set()
    for written, says in AMOUNTS.items():
        body = f'{{"kind":"{api.kind.name}","subject":"order-1","currency":"EUR","amount":{written}}}'
        answer = api.propose_raw(body.encode())
        found = answer.json()
        assert (answer.status_code, found["code"]) == (422, "invalid"), written
        (error,) = found["errors"]
        assert error["field"] == "amount"
        assert says in error["message"]
        told.add(error["message"])
    assert len(told) == len(AMOUNTS)
    assert not Intent.objects.exists()


def test_each_body_without_one_meaning_is_told_from_the_others(api: Api) -> None:
    told = set()
    for raw, says in BODIES.items():
        answer = api.propose_raw(raw)
        found = answer.json()
        assert (answer.status_code, found["code"]) == (400, "bad_json"), raw[:40]
        assert says in found["detail"]
        told.add(found["detail"])
    assert len(told) == len(BODIES)
    assert not Intent.objects.exists()
