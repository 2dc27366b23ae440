"""A repeat that the caller means is shown to whoever decides about it."""

import pytest

from actions.models import Kind
from reconciliation.models import Review
from tests.api.calling import make_api
from tests.pages.cases import log_in, text_of

pytestmark = pytest.mark.django_db


def test_what_the_agent_says_it_repeats_is_shown_where_it_is_decided() -> None:
    api = make_api()
    Kind.objects.update(duplicate_policy="hold")
    first = api.intent(amount="50.00")
    other = api.intent(amount="20.00", repeat_of=str(first.pk))
    client, _ = log_in()
    page = text_of(client.get(f"/reviews/{Review.objects.get(intent=other).pk}/"))
    assert "Said to repeat" in page
    assert f"/intents/{first.pk}/" in page
