"""Stops: nothing that concerns a subject, a payee or a customer is sent before somebody has looked.

A stop waits for nobody. It is committed first, and only then is held what is recorded. What is being recorded,
approved or claimed at that moment, and has not seen it, is met again by its claim, which looks for itself.
"""

import logging
import unicodedata
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import OperationalError, transaction
from django.db.models import Q, QuerySet

from actions import holding, spelling, subjects, times
from actions.errors import Invalid, NotFound
from actions.in_words import unsettled
from actions.locking import for_change
from actions.models import Intent, Kind, Stop, StopScope
from actions.statuses import Actor, Status
from actions.visible import is_hidden

log = logging.getLogger(__name__)

MAX_VALUE: Final = spelling.MAX
MAX_REASON: Final = spelling.MAX
# What the column takes. Longer keys are cut: then two that begin alike are one, which is the safe side.
_LONGEST: Final = 600
_PAGE: Final = 500


_SIGNS: Final = str.maketrans({"\u2212": "-", "\u2215": "/", "\u2044": "/", "\u29f8": "/"})


def fold(text: str) -> str:
    """What a subject, payee or customer is compared by, so that no other spelling of it gets past a stop.

    Neither case (Unicode's full folding) nor width and other compatible forms (NFKC), nor the sort of a dash or
    slash, nor spaces, nor what nobody sees make a difference. One key for two things costs a look; two keys for one
    thing would cost the stop.
    """
    # Twice, for what one step makes, the other may still fold: three letters of a fraction, a joined accent.
    for _ in range(2):
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
        # The Turkish i with a dot and the one without are each other's capitals in other languages.
        text = text.replace("\u0307", "").replace("\u0131", "i")
        # Language models write dashes of every length, and slashes that are none.
        text = "".join("-" if unicodedata.category(char) == "Pd" else char for char in text).translate(_SIGNS)
        text = "".join(char for char in text if not char.isspace() and not is_hidden(char))
    return unicodedata.normalize("NFKC", text)[:_LONGEST]


def _fold_subject(text: str) -> str:
    """Part by part: other slashes are slashes once they are folded, and a part of nothing is none."""
    return "/".join(part for part in fold(text).split("/") if part)


def place(
    scope: str, value: str, *, kind: Kind | None = None, reason: str, actor_id: str, now: datetime | None = None
) -> Stop:
    """Stops whatever concerns `value`, of one kind or (None) of all: commits that, then holds what is recorded.

    `reason` is for people; agents never see it. The same stop again changes nothing and returns the one there is, but
    goes on holding where an earlier call may have been interrupted. Not inside a transaction: a stop that somebody's
    rollback takes back is none.

    Raises Invalid, naming `scope`, `value` or `reason`.
    """
    value, reason = _checked(scope, value, reason)
    key = _fold_subject(value) if scope == StopScope.SUBJECT else fold(value)
    with transaction.atomic(durable=True):
        stop, _ = Stop.objects.get_or_create(
            scope=scope,
            key=key,
            kind=kind,
            lifted_at=None,
            defaults={
                "value": value,
                "family": subjects.family_of(key) if scope == StopScope.SUBJECT else "",
                "reason": reason,
                "placed_by": actor_id,
                "placed_at": now or times.now(),
            },
        )
    for intent_id, kind_id, family in _recorded(stop):
        try:
            _hold(stop, intent_id, kind_id, family, actor_id)
        except OperationalError as away:
            log.warning("intent %s is not held yet; its claim will hold it: %s", intent_id, away)
    return stop


def _checked(scope: str, value: str, reason: str) -> tuple[str, str]:
    """Value and reason, tidy. The value's own spelling is kept for people to read."""
    errors = []
    if scope not in StopScope.values:
        errors.append({"field": "scope", "message": f"There are {', '.join(StopScope.values)}."})
    value, reason = spelling.tidy(value).strip(), spelling.tidy(reason).strip()
    if why := _wrong(scope, value):
        errors.append({"field": "value", "message": why})
    if not reason:
        errors.append({"field": "reason", "message": "Say why: whoever meets it will ask."})
    elif fault := spelling.fault(reason):
        errors.append({"field": "reason", "message": f"It {fault}."})
    if errors:
        raise Invalid(errors)
    return (subjects.canonical_subject(value) if scope == StopScope.SUBJECT else value), reason


def _wrong(scope: str, value: str) -> str:
    """Why nothing can be stopped by this name; empty when it can."""
    if fault := spelling.fault(value):
        return f"It {fault}."
    if not fold(value):
        return "It is empty."
    if scope == StopScope.SUBJECT:
        try:
            subjects.canonical_subject(value)
        except subjects.BadSubject as bad:
            return str(bad)
    return ""


def _recorded(stop: Stop) -> Iterator[tuple[UUID, int, str]]:
    """Id, kind and family of whatever is recorded and concerned, read a page at a time: names are stored as they were
    spelled, so they are compared here and not by the database."""
    found = Intent.objects.filter(unsettled(), status=Status.RECORDED).order_by("pk")
    if stop.kind_id is not None:
        found = found.filter(kind_id=stop.kind_id)
    columns = ("pk", "kind_id", "family", "subject", "payee", "customer")
    page = list(found.values_list(*columns)[:_PAGE])
    while page:
        for pk, kind_id, family, subject, payee, customer in page:
            if _concerns(stop, subject, payee, customer):
                yield pk, kind_id, family
        page = list(found.filter(pk__gt=page[-1][0]).values_list(*columns)[:_PAGE])


def _concerns(stop: Stop, subject: str, payee: str, customer: str) -> bool:
    if stop.scope == StopScope.SUBJECT:
        return subjects.related(stop.key, _fold_subject(subject))
    return stop.key == fold(payee if stop.scope == StopScope.PAYEE else customer)


def _hold(stop: Stop, intent_id: UUID, kind_id: int, family: str, actor_id: str) -> None:
    with transaction.atomic():
        # The family before the row, as a claim does.
        subjects.lock_family(kind_id, family)
        intent = for_change(Intent).select_related("policy").get(pk=intent_id)
        # It may have been sent, and the stop lifted, since the page was read.
        if intent.status == Status.RECORDED and Stop.objects.filter(pk=stop.pk, lifted_at=None).exists():
            now = times.now()
            holding.hold(intent, actor=Actor.REVIEWER, actor_id=actor_id, now=now, why="stopped")


def lift(pk: int, *, actor_id: str, now: datetime | None = None) -> Stop:
    """Ends a stop; one that is lifted already stays as it is. What it held still waits for its own approval.

    Raises NotFound.
    """
    Stop.objects.filter(pk=pk, lifted_at=None).update(lifted_by=actor_id, lifted_at=now or times.now())
    found = Stop.objects.select_related("kind").filter(pk=pk).first()
    if found is None:
        raise NotFound("There is no such stop.")
    return found


def placed_lately() -> bool:
    """Whether a stop was placed within the last minute: only such a one can have missed what was being claimed."""
    return active().filter(placed_at__gt=times.now() - timedelta(minutes=1)).exists()


def active() -> QuerySet[Stop]:
    return Stop.objects.select_related("kind").filter(lifted_at=None)


def applying(kind_id: int, *, subject: str, payee: str, customer: str) -> list[Stop]:
    """The active stops that concern it, oldest first. One query, over what is active alone.

    A stop on a thing concerns its parts, and one on a part concerns the thing as a whole.
    """
    family, *names = subjects.family_of(_fold_subject(subject)), fold(payee), fold(customer)
    # A name that there is none of concerns nobody: no stop has an empty key, and the index leaves out no family.
    asked = Q(~Q(family=""), scope=StopScope.SUBJECT, family=family)
    for scope, key in zip((StopScope.PAYEE, StopScope.CUSTOMER), names, strict=True):
        asked |= Q(scope=scope, key=key)
    found = active().filter(asked, Q(kind=None) | Q(kind=kind_id)).order_by("pk")
    return [stop for stop in found if _concerns(stop, subject, payee, customer)]


def of_intent(intent: Intent) -> list[Stop]:
    """The active stops that concern an intent, oldest first. One query."""
    return applying(intent.kind_id, subject=intent.subject, payee=intent.payee, customer=intent.customer)
