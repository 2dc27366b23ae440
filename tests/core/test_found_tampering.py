"""Found: forgeries that `history.faults` does not see (rule 11: a verifier finds tampering)."""

from typing import Any

import pytest

from actions import times
from actions.canonical import digest
from actions.models import Evidence, Intent
from tests.core.life import whole_life
from tests.core.steps import faults_after

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("name", "value"),
    [("amount_minor", 1), ("currency", "USD"), ("subject", "order-1"), ("params", '{"to":"me"}')],
)
def test_a_changed_payload_no_longer_fits_its_digest(name: str, value: Any) -> None:
    """The digest is in the chain, but nobody compares the row with it."""
    intent = whole_life()
    assert faults_after(intent, lambda: Intent.objects.filter(pk=intent.pk).update(**{name: value}))


@pytest.mark.parametrize("change", [{"status": "failed"}, {"version": 9}], ids=["status", "version"])
def test_a_status_that_the_last_transition_does_not_say_is_found(change: dict[str, Any]) -> None:
    """What agents read is the column, not the history."""
    intent = whole_life()
    assert faults_after(intent, lambda: Intent.objects.filter(pk=intent.pk).update(**change))


def test_evidence_whose_text_and_digest_were_both_exchanged_is_found() -> None:
    """History names evidence with its digest; nobody compares the two."""
    intent = whole_life()
    outside = Evidence.objects.get(intent=intent, kind="outside")

    def forge() -> None:
        text = "Bank statement 29.11., line 5"
        Evidence.objects.filter(pk=outside.pk).update(text=text, digest=digest(text, salt=outside.salt))

    assert faults_after(intent, forge)


def test_evidence_that_history_names_and_that_is_gone_is_found() -> None:
    intent = whole_life()

    def forge() -> None:
        found = Evidence.objects.filter(intent=intent, kind="outside")
        found._raw_delete(found.db)

    assert faults_after(intent, forge)


def test_a_new_text_in_place_of_an_erased_one_is_found() -> None:
    """Marked as erased, any text passes."""
    intent = whole_life()

    def forge() -> None:
        Evidence.objects.filter(intent=intent, kind="outside").update(text="It was you.", erased_at=times.now())

    assert faults_after(intent, forge)
