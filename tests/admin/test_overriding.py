"""Overriding a settled intent in the admin: two people, a reason, nothing lost."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client

from actions import history, times, transitions
from actions.models import Intent
from actions.statuses import Actor, Status
from reconciliation.models import Decision, LedgerEntry, Match
from reconciliation.reviews import overriding
from tests.admin.conftest import browser_of
from tests.factories import make_intent, make_person

pytestmark = pytest.mark.django_db


def settle(intent: Intent, to: Status) -> Intent:
    confirmed = {"settled_amount_minor": intent.amount_minor, "settled_currency": intent.currency}
    return transitions.apply(
        intent.pk,
        expected=Status.SUBMITTED,
        to=to,
        actor=Actor.WORKER,
        actor_id="worker:1",
        reason="confirmed_by_answer" if to is Status.CONFIRMED else "refused",
        settled_by="answer",
        **(confirmed if to is Status.CONFIRMED else {}),
    )


@pytest.fixture
def failed(db: None) -> Intent:
    return settle(make_intent(to=Status.SUBMITTED), Status.FAILED)


@pytest.fixture
def confirmed(db: None) -> Intent:
    return settle(make_intent(to=Status.SUBMITTED), Status.CONFIRMED)


@pytest.fixture
def second(db: None) -> Client:
    return browser_of(make_person("admin", username="second"))


def url(intent: Intent) -> str:
    return f"/admin/actions/intent/{intent.pk}/override/"


def proposal(page: Client, intent: Intent, **changes: Any) -> dict[str, Any]:
    form = page.get(url(intent)).context["form"]
    found = {name: form[name].value() for name in form.fields if form[name].value() is not None}
    return found | {"do": "propose", "reason": "bank_statement", "note": "Statement of 3 May shows it."} | changes


def propose(page: Client, intent: Intent, **changes: Any) -> Any:
    return page.post(url(intent), proposal(page, intent, **changes))


def answer(page: Client, intent: Intent, do: str, **changes: Any) -> Any:
    pending = overriding.pending(intent.pk)
    assert pending is not None
    return page.post(url(intent), {"do": do, "decision": pending.pk, "note": "No."} | changes)


def fresh(intent: Intent) -> Intent:
    return Intent.objects.get(pk=intent.pk)


def test_nothing_changes_before_a_second_person_agrees(
    page: Client, second: Client, person: User, failed: Intent
) -> None:
    assert propose(page, failed).status_code == 302
    assert fresh(failed).status == Status.FAILED
    shown = second.get(url(failed)).content.decode()
    assert person.username in shown
    assert "Statement of 3 May shows it." in shown
    answer(second, failed, "agree")
    now = fresh(failed)
    assert (now.status, now.settled_by) == (Status.CONFIRMED, "override")
    assert (now.settled_amount, now.settled_currency) == ("50.00", "EUR")
    assert now.idempotency_key == failed.idempotency_key
    assert history.faults(now) == []


def test_the_same_person_does_not_count_twice(page: Client, failed: Intent) -> None:
    propose(page, failed)
    assert "a second person has to agree" in page.get(url(failed)).content.decode()
    response = answer(page, failed, "agree")
    assert response.status_code == 409
    assert "different person" in response.content.decode()
    assert fresh(failed).status == Status.FAILED


def test_a_rejected_proposal_leaves_the_intent_as_it_is_and_another_can_follow(
    page: Client, second: Client, failed: Intent
) -> None:
    propose(page, failed)
    assert answer(second, failed, "refuse", note=" ").context["refuse_form"].errors["note"]
    assert answer(second, failed, "refuse").status_code == 302
    assert fresh(failed).status == Status.FAILED
    assert overriding.pending(failed.pk) is None
    assert propose(page, failed).status_code == 302


def test_a_confirmed_intent_becomes_failed_without_amount_or_entry(
    page: Client, second: Client, confirmed: Intent
) -> None:
    assert propose(page, confirmed).context["form"].errors["to"]  # nothing is chosen for anybody
    propose(page, confirmed, to="failed")
    answer(second, confirmed, "agree")
    now = fresh(confirmed)
    assert (now.status, now.settled_amount_minor) == (Status.FAILED, None)


def test_another_amount_and_the_entry_that_shows_it_are_kept(page: Client, second: Client, failed: Intent) -> None:
    now = times.now()
    entry = LedgerEntry.objects.create(
        downstream=failed.downstream,
        entry_id="re_9",
        role="effect",
        state="final",
        subject=failed.subject,
        amount_minor=4_950,
        currency="EUR",
        first_seen_at=now,
        last_seen_at=now,
    )
    wrong = propose(page, failed, settled_amount="50.00", settled_currency="EUR", entry=str(entry.pk))
    assert "The entry shows 49.50 EUR." in wrong.content.decode()
    propose(page, failed, entry=str(entry.pk))
    answer(second, failed, "agree")
    assert (fresh(failed).settled_amount, fresh(failed).external_id) == ("49.50", "re_9")
    assert Match.objects.get(intent=failed, released_at=None).entry == entry


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("note", ""),
        ("reason", ""),
        ("settled_amount", "12.345"),
        ("settled_amount", "1e3"),
        ("settled_currency", ""),
        ("settled_currency", "XYZ"),
        ("entry", "999"),
        ("seen_version", ""),
    ],
)
def test_a_bad_form_decides_nothing_and_loses_nothing(page: Client, failed: Intent, field: str, value: str) -> None:
    amount = {"settled_amount": "50.00", "settled_currency": "EUR"}
    response = propose(page, failed, **({"note": "My long note."} | amount | {field: value}))
    assert response.context["form"].errors
    assert field == "note" or "My long note." in response.content.decode()
    assert not Decision.objects.exists()


def test_a_form_opened_before_the_intent_changed_is_refused_with_everything_still_in_it(
    page: Client, second: Client, failed: Intent
) -> None:
    old = proposal(page, failed, note="My long note.")
    propose(page, failed)
    answer(second, failed, "agree")
    propose(page, failed, to="failed")
    answer(second, failed, "agree")  # failed again, three versions later
    response = page.post(url(failed), old)
    assert response.status_code == 409
    assert "My long note." in response.content.decode()
    assert overriding.pending(failed.pk) is None
    again = response.context["form"]
    assert page.post(url(failed), again.data | {"do": "propose"}).status_code == 302


def test_a_double_click_proposes_once_and_agrees_once(page: Client, second: Client, failed: Intent) -> None:
    data = proposal(page, failed, note="My long note.")
    page.post(url(failed), data)
    again = page.post(url(failed), data)
    assert again.status_code == 409
    assert "waits for a second person already" in again.content.decode()
    assert again.content.decode().count("My long note.") == 2  # the proposal, and what was written
    assert Decision.objects.count() == 1
    pending = overriding.pending(failed.pk)
    assert pending is not None
    agreed = {"do": "agree", "decision": pending.pk}
    second.post(url(failed), agreed)
    assert second.post(url(failed), agreed).status_code == 409
    assert fresh(failed).status == Status.CONFIRMED
    assert fresh(failed).version == failed.version + 1


def test_agreeing_to_another_intents_proposal_by_number_does_nothing(
    page: Client, second: Client, failed: Intent, confirmed: Intent
) -> None:
    propose(page, failed)
    pending = overriding.pending(failed.pk)
    assert pending is not None
    for number in (pending.pk, "", "-1", "9" * 30, "x"):
        assert second.post(url(confirmed), {"do": "agree", "decision": number}).status_code == 409
    assert fresh(failed).status == Status.FAILED
    assert fresh(confirmed).status == Status.CONFIRMED


def test_every_step_is_in_djangos_own_log(page: Client, second: Client, failed: Intent) -> None:
    propose(page, failed)
    answer(second, failed, "refuse")
    propose(page, failed)
    answer(second, failed, "agree")
    said = [entry.change_message for entry in LogEntry.objects.filter(object_id=failed.pk).order_by("pk")]
    assert [words.split(" ")[0] for words in said] == ["Proposed", "Rejected", "Proposed", "Agreed"]


def test_only_who_may_override_sees_the_link_and_the_page(failed: Intent) -> None:
    nearly = make_person("admin")
    nearly.user_permissions.remove(Permission.objects.get(codename="override_intent"))
    page = browser_of(nearly)
    assert "Override…" not in page.get(f"/admin/actions/intent/{failed.pk}/change/").content.decode()
    assert page.get(url(failed)).status_code == 403
    assert page.post(url(failed), {"do": "propose"}).status_code == 403


@pytest.mark.parametrize("to", [Status.RECORDED, Status.HELD, Status.SUBMITTED])
def test_what_is_not_settled_is_not_overridden(page: Client, to: Status) -> None:
    intent = make_intent(to=to)
    assert "Override…" not in page.get(f"/admin/actions/intent/{intent.pk}/change/").content.decode()
    response = page.post(url(intent), {"do": "propose"}, follow=True)
    assert "Only a confirmed or a failed intent" in response.content.decode()


def test_looking_changes_nothing_and_a_forged_post_is_refused(person: User, failed: Intent) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(person)
    assert strict.get(url(failed), {"do": "propose", "note": "x"}).status_code == 200
    assert strict.post(url(failed), {"do": "propose", "note": "x"}).status_code == 403
    assert not Decision.objects.exists()
