"""Limits of agents: counted, not kept. What is used is the sum of what was recorded, at the moment of asking.

Recording reserves by being recorded: `judge` takes the agent's lock and reads what is used, and the lock is held
until the transaction that inserts the intent ends. So proposals at the same time can't pass a sum together, a
rollback frees what it took, and no counter can drift. What is failed or cancelled doesn't count; all else does,
unknown first of all.

Lock order: agent (here) → family → intents by pk → reviews → entries by pk → breaker. The agent's lock is the first
of all, and recording alone takes it, before it looks at the family: whoever waits for it holds no family. The other
way round, a transaction in process that records two intents (family, agent, family) and a proposal beside it
(family, agent) would wait for each other. It is an advisory lock and not the agent's row, because a person who
pauses the agent must not wait for a long transaction in process. On SQLite the immediate transaction is the lock.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection
from django.db.models import BigIntegerField, Case, Count, F, OuterRef, QuerySet, Subquery, Sum, Value, When
from django.db.models.functions import Coalesce, Least

from actions import hooks, limit_rules, pausing, times
from actions.errors import AgentPaused, LimitExceeded
from actions.in_words import counts_as_used, unsettled
from actions.limit_rules import SUMS, Limit, LimitName
from actions.locking import for_change
from actions.models import Agent, Intent, Kind

DAY: Final = timedelta(hours=24)
# In front of the agent's number, so that no other one-number lock meets it; keys of two numbers never do.
_LOCKS: Final = 0x4C494D << 32
# Amounts are summed in two parts: whole ones would not fit into SQLite's integers when somebody means harm.
_PART: Final = 10**6
_MOST_PARTS: Final = 10**12


@dataclass(frozen=True)
class Asked:
    """What a proposal would add: to which kind, family and currency, and how much (None: no amount)."""

    kind: Kind
    family: str
    amount_minor: int | None
    currency: str


@dataclass(frozen=True)
class Exceeded:
    """A limit that a proposal would pass. `used`: of it, before; `resets_at`: when the same would fit."""

    limit: Limit
    used: int
    resets_at: datetime | None = None

    @property
    def remaining(self) -> int:
        return max(0, self.limit.most - self.used)


@dataclass(frozen=True)
class Standing:
    """How much of a limit is used now. `used` None: it is counted for each subject, or each action, by itself.
    `resets_at`: when more becomes free by time alone, next."""

    limit: Limit
    used: int | None
    resets_at: datetime | None = None

    @property
    def remaining(self) -> int:
        return max(0, self.limit.most - (self.used or 0))


def judge(agent: Agent, asked: Asked, *, now: datetime) -> Exceeded | None:
    """Whether `asked` would pass a limit; None reserves it, until the transaction ends. Free of cost without limits.

    Call it inside the transaction that records. Raises AgentPaused, when the agent was paused in between.
    """
    if not agent.limits:
        return None
    _lock(agent.pk)
    found = _measured(agent, asked, limits=agent.limits, now=now)
    if found.limits != agent.limits:
        # Somebody changed them since the token was looked at.
        found = _measured(agent, asked, limits=found.limits, now=now)
    if found.paused:
        raise AgentPaused()
    exceeded = [one for limit, used in found.used if (one := _exceeded(limit, used, asked))]
    if velocity := next((one for one in exceeded if one.limit.name is LimitName.VELOCITY), None):
        return velocity
    # The one that binds for longest: when that one gives way, none of the others stands in the way any more.
    timed = [_with_time(one, agent, asked, now) for one in exceeded]
    return max(timed, key=lambda one: (one.resets_at is None, one.resets_at or now), default=None)


def needs_approval(agent: Agent, *, kind: str, currency: str) -> bool:
    """Whether a person has to approve it, because the agent's limits name other currencies and not this one."""
    return not limit_rules.covers(agent.limits, kind=kind, currency=currency)


def trip(agent: Agent, exceeded: Exceeded) -> None:
    """Pauses the agent and tells of it, once. Inside the transaction that judged, which then commits."""
    row = for_change(Agent).get(pk=agent.pk)
    if row.paused:
        return
    row.tripped_at = times.now()
    words = limit_rules.words(exceeded.limit)
    pausing.pause_by_program(row, reason=f"Proposed too fast: {words}.", by="its velocity limit", also=["tripped_at"])
    hooks.tell_limit(row, exceeded.limit.name, at=row.tripped_at)


def refusal(exceeded: Exceeded) -> LimitExceeded:
    limit = exceeded.limit
    return LimitExceeded(
        f"Nothing was recorded and nothing was sent: the limit is {limit_rules.words(limit)}. {_advice(exceeded)}",
        limit=limit_rules.as_json(limit),
        remaining=limit_rules.value_of(limit, exceeded.remaining),
        resets_at=exceeded.resets_at,
    )


_DONT_SPLIT: Final = "Don't split it, and don't change amount, currency, kind or subject to get under the limit."
_END: Final = "Waiting alone doesn't change that: end your turn and tell a person."


def _advice(exceeded: Exceeded) -> str:
    name, at = exceeded.limit.name, exceeded.resets_at
    if name is LimitName.VELOCITY:
        return "You are paused now, and every proposal is refused until a person lets you go on. End your turn."
    if name is LimitName.OPEN:
        return "There is room when some of your unsettled intents are settled: read those, and ask again after that."
    if at is None:
        return f"{_DONT_SPLIT} {_END}"
    return f"{_DONT_SPLIT} The same can be asked for again at {at:%Y-%m-%dT%H:%M:%SZ}, not earlier."


def left(agent: Agent, *, now: datetime) -> list[Standing]:
    """Every limit of the agent and how much of it is used. Counts nothing and locks nothing. At most two queries."""
    limits = limit_rules.read(agent.limits)
    if not limits:
        return []
    named = limit_rules.kinds_named(agent.limits)
    kinds = dict(Kind.objects.filter(name__in=named).values_list("name", "pk")) if named else {}
    columns: dict[str, Any] = {}
    for number, limit in enumerate(limits):
        if limit.name in _COUNTED_ALONE:
            rows = _rows(limit, kinds=kinds, family=None, now=now)
            columns[f"used_{number}"] = _used(limit, rows)
            oldest = rows.order_by("created_at").values("created_at")[:1]
            columns[f"oldest_{number}"] = Subquery(oldest)
    found = Agent.objects.filter(pk=agent.pk).values(*_no_columns(columns), **columns).first() or {}
    return [_standing(limit, found, number) for number, limit in enumerate(limits)]


_COUNTED_ALONE: Final = (LimitName.PER_DAY, LimitName.OPEN, LimitName.VELOCITY)


def _no_columns(columns: Mapping[str, Any]) -> tuple[str, ...]:
    # No column at all would be all of them.
    return () if columns else ("pk",)


def _standing(limit: Limit, found: Mapping[str, Any], number: int) -> Standing:
    used, oldest = found.get(f"used_{number}"), found.get(f"oldest_{number}")
    frees = limit.name is not LimitName.OPEN and oldest is not None
    return Standing(limit, None if used is None else int(used), oldest + _span(limit) if frees and oldest else None)


# --- counting

# The agent of the query around it.
_AROUND: Final = OuterRef("pk")


@dataclass(frozen=True)
class _Found:
    """The agent's row as it is under the lock, and what is used of each limit that needs counting (else 0)."""

    paused: bool
    limits: Mapping[str, Any]
    used: Sequence[tuple[Limit, int]]


def _lock(agent_id: int) -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCKS + agent_id])


def _measured(agent: Agent, asked: Asked, *, limits: Mapping[str, Any], now: datetime) -> _Found:
    """One query, whatever there is to count."""
    bind = limit_rules.applying(limits, kind=asked.kind.name, currency=asked.currency)
    kinds = {asked.kind.name: asked.kind.pk}
    columns: dict[str, Any] = {
        f"used_{number}": _used(limit, _rows(limit, kinds=kinds, family=asked.family, now=now))
        for number, limit in enumerate(bind)
        if limit.name is not LimitName.PER_ACTION
    }
    row = Agent.objects.filter(pk=agent.pk).annotate(**columns).values("paused", "limits", *columns).get()
    used = [(limit, int(row.get(f"used_{number}", 0))) for number, limit in enumerate(bind)]
    return _Found(row["paused"], row["limits"], used)


def _rows(
    limit: Limit, *, kinds: Mapping[str, int], family: str | None, now: datetime, agent: Any = _AROUND
) -> QuerySet[Intent]:
    """What counts for a limit, of the agent of the query around it, or of this one (not for a velocity)."""
    found = Intent.objects.filter(agent=agent)
    if limit.kind:
        found = found.filter(kind=kinds.get(limit.kind))
    if limit.name is LimitName.OPEN:
        return found.filter(unsettled())
    found = found.filter(created_at__gt=now - _span(limit))
    if limit.name is LimitName.VELOCITY:
        return found.filter(created_at__gt=Coalesce(OuterRef("tripped_at"), Value(now - _span(limit))))
    found = found.filter(counts_as_used(), currency=limit.currency)
    return found.filter(family=family) if limit.name is LimitName.PER_SUBJECT_DAY else found


def _span(limit: Limit) -> timedelta:
    return timedelta(minutes=limit.minutes) if limit.name is LimitName.VELOCITY else DAY


# What was meant, or what was settled where that is more of the same currency.
_COUNTS: Final = Case(
    When(
        settled_currency=F("currency"),
        settled_amount_minor__gt=F("amount_minor"),
        then=F("settled_amount_minor"),
    ),
    default=F("amount_minor"),
    output_field=BigIntegerField(),
)


def _used(limit: Limit, rows: QuerySet[Intent]) -> Any:
    by_agent: Any = rows.order_by().values("agent")
    if limit.name in SUMS:
        parts, rest = Sum(_COUNTS / _PART), Sum(_COUNTS % _PART)
        total = Least(parts, Value(_MOST_PARTS), output_field=BigIntegerField()) * _PART + rest
        by_agent = by_agent.annotate(used=total).values("used")
    else:
        by_agent = by_agent.annotate(used=Count("pk")).values("used")
    return Coalesce(Subquery(by_agent, output_field=BigIntegerField()), Value(0))


# --- judging


def _exceeded(limit: Limit, used: int, asked: Asked) -> Exceeded | None:
    return Exceeded(limit, used) if used + _adds(limit, asked) > limit.most else None


def _adds(limit: Limit, asked: Asked) -> int:
    return (asked.amount_minor or 0) if limit.currency else 1


def _with_time(exceeded: Exceeded, agent: Agent, asked: Asked, now: datetime) -> Exceeded:
    """With the time at which enough has left the window; never, for what is more than the limit by itself."""
    limit, adds = exceeded.limit, _adds(exceeded.limit, asked)
    if limit.name not in SUMS or adds > limit.most:
        return exceeded
    rows = _rows(limit, kinds={asked.kind.name: asked.kind.pk}, family=asked.family, now=now, agent=agent.pk)
    oldest_first = rows.annotate(counts=_COUNTS).order_by("created_at").values_list("created_at", "counts")
    too_much = exceeded.used + adds - limit.most
    return Exceeded(limit, exceeded.used, _when_free(oldest_first.iterator(chunk_size=500), too_much))


def _when_free(oldest_first: Iterable[tuple[datetime, int]], too_much: int) -> datetime | None:
    for at, counts in oldest_first:
        too_much -= counts
        if too_much <= 0:
            return at + DAY
    return None
