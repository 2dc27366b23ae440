"""A decision can be taken back for a while, and new evidence takes it back by itself."""

from typing import Any

import pytest
from django.conf import LazySettings

from actions import history
from actions.models import Intent
from reconciliation import sweep
from reconciliation.models import Decision, LedgerEntry, Review
from tests import factories
from tests.desk.steps import again, log_in, lost_answer, press, read, text_of
from tests.flow.world import World
from tests.ledger.books import orphan


@pytest.fixture(autouse=True)
def _fifteen_seconds(settings: LazySettings) -> None:
    settings.LANDED_UNDO_S = 15


def decided(client: Any, review: Review, choice: str = "confirm", **more: str) -> Any:
    path = f"/reviews/{review.pk}/"
    return client.post(path + "decide/", press(client.get(path), choice, **more), follow=True)


def undo(client: Any, review: Review) -> Any:
    row = Decision.objects.filter(review=review, takes_effect_at__isnull=False).latest("pk")
    return client.post(f"/reviews/{review.pk}/undo/", {"decision": str(row.pk)}, follow=True)


def test_until_it_takes_effect_nothing_changes_and_the_page_says_so(world: World) -> None:
    intent, review = lost_answer(world)
    client, _ = log_in()
    page = text_of(decided(client, review))
    assert "Decided: Confirm: it happened." in page
    assert "Until then nothing has changed, and the agent is told nothing." in page
    assert ">Undo</button>" in page
    assert 'name="choice"' not in page
    intent = world.read(intent)
    assert (intent.status, intent.guard_key is None) == ("unknown", False)
    assert sweep.sweep().changed == 0


def test_whoever_decided_takes_it_back_and_decides_anew(world: World) -> None:
    intent, review = lost_answer(world)
    client, _ = log_in()
    decided(client, review)
    assert "Taken back: nothing was decided." in text_of(undo(client, review))
    world.later(20)
    sweep.sweep()
    assert world.read(intent).status == "unknown"
    decided(client, review)
    world.later(20)
    sweep.sweep()
    assert world.read(intent).status == "confirmed"
    assert history.faults(world.read(intent)) == []


def test_nobody_else_takes_it_back_or_is_offered_to(world: World) -> None:
    _, review = lost_answer(world)
    decided(log_in()[0], review)
    other, _ = log_in("supervisor")
    assert ">Undo</button>" not in text_of(other.get(f"/reviews/{review.pk}/"))
    assert "or it is not yours to undo" in text_of(undo(other, review))
    assert not Decision.objects.filter(choice="undo").exists()


def test_taking_it_back_too_late_says_so(world: World) -> None:
    intent, review = lost_answer(world)
    client, _ = log_in()
    decided(client, review)
    world.later(20)
    sweep.sweep()
    assert "It has taken effect already" in text_of(undo(client, review))
    assert world.read(intent).status == "confirmed"


def test_the_page_asks_what_became_of_it_and_changes_nothing(world: World) -> None:
    intent, review = lost_answer(world)
    client, _ = log_in()
    decided(client, review)
    ask = f"/reviews/{review.pk}/undo-state/"
    assert "It takes effect in a moment." in text_of(client.get(ask))
    world.later(20)
    assert "It takes effect in a moment." in text_of(client.get(ask)), "it is the clock that carries it out"
    assert world.read(intent).status == "unknown"
    sweep.sweep()
    assert "It has taken effect." in text_of(client.get(ask))


def test_new_evidence_cancels_it_at_once_and_the_person_is_told_wherever_they_are(world: World) -> None:
    intent, review = lost_answer(world)
    client, _ = log_in()
    decided(client, review)
    entry = {"order": intent.subject, "amount_minor": 1, "currency": "EUR", "idempotency_key": intent.idempotency_key}
    world.sandbox.call("POST", "/_control/entries", entry)
    world.check(intent)
    assert [row.choice for row in Decision.objects.order_by("pk")] == ["confirm", "void"]
    page = text_of(client.get("/ledger/"))
    assert "Your decision “Confirm: it happened” on Refund" in page
    assert "does not count any more" in page
    assert f'<a href="/reviews/{review.pk}/">Look at the case</a>' in page
    assert "does not count any more" not in text_of(client.get("/ledger/")), "told once"
    assert 'name="choice"' in text_of(client.get(f"/reviews/{review.pk}/")), "to be decided anew, at once"
    world.later(20)
    sweep.sweep()
    assert world.read(intent).status == "unknown"
    assert history.faults(world.read(intent)) == []


def test_evidence_that_settles_it_meanwhile_cancels_it_too(world: World) -> None:
    world.sandbox.order_fault("order-14", "lose_response")
    world.sandbox.configure(ledger_lag_s=60)
    intent = world.propose("order-14")
    world.send()
    world.later(700)
    world.check(intent)
    client, _ = log_in("supervisor")
    review = world.review(intent)
    decided(client, review, "fail", note="The provider says no.")
    world.sandbox.configure(ledger_lag_s=0)
    world.check(intent)
    assert "does not count any more" in text_of(client.get("/"))
    assert world.read(intent).status == "confirmed"
    assert read(review).closed_how == "resolved_by_evidence"


def test_the_agent_is_told_only_when_it_has_taken_effect(world: World) -> None:
    intent, review = lost_answer(world)
    decided(log_in()[0], review)
    assert not Intent.objects.get(pk=intent.pk).transitions.filter(to_status="confirmed").exists()
    world.later(20)
    sweep.sweep()
    assert Intent.objects.get(pk=intent.pk).transitions.filter(to_status="confirmed").exists()


@pytest.mark.django_db
def test_a_decision_about_an_entry_is_taken_back_as_well() -> None:
    review = orphan(factories.make_downstream())
    client, _ = log_in()
    path = f"/reviews/{review.pk}/"
    page = client.get(path)
    seen = page.context["orphan"]["seen"]
    given = {"choice": "not_ours", "reason": "ledger", "note": "", "seen_digest": seen.digest}
    page = client.post(path + "decide/", given, follow=True)
    assert ">Undo</button>" in text_of(page)
    other, _ = log_in()
    assert ">Undo</button>" not in text_of(other.get(path))
    assert "Taken back" in text_of(undo(client, review))
    assert [row.choice for row in Decision.objects.order_by("pk")] == ["not_ours", "undo"]
    assert LedgerEntry.objects.count() == 1
    assert history.case_faults(read(review)) == []


def test_another_session_of_the_same_person_takes_it_back_too(world: World) -> None:
    _, review = lost_answer(world)
    client, person = log_in()
    decided(client, review)
    assert ">Undo</button>" in text_of(again(person).get(f"/reviews/{review.pk}/"))
    assert "Taken back" in text_of(undo(again(person), review))


def test_auditors_see_that_it_is_decided_and_no_button(world: World) -> None:
    _, review = lost_answer(world)
    decided(log_in()[0], review)
    auditor, _ = log_in("auditor")
    page = text_of(auditor.get(f"/reviews/{review.pk}/"))
    assert "Decided: Confirm: it happened." in page
    assert ">Undo</button>" not in page
    assert auditor.post(f"/reviews/{review.pk}/undo/", {"decision": "1"}).status_code == 403
