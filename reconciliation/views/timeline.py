"""What happened to an intent, in order, in words: transitions, sendings, looks, observations, decisions, comments.

A fixed number of queries, however long the history is.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from django.contrib.auth.models import User

from actions import visible
from actions.models import Attempt, Intent, Observation, Observed, Transition
from actions.models.history import evidence_refs
from actions.reasons import Reason
from actions.statuses import Actor, Status
from reconciliation.models import Check, Comment, Decision, LedgerEntry, Review, Verdict
from reconciliation.templatetags.desk import person as name_of
from reconciliation.views import doings, raw, words
from reconciliation.views.doings import Event
from reconciliation.views.raw import Piece

# From so many looks on that saw the same, one after another, those between the first and the last are folded.
_FOLD_FROM = 4
# So much of an entry's id says which of those above is meant.
_LONG_NAME = 14
# Of folded looks so many are named.
_MOST_FOLDED = 100


@dataclass
class _Names:
    """Names behind `person:3` and `agent:7`, and the entries that looks speak of."""

    agent: str
    people: Mapping[int, User] = field(default_factory=dict)
    entries: Mapping[int, LedgerEntry] = field(default_factory=dict)

    def who(self, actor: str, actor_id: str) -> str:
        sort, _, number = actor_id.partition(":")
        if sort == "person" and number.isdigit() and int(number) in self.people:
            return name_of(self.people[int(number)])
        if actor in (Actor.AGENT, Actor.CALLER) and self.agent:
            return self.agent
        return words.ACTORS.get(actor, "the checker")


@dataclass(frozen=True)
class Told:
    """The events, oldest first, and what was stored besides and belongs to none of them."""

    events: list[Event]
    rest: list[Piece]


def of_intent(
    intent: Intent, *, attempts: Sequence[Attempt], checks: Sequence[Check], entries: Iterable[LedgerEntry]
) -> Told:
    """Everything about one intent. `attempts` and `checks`: all of its own, in their order."""
    transitions = list(Transition.objects.filter(intent=intent))
    observed = list(Observation.objects.filter(intent=intent, what__in=_OBSERVED))
    acted = [*(t.actor_id for t in transitions), *(c.by for c in checks), *(one.by for one in observed)]
    names = _Names(intent.agent.name, _people(acted), {entry.pk: entry for entry in entries})
    pieces = raw.of_intent(intent, notes=[pk for row in observed if row.what == Observed.NOTE for pk in _named(row)])
    sent = {attempt.claimed_at for attempt in attempts}
    found = [
        *(_attempt(attempt, pieces) for attempt in attempts),
        *(_transition(row, names) for row in transitions if not (row.to_status == "submitted" and row.at in sent)),
        *(_look(row, names) for row in checks),
        *(_observed(row, names, pieces) for row in observed),
        *_by_people(intent=intent),
    ]
    folded = _fold(sorted(found, key=_order))
    return _with_pieces(folded, pieces)


def of_review(review: Review) -> list[Event]:
    """What people did in a case about an entry that no intent explains."""
    return sorted(_by_people(review=review), key=_order)


def _order(event: Event) -> tuple[object, ...]:
    return (event.at, event.place)


def _by_people(**of: Intent | Review) -> list[Event]:
    decisions = Decision.objects.filter(**of).select_related("person", "note")
    comments = Comment.objects.filter(**of).select_related("person", "text", "to", "attachment")
    return doings.of_people(list(decisions), comments.defer("attachment__content"))


def _people(ids: Iterable[str]) -> Mapping[int, User]:
    return User.objects.in_bulk(
        {int(found[7:]) for found in ids if found.startswith("person:") and found[7:].isdigit()}
    )


def _named(row: Transition | Check | Observation) -> tuple[int, ...]:
    return tuple(pk for pk, _ in evidence_refs(row.evidence))


def _attempt(attempt: Attempt, pieces: Mapping[int, Piece]) -> Event:
    by = "Sent" if attempt.executor == "landed" else "The caller began to send it"
    if attempt.known_result == "not_sent":
        by = "Tried to send it"
    details = [f"attempt {attempt.number}", words.PHASES.get(attempt.phase, ""), words.attempt_reason(attempt)]
    if attempt.http_status:
        details.append(f"HTTP {attempt.http_status}")
    return Event(
        at=attempt.claimed_at,
        icon="submitted",
        what=f"{by}: {words.attempt_ended(attempt)}",
        details=tuple(filter(None, details)),
        named=tuple(sorted(pk for pk, piece in pieces.items() if piece.attempt_id == attempt.pk)),
    )


def _transition(row: Transition, names: _Names) -> Event:
    who = names.who(row.actor, row.actor_id)
    what = words.status_reason(row.reason)
    first = f"Proposed by {who}" if row.sequence == 1 else what
    if row.to_status == Status.UNKNOWN and row.reason not in Reason.values:
        first = "We can't tell whether it happened."  # the attempt's own reason stands beside the attempt
    details = (what,) if row.reason != Reason.RECORDED else ()
    if row.sequence > 1:
        # That our own workers work is nothing to read in every line.
        details = () if row.actor == Actor.WORKER else (f"by {who}",)
    return Event(
        at=row.at,
        icon=row.to_status,
        what=first,
        details=details,
        status=row.to_status,
        place=row.position,
        named=_named(row),
    )


# --- looks


def _look(check: Check, names: _Names) -> Event:
    by = {"webhook": "A webhook said", "service": "A service looked"}.get(_looker(check), "Looked")
    if check.manual:
        by = f"{names.who(Actor.CHECKER, check.by)} looked"
    details = check_details(check, names.entries)
    if check.counts_as_absence:
        details.append("counts as proof that it did not happen")
    return Event(
        at=check.at,
        icon="look",
        what=f"{by}: {Verdict(check.verdict).label}",
        details=tuple(details),
        place=check.position,
        named=_named(check),
        alike=(check.verdict, check.facts_digest, check.manual, _looker(check)),
    )


def _looker(check: Check) -> str:
    """Whose looks are told apart: people's, and what came to us instead of being looked up by us."""
    sort = check.by.split(":", 1)[0]
    return check.by if check.manual else sort if sort in ("webhook", "service") else ""


def check_details(check: Check, entries: Mapping[int, LedgerEntry]) -> list[str]:
    """How it was found, which entries, in what they differ, why the book could not be read."""
    grounds = check.grounds_data
    found = []
    if grounds.get("by"):
        found.append("found by key" if grounds["by"] == "key" else "found by order; the entry carries no key")
    found += [_entry(entries[pk]) for pk in grounds.get("candidates", []) if pk in entries]
    if grounds.get("differs"):
        found.append("differs: " + ", ".join(words.DIFFERENCES.get(name, str(name)) for name in grounds["differs"]))
    if grounds.get("entry_failed"):
        found.append("the entry is marked as not carried out")
    if grounds.get("problem"):
        found.append(words.look_up_problem(str(grounds["problem"])))
    return found


def _entry(entry: LedgerEntry) -> str:
    name = entry.entry_id if len(entry.entry_id) <= _LONG_NAME else f"{entry.entry_id[:_LONG_NAME]}…"
    return f"{visible.plain(name)} {words.amount(entry.amount_minor, entry.currency)}"


def _fold(events: list[Event]) -> list[Event]:
    """Of many looks in a row that saw the same, the first and the last stay; those between become one event."""
    found: list[Event] = []
    for alike, run in groupby(events, key=lambda event: event.alike):
        same = list(run)
        found += same if not alike or len(same) < _FOLD_FROM else [same[0], _folded(same[1:-1]), same[-1]]
    return found


def _folded(looks: list[Event]) -> Event:
    first, last = looks[0], looks[-1]
    proofs = sum("counts as proof that it did not happen" in look.details for look in looks)
    return Event(
        at=first.at,
        icon="look",
        what=f"{len(looks)} more looks, {words.SEEN_BRIEFLY[Verdict(str(first.alike[0]))]}",
        details=(f"{proofs} count{'s' if proofs == 1 else ''} as proof that it did not happen",) if proofs else (),
        place=first.place,
        until=last.at,
        folded=tuple(looks[:_MOST_FOLDED]),
    )


# --- what changed no status

_OBSERVED = (Observed.LATE, Observed.AGAIN, Observed.DISPUTED, Observed.TIED, Observed.NOTE, Observed.ERASED)
_OBSERVATIONS: Mapping[str, str] = {
    Observed.LATE: "An answer came too late to move anything",
    Observed.AGAIN: "An answer came again, or another than before",
    Observed.DISPUTED: "New facts contradict how it was settled",
    Observed.TIED: "{who} decided what a ledger entry has to do with it",
    Observed.NOTE: "{who} left a note",
    Observed.ERASED: "{who} erased what it said about people",
}
_ICONS: Mapping[str, str] = {
    Observed.LATE: "submitted",
    Observed.AGAIN: "submitted",
    Observed.DISPUTED: "disputed",
    Observed.TIED: "decision",
    Observed.NOTE: "note",
    Observed.ERASED: "note",
}


def _observed(row: Observation, names: _Names, pieces: Mapping[int, Piece]) -> Event:
    erased = row.what == Observed.ERASED
    who = names.who(Actor.ADMINISTRATOR if erased else Actor.REVIEWER, row.by)
    is_note = row.what == Observed.NOTE
    said = [piece.head if not piece.erased_at else "(erased)" for pk in _named(row) if (piece := pieces.get(pk))]
    return Event(
        at=row.at,
        icon=_ICONS[row.what],
        what=_OBSERVATIONS[row.what].format(who=f"{who[:1].upper()}{who[1:]}"),
        said="\n".join(said) if is_note else "",
        place=row.position,
        # What is gone stands where it was given.
        named=() if is_note or erased else _named(row),
    )


# --- what was stored


def _with_pieces(events: list[Event], pieces: Mapping[int, Piece]) -> Told:
    """Each stored piece stands at the first event that names it."""
    left = {pk: piece for pk, piece in pieces.items() if not piece.written}
    told = [_give(event, left) for event in events]
    return Told(told, sorted(left.values(), key=lambda piece: -piece.id))


def _give(event: Event, left: dict[int, Piece]) -> Event:
    folded = tuple(_give(one, left) for one in event.folded)
    own = tuple(left.pop(pk) for pk in event.named if pk in left)
    return replace(event, pieces=own, folded=folded)
