"""What runs once a second looks at what is new and what is due, not at what was."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from actions import feed, positions, times
from actions.models import Event, EventDelivery
from actions.notifying import claiming, planning
from tests.core.test_plans import through_history
from tests.events.making import make_endpoint
from tests.factories import make_agent, make_intent, make_kind

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif("connection.vendor != 'sqlite'", reason="PostgreSQL reads small tables as it likes"),
]


def fill() -> Any:
    """Three thousand events that were told long ago, two new ones, one delivery that is due."""
    agents = [make_agent(group="g") for _ in range(3)]
    intents = [make_intent(make_kind(), agent) for agent in agents]
    endpoint, _ = make_endpoint(agents[0], "https://a.example/")
    head, now = positions.head(), times.now()
    old = [
        Event(intent=intents[n % 3], agent=agents[n % 3], type="intent.settled", at=now, position=head + n + 1)
        for n in range(3_000)
    ]
    Event.objects.bulk_create(old)
    EventDelivery.objects.bulk_create(
        EventDelivery(
            endpoint=endpoint, event=one, state="delivered", created_at=now, give_up_at=now - timedelta(days=1)
        )
        for one in Event.objects.filter(agent=agents[0], position__gt=head)
    )
    endpoint.planned_to = positions.head()
    endpoint.save()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    make_intent(make_kind(), agents[0], to="held", hold_reasons="approval")
    return agents


def test_nothing_goes_through_what_was_told() -> None:
    agents = fill()
    found: list[tuple[str, Any]] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        found.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        positions.stamp()
        assert planning.plan() == 2
        assert len(claiming.claim(5)) == 2
        ids = feed.heard_by(agents[0])
        assert feed.anything(ids, after=positions.head()) is False
        assert len(feed.page(ids, after=positions.head() - 1, limit=10).events) == 1
    looked = [
        (sql, params) for sql, params in found if "actions_event" in sql and sql.startswith(("SELECT", "UPDATE"))
    ]
    assert len(looked) > 8
    for sql, params in looked:
        assert through_history(sql, params) == [], sql
