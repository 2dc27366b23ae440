"""Does one thing with many: each in a transaction of its own, each with its own answer.

Pressed twice, it does nothing twice: what is done already says so.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from django.conf import settings
from django.contrib.auth.models import User
from django.db import InterfaceError, OperationalError, transaction

from actions import evidence, history, jobs, times
from actions.errors import (
    BadDecision,
    Invalid,
    LandedError,
    NotFound,
    ReviewClosed,
    ReviewHeld,
    SeenIsStale,
    TooLate,
)
from actions.locking import for_change
from actions.models import EvidenceKind, Intent, Observed
from reconciliation import checks
from reconciliation.models import Choice, Review
from reconciliation.reviews import cancelling, claiming, commenting, deciding, people, waiting
from reconciliation.reviews.bulk.judging import MOVED, Asked, Bulk, Judged, State, judge, not_to_look
from reconciliation.reviews.bulk.rows import Row, Ticked, load

log = logging.getLogger(__name__)

LOOK_AGAIN = "Asked for another look."


class Came(StrEnum):
    """What came of one row."""

    DONE = "done"
    ALREADY = "already"
    NOT_DONE = "not_done"
    UNKNOWN = "unknown"
    NOT_TRIED = "not_tried"


Said = tuple[Came, str]


@dataclass(frozen=True)
class Outcome:
    row: Row
    came: Came
    words: str


def preview(action: Bulk, ticked: Sequence[Ticked], *, asked: Asked, person: User) -> list[Judged]:
    """What would happen with each. Changes nothing. Raises PersonNotAllowed."""
    people.must(people.may_decide(person))
    now = times.now()
    return [judge(action, row, asked=asked, person=person, now=now) for row in load(ticked)]


def run(action: Bulk, ticked: Sequence[Ticked], *, asked: Asked, person: User) -> list[Outcome]:
    """Does it with each that it can be done with; the answers in the order given. Outside any transaction.

    Raises PersonNotAllowed, and Invalid for what goes for all of them (`note`, `to`, `reason`, `until`).
    """
    people.must(people.may_decide(person))
    refuse_incomplete(action, asked)
    found: list[Outcome] = []
    away = False
    for row in load(ticked):
        outcome = _not_tried(row) if away else _anew(action, row, asked, person)
        away = away or outcome.came in (Came.UNKNOWN, Came.NOT_TRIED)
        found.append(outcome)
    return found


def refuse_incomplete(action: Bulk, asked: Asked) -> None:
    """Raises Invalid for what is missing and goes for all of them."""
    if action in (Bulk.ASSIGN, Bulk.CANCEL) and not asked.note.strip():
        raise Invalid.field("note", "Say why: colleagues will ask.")
    if len(asked.note) > commenting.MAX:
        raise Invalid.field("note", f"At most {commenting.MAX} characters.")
    if action is Bulk.ASSIGN and asked.to is None:
        raise Invalid.field("to", "Say to whom.")
    if action is Bulk.REJECT and asked.reason is None:
        raise Invalid.field("reason", "Choose a reason.")
    if action is Bulk.WAIT and (asked.waits_for is None or asked.until is None or asked.longest is None):
        raise Invalid.field("until", "Say for whom it waits, and until when.")


def _not_tried(row: Row) -> Outcome:
    return Outcome(row, Came.NOT_TRIED, "The database was away: it was not tried.")


def _anew(action: Bulk, row: Row, asked: Asked, person: User) -> Outcome:
    """Read just before it is done: the rows before it took their time, and people go on working meanwhile."""
    try:
        (now_as,) = load([row.ticked])
    except (OperationalError, InterfaceError) as lost:
        log.warning("bulk %s of %s: the database is away: %s", action, row.value, lost)
        return _not_tried(row)
    return _one(action, now_as, asked, person)


def _one(action: Bulk, row: Row, asked: Asked, person: User) -> Outcome:
    judged = judge(action, row, asked=asked, person=person, now=times.now())
    if judged.state is not State.CAN:
        return Outcome(row, Came.ALREADY if judged.state is State.ALREADY else Came.NOT_DONE, judged.words)
    # What is unsent is withdrawn whatever was said about it meanwhile; anything else is done as it was shown.
    if action is not Bulk.CANCEL and row.moved:
        return Outcome(row, Came.NOT_DONE, MOVED)
    try:
        came, words = _DO[action](row, asked, person)
        return Outcome(row, came, words)
    except LandedError as refused:
        return Outcome(row, Came.NOT_DONE, _words(refused))
    except (OperationalError, InterfaceError) as lost:
        log.warning("bulk %s of %s: the database is away: %s", action, row.value, lost)
        return Outcome(row, Came.UNKNOWN, "No answer came from the database: we can't tell whether it was done.")


def _words(refused: LandedError) -> str:
    """Why one row was refused, with who was faster."""
    if isinstance(refused, TooLate):
        return "It was claimed a moment ago and may have been sent: it can't be cancelled any more."
    if isinstance(refused, NotFound):
        return "It is not there any more."
    if isinstance(refused, SeenIsStale):
        return MOVED
    who = refused.details.get("by") or refused.details.get("owner")
    if isinstance(who, User) and isinstance(refused, (ReviewClosed, ReviewHeld)):
        return f"{refused.message} {who.get_full_name() or who.get_username()} was faster."
    if isinstance(refused, Invalid):
        return " ".join(error["message"] for error in refused.details["errors"])
    return " ".join(filter(None, [str(refused.details.get("words") or ""), refused.message]))


def _check(row: Row, asked: Asked, person: User) -> Said:
    """Makes its look due: a worker looks, when the downstream has a place free."""
    assert row.intent is not None
    text = asked.note.strip() or LOOK_AGAIN
    with transaction.atomic():
        intent = for_change(Intent).select_related("policy").get(pk=row.intent.pk)
        now = times.now()
        if why := not_to_look(intent, now):
            raise BadDecision(why)
        if intent.chain_head != row.intent.chain_head:
            raise BadDecision(MOVED)
        if row.review is not None and row.review.closed_at is None:
            commenting.say(for_change(Review).get(pk=row.review.pk), person=person, text=text)
        else:
            _note(intent, person, text)
        checks.ask_for_look(intent.pk, at=now, now=now)
        jobs.ring_after_commit(jobs.CHECK)
    return Came.DONE, "It is looked up within moments; what comes of it is on its page."


def _note(intent: Intent, person: User, text: str) -> None:
    """Without a case, that somebody asked is a note on the intent."""
    by, now = f"person:{person.pk}", times.now()
    kept = evidence.store(intent_id=intent.pk, kind=EvidenceKind.NOTE, source=by, content=text, now=now)
    history.observe(intent.pk, Observed.NOTE, by=by, evidence=[kept], at=now)


def _assign(row: Row, asked: Asked, person: User) -> Said:
    assert row.review is not None
    assert asked.to is not None
    claiming.hand_over(row.review.pk, person=person, to=asked.to, note=asked.note, version=row.review.version)
    return Came.DONE, f"It belongs to {asked.to.get_full_name() or asked.to.get_username()} now."


def _wait(row: Row, asked: Asked, person: User) -> Said:
    assert row.review is not None
    assert asked.waits_for is not None
    assert asked.until is not None
    assert asked.longest is not None
    waiting.put_aside(
        row.review.pk,
        person=person,
        waits_for=asked.waits_for,
        reference=asked.reference,
        until=asked.until,
        longest=asked.longest,
        note=asked.note,
        version=row.review.version,
    )
    return Came.DONE, "It is put aside."


def _cancel(row: Row, asked: Asked, person: User) -> Said:
    assert row.intent is not None
    if cancelling.cancel(row.intent.pk, person=person, note=asked.note):
        return Came.DONE, "Cancelled; it was never sent."
    return Came.ALREADY, "Somebody cancelled it a moment ago."


def _reject(row: Row, asked: Asked, person: User) -> Said:
    assert row.review is not None
    assert asked.reason is not None
    had_it = claiming.holds(row.review, person, times.now())
    try:
        deciding.decide(
            row.review.pk,
            person=person,
            choice=Choice.REJECT,
            reason=asked.reason,
            note=asked.note,
            seen=deciding.seen(row.review),
            version=row.review.version,
        )
    except LandedError:
        if not had_it:
            # Nobody looks at it: others can have it at once.
            claiming.release(row.review.pk, person=person)
        raise
    undo = settings.LANDED_UNDO_S
    return Came.DONE, f"Rejected; it takes effect in {undo} s." if undo else "Rejected; it is never sent."


_DO: Mapping[Bulk, Callable[[Row, Asked, User], Said]] = {
    Bulk.CHECK: _check,
    Bulk.ASSIGN: _assign,
    Bulk.WAIT: _wait,
    Bulk.CANCEL: _cancel,
    Bulk.REJECT: _reject,
}
