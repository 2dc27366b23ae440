"""The page where a settled intent is corrected: a supervisor proposes, a second person agrees."""

from typing import Any

import pytest

from actions.models import Intent, Kind
from actions.statuses import Status
from reconciliation.models import Decision, Match
from tests import factories
from tests.ledger.books import confirmed
from tests.ledger.test_correcting import settled_by
from tests.pages.cases import log_in, make_unknown, text_of

pytestmark = pytest.mark.django_db


def make_kind() -> Kind:
    """Its books can't be looked into, so that no look comes in between."""
    return factories.make_kind(factories.make_downstream(look_up="none"))


def url(intent: Intent, step: str = "") -> str:
    return f"/intents/{intent.pk}/correct/{step}"


def written(page: Any, intent: Intent, **changes: Any) -> dict[str, Any]:
    form = page.get(url(intent)).context["form"]
    found = {name: form[name].value() for name in form.fields if form[name].value() is not None}
    return found | {"to": "failed", "reason": "mistake", "note": "It was another order's."} | changes


def test_one_proposes_with_whose_the_entry_is_and_another_agrees_on_the_same_page() -> None:
    kind = make_kind()
    wrong, right = confirmed(kind), make_unknown(kind)
    entry = settled_by(wrong)
    boss, _ = log_in("supervisor", first_name="Sofia")
    colleague, _ = log_in("reviewer")
    data = written(boss, wrong, linked=f" {right.idempotency_key} ")
    shown = boss.post(url(wrong, "propose/"), data, follow=True)
    assert "A different person has to agree" in text_of(shown) or "a different person has to agree" in text_of(shown)
    seen = text_of(colleague.get(url(wrong)))
    assert "Sofia proposes: It did not happen." in seen
    assert right.subject in seen
    assert "It was another order&#x27;s." in seen
    proposal = Decision.objects.get()
    done = colleague.post(url(wrong, "agree/"), {"decision": proposal.pk}, follow=True)
    assert "it is corrected" in text_of(done)
    assert Intent.objects.get(pk=wrong.pk).status == Status.FAILED
    assert Intent.objects.get(pk=right.pk).status == Status.CONFIRMED
    assert Match.objects.get(entry=entry, released_at=None).intent_id == right.pk


def test_the_intent_and_its_case_say_that_a_correction_waits() -> None:
    intent = confirmed(make_kind())
    boss, _ = log_in("supervisor", first_name="Sofia")
    assert url(intent) in text_of(boss.get(f"/intents/{intent.pk}/"))
    boss.post(url(intent, "propose/"), written(boss, intent))
    colleague, _ = log_in("reviewer")
    review = Decision.objects.get().review
    for path in (f"/intents/{intent.pk}/", f"/reviews/{review.pk}/"):
        assert "Sofia proposes a correction: It did not happen." in text_of(colleague.get(path))


def test_a_double_click_proposes_once_and_agrees_once() -> None:
    intent = confirmed(make_kind())
    boss, _ = log_in("supervisor")
    colleague, _ = log_in("reviewer")
    data = written(boss, intent)
    boss.post(url(intent, "propose/"), data)
    again = boss.post(url(intent, "propose/"), data)
    assert again.status_code == 422
    assert "waits for a second person already" in text_of(again)
    assert Decision.objects.count() == 1
    agreed = {"decision": Decision.objects.get().pk}
    colleague.post(url(intent, "agree/"), agreed)
    second = colleague.post(url(intent, "agree/"), agreed)
    assert "dealt with already" in text_of(second)
    assert Intent.objects.get(pk=intent.pk).version == intent.version + 1


def test_the_proposer_alone_changes_nothing_and_may_take_it_back() -> None:
    intent = confirmed(make_kind())
    boss, _ = log_in("supervisor")
    boss.post(url(intent, "propose/"), written(boss, intent))
    proposal = Decision.objects.get().pk
    assert "A different person has to agree" in text_of(boss.post(url(intent, "agree/"), {"decision": proposal}))
    assert boss.post(url(intent, "refuse/"), {"decision": proposal, "note": ""}).status_code == 422
    boss.post(url(intent, "refuse/"), {"decision": proposal, "note": "My mistake."})
    assert Intent.objects.get(pk=intent.pk).status == Status.CONFIRMED
    assert boss.get(url(intent)).context["form"] is not None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("to", ""),
        ("reason", ""),
        ("note", " "),
        ("linked", "no-such-key"),
        ("linked", "\x00"),
        ("entry", "99999"),
        ("to", "cancelled"),
        ("seen_version", "x"),
    ],
)
def test_bad_input_is_said_and_loses_nothing(field: str, value: str) -> None:
    intent = confirmed(make_kind())
    settled_by(intent)
    boss, _ = log_in("supervisor")
    response = boss.post(url(intent, "propose/"), written(boss, intent, **{field: value}))
    assert response.status_code == 422
    assert field == "note" or "It was another order&#x27;s." in text_of(response)
    assert not Decision.objects.exists()


def test_facts_that_changed_since_are_shown_and_nothing_is_proposed() -> None:
    intent = confirmed(make_kind())
    boss, _ = log_in("supervisor")
    response = boss.post(url(intent, "propose/"), written(boss, intent, seen_version="1"))
    assert response.status_code == 409
    assert "It was another order&#x27;s." in text_of(response)
    assert not Decision.objects.exists()


@pytest.mark.parametrize("role", ["reviewer", "auditor"])
def test_who_may_not_propose_is_told_and_shown_everything(role: str) -> None:
    intent = confirmed(make_kind())
    page, _ = log_in(role)
    shown = page.get(url(intent))
    assert "A supervisor can propose a correction" in text_of(shown)
    refused = page.post(
        url(intent, "propose/"), {"to": "failed", "reason": "mistake", "note": "x", "seen_version": 3}
    )
    assert refused.status_code == 403
    assert not Decision.objects.exists()


def test_what_is_not_settled_can_t_be_corrected() -> None:
    intent = make_unknown()
    boss, _ = log_in("supervisor")
    assert "Only what is confirmed or failed can be corrected" in text_of(boss.get(url(intent)))
    assert boss.post(url(intent, "propose/"), {"to": "failed"}).status_code == 422
