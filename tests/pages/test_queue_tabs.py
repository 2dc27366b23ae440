"""Which case is in which tab."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client

from actions import times
from reconciliation.models import Choice, Decision, Incident, IncidentKind, Review
from reconciliation.reviews import claiming
from reconciliation.views.queue_tabs import TABS
from tests import factories
from tests.ledger.books import orphan
from tests.pages.cases import log_in, make_case, make_held, text_of

pytestmark = pytest.mark.django_db


def put(review: Review, **columns: Any) -> None:
    Review.objects.filter(pk=review.pk).update(**columns)


def put_aside(review: Review, owner: User, *, minutes: int) -> None:
    until = times.now() + timedelta(minutes=minutes)
    put(review, waits_for="provider", waits_until=until, waits_longest=until, owner=owner)


def vote(review: Review, person: User, choice: Choice = Choice.CONFIRM, **columns: Any) -> Decision:
    from actions import history
    from actions.models import Intent

    assert review.intent is not None
    row = Decision(review=review, intent=review.intent, person=person, choice=choice, seen_version=1, **columns)
    with transaction.atomic():
        return history.append(row, owner=Intent, pk=review.intent_id, at=times.now())


def tabs_of(client: Client, order: str) -> set[str]:
    """The tabs that show it; each tab's figure agrees with what it shows."""
    found = set()
    for tab in TABS:
        context: Any = client.get("/", {"tab": tab}).context
        rows = context["page"].rows
        assert {name: count for name, _, count, _ in context["tabs"]}[tab] == len(rows), tab
        found |= {tab} if order in [row.order for row in rows] else set()
    return found


def test_a_free_case_is_unclaimed() -> None:
    make_case(subject="a")
    assert tabs_of(log_in()[0], "a") == {"unclaimed", "all"}


def test_mine_is_what_i_work_on_and_what_belongs_to_me() -> None:
    client, person = log_in()
    kind = factories.make_kind()
    held, owned, others = (make_case(kind, subject=name) for name in ("held", "owned", "others"))
    claiming.claim(held.pk, person=person)
    put(owned, owner=person)
    put(others, owner=factories.make_person())
    assert tabs_of(client, "held") == tabs_of(client, "owned") == {"mine", "all"}
    assert tabs_of(client, "others") == {"all"}


def test_what_was_put_aside_is_only_in_waiting_mine_and_all_until_its_time_has_come() -> None:
    client, person = log_in()
    case = make_case(subject="a")
    put(case, due_at=times.now() - timedelta(hours=1))
    put_aside(case, person, minutes=5)
    vote(case, factories.make_person())
    assert tabs_of(client, "a") == {"waiting", "mine", "all"}
    assert tabs_of(log_in()[0], "a") == {"waiting", "all"}
    put(case, waits_until=times.now() - timedelta(seconds=1))
    assert tabs_of(client, "a") == {"second", "overdue", "mine", "all"}


def test_first_votes_and_proposed_corrections_wait_for_a_second_person() -> None:
    client, _ = log_in()
    kind, mara = factories.make_kind(), factories.make_person(first_name="Mara")
    voted, corrected, undone, pending = (make_case(kind, subject=name) for name in ("v", "c", "u", "p"))
    vote(voted, mara)
    vote(corrected, mara, Choice.CORRECT)
    first = vote(undone, mara)
    vote(undone, mara, Choice.UNDO, about=first)
    vote(pending, mara, takes_effect_at=times.now() + timedelta(seconds=15))
    assert [name for name in "vcup" if "second" in tabs_of(client, name)] == ["v", "c"]
    page = text_of(client.get("/"))
    assert "First vote by Mara: a second person" in page
    assert "Correction proposed by Mara: a second person" in page
    assert "Decided by Mara, in effect shortly" in page


def test_cases_of_an_incident_have_their_own_tab_and_one_line_on_every_other() -> None:
    client, _ = log_in()
    kind = factories.make_kind()
    incident = Incident.objects.create(
        kind=IncidentKind.BOOKS, downstream=kind.downstream, reason="x", opened_at=times.now()
    )
    case = make_case(kind, subject="a")
    put(case, incident=incident)
    assert tabs_of(client, "a") == {"incidents"}
    for tab in TABS:
        page = text_of(client.get("/", {"tab": tab}))
        assert "1 case</a> waits for it" in page
        assert f'href="/?tab=incidents&amp;incident={incident.pk}"' in page
    only: Any = client.get("/", {"tab": "incidents", "incident": incident.pk}).context
    assert [row.order for row in only["page"].rows] == ["a"]
    none: Any = client.get("/", {"tab": "incidents", "incident": incident.pk + 1}).context
    assert none["page"].rows == []


def test_a_case_about_an_entry_is_a_row_too() -> None:
    orphan(factories.make_downstream(), entry_id="re_1", subject="order-7")
    client, _ = log_in()
    assert tabs_of(client, "order-7") == {"unclaimed", "all"}
    assert "Ledger entry" in text_of(client.get("/"))


@pytest.mark.parametrize("tab", TABS)
def test_an_empty_tab_says_in_words_that_it_is(tab: str) -> None:
    from reconciliation.views.queue_tabs import EMPTY

    page = text_of(log_in()[0].get("/", {"tab": tab})).replace("&#x27;", "'")
    assert EMPTY[tab] in page
    assert '<table class="rows' not in page


def test_a_tab_that_there_is_not_is_told_and_shows_all() -> None:
    make_case(subject="a")
    response: Any = log_in()[0].get("/", {"tab": "nonsense"})
    assert "There is no tab “nonsense”" in text_of(response)
    assert [row.order for row in response.context["page"].rows] == ["a"]


def test_auditors_see_every_tab_and_have_nothing_to_press() -> None:
    make_held(subject="a")
    client, _ = log_in("auditor")
    assert tabs_of(client, "a") == {"unclaimed", "all"}
    page = text_of(client.get("/"))
    main = page[page.index("<main") :]
    assert "Next case" not in main
    assert 'name="ids"' not in main
    assert 'method="post"' not in main


def test_whoever_decides_can_select_cases_to_be_handled_together() -> None:
    case = make_held()
    page = text_of(log_in()[0].get("/"))
    assert f'name="ids" value="{case.pk}"' in page
    assert '<form id="bulk" class="bulk" action="/bulk/" method="post"' in page
