"""GET /me and GET /kinds"""

import pytest

from actions.models import Agent
from tests.api.calling import Api, make_api
from tests.factories import make_kind

pytestmark = pytest.mark.django_db


def test_an_agent_learns_who_it_is(db: None) -> None:
    api = make_api(title="Support bot", group="support", rate_per_minute=7)
    assert api.get("/me").json() == {
        "agent": api.agent.name,
        "title": "Support bot",
        "group": "support",
        "paused": False,
        "scopes": ["propose", "read"],
        "limits": {"rate_per_minute": 7, "left": {"propose": 7, "other": 69}, "set": []},
    }


def test_an_agent_learns_its_own_kinds_and_no_limits(api: Api) -> None:
    make_kind()  # somebody else's
    schema = {"type": "object", "required": ["order"]}
    derived = make_kind(name="zz", subject_from="order", params_schema=schema, executors="caller", amount_rule="none")
    api.agent.kinds.add(derived)
    answer = api.get("/kinds")
    first, second = answer.json()["data"]
    assert (first["name"], first["executors"], first["subject"]) == (api.kind.name, ["caller", "landed"], "required")
    assert second == {
        "name": "zz",
        "title": "Refund",
        "executors": ["caller"],
        "params_schema": schema,
        "amount": "none",
        "subject": "derived",
        "paused": False,
    }
    assert "above" not in answer.content.decode()


def test_every_kind_is_open_to_the_application_itself(api: Api) -> None:
    make_kind()
    Agent.objects.filter(pk=api.agent.pk).update(built_in=True)
    assert len(api.get("/kinds").json()["data"]) == 2
