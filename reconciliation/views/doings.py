"""What people did in a case, as events of its timeline: decisions and what became of them, comments, handling."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from actions import visible
from reconciliation.models import Choice, Comment, CommentKind, Decision
from reconciliation.templatetags.desk import person as name_of
from reconciliation.views import words
from reconciliation.views.raw import Piece


@dataclass(frozen=True)
class Event:
    """`what` and `details` are our words; `said` is what a person wrote. `until`: of several looks, the last.

    `named`: ids of the evidence that it rests on; `pieces`: what of it is shown here. `alike`: what looks that saw
    the same have in common; `folded`: the looks that this event stands for.
    """

    at: datetime
    icon: str
    what: str
    details: tuple[str, ...] = ()
    said: str = ""
    status: str = ""
    until: datetime | None = None
    place: int = 0
    named: tuple[int, ...] = ()
    alike: tuple[object, ...] = ()
    folded: tuple["Event", ...] = ()
    pieces: tuple[Piece, ...] = ()


# Rows that speak of an earlier decision, and what they say of it there.
_ABOUT = {
    Choice.EFFECT: "The decision took effect",
    Choice.UNDO: "{who} took the decision back",
    Choice.VOID: "The decision was voided: it no longer fits the facts",
}
_FATES = {Choice.UNDO: "taken back later", Choice.VOID: "voided later"}

_DID = {
    CommentKind.OPENED: "{who} opened the case by hand",
    CommentKind.WAITING: "{who} put it aside to wait",
    CommentKind.RESUMED: "{who} took it up again",
    CommentKind.HANDED: "{who} handed it over to {to}",
    CommentKind.TAKEN: "{who} took it over",
    CommentKind.ATTACHED: "{who} added a file",
    CommentKind.ERASED: "{who} erased a file for good",
    CommentKind.RAISED: "{who} said that the customer waits",
}


def of_people(decisions: Sequence[Decision], comments: Iterable[Comment]) -> list[Event]:
    """Decisions with `person` and `note`, comments with `person`, `text`, `to` and `attachment` loaded."""
    fates = {row.about_id: Choice(row.choice) for row in decisions if row.about_id and row.choice in _FATES}
    by_id = {row.pk: row for row in decisions}
    return [
        *(_decision(row, by_id.get(row.about_id or 0), fates.get(row.pk)) for row in decisions),
        *(_comment(row) for row in comments),
    ]


def _comment(row: Comment) -> Event:
    who, kind = name_of(row.person) if row.person else f"The {row.by}", CommentKind(row.kind) if row.kind else None
    did = _DID[kind].format(who=who, to=name_of(row.to)) if kind else f"{who} commented"
    if row.person is None:
        # New facts, or the time agreed on, ended the waiting.
        did = f"{who} brought it back to {name_of(row.to) if row.to else 'the queue'}"
    elif kind is CommentKind.RESUMED and not row.text.source.startswith("person:"):
        did = f"It came back to {who} by itself"  # from when such a row still bore a person's id
    if kind is CommentKind.TAKEN and row.to is not None:
        did += f" from {name_of(row.to)}"
    return Event(
        at=row.at,
        icon="decision" if kind in (CommentKind.HANDED, CommentKind.TAKEN) else "note",
        what=did,
        details=_of_attachment(row),
        # What was added is named by its own row, with its digest; the words of the history say no more.
        said="" if kind is CommentKind.ATTACHED else words.evidence_words(row.text),
        place=row.position,
    )


def _of_attachment(row: Comment) -> tuple[str, ...]:
    found = row.attachment
    if found is None:
        return ()
    return (visible.plain(found.name), words.size(found.size), f"SHA-256 {found.digest[:12]}…")


def _decision(row: Decision, about: Decision | None, fate: Choice | None) -> Event:
    who = name_of(row.person) if row.person_id else "The clock"
    choice = Choice(row.choice)
    verb = "agreed" if row.about_id else "decided"
    details = [row.get_reason_display()] if row.reason else []
    if choice in _ABOUT and about is not None:
        details.append(f"it was: {Choice(about.choice).label}")
    if row.recommended and row.recommended != row.choice and choice not in _ABOUT:
        details.append("against the recommendation")
    if row.guard_waived:
        details.append("although the order has another open one")
    if fate is not None:
        details.append(_FATES[fate])
    return Event(
        at=row.at,
        icon="decision",
        what=_ABOUT[choice].format(who=who) if choice in _ABOUT else f"{who} {verb}: {choice.label}",
        details=tuple(details),
        said=words.evidence_words(row.note) if row.note else "",
        place=row.position,
    )
