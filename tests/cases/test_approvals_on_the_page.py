"""Approving, rejecting and waiving by plain buttons, and what a reviewer reads before pressing one."""

import re
from typing import Any

import pytest

from actions import times
from actions.models import Intent, Kind
from reconciliation.models import Decision, Review
from tests.api.calling import Api, make_api
from tests.pages.cases import hidden_of, log_in, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def api() -> Api:
    found = make_api()
    Kind.objects.update(duplicate_policy="hold")
    return found


def second(api: Api, **fields: Any) -> tuple[Intent, Intent, str]:
    """An open intent, another one on its order that waits, and the address of its case."""
    first = api.intent(amount="50.00")
    other = api.intent(amount="20.00", **fields)
    review = Review.objects.get(intent=other)
    return first, other, f"/reviews/{review.pk}/"


def press(client: Any, path: str, choice: str, **more: str) -> Any:
    given = {"choice": choice, "reason": "justified", "note": ""} | hidden_of(client.get(path)) | more
    return client.post(path + "decide/", given, follow=True)


def test_the_page_has_a_button_for_each_and_a_box_to_waive(api: Api) -> None:
    _, _, path = second(api)
    client, _ = log_in()
    page = text_of(client.get(path))
    for value in ("approve", "reject"):
        assert f'type="submit" name="choice" value="{value}"' in page
    assert 'type="checkbox" name="waive_guard"' in page
    assert "Send this one all the same, although the other may still happen" in page
    assert "This order has another intent that is not settled" in page
    section = page.split('id="decide"', 1)[1].split("</section>")[0]
    assert not re.findall(r"<(?:form|button)[^>]*hx-post", section), "a plain form"


def test_without_the_tick_nothing_is_approved_and_the_page_says_why(api: Api) -> None:
    _, other, path = second(api)
    client, _ = log_in()
    response = press(client, path, "approve")
    assert response.status_code == 422
    assert "waive the guard in so many words" in text_of(response)
    other.refresh_from_db()
    assert (other.status, Decision.objects.count()) == ("held", 0)


def test_with_the_tick_it_is_approved_and_the_waiver_is_written_down(api: Api) -> None:
    first, other, path = second(api)
    client, person = log_in()
    assert "Approved: it may be sent." in text_of(press(client, path, "approve", waive_guard="on"))
    other.refresh_from_db()
    assert (other.status, other.guard_waived) == ("recorded", True)
    vote = Decision.objects.get(choice="approve")
    assert (vote.person, vote.guard_waived) == (person, True)
    first.refresh_from_db()
    assert first.status == "recorded"


def test_a_tick_beside_reject_waives_nothing(api: Api) -> None:
    _, other, path = second(api)
    client, _ = log_in()
    assert "Rejected: it is not sent." in text_of(press(client, path, "reject", waive_guard="on"))
    other.refresh_from_db()
    assert (other.status, other.guard_waived) == ("cancelled", False)
    assert not Decision.objects.get(choice="reject").guard_waived


def test_where_nothing_is_in_the_way_there_is_nothing_to_waive_and_one_button_approves(api: Api) -> None:
    held = api.intent(amount="10000.01", subject="order-9")
    Kind.objects.update(limits={"EUR": {}})
    client, _ = log_in()
    path = f"/reviews/{Review.objects.get(intent=held).pk}/"
    assert "waive_guard" not in text_of(client.get(path))
    press(client, path, "approve")
    held.refresh_from_db()
    assert (held.status, held.guard_waived, held.next_attempt_at is not None) == ("held", False, False)
    other, _ = log_in()
    press(other, path, "approve")
    held.refresh_from_db()
    assert (held.status, held.guard_waived) == ("recorded", False)
    assert held.next_attempt_at is not None
    assert held.next_attempt_at <= times.now()
