"""The queue's tabs: which of the open cases each of them holds, and how many."""

from collections.abc import Mapping
from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import Count, Exists, Max, OuterRef, Q
from django.db.models.functions import Coalesce

from reconciliation.models import Choice, Decision, Review
from reconciliation.reviews import claiming, pending
from reconciliation.reviews.orphans.planning import CHOICES as ABOUT_ENTRIES
from reconciliation.views.unindexed import is_null

TABS: Mapping[str, str] = {
    "mine": "Mine",
    "unclaimed": "Unclaimed",
    "second": "Second person",
    "waiting": "Waiting",
    "overdue": "Overdue",
    "incidents": "Incidents",
    "all": "All",
}
DEFAULT = "all"
EMPTY: Mapping[str, str] = {
    "mine": "You hold no case, and none belongs to you.",
    "unclaimed": "Every open case is in somebody's hands.",
    "second": "No decision waits for a second person.",
    "waiting": "No case was put aside to wait.",
    "overdue": "Nothing is overdue.",
    "incidents": "No case waits for the end of an incident.",
    "all": "Nothing waits for a person.",
}
# Somebody voted, or proposed a correction, and nobody has seconded, undone or voided it.
FIRST_VOTES = Q(followed_by=None) & (
    Q(choice__in=[*pending.VOTES, *ABOUT_ENTRIES], takes_effect_at=None) | Q(choice=Choice.CORRECT, about=None)
)


def awaits_second() -> Exists:
    return Exists(Decision.objects.filter(FIRST_VOTES, review=OuterRef("pk")))


def in_tab(tab: str, person: User, now: datetime) -> Q:
    """Of the open cases. What was put aside to wait is in `waiting`, `mine` and `all` until its time has come.

    Cases that wait for the end of an incident are one line of the queue, not many: they have a tab of their own.
    """
    here = Q(waits_until=None) | Q(waits_until__lte=now)
    return {
        "mine": (claiming.leased(now) & Q(holder=person)) | Q(owner=person),
        "unclaimed": claiming.unclaimed(now),
        "second": here & Q(awaits_second()),
        "waiting": claiming.waiting(now),
        "overdue": here & Q(is_null("incident"), due_at__lte=now),
        "incidents": Q(incident__isnull=False),
        "all": Q(is_null("incident")),
    }[tab]


def counts(person: User, now: datetime, wanted: Q | None = None) -> dict[str, int]:
    """How many of the open cases, or of those `wanted`, each tab holds; one query over what is open.

    `newest`: the id of the newest of them, 0 without any. Asked for here, because by itself it would be looked for
    from the newest of all cases downwards, past any number of closed ones.
    """
    found = Review.objects.filter(wanted or Q(), closed_at__isnull=True)
    wished = {tab: Count("pk", filter=in_tab(tab, person, now)) for tab in TABS}
    return found.aggregate(**wished, newest=Coalesce(Max("pk"), 0))
