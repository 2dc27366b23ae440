"""One case as the queue shows it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import Max, Q, QuerySet

from reconciliation.models import Check, Choice, ClosedHow, Decision, LedgerEntry, Purpose, Review, Verdict
from reconciliation.templatetags.desk import person as name_of
from reconciliation.views import words

# What the newest look showed, beside the reason for which the case is here.
_GISTS: Mapping[str, str] = {
    Verdict.MATCH: "ledger agrees",
    Verdict.PENDING: "ledger shows it as pending",
    Verdict.PARTIAL: "ledger shows less",
    Verdict.MISMATCH: "ledger shows something else",
    Verdict.AMBIGUOUS: "several candidates in the ledger",
    Verdict.DUPLICATE: "ledger shows it twice",
    Verdict.ABSENT: "not in the ledger",
    Verdict.TOO_EARLY: "not in the ledger yet",
    Verdict.UNAVAILABLE: "ledger can't be read",
}
# Of these, people want to see what the ledger shows instead.
_SHOWN = (Verdict.PARTIAL, Verdict.MISMATCH)
_CLOSED: Mapping[str, str] = {
    ClosedHow.DECISION: "decided",
    ClosedHow.EVIDENCE: "settled by evidence",
    ClosedHow.WITHDRAWN: "withdrawn",
}


@dataclass(frozen=True)
class Row:
    """`owner`: who works on it, else whose it is; `until`: while somebody works on it, until when at least.

    `state`: what `queue_news` compares with, to see what became of it since.
    """

    review: Review
    what: str
    order: str
    why: str
    second: str
    status: str
    disputed: bool
    since: datetime
    owner: User | None
    until: datetime | None
    overdue: bool
    waits: bool
    state: str


def with_all(found: QuerySet[Review]) -> QuerySet[Review]:
    return found.select_related("intent__kind", "intent__agent", "entry", "owner", "holder").prefetch_related(
        "reasons"
    )


def rows(reviews: Sequence[Review], *, person: User, now: datetime) -> list[Row]:
    """Three queries, however many there are: decisions not in effect yet, newest looks, the entries they show."""
    decisions, shown = _undecided(reviews), _amounts_shown(reviews)
    return [
        _row(review, decisions.get(review.pk), shown.get(review.intent_id), person=person, now=now)
        for review in reviews
    ]


def _row(review: Review, decision: Decision | None, shown: str | None, *, person: User, now: datetime) -> Row:
    intent, entry = review.intent, review.entry
    worked_on = works(review, now)
    return Row(
        review=review,
        what=intent.kind.title if intent else "Ledger entry",
        order=intent.subject if intent else (entry.subject or entry.entry_id if entry else ""),
        why=_why(review, shown),
        second=_second(decision, person),
        status=intent.status if intent else "",
        disputed=intent.disputed if intent else False,
        since=since_of(review),
        owner=who(review, now),
        until=review.lease_until if worked_on else None,
        overdue=review.due_at <= now and review.incident_id is None and not waits(review, now),
        waits=waits(review, now),
        state=state_of(review, now, decided=bool(decision and decision.takes_effect_at)),
    )


def since_of(review: Review) -> datetime:
    """As `queue_order.SINCE` says in the database."""
    return review.intent.status_since if review.intent else review.opened_at


def works(review: Review, now: datetime) -> bool:
    return review.holder_id is not None and review.lease_until is not None and review.lease_until >= now


def waits(review: Review, now: datetime) -> bool:
    return review.waits_until is not None and review.waits_until > now


def who(review: Review, now: datetime) -> User | None:
    return review.holder if works(review, now) else review.owner


def state_of(review: Review, now: datetime, *, decided: bool) -> str:
    """`c` closed, `d` decided and not in effect yet, `w` put aside, else the id of who has it, 0 for nobody."""
    if review.closed_at is not None:
        return "c"
    if decided:
        return "d"
    if waits(review, now):
        return "w"
    found = review.holder_id if works(review, now) else review.owner_id
    return str(found or 0)


def became(review: Review, state: str, *, person: User, now: datetime) -> tuple[str, bool]:
    """What became of a case that somebody looks at in the queue, in words; and whether it is gone for them."""
    if state == "c":
        return _CLOSED.get(review.closed_how, "closed"), True
    if state in ("d", "w"):
        return ("decided" if state == "d" else "put aside to wait"), True
    found = who(review, now)
    if found is None:
        return "free again", False
    return ("now with you", False) if found == person else (f"now with {name_of(found)}", True)


def undecided() -> Q:
    """Votes that somebody has to second, and decisions whose undo window is open."""
    return Q(about=None, followed_by=None) & ~Q(choice__in=(Choice.UNDO, Choice.VOID, Choice.EFFECT))


def _undecided(reviews: Sequence[Review]) -> dict[int, Decision]:
    found = Decision.objects.filter(undecided(), review__in=[review.pk for review in reviews])
    return {row.review_id: row for row in found.select_related("person").order_by("pk")}


def _second(decision: Decision | None, person: User) -> str:
    if decision is None:
        return ""
    name = "you" if decision.person == person else name_of(decision.person)
    if decision.takes_effect_at is not None:
        return f"Decided by {name}, in effect shortly"
    if decision.choice == Choice.CORRECT:
        return f"Correction proposed by {name}: a second person"
    return f"First vote by {name}: a second person"


def _why(review: Review, shown: str | None) -> str:
    """`High value · ledger agrees`: the reasons, and the gist of what the newest look showed."""
    reasons = [str(reason.get_code_display()) for reason in review.reasons.all()]
    gist = f"ledger shows {shown}" if shown else _gist(review)
    if shown:
        reasons = [words_ for words_ in reasons if words_ not in _GISTS.values()]
    parts = [*reasons, *([gist] if gist and gist not in reasons else [])]
    text = " · ".join(parts)
    return text[:1].upper() + text[1:]


def _gist(review: Review) -> str:
    if review.purpose == Purpose.APPROVAL:
        return "nothing was sent"
    return _GISTS.get(review.verdict, "")


def _amounts_shown(reviews: Sequence[Review]) -> dict[object, str]:
    """What the ledger shows instead, where its newest look says that it shows one other amount; two queries."""
    odd = [review.intent_id for review in reviews if review.verdict in _SHOWN]
    newest = Check.objects.filter(intent__in=odd).order_by().values("intent").annotate(newest=Max("pk"))
    checks = Check.objects.filter(pk__in=newest.values("newest"))
    candidates = {check.intent_id: check.grounds_data["candidates"] for check in checks}
    one = {intent: found[0] for intent, found in candidates.items() if isinstance(found, list) and len(found) == 1}
    entries = LedgerEntry.objects.in_bulk([pk for pk in one.values() if isinstance(pk, int)])
    amounts = {review.intent_id: (review.amount_minor, review.currency) for review in reviews}
    return {
        intent: words.amount(entry.amount_minor, entry.currency)
        for intent, pk in one.items()
        if isinstance(pk, int)
        and (entry := entries.get(pk))
        and entry.amount_minor is not None
        and (entry.amount_minor, entry.currency) != amounts[intent]
    }
