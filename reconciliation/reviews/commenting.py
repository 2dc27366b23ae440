"""What people say to each other in a case, and what they do with it short of deciding. Agents never see it."""

from django.contrib.auth.models import User
from django.db import transaction

from actions import evidence, history, times
from actions.errors import Invalid, NotFound, SeenIsStale
from actions.locking import for_change
from actions.models import EvidenceKind, Intent
from reconciliation.models import Attachment, Comment, CommentKind, Review
from reconciliation.reviews import people

MAX = 4_000


def comment(review_id: int, *, person: User, text: str) -> Comment:
    """Adds a comment to a case, open or closed. Raises Invalid for an empty or overlong text."""
    people.must(people.may_decide(person))
    with transaction.atomic():
        return say(locked(review_id), person=person, text=text)


def locked(review_id: int, *, version: int | None = None) -> Review:
    """The case, with its intent locked and then itself. Raises NotFound, and SeenIsStale when a version is given and
    it is another by now."""
    intent_id = Review.objects.filter(pk=review_id).values_list("intent_id", flat=True).first()
    if intent_id is not None:
        # First of all: the text refers to the intent, and whoever settles it meanwhile would wait for us.
        for_change(Intent).get(pk=intent_id)
    review = for_change(Review).filter(pk=review_id).first()
    if review is None:
        raise NotFound()
    if version not in (None, review.version):
        raise SeenIsStale()
    return review


def say(
    review: Review,
    *,
    person: User | None = None,
    by: str = "",
    text: str,
    kind: CommentKind | None = None,
    to: User | None = None,
    attachment: Attachment | None = None,
) -> Comment:
    """Writes it into the history of a case that `locked` gave: what a person says, or a machine (`by`: clock,
    checker).

    Raises Invalid for an empty or overlong text.
    """
    text = text.strip()
    if not text or len(text) > MAX:
        raise Invalid.field("text", f"1 to {MAX} characters.")
    now = times.now()
    kept = evidence.store(
        intent_id=review.intent_id,
        kind=EvidenceKind.NOTE,
        source=f"person:{person.pk}" if person is not None else by,
        content=text,
        now=now,
    )
    row = Comment(
        review=review,
        intent_id=review.intent_id,
        person=person,
        by=by,
        text=kept,
        text_digest=kept.digest,
        kind=kind or "",
        to=to,
        attachment=attachment,
    )
    owner = (Intent, review.intent_id) if review.intent_id else (Review, review.pk)
    return history.append(row, owner=owner[0], pk=owner[1], at=now)
