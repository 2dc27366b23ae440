"""Limits of agents: counted, not kept. What is used is the sum of what was recorded, at the moment of asking.

Recording reserves by being recorded: `judge` takes the agent's lock and reads what is used, and the lock is held
until the transaction that inserts the intent ends. So proposals at the same time can't pass a sum together, a
rollback frees what it took, and no counter can drift. What is failed or cancelled doesn't count; all else does,
unknown first of all.

Lock order: agent (here) → family → intents by pk → reviews → entries by pk → breaker. The agent's lock is the first
of all. Recording takes it, before it looks at the family, and in process so does what may come before recording in
the same transaction (`come_first`): whoever waits for it holds no family. The other
way round, a transaction in process that records two intents (family, agent, family) and a proposal beside it
(family, agent) would wait for each other. It is an advisory lock and not the agent's row, because a person who
pauses the agent must not wait for a long transaction in process. On SQLite the immediate transaction is the lock.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection
from django.db.models import BigIntegerField, BooleanField, DateTimeField
from django.db.models.expressions import RawSQL

from actions import hooks, limit_rules, pausing, times
from actions.errors import AgentPaused, LimitExceeded
from actions.in_words import COUNTED_SQL, UNSETTLED_SQL
from actions.limit_rules import SUMS, Limit, LimitName
from actions.locking import for_change
from actions.models import Agent, Intent, Kind

DAY: Final = timedelta(hours=24)
# In front of the agent's number, so that no other one-number lock meets it; keys of two numbers never do.
_LOCKS: Final = 0x4C494D << 32


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


def come_first(agent: Agent) -> None:
    """Takes the agent's lock before whatever else an open transaction in process locks: it may record later on, and
    then it would hold a family and wait for the agent, while a proposal holds the agent and waits for the family.
    Nothing without limits, or where the transaction ends with what is done now."""
    if agent.limits and connection.in_atomic_block:
        _lock(agent.pk)


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
    """Every limit of the agent and how much of it is used. Counts nothing and locks nothing. One query."""
    limits = limit_rules.read(agent.limits)
    columns: dict[str, RawSQL] = {}
    for number, limit in enumerate(limits):
        if limit.name in _COUNTED_ALONE:
            rows = _Rows.of(limit, agent_id=agent.pk, family="", now=now)
            columns |= {f"used_{number}": rows.used(), f"oldest_{number}": rows.oldest()}
    if not columns:
        return [Standing(limit, None) for limit in limits]
    found = Agent.objects.filter(pk=agent.pk).values(**columns).get()
    return [_standing(limit, found, number) for number, limit in enumerate(limits)]


_COUNTED_ALONE: Final = (LimitName.PER_DAY, LimitName.OPEN, LimitName.VELOCITY)


def _standing(limit: Limit, found: Mapping[str, Any], number: int) -> Standing:
    used, oldest = found.get(f"used_{number}"), found.get(f"oldest_{number}")
    frees = None if oldest is None or limit.name is LimitName.OPEN else oldest + _span(limit)
    return Standing(limit, None if used is None else int(used), frees)


# --- counting


@dataclass(frozen=True)
class _Found:
    """The agent's row as it is under the lock, and what is used of each limit that binds (0 where nothing counts)."""

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
    columns = {
        f"used_{number}": _Rows.of(limit, agent_id=agent.pk, family=asked.family, now=now).used()
        for number, limit in enumerate(bind)
        if limit.name is not LimitName.PER_ACTION
    }
    row: Mapping[str, Any] = Agent.objects.filter(pk=agent.pk).values("paused", "limits", **columns).get()
    used = [(limit, int(row.get(f"used_{number}", 0))) for number, limit in enumerate(bind)]
    return _Found(row["paused"], row["limits"], used)


def _span(limit: Limit) -> timedelta:
    return timedelta(minutes=limit.minutes) if limit.name is LimitName.VELOCITY else DAY


# What was meant, or what was settled where that is more of the same currency.
_COUNTS: Final = (
    "CASE WHEN settled_currency = currency AND settled_amount_minor > amount_minor "
    "THEN settled_amount_minor ELSE amount_minor END"
)
# In two parts: a sum of whole amounts would not fit into SQLite's integers when somebody means harm.
_PARTS, _REST = f"SUM(({_COUNTS}) / 1000000)", f"SUM(({_COUNTS}) %% 1000000)"
_MOST_PARTS: Final = 10**12
_SUM: Final = (
    f"COALESCE(CASE WHEN {_PARTS} > {_MOST_PARTS} THEN {_MOST_PARTS} ELSE {_PARTS} END * 1000000 + {_REST}, 0)"
)


@dataclass(frozen=True)
class _Rows:
    """What counts for a limit, as SQL and its parameters. The columns are the intent's.

    Written out, because it is on the way of every proposal, and composing it anew takes longer than running it. All
    text of it stands in this module and in `in_words`; whatever comes from elsewhere is a parameter.
    """

    limit: Limit
    where: str
    values: tuple[Any, ...]

    @classmethod
    def of(cls, limit: Limit, *, agent_id: int, family: str, now: datetime) -> "_Rows":
        since = connection.ops.adapt_datetimefield_value(now - _span(limit))
        parts: list[tuple[str, tuple[Any, ...]]] = [("agent_id = %s", (agent_id,))]
        if limit.kind:
            parts.append(("kind_id = (SELECT id FROM actions_kind WHERE name = %s)", (limit.kind,)))
        if limit.name is LimitName.OPEN:
            parts.append((UNSETTLED_SQL, ()))
        elif limit.name is LimitName.VELOCITY:
            tripped = "COALESCE((SELECT tripped_at FROM actions_agent WHERE id = %s), %s)"
            parts += [("created_at > %s", (since,)), (f"created_at > {tripped}", (agent_id, since))]
        else:
            parts += [("currency = %s AND created_at > %s", (limit.currency, since)), (COUNTED_SQL, ())]
        if limit.name is LimitName.PER_SUBJECT_DAY:
            parts.append(("family = %s", (family,)))
        return cls(limit, " AND ".join(sql for sql, _ in parts), tuple(one for _, some in parts for one in some))

    def used(self) -> RawSQL:
        total = _SUM if self.limit.name in SUMS else "COUNT(*)"
        return self._select(total, BigIntegerField())

    def oldest(self) -> RawSQL:
        return self._select("MIN(created_at)", DateTimeField())

    def oldest_first(self) -> Iterator[tuple[datetime, int]]:
        """When each was proposed, and what it counts with."""
        found = Intent.objects.filter(_sql(self.where, self.values, BooleanField()))
        counts = _sql(_COUNTS, (), BigIntegerField())
        rows = found.annotate(counts=counts).order_by("created_at").values_list("created_at", "counts")
        yield from rows.iterator(chunk_size=500)

    def _select(self, what: str, output: Any) -> RawSQL:
        return _sql(f"SELECT {what} FROM actions_intent WHERE {self.where}", self.values, output)  # noqa: S608  see above


def _sql(text: str, values: tuple[Any, ...], output: Any) -> RawSQL:
    return RawSQL(text, values, output_field=output)  # noqa: S611  see _Rows


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
    rows = _Rows.of(limit, agent_id=agent.pk, family=asked.family, now=now)
    return Exceeded(limit, exceeded.used, _when_free(rows.oldest_first(), exceeded.used + adds - limit.most))


def _when_free(oldest_first: Iterable[tuple[datetime, int]], too_much: int) -> datetime | None:
    for at, counts in oldest_first:
        too_much -= counts
        if too_much <= 0:
            return at + DAY
    return None
