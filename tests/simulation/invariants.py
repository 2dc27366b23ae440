"""What has to hold: functions over the database and over what really happened at the services.

Their numbers are those of docs/invariants.md. `EACH_STEP` are asked after every step, `AT_THE_END` after a quiet
period in which machines do whatever is due.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import combinations

from actions import sweep as actions_sweep
from actions.reasons import Reason
from actions.statuses import NOT_SENT, SETTLED, UNSETTLED
from reconciliation import sweep as reconciliation_sweep
from reconciliation.reviews import verifying
from tests.simulation import actors, database, questions
from tests.simulation.downstream import Effect, Payments
from tests.simulation.looking import Eye, Row, Seen, rows, when
from tests.simulation.network import Request
from tests.simulation.policies import LIMITED, LIMITS, MOST_OPEN, REVIEW_AFTER_S
from tests.simulation.world import Violation, World

HARMLESS = ("refused", "not_sent")
_MAYBE = ("submitted", "unknown")
_TWO_PEOPLE = LIMITS["EUR"]["two_people_above"]


@dataclass
class Watch:
    """Sees every first byte and every step. Remembers what the product is not asked to."""

    world: World
    eye: Eye = field(default_factory=Eye)
    left: dict[str, list[datetime]] = field(default_factory=lambda: defaultdict(list))  # key -> first bytes
    sent: set[int] = field(default_factory=set)  # attempts whose first byte has left
    ended: set[str] = field(default_factory=set)  # entries that were seen not to be pending any more
    names: dict[int, str] = field(default_factory=dict)  # of the services, by the number of their downstream

    # --- as it happens

    def first_byte(self, request: Request) -> None:
        """3, 6, 9: what has to be true, and committed, at the moment when the first byte leaves."""
        now, key = self.world.clock.now(), request.key
        found = rows("SELECT * FROM actions_intent WHERE idempotency_key = ?", key)
        attempts = (
            rows("SELECT * FROM actions_attempt WHERE intent_id = ? ORDER BY id", found[0]["id"]) if found else []
        )
        mine = [one for one in attempts if one["executor"] == "caller" or one["worker"] == f"sim/{request.by}"]
        if not found or not mine:
            self.world.violated("3 durable before sent", f"{key} leaves, and nobody has written it down")
            return
        self._may_be_sent(request, found[0], mine[-1], now)
        lease = when(mine[-1]["lease_until"])
        if lease is None or now > lease:
            self.world.violated("6 one live attempt", f"{request.by} sends after its lease, which ended {lease}")
        earlier, others = self.left[key], [one for one in attempts if one["id"] != mine[-1]["id"]]
        if earlier and any((one["late_result"] or one["result"]) not in HARMLESS for one in others):
            self._may_repeat(request, earlier[0], now)
        earlier.append(now)
        self.sent.add(mine[-1]["id"])

    def _may_be_sent(self, request: Request, intent: Row, attempt: Row, now: datetime) -> None:
        """Beside 9: nothing after its own time, and nothing that was stopped before it was claimed."""
        before, claimed = when(intent["send_before"]), when(attempt["claimed_at"])
        if before is not None and now > before:
            self.world.violated("9 no send after its time", f"{request.key} was to be sent before {before}")
        agents = {asked.intent_id.hex: asked.agent.name for asked in self.world.asked if asked.intent_id}
        kinds = {kind.pk: kind.name for kind in self.world.cast.kinds}
        own = {("kind", kinds[intent["kind_id"]]), ("downstream", request.payments.name)}
        own |= {("agent", agents.get(intent["id"], ""))}
        for (scope, name), since in self.world.stopped.items():
            stopped = _related(name, intent["subject"]) if scope == "subject" else (scope, name) in own
            if stopped and claimed is not None and claimed > since and attempt["executor"] == "landed":
                self.world.violated(
                    "what is stopped stays", f"{request.key}: {scope} {name} is stopped since {since}"
                )

    def _may_repeat(self, request: Request, first: datetime, now: datetime) -> None:
        service = request.payments
        until = first + timedelta(seconds=service.window_s)
        if not service.dedupes or now + timedelta(seconds=request.arrives_by - self.world.clock.boot()) > until:
            self.world.violated("9 no send after the window", f"{request.key} was sent {first}, and is again")

    # --- after a step

    def after_step(self) -> None:
        if (seen := self.eye.look()) is not None:
            for invariant in EACH_STEP:
                self._raise(invariant(self, seen))
        if self.world.faults:
            raise self.world.faults[0]

    def at_the_end(self) -> None:
        for invariant in AT_THE_END:
            self._raise(invariant(self))

    def _raise(self, found: Iterator[str]) -> None:
        for text in found:
            name, _, what = text.partition(": ")
            raise Violation(name, what)

    # --- god's view

    def service(self, intent: Row) -> Payments:
        if not self.names:
            self.names.update((row["id"], row["name"]) for row in rows("SELECT id, name FROM actions_downstream"))
        return self.world.payments[self.names[intent["downstream_id"]]]

    def effects(self, intent: Row) -> list[Effect]:
        return self.service(intent).of(intent["idempotency_key"])

    # --- what is still to come

    def hanging(self) -> list[Row]:
        """Intents that may have been sent, and nobody has been asked about; and those about to be sent."""
        return rows(questions.HANGING)

    def next_due(self) -> float | None:
        """Seconds until something is due for what hangs, or for a decision; None: nothing does."""
        now, due = self.world.clock.now(), []
        for row in self.hanging():
            names = ["lease_until", "next_attempt_at", "next_check_at"]
            names += ["send_before"] if row["status"] == "recorded" else []
            planned = [at for at in (when(row[name]) for name in names) if at is not None]
            began = when(row["first_maybe_sent_at"]) or when(row["status_since"]) or now
            silent = max(began, now) + timedelta(seconds=REVIEW_AFTER_S + 301)
            due.append(min([*planned, silent]))
        if self.world.seed % 3 == 0:  # those looks cost as much as all the rest
            due += [at for row in rows(questions.LATER) if (at := when(row["next_check_at"])) is not None]
        due += [at for row in rows(questions.WAITING) if (at := when(row["takes_effect_at"])) is not None]
        return max(1.01, (min(due) - now).total_seconds() + 0.01) if due else None

    def has_to_act(self, act: actors.Act) -> bool:
        """Whether a machine finds something to do now; others always may."""
        return act not in MACHINES or bool(rows(MACHINES[act], self._now()))

    def next_moment(self) -> float | None:
        """Seconds until the next time that is written down anywhere."""
        (found,) = rows(questions.NEXT, self._now())
        at = when(found["at"])
        return None if at is None else (at - self.world.clock.now()).total_seconds()

    def _now(self) -> str:
        return str(self.world.clock.now().replace(tzinfo=None))

    def what_hangs(self) -> str:
        return "; ".join(f"{_short(row)} {row['status']}" for row in self.hanging()) or "a decision"


MACHINES = {actors.tick: questions.TICK, actors.work: questions.WORK, actors.check: questions.CHECK}


def _short(intent: Row) -> str:
    return f"{intent['id'][-6:]} ({intent['subject']})"


def _lag(watch: Watch, intent: Row) -> timedelta:
    return timedelta(seconds=watch.service(intent).lag_s)


# --- after every step


def one_effect(watch: Watch, seen: Seen) -> Iterator[str]:
    for intent in seen.intents.values():
        ours = [effect for effect in watch.effects(intent) if effect.live and not effect.not_by_us]
        if len(ours) > 1:
            yield f"1 one effect: {_short(intent)} was carried out as {', '.join(one.id for one in ours)}"


def one_in_the_air(watch: Watch, seen: Seen) -> Iterator[str]:
    """What may have been sent blocks its family, unless a person waived that for one of the two."""
    maybe = [row for row in seen.intents.values() if row["status"] in _MAYBE and not row["guard_waived"]]
    for one, other in combinations(maybe, 2):
        same = one["kind_id"] == other["kind_id"] and _related(one["subject"], other["subject"])
        newest = [
            rows_[-1]["claimed_at"] for rows_ in (seen.attempts[one["id"]], seen.attempts[other["id"]]) if rows_
        ]
        if same and len(newest) == 2 and not _doubted(one, other):
            yield f"1 one in the air: {_short(one)} and {_short(other)} may both have been sent"


def _related(one: str, other: str) -> bool:
    """In words of its own: what is asked must not be what answers."""
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


def _doubted(*both: Row) -> bool:
    """Said not to be sent, and then seen: that one was not in the air when the other was sent."""
    return any(row["status_reason"] == Reason.CONTRADICTED for row in both)


def nothing_is_lost(watch: Watch, seen: Seen) -> Iterator[str]:
    for asked in watch.world.asked:
        row = seen.intents.get(asked.intent_id.hex) if asked.intent_id else None
        if asked.intent_id is not None and row is None:
            yield f"2 acknowledged is durable: {asked.request_key} was told {asked.intent_id}, which is gone"
        elif row is not None and row["agent_id"] != asked.agent.pk:
            yield f"5 keys of two agents never meet: {asked.request_key} of {asked.agent.name}"


def the_key_stays(watch: Watch, seen: Seen) -> Iterator[str]:
    for pk, was in seen.before.items():
        now = seen.intents.get(pk)
        if now is None or now["idempotency_key"] != was["idempotency_key"]:
            yield f"3 the key never changes: {_short(was)}"
        elif now["fence"] < was["fence"]:
            yield f"7 fences only grow: {_short(now)}"


def limits_hold(watch: Watch, seen: Seen) -> Iterator[str]:
    limited = next(agent for agent in watch.world.cast.agents if agent.name == LIMITED)
    open_ = [row for row in seen.intents.values() if row["agent_id"] == limited.pk and row["status"] in UNSETTLED]
    if len(open_) > MOST_OPEN:
        yield f"limits hold: {LIMITED} has {len(open_)} open, and may have {MOST_OPEN}"


def one_open_attempt(watch: Watch, seen: Seen) -> Iterator[str]:
    for pk, attempts in seen.attempts.items():
        open_ = [one for one in attempts if one["closed_at"] is None]
        if len(open_) > 1:
            yield f"6 one live attempt: {_short(seen.intents[pk])} has {len(open_)}"


def no_old_fence(watch: Watch, seen: Seen) -> Iterator[str]:
    """An answer moves an intent only while its attempt is the newest one."""
    for news in seen.news:
        if news["actor"] in ("worker", "caller") and news["from_status"] in _MAYBE and news["reason"] != "replayed":
            for attempt in _attempts_named(news):
                if attempt["fence"] != json.loads(news["facts"])["fence"]:
                    yield f"7 no old fence: {news['reason']} by attempt {attempt['number']} of {news['intent_id']}"


def _attempts_named(news: Row) -> list[Row]:
    named = [pk for pk, _ in json.loads(news["evidence"])]
    marks = ",".join("?" * len(named))
    return rows(
        f"SELECT a.* FROM actions_attempt a JOIN actions_evidence e ON e.attempt_id = a.id WHERE e.id IN ({marks})",
        *named,
    )


def definite(watch: Watch, seen: Seen) -> Iterator[str]:
    """8, 12: no "failed" and no "recorded" for what may have been sent, but by answers for every attempt, by absence
    as it counts, by what the ledger says of its entry, or by a person."""
    for news in seen.news:
        if news["from_status"] not in _MAYBE or news["to_status"] not in ("failed", "recorded"):
            continue
        intent, attempts = seen.intents[news["intent_id"]], seen.attempts[news["intent_id"]]
        if news["reason"] in (Reason.DECIDED, Reason.FAILED_IN_LEDGER):
            pass
        elif news["reason"] == Reason.ABSENT_FROM_LEDGER:
            yield from _absent(watch, intent)
        elif any((one["late_result"] or one["result"]) not in HARMLESS for one in attempts):
            yield f"8 only definite answers: {_short(intent)} {news['to_status']} ({news['reason']})"
        yield from _really_not(watch, intent, news)


def unsent_is_unsent(watch: Watch, seen: Seen) -> Iterator[str]:
    """8: what left was sent, whatever anybody makes of it. ("Not processed" is an answer, and has an HTTP status.)"""
    for one in [one for attempts in seen.attempts.values() for one in attempts if one["id"] in watch.sent]:
        said = one["late_result"] or one["result"]
        if said == "not_sent" and one["http_status"] is None and one["executor"] == "landed":
            intent = seen.intents[one["intent_id"]]
            yield f"8 sent is sent: attempt {one['number']} of {_short(intent)} left, and is called not sent"


def absence_is_true(watch: Watch, seen: Seen) -> Iterator[str]:
    """12: no look finds nothing where its book showed something under the key. (Without keys, a book can't tell.)"""
    for check in seen.checks:
        intent = seen.intents[check["intent_id"]]
        if check["verdict"] == "absent" and watch.service(intent).shows_keys:
            began = when(check["started_at"])
            for one in watch.effects(intent):
                if one.live and began is not None and one.visible_at <= began:
                    yield f"12 absent is absent: a look for {_short(intent)} saw nothing, and {one.id} was there"


def _absent(watch: Watch, intent: Row) -> Iterator[str]:
    last = watch.left[intent["idempotency_key"]]
    counted = rows(questions.COUNTED, intent["id"], intent["fence"])
    late = [
        one for one in counted if not last or (when(one["started_at"]) or last[-1]) > last[-1] + _lag(watch, intent)
    ]
    if len(late) < 2:
        yield f"12 absence needs the lag: {_short(intent)} failed on {len(late)} looks that say something"


def _really_not(watch: Watch, intent: Row, news: Row) -> Iterator[str]:
    if news["reason"] != Reason.DECIDED and (live := [one.id for one in watch.effects(intent) if one.live]):
        yield f"8 failed is failed: {_short(intent)} {news['to_status']} ({news['reason']}), and there is {live[0]}"


def really_done(watch: Watch, seen: Seen) -> Iterator[str]:
    """What a machine calls confirmed was carried out under its own key; and as one, if the ledger says so."""
    for news in seen.news:
        if news["to_status"] != "confirmed" or news["actor"] in ("reviewer", "administrator"):
            continue
        intent = seen.intents[news["intent_id"]]
        if not any(one.state == "succeeded" for one in watch.effects(intent)):
            yield f"8 confirmed is done: {_short(intent)} ({news['reason']}), and nothing was carried out"
        if (intent["settled_amount_minor"], intent["settled_currency"]) != (
            intent["amount_minor"],
            intent["currency"],
        ):
            yield f"8 confirmed is done: {_short(intent)} ({news['reason']}) for {intent['settled_amount_minor']}"
        if news["reason"] == Reason.FOUND_IN_LEDGER:
            yield from _single(intent, seen.before.get(intent["id"], intent)["external_id"])
            yield from _nothing_unseen(watch, intent)


def _single(intent: Row, answered: str) -> Iterator[str]:
    """`answered`: the id that the service itself had given, if it had."""
    shown = rows(questions.COULD_BE, intent | {"sent_at": str(intent["first_maybe_sent_at"])})
    own = [row for row in shown if row["key"] or row["entry_id"] == answered]
    if len(own or shown) > 1:
        yield f"13 two candidates are for people: {_short(intent)}, {len(own or shown)} entries could be it"


def _nothing_unseen(watch: Watch, intent: Row) -> Iterator[str]:
    """Nor were there two under its key that the look should have seen."""
    began = [when(row["started_at"]) for row in rows(questions.LOOKS, intent["id"])]
    shown = [
        one for one in watch.effects(intent) if one.live and began and one.visible_at <= (began[-1] or one.created)
    ]
    if watch.service(intent).shows_keys and len(shown) > 1:
        yield f"13 two candidates are for people: {_short(intent)}, and its ledger showed {len(shown)}"


def settled_stays(watch: Watch, seen: Seen) -> Iterator[str]:
    for news in seen.news:
        by_two = news["actor"] in ("reviewer", "administrator") and news["reason"] == Reason.OVERRIDDEN
        if news["from_status"] in SETTLED and not by_two:
            yield f"10 settled stays: {news['intent_id'][-6:]} {news['from_status']} → {news['to_status']}"
    changed = {news["intent_id"] for news in seen.news}
    for pk, was in seen.before.items():
        if was["status"] != seen.intents[pk]["status"] and pk not in changed:
            yield f"16 status with history: {_short(was)} {was['status']} → {seen.intents[pk]['status']}"


def with_history(watch: Watch, seen: Seen) -> Iterator[str]:
    """Status, version and the chain's end are those of the last row of history, at every commit."""
    last = {row["intent_id"]: row for row in rows(questions.LAST_TOLD)}
    for pk, row in seen.intents.items():
        told = last.get(pk, {"to_status": None, "sequence": 0})
        if (told["to_status"], told["sequence"]) != (row["status"], row["version"]):
            yield f"16 status with history: {_short(row)} is {row['status']}, its history says {told['to_status']}"


def one_entry_one_intent(watch: Watch, seen: Seen) -> Iterator[str]:
    twice = rows(questions.TIED_TWICE)
    if twice:
        yield f"21 one entry, one intent: {twice}"
    named = defaultdict(list)
    for row in seen.intents.values():
        if row["status"] == "confirmed" and row["external_id"] and row["settled_by"] in ("answer", "ledger"):
            named[row["downstream_id"], row["external_id"]].append(_short(row))
    for (_, entry), intents in named.items():
        if len(intents) > 1:
            yield f"21 one entry, one intent: {entry} settles {' and '.join(intents)}"


def sums_agree(watch: Watch, seen: Seen) -> Iterator[str]:
    wrong = rows(questions.SUMS_DIFFER)
    for row in wrong:
        yield f"21 sums agree: {_short(row)} settled {row['settled_amount_minor']}, its entry {row['amount_minor']}"


def never_backwards(watch: Watch, seen: Seen) -> Iterator[str]:
    for row in rows("SELECT downstream_id, entry_id, state FROM reconciliation_ledgerentry"):
        name = f"{row['downstream_id']}:{row['entry_id']}"
        if row["state"] != "pending":
            watch.ended.add(name)
        elif name in watch.ended:
            yield f"20 in any order: {row['entry_id']} had ended and is pending again"


def contradictions_are_heard(watch: Watch, seen: Seen) -> Iterator[str]:
    """11: a look that speaks against how one ended is a question to people, unless one upheld it on that."""
    for row in rows(questions.CONTRADICTED):
        yield f"11 nothing is left hanging: {_short(row)} is {row['status']}, a look says no, nobody was asked"


def decided_once(watch: Watch, seen: Seen) -> Iterator[str]:
    """18, 19: what a person decided takes effect once, in its time, unless it was taken back; and above the second
    limit two of them agreed on this payload."""
    for news in seen.news:
        if news["actor"] != "reviewer" or news["reason"] not in (Reason.DECIDED, Reason.APPROVED, Reason.REJECTED):
            continue
        intent = seen.intents[news["intent_id"]]
        effects = rows(questions.TOOK_EFFECT, news["intent_id"])
        if not effects:
            yield f"18 one decision wins: {_short(intent)} {news['to_status']}, and no decision took effect"
            return
        newest = effects[-1]
        if newest["undone"] or newest["id"] in watch.world.undone:
            yield f"18 one decision wins: {_short(intent)}: decision {newest['id']} was taken back"
        if (when(newest["takes_effect_at"]) or watch.world.clock.now()) > watch.world.clock.now():
            yield f"18 one decision wins: {_short(intent)}: decision {newest['id']} was not due yet"
        if intent["guard_waived"] and news["reason"] == Reason.APPROVED and not newest["guard_waived"]:
            yield f"1 one in the air: {_short(intent)} was approved without its guard, and nobody said so"
        yield from _on_what_there_is(intent, newest)
        if intent["amount_minor"] > _TWO_PEOPLE and news["reason"] != Reason.REJECTED:
            yield from _two_people(intent, newest)


def _on_what_there_is(intent: Row, decision: Row) -> Iterator[str]:
    """The newest look that saw anything shows what the person saw."""
    shown = rows(questions.NEWEST_FACTS, intent["id"])
    if decision["choice"] in ("confirm", "fail") and shown and shown[0]["facts_digest"] != decision["seen_digest"]:
        yield f"18 one decision wins: {_short(intent)} was decided on facts that had changed"


def _two_people(intent: Row, second: Row) -> Iterator[str]:
    first = rows("SELECT * FROM reconciliation_decision WHERE id = ?", second["about_id"])
    if not first or first[0]["person_id"] == second["person_id"]:
        yield f"19 two different people: {_short(intent)} was decided by one"
    elif {first[0]["payload_digest"], second["payload_digest"]} - {intent["payload_digest"], ""}:
        yield f"19 two different people: {_short(intent)}: not on this payload"


EACH_STEP: tuple[Callable[[Watch, Seen], Iterator[str]], ...] = (
    one_effect,
    one_in_the_air,
    nothing_is_lost,
    the_key_stays,
    limits_hold,
    one_open_attempt,
    no_old_fence,
    definite,
    unsent_is_unsent,
    absence_is_true,
    really_done,
    settled_stays,
    with_history,
    one_entry_one_intent,
    sums_agree,
    never_backwards,
    contradictions_are_heard,
    decided_once,
)


# --- at the end


def histories_hold(watch: Watch) -> Iterator[str]:
    for name, found in verifying.everything():
        if found:
            yield f"16 status with history: {name}: {found[0]}"


def sweeps_are_one(watch: Watch) -> Iterator[str]:
    if watch.world.seed % 4:
        return  # four sweeps cost as much as the rest of the end
    actions_sweep.sweep()
    reconciliation_sweep.sweep()
    before = _everything()
    changed = actions_sweep.sweep().changed + reconciliation_sweep.sweep().changed
    if changed or _everything() != before:
        yield f"15 n sweeps are one: the second one changed {changed} rows"


def the_same_again(watch: Watch) -> Iterator[str]:
    """20: a webhook that was applied changes nothing when it comes again."""
    told = {row["delivery_id"] for row in rows("SELECT delivery_id FROM reconciliation_delivery")}
    before = _everything()
    for hook in [one for one in watch.world.hooks if one.id in told][:2]:
        actors.hand_over(watch.world, hook)
        if _everything() != before:
            yield f"20 twice is once: {hook.id} came again and changed something"


def _everything() -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for table in ("actions_intent", "reconciliation_ledgerentry", "reconciliation_match", "reconciliation_decision"):
        found += [tuple(row.values()) for row in rows(f"SELECT * FROM {table} ORDER BY id")]
    return found


def entries_are_explained(watch: Watch) -> Iterator[str]:
    """21: an entry under one of our keys is tied or answered, or somebody has, or will get, a question about it."""
    loose = rows(questions.UNEXPLAINED)
    for row in loose:
        yield f"21 entries are explained: {row['entry_id']} bears the key of {_short(row)}, which is {row['status']}"


def disputes_are_asked_about(watch: Watch) -> Iterator[str]:
    for row in watch.hanging():
        if row["status"] in UNSETTLED - NOT_SENT:
            yield f"11 nothing is left hanging: {_short(row)} is {row['status']}, and nobody was asked"
    for row in rows(questions.DISPUTED_ALONE):
        yield f"11 nothing is left hanging: {_short(row)} is disputed, and nobody was asked"


def nothing_dangles(watch: Watch) -> Iterator[str]:
    """What SQLite itself would ask at a commit, were there one."""
    for row in database.unresolved():
        yield f"no surprises: {row}"


AT_THE_END: tuple[Callable[[Watch], Iterator[str]], ...] = (
    disputes_are_asked_about,
    entries_are_explained,
    the_same_again,
    sweeps_are_one,
    histories_hold,
    nothing_dangles,
)
