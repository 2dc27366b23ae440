"""What happened to an intent, in order, in words: transitions, sendings, looks, ties, decisions, comments.

Seven queries, however long the history is.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby

from django.contrib.auth.models import User
from django.db.models import QuerySet

from actions.models import Attempt, Intent, Observation, Observed, Transition
from actions.reasons import Reason
from actions.statuses import Actor
from reconciliation.models import Check, Choice, Comment, Decision, Review, Verdict
from reconciliation.templatetags.desk import person as name_of
from reconciliation.views import words


@dataclass(frozen=True)
class Event:
    """`what` and `details` are our words; `said` is what a person wrote. `until`: of several looks, the last."""

    at: datetime
    icon: str
    what: str
    details: tuple[str, ...] = ()
    said: str = ""
    status: str = ""
    until: datetime | None = None
    place: int = 0


@dataclass
class _Names:
    """Names behind `person:3` and `agent:7`."""

    agent: str
    people: Mapping[int, User] = field(default_factory=dict)

    def who(self, actor: str, actor_id: str) -> str:
        sort, _, number = actor_id.partition(":")
        if sort == "person" and number.isdigit() and int(number) in self.people:
            return name_of(self.people[int(number)])
        if actor in (Actor.AGENT, Actor.CALLER) and self.agent:
            return self.agent
        return words.ACTORS.get(actor, "the checker")


def of_intent(intent: Intent) -> list[Event]:
    """Everything about one intent, oldest first."""
    transitions = list(Transition.objects.filter(intent=intent))
    attempts = list(Attempt.objects.filter(intent=intent))
    checks = list(Check.objects.filter(intent=intent).order_by("position"))
    ties = list(Observation.objects.filter(intent=intent, what=Observed.TIED))
    acted = [*(t.actor_id for t in transitions), *(c.by for c in checks), *(tie.by for tie in ties)]
    names = _Names(intent.agent.name, _people(acted))
    sent = {attempt.claimed_at for attempt in attempts}
    found = [
        *(_attempt(attempt) for attempt in attempts),
        *(_transition(row, names) for row in transitions if not (row.to_status == "submitted" and row.at in sent)),
        *_checks(checks, names),
        *(_tied(row, names) for row in ties),
        *_by_people(Decision.objects.filter(intent=intent), Comment.objects.filter(intent=intent)),
    ]
    return sorted(found, key=lambda event: (event.at, event.place))


def of_review(review: Review) -> list[Event]:
    """What people did in a case about an entry that no intent explains."""
    found = _by_people(review.decisions.all(), review.comments.all())
    return sorted(found, key=lambda event: (event.at, event.place))


def _people(ids: Iterable[str]) -> Mapping[int, User]:
    numbers = {int(found[7:]) for found in ids if found.startswith("person:") and found[7:].isdigit()}
    return User.objects.in_bulk(numbers) if numbers else {}


def _attempt(attempt: Attempt) -> Event:
    by = "Sent" if attempt.executor == "landed" else "The caller began to send it"
    if attempt.known_result == "not_sent":
        by = "Tried to send it"
    phase = words.PHASES.get(attempt.phase, "")
    details = [words.attempt_reason(attempt), f"Attempt {attempt.number}", phase]
    if attempt.http_status:
        details.append(f"HTTP {attempt.http_status}")
    return Event(
        at=attempt.claimed_at,
        icon="submitted",
        what=f"{by}: {words.attempt_ended(attempt)}",
        details=tuple(filter(None, details)),
    )


def _transition(row: Transition, names: _Names) -> Event:
    who = names.who(row.actor, row.actor_id)
    what = words.status_reason(row.reason)
    first = f"Proposed by {who}" if row.sequence == 1 else what
    details = (f"by {who}",) if row.sequence > 1 else (what,) if row.reason != Reason.RECORDED else ()
    return Event(at=row.at, icon=row.to_status, what=first, details=details, status=row.to_status, place=row.position)


def _checks(checks: list[Check], names: _Names) -> list[Event]:
    """Looks that saw the same, one after another, are told as one."""
    return [
        _looks(list(same), names)
        for _, same in groupby(checks, key=lambda c: (c.verdict, c.facts_digest, c.manual, _looker(c)))
    ]


def _looker(check: Check) -> str:
    """Whose looks are told apart: people's, and what came to us instead of being looked up by us."""
    sort = check.by.split(":", 1)[0]
    return check.by if check.manual else sort if sort in ("webhook", "service") else ""


def _looks(checks: list[Check], names: _Names) -> Event:
    first, last = checks[0], checks[-1]
    by = {"webhook": "A webhook said", "service": "A service looked"}.get(_looker(last), "Looked")
    if last.manual:
        by = f"{names.who(Actor.CHECKER, last.by)} looked"
    times = f" {len(checks)} times" if len(checks) > 1 else ""
    counted = sum(check.counts_as_absence for check in checks)
    details = [*check_details(last)]
    if counted:
        details.append(f"{counted} of them count{'s' if counted == 1 else ''} as proof that it did not happen")
    return Event(
        at=first.at,
        icon="look",
        what=f"{by}{times}: {Verdict(last.verdict).label}",
        details=tuple(details),
        until=last.at if len(checks) > 1 else None,
        place=first.position,
    )


def _tied(row: Observation, names: _Names) -> Event:
    who = names.who(Actor.REVIEWER, row.by)
    what = f"{who[:1].upper()}{who[1:]} decided what a ledger entry has to do with it"
    return Event(at=row.at, icon="decision", what=what, place=row.position)


def check_details(check: Check) -> list[str]:
    """How it was found, in what it differs, why the book could not be read."""
    grounds = check.grounds_data
    found = []
    if grounds.get("by"):
        found.append("found by key" if grounds["by"] == "key" else "found by order; the entry carries no key")
    if grounds.get("differs"):
        found.append("differs: " + ", ".join(words.DIFFERENCES.get(name, str(name)) for name in grounds["differs"]))
    if grounds.get("entry_failed"):
        found.append("the entry is marked as not carried out")
    if grounds.get("problem"):
        found.append(words.look_up_problem(str(grounds["problem"])))
    return found


def _by_people(decisions: QuerySet[Decision], comments: QuerySet[Comment]) -> list[Event]:
    return [
        *(_decision(row) for row in decisions.select_related("person", "note")),
        *(_comment(row) for row in comments.select_related("person", "text")),
    ]


def _comment(row: Comment) -> Event:
    return Event(
        at=row.at,
        icon="note",
        what=f"{name_of(row.person)} commented",
        said=words.evidence_words(row.text),
        place=row.position,
    )


# Rows that speak of an earlier decision.
_ABOUT = {
    Choice.EFFECT: "The decision took effect",
    Choice.UNDO: "{who} took the decision back",
    Choice.VOID: "The decision was voided: it no longer fits the facts",
}


def _decision(row: Decision) -> Event:
    who = name_of(row.person) if row.person_id else "The clock"
    choice = Choice(row.choice)
    verb = "agreed" if row.about_id else "decided"
    details = [row.get_reason_display()] if row.reason else []
    if row.recommended and row.recommended != row.choice and row.choice not in _ABOUT:
        details.append("against the recommendation")
    if row.guard_waived:
        details.append("although the order has another open one")
    return Event(
        at=row.at,
        icon="decision",
        what=_ABOUT[choice].format(who=who) if choice in _ABOUT else f"{who} {verb}: {choice.label}",
        details=tuple(details),
        said=words.evidence_words(row.note) if row.note else "",
        place=row.position,
    )
