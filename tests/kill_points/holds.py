"""What has to hold when everything is quiet again, whoever died when. The numbers are those of docs/invariants.md."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import redis
from django.conf import settings
from django.db.models import Count, F, Max, Q

from actions.models import Attempt, Endpoint, Event, EventDelivery, Intent, Result, Transition
from actions.statuses import SETTLED
from reconciliation.models import Choice, Decision, Delivery, Match, MatchRole, Review
from reconciliation.reviews import verifying
from tests.kill_points.acts import Act, Facts
from tests.kill_points.heirs import ask
from tests.simulation import questions

Found = Iterator[str]
_BY_PEOPLE = ("decision", "override")


def faults(act: Act, facts: Facts, service: dict[str, Any]) -> list[str]:
    """Everything that does not hold. `service`: what really happened, and what was heard, on the other side."""
    return [text for check in _CHECKS for text in check(act, facts, service)]


def told_is_kept(facts: Facts) -> list[str]:
    """2: what somebody was told is there for whoever comes next, before anybody asks again."""
    if not facts.get("acked"):
        return []
    found = []
    if "delivery" in facts and not Delivery.objects.filter(delivery_id=facts["delivery"]).exists():
        found.append("2: the delivery was acknowledged, and it is not kept")
    if "person" in facts and Decision.objects.count() == facts["had"]:
        found.append("2: the person was told that it is decided, and it is not kept")
    if "token" in facts and not Intent.objects.filter(pk=json.loads(facts["ack"])["id"]).exists():
        found.append("2: 201 was told, and it is not kept")
    return found


def bells() -> list[str]:
    """14: whatever somebody died over, the doorbell is not silenced for ever."""
    with redis.Redis.from_url(settings.REDIS_URL) as found:
        silent = [key.decode() for key in found.scan_iter("landed:bell:*") if not 0 <= found.ttl(key) <= 5]
    return [f"14: {key} stays for ever" for key in silent]


def _effects(service: dict[str, Any], intent: Intent) -> list[dict[str, Any]]:
    return [one for one in service["effects"] if one["key"] == intent.idempotency_key and one["live"]]


def one_effect(act: Act, facts: Facts, service: dict[str, Any]) -> Found:
    live = Counter(one["key"] for one in service["effects"] if one["live"])
    yield from (f"1: {key} was carried out {count} times" for key, count in live.items() if count > 1)
    for key in set(service["requests"]):
        intent = Intent.objects.filter(idempotency_key=key).first()
        if intent is None:
            yield f"3: {key} was sent, and nobody has written it down"
        elif service["requests"].count(key) > intent.attempts.count():
            yield f"3: {key} was sent more often than anybody has written down"


def nothing_is_lost(act: Act, facts: Facts, service: dict[str, Any]) -> Found:
    for pk in facts["intents"]:
        if not Intent.objects.filter(pk=pk).exists():
            yield f"2: {pk} was acknowledged and is gone"
    kept = facts.get("keys", {})
    for intent in Intent.objects.filter(pk__in=kept):
        if intent.idempotency_key != kept[str(intent.pk)]:
            yield f"3: the key of {intent.pk} has changed"
    if Intent.objects.count() != len(facts["intents"]):
        yield f"4: {Intent.objects.count()} intents for {len(facts['intents'])}"


def attempts_end(act: Act, facts: Facts, service: dict[str, Any]) -> Found:
    for attempt in Attempt.objects.filter(closed_at=None):
        yield f"6: attempt {attempt.number} of {attempt.intent_id} is open for ever"
    for intent in Intent.objects.filter(lease_until__isnull=False):
        yield f"6: {intent.pk} is leased to somebody who is dead"
    for intent in Intent.objects.exclude(settled_by__in=_BY_PEOPLE):
        said = any(attempt.known_result == Result.CONFIRMED for attempt in intent.attempts.all())
        if said is not (intent.settled_by == "answer"):
            yield f"16: {intent.subject} is settled by {intent.settled_by or 'nothing'}; answered yes: {said}"


def ends_as_it_may(act: Act, facts: Facts, service: dict[str, Any]) -> Found:
    for intent in Intent.objects.all():
        done = _effects(service, intent)
        people = intent.settled_by in _BY_PEOPLE
        asked = Review.objects.filter(intent=intent, closed_at=None).exists()
        if intent.status not in act.ends:
            why = [reason.code for review in Review.objects.filter(intent=intent) for reason in review.reasons.all()]
            yield f"8: {intent.subject} is {intent.status} ({intent.status_reason}; {why})"
        if intent.status == "confirmed" and not done and not people:
            yield f"8: {intent.subject} is confirmed, and nothing was carried out"
        if intent.status in ("failed", "cancelled") and done and not people:
            yield f"8: {intent.subject} is {intent.status}, and it was carried out"
        if intent.status not in SETTLED and not asked:
            yield f"11: {intent.subject} is {intent.status}, and nobody was asked"
        if intent.status in SETTLED and intent.guard_key is not None and not intent.disputed:
            yield f"11: {intent.subject} is {intent.status} and blocks its family for ever"


def books_agree(act: Act, facts: Facts, service: dict[str, Any]) -> Found:
    settles = Match.objects.filter(role=MatchRole.SETTLES, released_at=None).select_related("intent")
    for match in settles.filter(intent__status="confirmed"):
        intent = match.intent
        if (match.amount_minor, match.currency) != (intent.settled_amount_minor, intent.settled_currency):
            yield f"21: {intent.subject} settled {intent.settled_amount_minor}, its entry {match.amount_minor}"
    confirmed = Intent.objects.filter(status="confirmed")
    booked = sum(one["amount_minor"] for intent in confirmed for one in _effects(service, intent))
    if booked != sum(intent.settled_amount_minor or 0 for intent in confirmed):
        yield f"21: confirmed and booked ({booked}) differ"
    tied = Match.objects.filter(released_at=None)
    for column, which in (("entry", tied), ("intent", tied.filter(role=MatchRole.SETTLES))):
        twice = which.values_list(column).annotate(n=Count("pk")).filter(n__gt=1).order_by(column)
        yield from (f"21: {column} {pk} is tied twice" for pk, _ in twice)
    for sql in (questions.UNEXPLAINED, questions.DISPUTED_ALONE):
        yield from (f"21: {row}" for row in ask(sql))


def history_holds(act: Act, facts: Facts, service: dict[str, Any]) -> Found:
    for name, wrong in verifying.everything():
        yield from (f"16: {name}: {text}" for text in wrong)
    last = dict(Transition.objects.values_list("intent").annotate(last=Max("sequence")))
    for intent in Intent.objects.all():
        row = intent.transitions.get(sequence=last[intent.pk])
        if (row.to_status, row.sequence) != (intent.status, intent.version):
            yield f"16: {intent.subject} is {intent.status}, its history says {row.to_status}"
    if Event.objects.filter(position=None).exists():
        yield "16: an event has no position"


def decided_once(act: Act, facts: Facts, service: dict[str, Any]) -> Found:
    effects = Decision.objects.filter(choice=Choice.EFFECT)
    if effects.count() != act.decisions:
        yield f"18: {effects.count()} decisions took effect, not {act.decisions}"
    votes = Decision.objects.exclude(choice__in=[Choice.EFFECT, Choice.VOID])
    if "person" in facts and votes.count() != facts["had"] + (act.request is not None):
        yield f"18: somebody pressed one button, and {votes.count() - facts['had']} decisions were written down"
    taken_back = Q(about__followed_by__choice__in=[Choice.UNDO, Choice.VOID])
    if effects.filter(taken_back).exists():
        yield "18: what was taken back took effect"
    alone = effects.filter(about__about__isnull=False, about__person=F("about__about__person"))
    if alone.exists():
        yield "19: one person gave both votes"
    for intent in Intent.objects.filter(amount_minor__gt=20_000, settled_by="decision"):
        if not effects.filter(intent=intent, about__about__isnull=False).exists():
            yield f"19: {intent.subject} was decided by one"


def told_once(act: Act, facts: Facts, service: dict[str, Any]) -> Found:
    wanted = {
        f"evt_{event.pk}"
        for endpoint in Endpoint.objects.all()
        for event in Event.objects.filter(agent=endpoint.agent_id, type__in=endpoint.types)
    }
    if set(service["told"]) != wanted:
        yield f"20: told of {sorted(set(service['told']))}, of {sorted(wanted)}"
    if EventDelivery.objects.exclude(state="delivered").exists():
        yield "20: an event was not delivered"
    if facts.get("delivery") and Delivery.objects.filter(delivery_id=facts["delivery"]).count() != 1:
        yield f"2, 20: {facts['delivery']} is kept {Delivery.objects.count()} times"


_CHECKS: tuple[Callable[[Act, Facts, dict[str, Any]], Found], ...] = (
    one_effect,
    nothing_is_lost,
    attempts_end,
    ends_as_it_may,
    books_agree,
    history_holds,
    decided_once,
    told_once,
)
