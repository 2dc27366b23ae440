"""The desk over HTTP, without JavaScript: from login to a decided case, and what the agent sees of it."""

import re
from dataclasses import dataclass, field
from html import unescape

import pytest
import requests

from tests.blackbox.agent import Agent

# As processes, the product meets PostgreSQL in tests/chaos, with faults of every kind.
pytestmark = pytest.mark.either_database


@dataclass
class Person:
    """Somebody in front of a browser that only submits forms."""

    base_url: str
    session: requests.Session = field(default_factory=requests.Session)

    def login(self, login: dict[str, str]) -> "Person":
        self.session.trust_env = False
        page = self.get("/login/")
        fields = {"username": login["username"], "password": login["password"], **hidden(page)}
        reply = self.post("/login/", fields)
        assert "Log out" in reply.text
        return self

    def get(self, path: str) -> str:
        reply = self.session.get(self.base_url + path, timeout=30)
        assert reply.status_code == 200, reply.status_code
        return reply.text

    def post(self, path: str, fields: dict[str, str]) -> requests.Response:
        headers = {"Referer": self.base_url + path}
        return self.session.post(self.base_url + path, data=fields, headers=headers, timeout=60)

    def case_of(self, order: str) -> str:
        """The path of the open case of an order, found as a person would: in the queue."""
        page = self.get("/?tab=all")
        row = next(part for part in page.split("<tr")[1:] if order in part)
        found = re.search(r'href="(/reviews/\d+/)"', row)
        assert found
        return found[1]

    def decide(self, case: str, choice: str, **fields: str) -> requests.Response:
        page = self.get(case)
        form = page[page.index('id="decide"') :]
        form = form[: form.index("</form>")]
        entry = re.search(r'name="entry"[^>]*value="(\d+)"[^>]*checked|value="(\d+)"[^>]*name="entry"', form)
        filled = hidden(form) | {"choice": choice, "reason": "ledger"}
        if entry and choice == "confirm":
            filled["entry"] = entry[1] or entry[2]
        return self.post(f"{case}decide/", filled | fields)


def hidden(page: str) -> dict[str, str]:
    found = {}
    for tag in re.findall(r"<input[^>]*type=\"hidden\"[^>]*>", page):
        name = re.search(r'name="([^"]+)"', tag)
        value = re.search(r'value="([^"]*)"', tag)
        if name:
            found[name[1]] = unescape(value[1]) if value else ""
    return found


@pytest.fixture
def rita(agent: Agent) -> Person:
    return Person(agent.demo.base_url).login(agent.demo.login("reviewer", 0))


@pytest.fixture
def ravi(agent: Agent) -> Person:
    return Person(agent.demo.base_url).login(agent.demo.login("reviewer", 1))


def test_above_the_limit_a_reviewer_confirms_what_the_ledger_shows(agent: Agent, rita: Person) -> None:
    order = agent.order("high")
    agent.order_fault(order, "lose_response")
    intent_id = agent.propose(order, "640.00").json()["id"]
    waiting = agent.wait(intent_id, review=True)
    assert (waiting["status"], waiting["next_step"]) == ("unknown", "wait_for_person")
    assert waiting["review"]["for"] == "outcome"

    case = rita.case_of(order)
    page = rita.get(case)
    assert "It looks as if it happened." in page
    assert agent.booked(order)[0]["id"] in page
    reply = rita.decide(case, "confirm")
    assert reply.status_code == 200, reply.text[:2000]

    found = agent.read(intent_id)
    assert (found["status"], found["settled_by"], found["settled_amount"]) == ("confirmed", "decision", "640.00")
    assert found["external_id"] == agent.booked(order)[0]["id"]
    steps = agent.steps(intent_id)
    assert steps[-1] == ("confirmed", "person")
    assert len(agent.posts(order)) == 1


def test_another_amount_in_the_ledger_is_shown_and_failed_by_a_supervisor(agent: Agent) -> None:
    order = agent.order("less")
    agent.order_fault(order, "error_500_not_booked")
    intent_id = agent.propose(order).json()["id"]
    key = agent.read(intent_id)["idempotency_key"]
    entry = {"order": order, "amount_minor": 4850, "currency": "EUR", "idempotency_key": key}
    entry |= {"type": "refund", "status": "succeeded"}
    reply = requests.post(f"{agent.demo.sandbox_url}/_control/entries", json=entry, timeout=10)
    assert reply.status_code == 201
    agent.wait(intent_id, review=True)

    sofia = Person(agent.demo.base_url).login(agent.demo.login("supervisor"))
    case = sofia.case_of(order)
    assert "48.50" in sofia.get(case)
    sofia.decide(case, "fail", note="The provider confirmed that 48.50 was for another refund.")
    found = agent.read(intent_id)
    assert (found["status"], found["may_propose_again"]) == ("failed", True)


def test_above_the_approval_limit_two_people_approve_before_anything_is_sent(
    agent: Agent, rita: Person, ravi: Person
) -> None:
    order = agent.order("huge")
    reply = agent.propose(order, "10000.01")
    intent_id = reply.json()["id"]
    assert (reply.json()["status"], reply.json()["next_step"]) == ("held", "wait_for_person")
    case = rita.case_of(order)
    rita.decide(case, "approve", reason="justified")
    assert agent.read(intent_id)["status"] == "held"
    assert agent.posts(order) == []
    ravi.decide(case, "approve", reason="justified")
    assert agent.wait(intent_id)["status"] == "confirmed"
    assert len(agent.posts(order)) == 1


def test_a_rejected_one_is_cancelled_and_may_not_be_proposed_again(agent: Agent, rita: Person) -> None:
    order = agent.order("no")
    intent_id = agent.propose(order, "10000.01").json()["id"]
    rita.decide(rita.case_of(order), "reject", reason="not_justified")
    found = agent.read(intent_id)
    assert (found["status"], found["may_propose_again"]) == ("cancelled", False)
    assert agent.posts(order) == []


def test_an_auditor_sees_the_case_and_can_decide_nothing(agent: Agent) -> None:
    order = agent.order("audit")
    agent.propose(order, "10000.01")
    otto = Person(agent.demo.base_url).login(agent.demo.login("auditor"))
    case = otto.case_of(order)
    page = otto.get(case)
    assert 'id="decide"' not in page or "Approve" not in page
    token = hidden(page)["csrfmiddlewaretoken"]
    reply = otto.post(f"{case}decide/", {"csrfmiddlewaretoken": token, "choice": "approve"})
    assert reply.status_code == 403
