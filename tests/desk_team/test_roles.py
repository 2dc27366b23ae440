"""What each role may do at every address of the desk; and that reading everything changes nothing."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import URLPattern, reverse

from actions import evidence, times
from actions.models import EvidenceKind, Stop
from reconciliation import roles
from reconciliation.models import Difference, Incident, Preferences, Review
from reconciliation.reviews import attaching, people
from reconciliation.urls import urlpatterns
from tests import factories
from tests.pages.cases import make_case

pytestmark = pytest.mark.django_db

OPEN = {"login", "logout"}
# What is somebody's own, and decides nothing: everybody at the desk keeps it.
OWN = {"preferences_keep"}
# Nothing is being undone, so there is no state to tell.
NOTHING_THERE = {"case_undo_state": 404}
WHO = ("anonymous", "nobody", "auditor", "reviewer", "supervisor", "administrator")


@pytest.fixture
def groups() -> None:
    roles.ensure()


def client_of(who: str) -> Client:
    client = Client(raise_request_exception=True)
    if who == "anonymous":
        return client
    person = User.objects.create_user(username=f"{who}-{uuid.uuid4().hex[:8]}")
    if who != "nobody":
        person.groups.add(Group.objects.get(name=who))
    assert not person.is_staff
    client.force_login(person)
    return client


def addresses() -> Iterator[tuple[str, list[str]]]:
    """Every address by name, with the names of its parameters."""
    for pattern in urlpatterns:
        assert isinstance(pattern, URLPattern)
        if pattern.name not in OPEN:
            yield str(pattern.name), list(pattern.pattern.regex.groupindex)


@dataclass
class Desk:
    """One of everything that an address can name."""

    review: Review
    values: dict[str, Any]

    def url(self, name: str, parameters: list[str]) -> str:
        return reverse(name, kwargs={parameter: self.values[parameter] for parameter in parameters})


def make_desk() -> Desk:
    review, now = make_case(), times.now()
    intent = review.intent
    assert intent is not None
    person = factories.make_person()
    kept = evidence.store(intent_id=intent.pk, kind=EvidenceKind.ANSWER, source="person:1", content="n", now=now)
    values = {
        "review_id": review.pk,
        "intent_id": intent.pk,
        "attachment_id": attaching.attach(review.pk, person=person, name="a.txt", content=b"a\n").pk,
        "evidence_id": kept.pk,
        "difference_id": Difference.objects.create(intent=intent, what="recover", opened_at=now).pk,
        "stop_id": Stop.objects.create(
            scope="subject", value="o", key="o", family="o", reason="r", placed_by="person:1", placed_at=now
        ).pk,
        "incident_id": Incident.objects.create(
            kind="books", downstream=intent.downstream, reason="r", opened_at=now
        ).pk,
        "scope": "agent",
        "name": intent.agent.name,
    }
    return Desk(Review.objects.get(pk=review.pk), values)


@pytest.mark.parametrize("who", WHO)
@pytest.mark.usefixtures("groups")
def test_every_address_says_who_may_read_it(who: str) -> None:
    desk, client, wrong = make_desk(), client_of(who), {}
    for name, parameters in addresses():
        status = client.get(desk.url(name, parameters)).status_code
        right = {"anonymous": {302, 405}, "nobody": {403, 405}}.get(who, {200, 405})
        if status not in right and status != NOTHING_THERE.get(name):
            wrong[name] = status
    assert wrong == {}


@pytest.mark.parametrize("who", ["anonymous", "nobody", "auditor"])
@pytest.mark.usefixtures("groups")
def test_who_may_not_decide_changes_no_row_at_any_address(who: str) -> None:
    desk, client, wrong = make_desk(), client_of(who), {}
    before = rows()
    for name, parameters in addresses():
        status = client.post(desk.url(name, parameters), _filled_in(desk.review)).status_code
        right = {"anonymous": {302, 405}, "nobody": {403, 405}, "auditor": {403, 405}}[who]
        if status not in right and not (who == "auditor" and name in OWN):
            wrong[name] = status
    assert wrong == {}
    assert rows() == before
    assert Preferences.objects.count() == (1 if who == "auditor" else 0)


def _filled_in(review: Review) -> dict[str, str]:
    """What would decide, hand over, stop or keep something, if whoever sends it might."""
    person = User.objects.order_by("pk").values_list("pk", flat=True).first()
    return {
        "choice": "confirm",
        "reason": "ledger",
        "note": "n",
        "text": "t",
        "to": str(person),
        "seen_version": str(review.intent.version if review.intent else 0),
        "scope": "subject",
        "value": "order-1",
        "review": str(review.pk),
        "theme": "dark",
        "after_deciding": "next",
    }


def rows() -> dict[str, list[tuple[Any, ...]]]:
    """Every row of both apps but what people keep for themselves."""
    models = [*apps.get_app_config("actions").get_models(), *apps.get_app_config("reconciliation").get_models()]
    return {
        model._meta.label: sorted(map(repr, model._base_manager.values_list()))
        for model in models
        if model is not Preferences
    }


@pytest.mark.usefixtures("groups")
def test_reviewers_and_supervisors_may_act_and_no_one_needs_is_staff() -> None:
    for who in ("reviewer", "supervisor", "administrator"):
        review = make_case()
        assert client_of(who).post(f"/reviews/{review.pk}/take/").status_code in (200, 302)
        review.refresh_from_db()
        assert review.holder is not None


@pytest.mark.usefixtures("groups")
def test_the_groups_carry_what_the_pages_ask_for() -> None:
    def may(role: str) -> list[bool]:
        person = User.objects.create_user(username=f"p-{role}")
        person.groups.add(Group.objects.get(name=role))
        person = User.objects.get(pk=person.pk)
        asked = (
            people.may_read,
            people.may_decide,
            people.may_supervise,
            people.may_place_stop,
            people.may_lift_stop,
        )
        return [*(question(person) for question in asked), person.has_perm(people.OVERRIDE)]

    assert {role: may(role) for role in roles.ROLES} == {
        "reviewer": [True, True, False, True, False, False],
        "supervisor": [True, True, True, True, True, False],
        "auditor": [True, False, False, False, False, False],
        "administrator": [True, True, True, True, True, True],
    }


def test_a_group_that_somebody_changed_is_left_as_it_is() -> None:
    roles.ensure()
    group = Group.objects.get(name="reviewer")
    group.permissions.clear()
    Group.objects.get(name="auditor").delete()
    assert roles.ensure() == ["auditor"]
    assert group.permissions.count() == 0
    assert roles.ensure() == []
