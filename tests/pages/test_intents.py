"""The list of intents and its search."""

from typing import Any

import pytest

from actions.statuses import Status
from tests import factories
from tests.pages.cases import log_in, make_case, make_unknown, text_of

pytestmark = pytest.mark.django_db


def found(query: str) -> list[str]:
    client, _ = log_in()
    response: Any = client.get("/intents/" + query)
    return [row.intent.subject for row in response.context["page"].rows]


def test_the_newest_come_first() -> None:
    kind = factories.make_kind()
    for subject in ("a", "b", "c"):
        factories.make_intent(kind, subject=subject)
    assert found("") == ["c", "b", "a"]


def test_filters_narrow_the_list() -> None:
    kind, other = factories.make_kind(name="refund"), factories.make_kind(name="transfer")
    agent = factories.make_agent(kind, name="bot")
    factories.make_intent(kind, agent, subject="mine")
    factories.make_intent(other, subject="others")
    make_unknown(kind, subject="lost", disputed=True)
    assert found("?kind=refund") == ["lost", "mine"]
    assert found("?agent=bot") == ["mine"]
    assert found("?status=unknown") == ["lost"]
    assert found("?disputed=on") == ["lost"]
    assert found("?status=nonsense&kind=nonsense") == ["lost", "others", "mine"]


def test_the_search_finds_order_key_external_id_and_id_exactly() -> None:
    kind = factories.make_kind()
    intent = factories.make_intent(
        kind, subject="order-1/line-2", external_id="re_1", request_key="req-1", to=Status.RECORDED
    )
    factories.make_intent(kind, subject="order-11", external_id="re_11")
    for query in ("order-1", "order-1/line-2", "re_1", "req-1", intent.idempotency_key, str(intent.pk)):
        assert found(f"?q={query}")[0] == "order-1/line-2", query
    assert found("?q=order-1/line-3") == []


def test_an_empty_search_finds_nothing_in_particular() -> None:
    factories.make_intent(subject="a")
    assert found("?q=%20") == ["a"]


def test_pages_follow_each_other_and_keep_the_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciliation.views.paging.PER_PAGE", 2)
    monkeypatch.setattr("reconciliation.views.paging.cut.__kwdefaults__", {"per_page": 2})
    kind = factories.make_kind(name="refund")
    for number in range(5):
        factories.make_intent(kind, subject=f"order-{number}")
    client, _ = log_in()
    response: Any = client.get("/intents/?kind=refund")
    assert "?kind=refund&amp;after=" in text_of(response)
    assert len(response.context["page"].rows) == 2
    seen, after = [], ""
    while True:
        response = client.get("/intents/", {"kind": "refund", "after": after})
        seen += [row.intent.subject for row in response.context["page"].rows]
        after = response.context["page"].following
        if not after:
            break
    assert seen == [f"order-{number}" for number in (4, 3, 2, 1, 0)]


def test_an_intent_leads_to_its_open_case() -> None:
    review = make_case()
    client, _ = log_in()
    assert f'href="/reviews/{review.pk}/"' in text_of(client.get(f"/intents/{review.intent_id}/"))


def test_no_such_intent_is_404() -> None:
    client, _ = log_in()
    assert client.get("/intents/0190a5c0-0000-7000-8000-000000000000/").status_code == 404
