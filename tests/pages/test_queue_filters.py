"""Filters in the URL: each by itself, together, and with what nobody should write there."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actions import times
from actions.models import Intent
from tests import factories
from tests.ledger.books import orphan
from tests.pages.cases import log_in, make_case, make_held, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> Client:
    return log_in()[0]


def shown(client: Client, **asked: str) -> set[str]:
    response: Any = client.get("/", asked)
    return {row.order for row in response.context["page"].rows}


def test_each_filter_narrows_the_list(client: Client) -> None:
    refund, transfer = factories.make_kind(name="refund"), factories.make_kind(name="transfer")
    bot = factories.make_agent(refund, name="bot")
    make_case(refund, agent=bot, subject="a", amount_minor=64_000)
    make_held(transfer, subject="b", amount_minor=5_000, currency="JPY")
    orphan(transfer.downstream, entry_id="re_1", subject="c", amount_minor=900)
    assert shown(client) == {"a", "b", "c"}
    assert shown(client, reason="high_value") == {"a"}
    assert shown(client, reason="approval") == {"b"}
    assert shown(client, kind="refund") == {"a"}
    assert shown(client, agent="bot") == {"a"}
    assert shown(client, downstream=transfer.downstream.name) == {"b", "c"}, "an entry's own, too"
    assert shown(client, currency="jpy") == {"b"}
    assert shown(client, reason="high_value", kind="transfer") == set()


def test_amounts_are_decimal_text_in_a_currency(client: Client) -> None:
    kind = factories.make_kind()
    make_case(kind, subject="640", amount_minor=64_000)
    make_case(kind, subject="50", amount_minor=5_000)
    make_case(kind, subject="yen", amount_minor=64_000, currency="JPY")
    make_case(kind, subject="none", amount_minor=None)
    assert shown(client, amount_from="50.01", currency="EUR") == {"640"}
    assert shown(client, amount_to="50", currency="EUR") == {"50"}
    assert shown(client, amount_from="50.00", amount_to="640", currency="EUR") == {"640", "50"}
    assert shown(client, amount_from="64000", currency="JPY") == {"yen"}


def test_age_counts_from_when_the_outcome_became_open(client: Client) -> None:
    kind = factories.make_kind()
    old, new = make_case(kind, subject="old"), make_case(kind, subject="new")
    Intent.objects.filter(pk=old.intent_id).update(status_since=times.now() - timedelta(hours=2))
    orphan(kind.downstream, entry_id="re_1", subject="entry")
    assert shown(client, older="1h") == {"old"}
    assert shown(client, older="4h") == set()
    assert new.closed_at is None


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"reason": "nonsense"}, "There is no reason “nonsense”."),
        ({"kind": "a\x00b"}, "There is no kind"),
        ({"agent": "' OR 1=1"}, "There is no agent"),
        ({"downstream": "x" * 5_000}, "There is no downstream"),
        ({"older": "yesterday"}, "There is no age “yesterday”."),
        ({"amount_from": "5"}, "Say in which currency."),
        ({"amount_from": "5,00", "currency": "EUR"}, "is not an amount"),
        ({"amount_from": "-5", "currency": "EUR"}, "is not an amount"),
        ({"amount_from": "1e3", "currency": "EUR"}, "is not an amount"),
        ({"amount_from": "٥", "currency": "EUR"}, "is not an amount"),
        ({"amount_to": "5.001", "currency": "EUR"}, "has more decimals than EUR has"),
        ({"amount_to": "9" * 15 + ".99", "currency": "EUR"}, "more than Landed handles"),
        ({"amount_to": "9" * 99, "currency": "EUR"}, "at most 24 characters"),
        ({"amount_from": "5", "currency": "QQQ"}, "is not the code of a currency"),
        ({"amount_from": "5", "currency": "€"}, "Three letters"),
        ({"amount_from": "9", "amount_to": "5", "currency": "EUR"}, "Less than the amount it begins from."),
        ({"incident": "x"}, "There is no such incident."),
        ({"incident": "9" * 40}, "less than or equal to"),
        ({"order": "nonsense"}, "There is no order “nonsense”"),
    ],
)
def test_what_is_not_understood_is_told_and_filters_nothing(client: Client, asked: dict[str, str], said: str) -> None:
    make_case(subject="a")
    response: Any = client.get("/", asked)
    assert said in text_of(response).replace("&#x27;", "'")
    assert shown(client, **asked) == {"a"}
    assert client.get("/queue.csv", asked).status_code == 200
    assert client.get("/news/", asked).status_code == 200


def test_what_is_written_there_is_shown_as_text(client: Client) -> None:
    page = text_of(client.get("/", {"kind": "<script>alert(1)</script>\u202e", "tab": "<b>"}))
    assert "<script>alert" not in page
    assert "<b>" not in page
    assert "\u202e" not in page.split("<main")[1]


def test_every_filter_is_a_chip_that_takes_itself_away_and_nothing_else(client: Client) -> None:
    make_case(factories.make_kind(name="refund"), subject="a", amount_minor=64_000)
    asked = {"tab": "unclaimed", "order": "stake", "kind": "refund", "reason": "high_value"}
    asked |= {"amount_from": "10", "currency": "eur"}
    response: Any = client.get("/", asked)
    chips = {chip.what: (chip.words, chip.without) for chip in response.context["chips"]}
    assert chips["Amount"] == ("from 10 EUR", "?tab=unclaimed&order=stake&reason=high_value&kind=refund")
    assert chips["Reason"][1] == "?tab=unclaimed&order=stake&kind=refund&amount_from=10&currency=eur"
    assert chips["Kind"][0] == "Refund"
    assert "Take away the filter Kind" in text_of(response)


def test_tabs_orders_and_pages_keep_the_filters_and_the_figures_count_what_is_filtered(client: Client) -> None:
    refund, transfer = factories.make_kind(name="refund"), factories.make_kind(name="transfer")
    make_case(refund, subject="a")
    make_case(transfer, subject="b")
    response: Any = client.get("/", {"kind": "refund", "agent": "nobody"})
    tabs = {name: (count, link) for name, _, count, link in response.context["tabs"]}
    assert tabs["all"] == (1, "?tab=all&kind=refund")
    assert tabs["unclaimed"] == (1, "?tab=unclaimed&kind=refund")
    assert {link for _, link, _ in response.context["orders"]} >= {"?tab=all&order=stake&kind=refund"}
    assert "The figures in the tabs count what is filtered." in text_of(response)
    assert response.context["export"] == "?tab=all&kind=refund"


def test_a_filter_that_lets_nothing_through_says_so_and_offers_the_way_back(client: Client) -> None:
    make_case(subject="a")
    page = text_of(client.get("/", {"reason": "approval"}))
    assert "No case fits the filters in this tab." in page
    assert "Show all of this tab" in page


TEXTS = st.text(max_size=40) | st.sampled_from(
    ["all", "due", "EUR", "1h", "0", "-1", "1" * 30, "\x00", "%", "refund"]
)
NAMES = ["tab", "order", "reason", "kind", "agent", "downstream", "amount_from", "amount_to", "currency", "older"]
NAMES += ["incident", "after", "seen", "states", "told", "q", "status", "disputed"]


@given(asked=st.dictionaries(st.sampled_from(NAMES), TEXTS, max_size=6))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_stands_in_the_url_there_is_a_page(client: Client, asked: dict[str, str]) -> None:
    for path in ("/", "/news/", "/queue.csv", "/intents/", "/intents.csv"):
        response: Any = client.get(path, {name: text.encode("utf-8", "replace") for name, text in asked.items()})
        assert response.status_code == 200, path
        assert b"".join(response.streaming_content) if response.streaming else True
