"""One intent with a row of every sort in its history."""

from typing import Any

from actions import evidence, history, times
from actions.canonical import canonical
from actions.models import EvidenceKind, Intent, Observed
from reconciliation.models import Check, Choice, DecisionReason, Review
from reconciliation.reviews import commenting, deciding
from tests.core.steps import expire, read, submit
from tests.factories import make_downstream, make_intent, make_kind, make_person


def add_check(intent: Intent, **columns: Any) -> Check:
    now = times.now()
    seen = evidence.store(
        intent_id=intent.pk, kind=EvidenceKind.PAGE, source="http://books", content='{"data":[]}', now=now
    )
    grounds = {"by": "", "entry": None, "candidates": [], "differs": [], "entry_failed": False, "problem": ""}
    found: dict[str, Any] = {
        "by": "checker:test/1",
        "started_at": now,
        "fence": 1,
        "verdict": "absent",
        "grounds": canonical(grounds),
        "evidence": history.refs([seen]),
        "facts_digest": "f" * 64,
    }
    return history.append(Check(intent=intent, **(found | columns)), owner=Intent, pk=intent.pk, at=now)


def whole_life(**columns: Any) -> Intent:
    """recorded, submitted, unknown, a check, a comment, an observation, a decision, confirmed: no book to
    look into, so that a
    person decides on outside evidence and no network is needed."""
    intent = make_intent(make_kind(make_downstream(look_up="none", absence_conclusive=False)), **columns)
    submit(intent)
    expire(intent)
    check = add_check(intent)
    # As the page shows it after a look.
    Review.objects.filter(intent=intent).update(verdict=check.verdict, facts_digest=check.facts_digest)
    review, person = Review.objects.get(intent=intent), make_person("supervisor")
    commenting.comment(review.pk, person=person, text="I asked the bank.")
    history.observe(intent.pk, Observed.NOTE, by=f"person:{person.pk}", at=times.now())
    deciding.decide(
        review.pk,
        person=person,
        choice=Choice.CONFIRM,
        reason=DecisionReason.BANK_STATEMENT,
        note="Statement of the 29th.",
        seen=deciding.seen(Review.objects.select_related("intent").get(pk=review.pk)),
        outside="Bank statement 29.11., line 4",
    )
    return read(intent)
