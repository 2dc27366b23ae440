"""Editing downstreams and kinds in the admin."""

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client

from actions import policy_changes, transitions
from actions.connectors import registry
from actions.models import Downstream, Kind
from actions.statuses import Actor, Status
from tests.admin.conftest import browser_of, errors, form_of, save, url
from tests.factories import make_downstream, make_intent, make_kind, make_person

pytestmark = pytest.mark.django_db


@pytest.fixture
def downstream() -> Downstream:
    config = dict(registry.get("http_json").example.target.config)
    return make_downstream(config=config)


def test_what_is_saved_is_history_with_the_person(page: Client, person: User, downstream: Downstream) -> None:
    save(page, downstream, title="Payments EU")
    downstream.refresh_from_db()
    assert downstream.title == "Payments EU"
    newest = downstream.history.first()
    assert (newest.title, newest.history_user) == ("Payments EU", person)


@pytest.mark.parametrize(
    ("field", "value"),
    [("base_url", "http://127.0.0.1:10"), ("account", "acct_2"), ("look_up", "key"), ("name", "other")],
)
def test_identity_is_fixed_while_intents_are_unsettled_and_the_form_says_how_many(
    page: Client, downstream: Downstream, field: str, value: str
) -> None:
    kind = make_kind(downstream)
    make_intent(kind)
    make_intent(kind)
    before = getattr(downstream, field)
    response = save(page, downstream, **{field: value})
    assert "2 intents of this downstream are not settled" in errors(response)
    assert field in errors(response)
    downstream.refresh_from_db()
    assert getattr(downstream, field) == before


def test_identity_changes_once_everything_is_settled(page: Client, downstream: Downstream) -> None:
    intent = make_intent(make_kind(downstream))
    transitions.apply(
        intent.pk,
        expected=Status.RECORDED,
        to=Status.CANCELLED,
        actor=Actor.CLOCK,
        actor_id="clock",
        reason="expired",
    )
    save(page, downstream, account="acct_2")
    downstream.refresh_from_db()
    assert downstream.account == "acct_2"


def test_what_is_not_identity_changes_while_intents_are_unsettled(page: Client, downstream: Downstream) -> None:
    make_intent(make_kind(downstream))
    save(page, downstream, paused="on", pause_reason="Incident 12")
    downstream.refresh_from_db()
    assert downstream.paused


def test_the_rule_counts_disputed_intents_and_holds_outside_the_admin(downstream: Downstream) -> None:
    intent = make_intent(make_kind(downstream))
    transitions.apply(
        intent.pk,
        expected=Status.RECORDED,
        to=Status.FAILED,
        actor=Actor.WORKER,
        actor_id="worker:1",
        reason="not_sendable",
        settled_by="nothing_sent",
        disputed=True,
    )
    after = Downstream.objects.get(pk=downstream.pk)
    after.base_url = "http://127.0.0.1:10"
    assert "1 intent of this downstream is not settled" in policy_changes.refuse_stranding(downstream, after)[0]
    assert policy_changes.refuse_stranding(downstream, downstream) == []


def test_a_clone_is_paused_and_leaves_the_original_alone(page: Client, downstream: Downstream) -> None:
    make_intent(make_kind(downstream))
    response = page.post(url(downstream, "clone"), {"name": "payments-new"}, follow=True)
    assert response.status_code == 200
    copy = Downstream.objects.get(name="payments-new")
    same = [f.name for f in Downstream._meta.fields if f.name not in ("id", "name", "paused", "pause_reason")]
    assert [getattr(copy, name) for name in same] == [getattr(downstream, name) for name in same]
    assert copy.paused
    downstream.refresh_from_db()
    assert not downstream.paused
    assert LogEntry.objects.filter(object_id=copy.pk).exists()


@pytest.mark.parametrize("name", ["", "Bad Name", "taken"])
def test_a_clone_needs_a_good_free_name(page: Client, downstream: Downstream, name: str) -> None:
    make_downstream(name="taken")
    response = page.post(url(downstream, "clone"), {"name": name})
    assert response.context["form"].errors["name"]
    assert Downstream.objects.count() == 2


def test_the_connector_checks_the_config(page: Client, downstream: Downstream) -> None:
    response = save(page, downstream, config='{"nonsense": 1}')
    assert "config" in errors(response)
    assert "nonsense" in errors(response)


@pytest.mark.parametrize("emptied", ["", "null", "[]"])
def test_a_config_that_is_no_object_is_an_error_of_the_form(
    page: Client, downstream: Downstream, emptied: str
) -> None:
    assert "config" in errors(save(page, downstream, config=emptied))


def test_saving_says_that_only_people_settle_and_that_the_secret_is_missing(
    page: Client, downstream: Downstream
) -> None:
    response = save(page, downstream, look_up="none", dedupes="", dedupe_window_s="", secret_env="NOT_SET_HERE")
    text = response.content.decode()
    assert "only people settle its unknown intents" in text
    assert "NOT_SET_HERE is not set in this web process" in text


def test_a_form_opened_before_somebody_elses_change_overwrites_nothing(page: Client, downstream: Downstream) -> None:
    opened = form_of(page.get(url(downstream)))
    save(browser_of(make_person("admin", username="carla")), downstream, title="Carla's")
    response = page.post(url(downstream), opened | {"title": "Mine"}, follow=True)
    assert "changed by carla" in errors(response)
    assert "Mine" in response.content.decode()
    downstream.refresh_from_db()
    assert downstream.title == "Carla's"


def test_a_form_without_its_version_is_refused(page: Client, downstream: Downstream) -> None:
    response = save(page, downstream, title="Mine", seen_version="")
    assert "after you opened the page" in errors(response)


def test_pausing_needs_a_reason(page: Client, downstream: Downstream) -> None:
    assert "pause_reason" in errors(save(page, downstream, paused="on"))


def test_history_can_be_read_but_not_put_back(page: Client, downstream: Downstream) -> None:
    save(page, downstream, title="Second")
    first = downstream.history.last()
    assert page.get(url(downstream, "history")).status_code == 200
    old = f"{url(downstream, 'history')}{first.pk}/"
    assert page.get(old).status_code == 200
    assert page.post(old, form_of(page.get(url(downstream)))).status_code == 403
    downstream.refresh_from_db()
    assert downstream.title == "Second"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("params_schema", '{"type": "objekt"}'),
        ("params_schema", '{"$ref": "https://example.com/schema"}'),
        ("params_schema", "[]"),
        ("subject_from", "order[["),
        ("payee_from", "a ||"),
        ("customer_from", "}"),
        ("subject_pattern", "order-(["),
        ("limits", '{"EURO": {}}'),
        ("limits", '{"EUR": {"review_above": 1.5}}'),
        ("check_schedule", "[]"),
        ("recheck_failed_s", '["60"]'),
        ("customer_texts", '{"lost": "x"}'),
    ],
)
def test_a_kind_that_could_not_work_is_refused(page: Client, field: str, value: str) -> None:
    kind = make_kind()
    assert field in errors(save(page, kind, **{field: value}))


@pytest.mark.parametrize("emptied", ["", "null", "{}"])
def test_an_emptied_json_field_is_an_empty_object(page: Client, emptied: str) -> None:
    kind = make_kind()
    save(page, kind, limits=emptied)
    kind.refresh_from_db()
    assert kind.limits == {}


def test_a_kind_moves_to_another_downstream_only_when_everything_is_settled(page: Client) -> None:
    kind, other = make_kind(), make_downstream()
    intent = make_intent(kind)
    response = save(page, kind, downstream=other.pk)
    assert "1 intent of this kind is not settled" in errors(response)
    transitions.apply(
        intent.pk,
        expected=Status.RECORDED,
        to=Status.CANCELLED,
        actor=Actor.CLOCK,
        actor_id="clock",
        reason="expired",
    )
    save(page, kind, downstream=other.pk)
    kind.refresh_from_db()
    assert kind.downstream == other


def test_a_kind_is_added(page: Client) -> None:
    data = form_of(page.get("/admin/actions/kind/add/"))
    data |= {"name": "transfer", "title": "Transfer", "downstream": make_downstream().pk}
    assert page.post("/admin/actions/kind/add/", data, follow=True).redirect_chain
    assert Kind.objects.get(name="transfer").check_schedule == [30, 60, 300, 900, 3_600]
