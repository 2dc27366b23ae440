"""GET /intents/{id}/history"""

import pytest

from actions import history, times, transitions
from actions.models import Intent
from actions.reasons import Reason
from actions.statuses import Actor, Status
from reconciliation.models import Check, Verdict
from tests.api.calling import Api
from tests.api.test_reading import unknown

pytestmark = pytest.mark.django_db


def test_it_tells_what_happened_and_in_which_role_without_names(api: Api) -> None:
    intent = api.intent()
    unknown(intent)
    history.append(
        Check(
            intent=intent,
            by="checker:secret-host/9",
            started_at=times.now(),
            fence=0,
            verdict=Verdict.TOO_EARLY,
            grounds="{}",
            facts_digest="x",
        ),
        owner=Intent,
        pk=intent.pk,
        at=times.now(),
    )
    transitions.apply(
        intent.pk,
        expected=Status.UNKNOWN,
        to=Status.CONFIRMED,
        actor=Actor.REVIEWER,
        actor_id="person:3",
        reason=Reason.DECIDED,
        settled_by="decision",
    )
    answer = api.get(f"/intents/{intent.pk}/history")
    body = answer.json()
    assert set(body) == {"transitions", "attempts", "checks"}
    assert [
        (row["sequence"], row["from"], row["to"], row["actor"], row["reason"]) for row in body["transitions"]
    ] == [
        (1, None, "recorded", "agent", "recorded"),
        (2, "recorded", "submitted", "machine", "claimed"),
        (3, "submitted", "unknown", "machine", "read_timeout"),
        (4, "unknown", "confirmed", "person", "decided"),
    ]
    (attempt,) = body["attempts"]
    assert (attempt["number"], attempt["result"], attempt["reason"]) == (1, "no_answer", "no_answer")
    assert body["checks"] == [{"at": body["checks"][0]["at"], "verdict": "too_early"}]
    for name in ("secret-host", "person:3", "agent:"):
        assert name not in answer.content.decode()


def test_hidden_reasons_are_hidden_here_too(api: Api) -> None:
    intent = api.intent()
    transitions.apply(
        intent.pk,
        expected=Status.RECORDED,
        to=Status.HELD,
        actor=Actor.CHECKER,
        actor_id="checker:t",
        reason=Reason.HELD_ON_DISPUTE,
    )
    rows = api.get(f"/intents/{intent.pk}/history").json()["transitions"]
    assert [row["reason"] for row in rows] == ["recorded", "in_review"]


def test_every_role_is_shown_as_one_of_three() -> None:
    from actions.api.histories import SHOWN_AS

    assert set(SHOWN_AS) == set(Actor)
    assert set(SHOWN_AS.values()) == {"agent", "machine", "person"}
