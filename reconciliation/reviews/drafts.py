"""What somebody is typing in a case, kept until it is sent: restored when they open it again, also from another
browser, and seen by nobody else."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction

from actions import times
from actions.canonical import canonical
from actions.locking import for_change
from reconciliation.models import Draft, Review
from reconciliation.reviews import commenting, people


@dataclass(frozen=True)
class Typed:
    """The note of a decision and a comment, as far as they were typed."""

    note: str = ""
    comment: str = ""


_EMPTY = "{}"


def of(review: Review, *, person: User) -> Typed:
    """What the person has begun there; empty texts when it is nothing."""
    row = Draft.objects.filter(review=review, person=person).first()
    return _read(row) if row is not None else Typed()


def _read(row: Draft) -> Typed:
    return Typed(**json.loads(row.text))


def keep(review_id: int, *, person: User, note: str | None = None, comment: str | None = None) -> None:
    """Stores what is being typed; None leaves that field's as it is, nothing typed any more ends it.

    A text that is too long to be sent is kept as far as it may go. In a case that is closed there is no decision to
    write a note for. Raises PersonNotAllowed.
    """
    people.must(people.may_decide(person))
    review = Review.objects.filter(pk=review_id).first()
    if review is None:
        return
    now = times.now()
    # Two fields are kept at the same time: each change begins with what the other has stored.
    with transaction.atomic():
        mine = _locked(review, person, now)
        before = _read(mine)
        typed = Typed(
            note="" if review.closed_at is not None else _kept(note, before.note),
            comment=_kept(comment, before.comment),
        )
        stored = Draft.objects.filter(pk=mine.pk)
        if typed == Typed():
            stored.delete()
        else:
            stored.update(text=canonical(asdict(typed)), at=now)


def _locked(review: Review, person: User, now: datetime) -> Draft:
    while True:
        row, _ = Draft.objects.get_or_create(review=review, person=person, defaults={"text": _EMPTY, "at": now})
        found = for_change(Draft).filter(pk=row.pk).first()
        if found is not None:
            return found
        # Another tab has emptied it in between.


def _kept(new: str | None, before: str) -> str:
    # NUL and half surrogates are what no database stores.
    found = before if new is None else new.replace("\x00", "").encode("utf-8", "replace").decode()
    return found[: commenting.MAX] if found.strip() else ""
