"""What people say to each other in a case. Agents never see it."""

from django.contrib.auth.models import User
from django.db import transaction

from actions import evidence, history, times
from actions.errors import Invalid, NotFound
from actions.locking import for_change
from actions.models import EvidenceKind, Intent
from reconciliation.models import Comment, Review
from reconciliation.reviews import people

MAX = 4_000


def comment(review_id: int, *, person: User, text: str) -> Comment:
    """Adds a comment to a case, open or closed. Raises Invalid for an empty or overlong text."""
    people.must(people.may_decide(person))
    text = text.strip()
    if not text or len(text) > MAX:
        raise Invalid.field("text", f"1 to {MAX} characters.")
    with transaction.atomic():
        review = Review.objects.filter(pk=review_id).first()
        if review is None:
            raise NotFound()
        if review.intent_id is not None:
            # First of all: the text refers to the intent, and whoever settles it meanwhile would wait for us.
            for_change(Intent).get(pk=review.intent_id)
        now = times.now()
        kept = evidence.store(
            intent_id=review.intent_id,
            kind=EvidenceKind.NOTE,
            source=f"person:{person.pk}",
            content=text,
            now=now,
        )
        row = Comment(review=review, intent_id=review.intent_id, person=person, text=kept, text_digest=kept.digest)
        owner = (Intent, review.intent_id) if review.intent_id else (Review, review.pk)
        return history.append(row, owner=owner[0], pk=owner[1], at=now)
