"""What a person decided a moment ago: to be taken back from whatever page they are on, and what became of it.

Kept by id in their session, so that it costs nothing to whoever has decided nothing.
"""

from collections.abc import Collection, Iterable
from datetime import datetime

from django.contrib import messages
from django.contrib.auth.models import User
from django.contrib.sessions.backends.base import SessionBase
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from actions import visible as untrusted
from reconciliation.models import Choice, Decision
from reconciliation.reviews import pending
from reconciliation.views import words

_KEY, _MOST = "decided", 20
# What can become of a decision that nothing follows from.
_NOTHING = (Choice.UNDO, Choice.VOID)


def watch(session: SessionBase, decision_ids: Iterable[int]) -> None:
    session[_KEY] = list(dict.fromkeys([*session.get(_KEY, []), *decision_ids]))[-_MOST:]


def unwatch(session: SessionBase, decision_id: int) -> None:
    if decision_id in session.get(_KEY, []):
        session[_KEY] = [pk for pk in session[_KEY] if pk != decision_id]


def told(request: HttpRequest) -> list[Decision]:
    """The decisions that can still be taken back. Of those that came to nothing meanwhile it leaves a message, once.

    A first vote is watched until the second person's decision took effect. Three queries at most; none for whoever
    has decided nothing lately.
    """
    ids: list[int] = request.session.get(_KEY, [])
    if not ids:
        return []
    became = _became(ids)
    rows = list(_with_all(Decision.objects.filter(pk__in=ids)))
    for row in rows:
        if became.get(row.pk) in _NOTHING:
            messages.warning(request, _void(row, Choice(became[row.pk])))
    standing = [row for row in rows if row.pk not in became]
    if len(standing) < len(ids):
        request.session[_KEY] = [row.pk for row in standing]
    return [row for row in standing if row.takes_effect_at is not None]


def _became(ids: Collection[int]) -> dict[int, str]:
    """What ended each decision: a row about it, or, of a first vote, one about the second."""
    ended = Decision.objects.filter(Q(about__in=ids) | Q(about__about__in=ids)).exclude(choice__in=pending.CHOICES)
    rows = ended.values_list("about_id", "about__about_id", "choice").order_by("pk")
    return {pk: choice for about, first, choice in rows for pk in (about, first) if pk is not None and pk in ids}


def voided_since(person: User, since: datetime | None) -> list[int]:
    """One's decisions that came to nothing since one was last here, and first votes whose second was taken back."""
    if since is None:
        return []
    mine = Q(about__person=person) | Q(about__about__person=person)
    ended = Decision.objects.filter(mine, choice__in=_NOTHING, at__gt=since).exclude(person=person)
    rows = ended.order_by("-pk").values_list("about_id", "about__about_id", "about__person")[:_MOST]
    first_or_own = (about if owner == person.pk else first for about, first, owner in rows)
    return [pk for pk in first_or_own if pk is not None]


def _with_all(found: QuerySet[Decision]) -> QuerySet[Decision]:
    return found.filter(choice__in=pending.CHOICES).select_related("intent__kind", "entry", "person").order_by("pk")


def what(row: Decision) -> SafeString:
    """`Refund € 640.00 order-4812`, or `Ledger entry re_9x2`, with what is not ours marked."""
    if row.intent is None:
        return format_html("Ledger entry {}", untrusted.visible(row.entry.entry_id if row.entry else ""))
    amount = words.amount(row.intent.amount_minor, row.intent.currency)
    return format_html("{} {} {}", row.intent.kind.title, amount, untrusted.visible(row.intent.subject))


def _void(row: Decision, became: Choice) -> SafeString:
    return format_html(
        '{} “{}” on {} does not count any more: {}. <a href="{}">Look at the case</a>',
        "Your first vote" if row.takes_effect_at is None else "Your decision",
        Choice(row.choice).label,
        what(row),
        "the second person took theirs back, so both are asked for anew"
        if became is Choice.UNDO
        else "the facts have changed since, or somebody decided otherwise",
        reverse("case", args=[row.review_id]),
    )
