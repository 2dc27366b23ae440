"""Stripe is set up as docs/connectors.md says, and the demo's payments are there to be refunded."""

import tomllib
from pathlib import Path

import pytest
from django.core.management import call_command
from jsonschema import Draft202012Validator

from actions import dispatch, services
from actions.connectors.stripe import request
from actions.models import Downstream, Intent
from config.demo import stripe
from tests.policy_files.conftest import blocks
from tests.stripe.proxy import Proxy


def documented() -> str:
    (found,) = [text for text in blocks("connectors.md", "toml") if 'connector = "stripe"' in text]
    return found


def test_the_policy_of_the_document_refunds(
    proxy: Proxy, localstripe: str, transactional_db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(documented().replace("https://api.stripe.com", proxy.url))
    call_command("apply_policy", str(file))
    # localstripe knows none of Stripe's reasons, and refuses what it doesn't know.
    Downstream.objects.update(config={"version": request.VERSION})
    monkeypatch.setenv("STRIPE_SECRET_KEY", stripe.SECRET)
    (charge,) = stripe.seed(localstripe, amounts=((20_000, "eur"),))
    intent = services.record_intent(
        kind="card_refund",
        executor="landed",
        subject="order-4812",
        amount="50.00",
        currency="EUR",
        params={"charge": charge},
    )
    dispatch.run(budget_s=10)
    assert Intent.objects.get(pk=intent.pk).status == "confirmed"
    assert len(stripe.Client(localstripe).get("refunds", charge=charge)["data"]) == 1


def test_the_documents_version_is_the_one_that_answers_are_read_by() -> None:
    (downstream,) = tomllib.loads(documented())["downstream"]
    assert downstream["config"]["version"] == request.VERSION
    assert request.check(downstream["config"]) == []


@pytest.mark.parametrize(
    ("params", "right"),
    [
        ({"charge": "ch_1"}, True),
        ({"payment_intent": "pi_1"}, True),
        ({}, False),
        ({"charge": "ch_1", "payment_intent": "pi_1"}, False),
    ],
)
def test_the_documents_schema_lets_one_payment_through(params: dict[str, str], right: bool) -> None:
    (kind,) = tomllib.loads(documented())["kind"]
    assert Draft202012Validator(kind["params_schema"]).is_valid(params) is right


def test_the_demo_has_payments_to_refund(localstripe: str) -> None:
    charges = stripe.seed(localstripe, amounts=((20_000, "eur"), (3_000, "jpy")))
    found = [stripe.Client(localstripe).get(f"charges/{charge}") for charge in charges]
    assert [(one["amount"], one["currency"], one["paid"]) for one in found] == [
        (20_000, "eur", True),
        (3_000, "jpy", True),
    ]
    assert len({one["customer"] for one in found}) == 1
    assert len(stripe.seed(localstripe)) == 8
