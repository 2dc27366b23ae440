"""The search in the header: exact and by its beginning, everything that people have in hand, on indexes."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from actions.statuses import Status
from reconciliation.models import Match, MatchRole
from reconciliation.views import searching
from tests import factories
from tests.ledger.books import make_entry, orphan
from tests.pages.cases import log_in, make_case, text_of
from tests.pages.many import make_intents

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> Client:
    return log_in()[0]


def found(client: Client, q: str, **asked: str) -> list[str]:
    context: Any = client.get("/intents/", {"q": q, **asked}).context
    return [row.intent.subject for row in context["page"].rows]


def test_beginnings_are_found_from_three_characters_on(client: Client) -> None:
    kind = factories.make_kind()
    agent = factories.make_agent(kind, name="support-bot")
    intent = factories.make_intent(
        kind,
        agent,
        subject="order-48/line-2",
        external_id="re_9xyz",
        request_key="req-777",
        idempotency_key="key-555",
        to=Status.RECORDED,
    )
    factories.make_intent(kind, subject="invoice-1")
    for q in ("ord", "order-4", "order-48/li", "re_9", "req-7", "key-5", "support", str(intent.pk)[:13]):
        assert found(client, q) == ["order-48/line-2"], q
    for q in ("or", "re", "Order-4", "order-5", "rder", "re%", "re_8", "ord_r"):
        assert found(client, q) == [], q


def test_what_is_named_exactly_comes_first(client: Client) -> None:
    kind = factories.make_kind()
    for subject in ("order-481", "order-48", "order-4"):
        factories.make_intent(kind, subject=subject)
    assert found(client, "order-48") == ["order-48", "order-481"]


@pytest.mark.parametrize(
    "q", ["%", "_", "\\", "%%%", "'; DROP", "\U0010ffff", "a\x00b", "ａｂｃ", "é" * 255, "x" * 300]
)
def test_any_text_can_be_looked_for(client: Client, q: str) -> None:
    factories.make_intent(subject="order-1")
    assert found(client, q) in ([], ["order-1"]) if len(q) > 255 or "\x00" in q else found(client, q) == []


def test_one_spelling_of_a_letter_finds_the_other(client: Client) -> None:
    factories.make_intent(subject="caf\u00e9-1")
    assert found(client, "cafe\u0301-") == ["caf\u00e9-1"]


def test_one_intent_named_exactly_with_an_open_case_leads_there_by_a_first_row(client: Client) -> None:
    case = make_case(subject="order-1")
    factories.make_intent(subject="order-11")
    response: Any = client.get("/intents/?q=order-1")
    assert response.status_code == 200, "nobody is sent anywhere by surprise"
    assert response.context["lead"].case == case
    page = text_of(response)
    assert page.index(f'href="/reviews/{case.pk}/">Open the case') < page.index('<table class="rows')
    assert client.get("/intents/?q=order-").context["lead"] is None
    assert client.get("/intents/?q=order-11").context["lead"] is None


def test_each_hit_shows_its_status_and_its_open_case(client: Client) -> None:
    case = make_case(subject="order-1")
    page = text_of(client.get("/intents/?q=ord"))
    assert f'href="/reviews/{case.pk}/">open case' in page
    assert "status-unknown" in page


def test_a_ledger_entry_leads_to_its_intent_and_to_its_case(client: Client) -> None:
    intent = factories.make_intent(subject="order-1")
    entry = make_entry(intent.downstream, entry_id="re_tied")
    Match.objects.create(
        entry=entry,
        intent=intent,
        role=MatchRole.SETTLES,
        entry_state=entry.state,
        by="checker",
        at=intent.created_at,
    )
    case = orphan(factories.make_downstream(), entry_id="re_alone")
    assert found(client, "re_tied") == ["order-1"]
    assert "settles it" in text_of(client.get("/intents/?q=re_tied"))
    page = text_of(client.get("/intents/?q=re_alone"))
    assert f'href="/reviews/{case.pk}/">Open its case' in page


def test_an_agent_leads_to_what_it_proposed(client: Client) -> None:
    kind = factories.make_kind()
    agent = factories.make_agent(kind, name="support-bot")
    for number in range(3):
        factories.make_intent(kind, agent, subject=f"order-{number}")
    assert found(client, "support-bot") == ["order-2", "order-1", "order-0"]
    assert 'href="/intents/?agent=support-bot"' in text_of(client.get("/intents/?q=supp"))


def test_more_than_fit_are_cut_and_said_to_be(client: Client) -> None:
    make_intents(searching.MOST + 5, prefix="order")
    assert len(found(client, "order-")) == searching.MOST
    assert "type more of it" in text_of(client.get("/intents/?q=order-"))
    assert "type more of it" not in text_of(client.get("/intents/?q=order-1"))


def test_filters_narrow_what_was_found(client: Client) -> None:
    factories.make_intent(subject="order-1")
    make_case(subject="order-2")
    assert found(client, "order-", status="unknown") == ["order-2"]
    assert found(client, "order-", status="failed") == []


def test_it_costs_the_same_however_many_fit(client: Client) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            client.get("/intents/?q=order-1")
        return len(queries)

    make_intents(3, prefix="order")
    few = cost()
    make_intents(200, prefix="order-1")
    assert cost() == few
    assert few <= 25


QUESTIONS = ["exact", "beginning", "lines"]


@pytest.mark.parametrize("which", QUESTIONS)
def test_every_question_rides_an_index_in_its_own_order(which: str) -> None:
    questions = {
        "exact": list(searching._exactly("order-1")),
        "beginning": list(searching._beginning("abcd1234")),
        "lines": list(searching._beginning("order-1/line")),
    }[which]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":  # a small table is read whole, if it may be
            cursor.execute("SET LOCAL enable_seqscan = off")
    for question in questions:
        plan = question.values_list("pk", flat=True)[: searching.MOST + 1].explain()
        if connection.vendor == "postgresql":
            assert "Index Cond" in plan, plan
            assert "Sort" not in plan, plan
        else:
            assert "SEARCH actions_intent" in plan, plan
            assert "SCAN" not in plan, plan
            assert "TEMP B-TREE" not in plan, plan
            assert which != "beginning" or ">? AND" in plan, "a range with two ends"
