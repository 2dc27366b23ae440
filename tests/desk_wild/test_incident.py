"""A downstream is down: one line in the queue, and a page that says what is known about it."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from actions import attempts, breakers, times
from actions.models import Breaker, Downstream, Line
from actions.statuses import Status
from reconciliation import incidents
from reconciliation.models import Incident, IncidentKind, Review
from reconciliation.views import incident as page
from tests import factories
from tests.desk_wild import scenes
from tests.desk_wild.scenes import main_of
from tests.flow.world import Clock
from tests.pages.cases import log_in

pytestmark = pytest.mark.django_db


def down(**columns: Any) -> tuple[Any, Incident]:
    kind = factories.make_kind(factories.make_downstream(title="Payments API"))
    return kind, scenes.outage(kind.downstream, times.now())


def test_four_hundred_cases_are_one_line_and_a_page_with_their_sum() -> None:
    kind, incident = down()
    agent = factories.make_agent(kind)
    scenes.waiting_cases(kind, 20, agent=agent, amount_minor=5_000)
    scenes.waiting_cases(kind, 1, agent=agent, amount_minor=900, currency="JPY")
    # As many rows as a real outage has, without walking each of them through its life.
    copies = [
        Review(**{name: getattr(one, name) for name in ("purpose", "currency", "opened_at", "due_at")})
        for one in Review.objects.filter(currency="EUR")
        for _ in range(18)
    ]
    for copy, intent in zip(copies, (factories.make_intent(kind, agent) for _ in copies), strict=True):
        copy.intent, copy.amount_minor, copy.incident = intent, 5_000, incident
    Review.objects.bulk_create(copies)
    client, _ = log_in()
    queue = main_of(client.get("/"))
    assert queue.count('class="outage"') == 1
    assert "381" in queue
    shown = main_of(client.get(f"/incidents/{incident.pk}/"))
    assert "Payments API" in shown
    assert ": no answers to sendings</h1>" in shown
    assert "381 cases wait for its end" in shown
    assert "€\u00a019,000.00" in shown
    assert "¥\u00a0900" in shown
    assert shown.count('name="ids"') == 50


def test_it_says_what_is_unsent_what_was_tried_last_and_what_happens_afterwards(clock: Clock) -> None:
    kind, incident = down()
    agent = factories.make_agent(kind)
    scenes.recorded(kind, agent, amount_minor=5_000)
    factories.make_intent(kind, agent, to=Status.HELD, amount_minor=1_000)
    client, _ = log_in()
    path = f"/incidents/{incident.pk}/"
    shown = main_of(client.get(path))
    for words in (
        "goes on",
        "No case waits for it.",
        "none since it began",
        "one at a time, 0 since it began",
        "2, <span",
        "€\u00a060.00",
        "The first answer to a try ends it.",
        "What is unsent is sent then.",
        f'href="/downstream/{kind.downstream.name}/"',
    ):
        assert words in shown
    Downstream.objects.filter(pk=kind.downstream.pk).update(paused=True, pause_reason="They asked for it")
    shown = main_of(client.get(path))
    assert "What is unsent is sent then, once the pause is lifted." in shown
    assert "They asked for it" in shown
    clock.ahead = timedelta(minutes=7)
    breakers.answered(kind.downstream, Line.SENDING, now=times.now())
    shown = main_of(client.get(path))
    assert "It lasted from" in shown
    assert "Everything it kept back is being looked up." in shown
    incidents.sweep(times.now())
    assert "was due to be looked up by" in main_of(client.get(path))


def test_the_last_try_is_said_in_words() -> None:
    kind, incident = down()
    intent = factories.make_intent(kind, to=Status.SUBMITTED, first_maybe_sent_at=times.now())
    now = times.now()
    attempts.open_attempt(
        intent, executor="landed", fence=1, worker="w/1", lease_until=now + timedelta(seconds=30), now=now
    )
    client, _ = log_in()
    assert "under way" in main_of(client.get(f"/incidents/{incident.pk}/"))
    assert page.newest_try(incident) is not None
    other = Incident.objects.create(
        kind=IncidentKind.BOOKS, downstream=kind.downstream, reason="no_answers_looking", opened_at=now
    )
    assert page.newest_try(other) is None
    assert "books can&#x27;t be read" in main_of(client.get(f"/incidents/{other.pk}/"))


def test_a_supervisor_pauses_the_downstream_from_there_and_comes_back() -> None:
    kind, incident = down()
    path = f"/incidents/{incident.pk}/"
    client, _ = log_in("supervisor")
    assert f'value="downstream:{kind.downstream.name}"' in main_of(client.get(path))
    given = {"what": f"downstream:{kind.downstream.name}", "reason": "Until they call back", "back": path}
    response = client.post("/pauses/pause/", given, follow=True)
    assert response.redirect_chain == [(path, 302)]
    assert "Until they call back" in main_of(response)
    for role in ("reviewer", "auditor"):
        other, _ = log_in(role)
        shown = main_of(other.get(path))
        assert "Until they call back" in shown
        assert 'action="/pauses/' not in shown


def test_auditors_tick_nothing() -> None:
    kind, incident = down()
    scenes.waiting_cases(kind, 1)
    client, _ = log_in("auditor")
    shown = main_of(client.get(f"/incidents/{incident.pk}/"))
    assert 'name="ids"' not in shown
    assert "<form" not in shown


def test_its_cases_go_on_and_cost_the_same() -> None:
    kind, incident = down()
    client, _ = log_in()
    path = f"/incidents/{incident.pk}/"

    def get(after: str = "") -> tuple[list[int], str, int]:
        with CaptureQueriesContext(connection) as queries:
            response = client.get(f"{path}?after={after}")
        found = response.context["page"]
        return [review.pk for review in found.rows], found.following, len(queries)

    made = scenes.waiting_cases(kind, 2)
    few = get()[2]
    made += scenes.waiting_cases(kind, 52)
    shown, following, cost = get()
    assert (len(shown), cost) == (50, few)
    rest, end, _ = get(following)
    assert (sorted(shown + rest), end) == (sorted(one.pk for one in made), "")
    assert get("nonsense")[0] == shown


def test_what_is_not_there_is_not_found_and_nobody_else_looks(client: Any) -> None:
    _, incident = down()
    assert client.get(f"/incidents/{incident.pk}/").status_code == 302
    auditor, _ = log_in("auditor")
    assert auditor.get(f"/incidents/{incident.pk + 1}/").status_code == 404
    assert auditor.post(f"/incidents/{incident.pk}/").status_code == 405
    assert Breaker.objects.get().opened_at is not None
