"""Sends the notices that are due, by e-mail. The clock does it, in a thread of its own: a mail server that hangs
holds up neither a request nor the sweep.

A notice is claimed by one conditional UPDATE, just before its e-mail is sent, so two clocks send it once however long
the mail server takes for the e-mails before; whoever dies between sending and writing
that down sends it twice at the worst. What is sent names cases by fields that nobody outside can fill with words:
no note, no payee, nothing of a ledger's text.
"""

import logging
import re
import smtplib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMessage, get_connection
from django.db import DatabaseError
from django.db.models import QuerySet
from django.urls import reverse

from actions import money, times
from reconciliation.models import Notice, NoticeKind, Preferences, Review
from reconciliation.reviews import notices, people

log = logging.getLogger(__name__)

# So many are looked at in one pass; those of one sort to the same people are one e-mail, and claimed together.
BATCH = 200
# So many cases are named in one e-mail; of the rest it says how many they are.
MOST_NAMED = 30
MOST_TRIES = 6
# Whoever claimed a notice and says nothing for so long has died.
_LEASE = timedelta(minutes=5)
_FIRST_WAIT, _LONGEST_WAIT = timedelta(minutes=1), timedelta(hours=1)
# An order's number is an agent's word. Named in an e-mail only when it can't be a sentence, a link or markup.
_PLAIN = re.compile(r"(?=.*[0-9])[A-Za-z0-9][A-Za-z0-9_#/-]{0,39}", re.ASCII)

NOBODY = "nobody to tell: no one it concerns has an address and wants e-mail"
OVER = "the case was closed before"
NOT_SET_UP = "no mail server is set up (EMAIL_URL)"

SUPERVISORS_HEAR = frozenset({NoticeKind.ESCALATED, NoticeKind.INCIDENT})
ONE: dict[str, str] = {
    NoticeKind.HIGH_VALUE: "a new high-value case",
    NoticeKind.DUE_SOON: "a case is due soon",
    NoticeKind.OVERDUE: "a case is overdue",
    NoticeKind.ESCALATED: "a case is long overdue",
    NoticeKind.HANDED: "a case was handed to you",
    NoticeKind.VOTE_AGAIN: "your first vote does not count any more",
    NoticeKind.INCIDENT: "an incident has begun",
}
MANY: dict[str, str] = {
    NoticeKind.HIGH_VALUE: "{} new high-value cases",
    NoticeKind.DUE_SOON: "{} cases are due soon",
    NoticeKind.OVERDUE: "{} cases are overdue",
    NoticeKind.ESCALATED: "{} cases are long overdue",
    NoticeKind.HANDED: "{} cases were handed to you",
    NoticeKind.VOTE_AGAIN: "{} of your first votes do not count any more",
    NoticeKind.INCIDENT: "{} incidents have begun",
}


def run() -> int:
    """One pass of the clock: writes down whom to tell of what, then sends what is due; how many it sent."""
    try:
        notices.sweep(times.now())
    except DatabaseError:
        raise  # it is away, for what is due as well
    except Exception:
        log.exception("whom to tell of what was not written down; what was before is sent")
    return send_due()


def send_due() -> int:
    """One pass: sends what is due, and says how many. Raises what the database raises, not what mail does."""
    together: dict[tuple[str, int | None], list[int]] = defaultdict(list)
    due = Notice.objects.filter(next_try_at__lte=times.now()).order_by("next_try_at", "pk")
    for pk, kind, to in due.values_list("pk", "kind", "to_id")[:BATCH]:
        together[(kind, to)].append(pk)
    return sum(_send(_claim(keys, times.now())) for keys in together.values())


def given_up() -> QuerySet[Notice]:
    """What could not be sent although somebody should have heard of it, the newest first."""
    return Notice.objects.filter(sent_at=None, next_try_at=None, tries__gte=MOST_TRIES).order_by("-pk")


def _claim(keys: Sequence[int], now: datetime) -> list[Notice]:
    """Those of one e-mail that are due still, as they are now, each taken by whoever's UPDATE changed the row."""
    due = Notice.objects.filter(pk__in=keys, next_try_at__lte=now).order_by("next_try_at", "pk")
    relations = ("to", "review__intent__kind", "review__entry", "incident__downstream", "incident__agent")
    return [
        notice
        for notice in due.select_related(*relations)
        if Notice.objects.filter(pk=notice.pk, next_try_at=notice.next_try_at, tries=notice.tries).update(
            next_try_at=now + _LEASE, tries=notice.tries + 1
        )
    ]


def _send(notices: Sequence[Notice]) -> int:
    """One e-mail about all of them, and what came of it."""
    over = [notice for notice in notices if _is_over(notice)]
    _end(over, OVER)
    current = [notice for notice in notices if notice not in over]
    if not current:
        return 0
    addresses = _addresses(current[0])
    if not addresses or not settings.LANDED_MAIL:
        _end(current, NOBODY if settings.LANDED_MAIL else NOT_SET_UP)
        return 0
    try:
        _deliver(current, addresses)
    except (OSError, smtplib.SMTPException, ValueError) as problem:
        log.warning("%s notices were not sent: %s", len(current), _words(problem))
        for notice in current:
            _try_later(notice, _words(problem))
        return 0
    Notice.objects.filter(pk__in=_keys(current)).update(sent_at=times.now(), next_try_at=None, problem="")
    return len(current)


def _deliver(notices: Sequence[Notice], addresses: Sequence[str]) -> None:
    # Blind copies: one transaction with the mail server, so that a retry writes to nobody twice.
    EmailMessage(
        subject=subject(notices),
        body=body(notices),
        bcc=list(addresses),
        headers={"Auto-Submitted": "auto-generated"},
        connection=get_connection(),
    ).send()


def _is_over(notice: Notice) -> bool:
    closed = notice.review is not None and notice.review.closed_at is not None
    return closed or (notice.incident is not None and notice.incident.closed_at is not None)


def _end(notices: Sequence[Notice], problem: str) -> None:
    """Nothing to send (any more): not tried again."""
    Notice.objects.filter(pk__in=_keys(notices)).update(next_try_at=None, problem=problem)


def _try_later(notice: Notice, problem: str) -> None:
    # This row's count is from before it was claimed.
    tries = notice.tries + 1
    wait = min(_FIRST_WAIT * 2 ** (tries - 1), _LONGEST_WAIT)
    later = None if tries >= MOST_TRIES else times.now() + wait
    Notice.objects.filter(pk=notice.pk).update(next_try_at=later, problem=problem)


def _keys(notices: Iterable[Notice]) -> list[int]:
    return [notice.pk for notice in notices]


def _words(problem: Exception) -> str:
    """What went wrong, without what the other side wrote but its number."""
    code = getattr(problem, "smtp_code", None)
    return f"{type(problem).__name__} {code}" if code else f"{type(problem).__name__}"


def _addresses(notice: Notice) -> list[str]:
    """Of those whom it concerns, who can be reached and want to be; each once."""
    if notice.to is not None:
        found = User.objects.filter(pk=notice.to.pk, is_active=True)
    else:
        # Superusers hear of what they have a role for, not of everything.
        wanted = people.SUPERVISE if notice.kind in SUPERVISORS_HEAR else people.DECIDE
        found = people.with_perm(wanted, include_superusers=False)
    silent = Preferences.objects.filter(notices=False).values("person")
    listed = found.exclude(email="").exclude(pk__in=silent).order_by("email").values_list("email", flat=True)
    return list(dict.fromkeys(listed))


def subject(notices: Sequence[Notice]) -> str:
    """`Landed: a case is overdue`; of fixed words and numbers only."""
    kind = notices[0].kind
    return "Landed: " + (ONE[kind] if len(notices) == 1 else MANY[kind].format(len(notices)))


def body(notices: Sequence[Notice]) -> str:
    """What, how much, which order, until when, and where to go on."""
    lines = [line for notice in notices[:MOST_NAMED] for line in _about(notice)]
    if len(notices) > MOST_NAMED:
        lines.append(f"… and {len(notices) - MOST_NAMED} more: {_link(reverse('queue'))}\n")
    return "\n".join(
        [
            subject(notices).removeprefix("Landed: ").capitalize() + ".",
            "",
            *lines,
            f"You get this because of your role at the desk. Switch it off: {_link(reverse('preferences'))}",
            "",
        ]
    )


_OF_DOWNSTREAM: Final = "Its cases wait and send no notices of their own."
_OF_AGENT: Final = "It proposed faster than its limit allows; nothing of it is sent until a supervisor lets it go on."


def _about(notice: Notice) -> list[str]:
    if notice.incident is not None:
        about = notice.incident.downstream or notice.incident.agent
        named = f", {about.name}" if about else ""
        since = f"since {notice.incident.opened_at:%Y-%m-%d %H:%M} UTC"
        told = f"{notice.incident.get_kind_display().capitalize()}{named}, {since}."
        follows = _OF_AGENT if notice.incident.agent is not None else _OF_DOWNSTREAM
        return [told, follows, _link(reverse("queue")), ""]
    assert notice.review is not None
    return [_case(notice.review), _link(reverse("case", args=[notice.review.pk])), ""]


def _case(review: Review) -> str:
    what = review.intent.kind.title if review.intent else "Ledger entry"
    order = _order(review.intent.subject if review.intent else "")
    amount = money.describe(review.amount_minor, review.currency) if review.amount_minor is not None else "no amount"
    due = f"due {review.due_at:%Y-%m-%d %H:%M} UTC"
    return " · ".join([f"Case {review.pk}", _one_line(what), amount, *([order] if order else []), due])


def _order(subject: str) -> str:
    return subject if _PLAIN.fullmatch(subject) else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _link(path: str) -> str:
    return f"{settings.LANDED_PUBLIC_URL}{path}"
