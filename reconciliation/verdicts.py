"""What a look into the books says about one intent. Pure: facts in, one verdict out.

Nothing is guessed: an entry counts as the intent's own by its key (or the id that the downstream gave us), and by
its subject alone only when everything fits and nobody else could own it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from actions.canonical import canonical, digest
from reconciliation.words import EntryRole, EntryState, Verdict

# How far the downstream's clock may be from ours when an entry is tied to a sending by its time.
CLOCK_SKEW = timedelta(seconds=60)


@dataclass(frozen=True)
class Facts:
    """What the intent says. Amounts in minor units; of a confirmed one, as it was settled."""

    key: str
    subject: str
    amount_minor: int | None
    currency: str
    first_sent_at: datetime | None
    external_id: str = ""
    confirmed: bool = False


@dataclass(frozen=True)
class Candidate:
    """One entry that a look-up showed. `id`: its row; `taken`: it is tied to something else already;
    `others`: how many other intents could own it; `known_before`: we saw it before we first sent."""

    id: int
    entry_id: str
    role: str
    state: str
    key: str
    subject: str
    amount_minor: int | None
    currency: str
    booked_at: datetime | None
    taken: bool = False
    others: int = 0
    known_before: bool = False


@dataclass(frozen=True)
class Look:
    """How the looking went. `last_possible_send`: after it no attempt can have sent anything."""

    complete: bool
    started_at: datetime
    last_possible_send: datetime
    lag_s: int

    @property
    def late_enough(self) -> bool:
        """Whether an effect would show by now, so that its absence says something."""
        return self.started_at > self.last_possible_send + timedelta(seconds=self.lag_s)


@dataclass(frozen=True)
class Judgement:
    """`entry`: the row that the verdict rests on; `candidates`: all rows that it may be; `differs`: in what."""

    verdict: Verdict
    entry: int | None = None
    candidates: tuple[int, ...] = ()
    differs: tuple[str, ...] = ()
    by: str = ""
    entry_failed: bool = False


def judge(facts: Facts, candidates: Sequence[Candidate], look: Look) -> Judgement:
    """One verdict about one intent from everything that a look showed."""
    if not look.complete:
        return Judgement(Verdict.UNAVAILABLE)
    ours = [c for c in candidates if _is_ours(facts, c)]
    if facts.confirmed and (back := _reversals(facts, candidates)):
        shown = dict.fromkeys(c.id for c in (*ours, *back))
        return Judgement(
            Verdict.MISMATCH, candidates=tuple(shown), differs=("reversed",), by="key" if ours else "subject"
        )
    if ours:
        return _by_key(facts, ours, look)
    return _by_subject(facts, candidates, look) or Judgement(
        Verdict.ABSENT if look.late_enough else Verdict.TOO_EARLY
    )


def _is_ours(facts: Facts, candidate: Candidate) -> bool:
    return candidate.key == facts.key or (bool(facts.external_id) and candidate.entry_id == facts.external_id)


def _reversals(facts: Facts, candidates: Sequence[Candidate]) -> list[Candidate]:
    """What takes back, or is about to, something on the subject; nobody else's, as far as its key tells."""
    return [
        c
        for c in candidates
        if c.role == EntryRole.REVERSAL
        and c.state != EntryState.FAILED
        and c.key in ("", facts.key)
        and (c.key or c.subject == facts.subject)
        and not c.taken
    ]


def _by_key(facts: Facts, ours: list[Candidate], look: Look) -> Judgement:
    ids = tuple(c.id for c in ours)
    strange = [c for c in ours if c.role != EntryRole.EFFECT]
    effects = [c for c in ours if c.role == EntryRole.EFFECT]
    live = [c for c in effects if c.state != EntryState.FAILED]
    if strange:
        # A reversal or a fee under our key, or a type we don't know: a person reads it.
        return Judgement(Verdict.MISMATCH, candidates=ids, differs=("type",), by="key")
    if len(live) > 1:
        return Judgement(Verdict.DUPLICATE, candidates=ids, by="key")
    if not live and not look.late_enough:
        # Not carried out so far; another attempt may still show until the lag is over.
        return Judgement(Verdict.TOO_EARLY, candidates=ids, by="key")
    if not live:
        return Judgement(Verdict.MATCH, entry=effects[-1].id, candidates=ids, by="key", entry_failed=True)
    return _compare(facts, live[0], ids, by="key")


def _compare(facts: Facts, entry: Candidate, ids: tuple[int, ...], *, by: str) -> Judgement:
    differs = []
    if entry.taken:
        differs.append("settles_another")
    if entry.key and entry.key != facts.key:
        differs.append("key")
    if entry.subject and entry.subject != facts.subject:
        differs.append("subject")
    if facts.amount_minor is not None:
        if entry.currency != facts.currency:
            differs.append("currency")
        if entry.amount_minor != facts.amount_minor:
            differs.append("amount")
    if differs == ["amount"] and entry.amount_minor is not None and entry.amount_minor < (facts.amount_minor or 0):
        return Judgement(Verdict.PARTIAL, entry.id, ids, ("amount",), by)
    if differs:
        return Judgement(Verdict.MISMATCH, entry.id, ids, tuple(differs), by)
    verdict = Verdict.PENDING if entry.state == EntryState.PENDING else Verdict.MATCH
    return Judgement(verdict, entry.id, ids, (), by)


def _by_subject(facts: Facts, candidates: Sequence[Candidate], look: Look) -> Judgement | None:
    """None: nothing that could be it. An entry with somebody else's key is somebody else's, and so is another one
    than the id that the downstream gave us. Without an amount there is too little to tell by."""
    possible = [
        c
        for c in candidates
        if (c.role == EntryRole.EFFECT or _may_be_an_effect(facts, c))
        and c.state != EntryState.FAILED
        and not c.key
        and not c.taken
        and not facts.external_id
        and c.subject == facts.subject
        and (_in_time(facts, c, look) is not False or _only_the_time_is_off(facts, c))
    ]
    if not possible:
        return None
    not_done = [c for c in candidates if _may_be_ours_not_done(facts, c, look)]
    ids = tuple(c.id for c in (*possible, *not_done))
    only = possible[0]
    fits = (
        len(possible) == 1
        and not not_done
        and only.role == EntryRole.EFFECT
        and only.others == 0
        and facts.amount_minor is not None
        and _in_time(facts, only, look) is True
        and not _compare(facts, only, ids, by="subject").differs
    )
    if fits:
        return _compare(facts, only, ids, by="subject")
    differs = [name for c in possible for name in _compare(facts, c, ids, by="subject").differs]
    if any(c.role != EntryRole.EFFECT for c in possible):
        differs.append("type")
    return Judgement(Verdict.AMBIGUOUS, candidates=ids, differs=tuple(dict.fromkeys(differs)), by="subject")


def _may_be_ours_not_done(facts: Facts, candidate: Candidate, look: Look) -> bool:
    """Not carried out, and as good a candidate as the one that was: which of the two is ours tells whether it was
    done at all. By itself it is as if nothing were there."""
    money = (candidate.amount_minor, candidate.currency)
    return (
        candidate.role == EntryRole.EFFECT
        and candidate.state == EntryState.FAILED
        and not candidate.key
        and not candidate.taken
        and not candidate.known_before
        and candidate.subject == facts.subject
        and money == (facts.amount_minor, facts.currency)
        and _in_time(facts, candidate, look) is not False
    )


def _may_be_an_effect(facts: Facts, candidate: Candidate) -> bool:
    """Of a type that nobody knows, with our money or without saying how much: that is no absence."""
    money = (candidate.amount_minor, candidate.currency)
    ours = money == (facts.amount_minor, facts.currency) or candidate.amount_minor is None
    return candidate.role == EntryRole.OTHER and ours


def _only_the_time_is_off(facts: Facts, candidate: Candidate) -> bool:
    """Clocks can be wrong: what fits in all but its time could be ours, unless we knew it before we ever sent."""
    same = (candidate.amount_minor, candidate.currency) == (facts.amount_minor, facts.currency)
    return same and not candidate.known_before


def _in_time(facts: Facts, candidate: Candidate, look: Look) -> bool | None:
    """Whether it was booked while ours can have been; None when the entry has no time.

    From the first moment that we may have sent until the lag after the last, give or take the clocks: what was
    booked days later is somebody else's doing.
    """
    if candidate.booked_at is None or facts.first_sent_at is None:
        return None
    last = look.last_possible_send + timedelta(seconds=look.lag_s) + CLOCK_SKEW
    return facts.first_sent_at - CLOCK_SKEW <= candidate.booked_at <= last


def facts_digest(candidates: Sequence[Candidate]) -> str:
    """Equal facts, equal digest: over the entries as they were seen, in whatever order."""
    rows = sorted(
        canonical(
            [
                c.entry_id,
                c.role,
                c.state,
                c.key,
                c.subject,
                str(c.amount_minor),
                c.currency,
                str(c.booked_at),
                c.taken,
                c.others > 0,
            ]
        )
        for c in candidates
    )
    return digest(canonical(rows))
