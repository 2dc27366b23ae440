"""Who acts: each function here is one piece of work of somebody, made of the product's own functions.

What the product answers to agents and people (its `LandedError`s) is no fault: they are refused all day long. Its own
machines refuse themselves nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from standardwebhooks import Webhook

from actions import callers, dispatch, pausing, policy, recording, stops, sweep, withdrawing
from actions.connectors import registry
from actions.connectors.base import Result as Said
from actions.errors import KeyReused, LandedError
from actions.models import Executor, Intent, Result
from actions.outcomes import Outcome
from actions.proposals import Proposal
from actions.reasons import Reason
from actions.statuses import SETTLED, Actor, Status
from actions.transport import Limits
from reconciliation import checks, look_back
from reconciliation import sweep as reconciliation_sweep
from reconciliation.models import Choice, DecisionReason, LedgerEntry, Review
from reconciliation.reviews import deciding, options, overriding, pending
from reconciliation.reviews.orphans import deciding as deciding_entries
from reconciliation.webhooks import receiving
from tests.simulation.database import is_in_memory
from tests.simulation.looking import rows
from tests.simulation.policies import AMOUNTS, DEADLINE_S, ENVIRONMENT, HOOK_SECRET
from tests.simulation.tasks import pause
from tests.simulation.world import Asked, Hook, World

SUBJECTS = ("order-1", "order-1", "order-1", "order-1/line-1", "order-2")


# --- agents


def propose(world: World) -> None:
    """An agent asks for something new: often for what somebody asked for already, in other words."""
    dice = world.dice
    kind = dice.choice(world.kinds)
    like = dice.choice(world.asked) if world.asked and dice.random() < world.alike else None
    caller = dice.random() < 0.15
    asked = Asked(
        agent=dice.choice(world.cast.agents),
        kind=kind,
        subject=like.subject if like else dice.choice(SUBJECTS),
        amount=like.amount if like else dice.choice(AMOUNTS),
        # Both agents count their keys from one.
        request_key="",
        executor=Executor.CALLER if caller else Executor.LANDED,
        token=f"token-{world.number('token')}" if caller else None,
        send_before=world.clock.now() + timedelta(seconds=dice.choice((2, 20, 90))) if dice.random() < 0.15 else None,
    )
    asked.request_key = f"key-{world.number(asked.agent.name)}"
    world.asked.append(asked)
    _ask(world, asked)


def repeat(world: World) -> None:
    """An agent that does not know whether it was heard asks again, word for word."""
    if world.asked:
        _ask(world, world.dice.choice(world.asked))


def reuse(world: World) -> None:
    """An agent uses a key again for something else: 422, or nothing was recorded under it."""
    known = [asked for asked in world.asked if asked.intent_id is not None]
    if not known:
        return
    asked = world.dice.choice(known)
    try:
        recording.record(_proposal(asked, amount="77.00"), agent=asked.agent, request_key=asked.request_key)
    except KeyReused:
        return
    world.violated("4 one key, one payload", f"{asked.agent.name} {asked.request_key} was taken for another amount")


def cancel(world: World) -> None:
    known = [asked for asked in world.asked if asked.intent_id is not None]
    if known:
        asked = world.dice.choice(known)
        assert asked.intent_id is not None
        withdrawing.cancel(
            asked.intent_id, actor=Actor.AGENT, actor_id=f"agent:{asked.agent.pk}", reason=Reason.CANCELLED_BY_AGENT
        )


def _proposal(asked: Asked, *, amount: str | None = None) -> Proposal:
    return Proposal(
        kind=asked.kind.name,
        subject=asked.subject,
        amount=amount or asked.amount,
        currency="EUR",
        executor=asked.executor,
        claim_token=asked.token,
        send_before=asked.send_before,
    )


def _ask(world: World, asked: Asked) -> None:
    found = recording.record(_proposal(asked), agent=asked.agent, request_key=asked.request_key).intent
    if asked.intent_id not in (None, found.pk):
        world.violated("4 one key, one intent", f"{asked.request_key} stands for {asked.intent_id} and {found.pk}")
    asked.intent_id = found.pk
    world.tell(f"{asked.agent.name} {asked.request_key}: {asked.subject} {asked.amount} is {str(found.pk)[-6:]}")
    if asked.executor == Executor.CALLER and found.status not in SETTLED:
        _carry_out(world, asked, found)


def _carry_out(world: World, asked: Asked, intent: Intent) -> None:
    """A caller sends by itself, once as far as it knows, and reports."""
    me, token = f"agent:{asked.agent.pk}", asked.token or ""
    claim = callers.take(intent.pk, claim_token=token, actor_id=me)
    if not claim.may_send:
        return
    intent = Intent.objects.select_related("kind", "downstream", "policy").get(pk=intent.pk)
    connector, target = registry.get("http_json"), dispatch.target_of(intent.downstream)
    left = (claim.attempt.lease_until - world.clock.now()).total_seconds()
    if asked.begun:
        said = Outcome(result=Result.NO_ANSWER, reason=Reason.REPORTED_UNKNOWN)
    else:
        limits = Limits(connect_timeout_s=0.5, deadline_s=DEADLINE_S, send_by=world.clock.boot() + left)
        asked.begun = True
        reply = world.network.send(connector.build(target, dispatch.wanted_of(intent)), limits)
        answer = connector.read(target, dispatch.wanted_of(intent), reply)
        # What proves nothing it calls unknown; what it was told it hands on.
        result = Result.NO_ANSWER if answer.result is Said.NO_ANSWER else Result(answer.result.value)
        asked.begun = result is not Result.NOT_SENT
        said = Outcome(
            result=result,
            reason="reported",
            external_id=answer.external_id or "",
            amount_minor=answer.amount_minor,
            currency=answer.currency or "",
        )
    callers.report(
        intent.pk,
        outcome=said,
        content={"outcome": said.result.value, "id": said.external_id},
        actor_id=me,
        number=claim.attempt.number,
        claim_token=token,
        trusted=policy.read(intent.policy.text).reports_trusted,
    )


# --- machines


def work(world: World) -> None:
    """A worker: claims, sends one after the other, saves each answer."""
    for claimed in dispatch._claim(world.dice.choice((1, 1, 2))):
        dispatch.save(claimed, dispatch.send(claimed))


def check(world: World) -> None:
    for claimed in checks.claim(limit=world.dice.choice((1, 1, 2))):
        checks._act_or_leave(claimed, checks.look(claimed))


def look_through(world: World) -> None:
    for claimed in look_back.claim(limit=1):
        look_back._save_or_leave(claimed, look_back.look(claimed))


def tick(world: World) -> None:
    """A clock sweeps."""
    sweep.sweep()
    reconciliation_sweep.sweep()


# --- people


def decide(world: World) -> None:
    """A reviewer opens a case, reads, and decides on what was on the screen then."""
    dice = world.dice
    found = list(Review.objects.filter(closed_at=None).select_related(*_CASE).order_by("pk"))
    if not found:
        return
    review, person = dice.choice(found), dice.choice(world.cast.people)
    if review.intent is None:
        _decide_entry(world, review, person)
        return
    saw, choices = deciding.seen(review), options.choices_for(review, review.intent)
    if not choices:
        return
    choice = _sensible(world, review, choices)
    more = _grounds(world, review, choice)
    pause("has read the page")
    decided = deciding.decide(
        review.pk, person=person, choice=choice, reason=DecisionReason.OTHER, note="so it is", seen=saw, **more
    )
    world.tell(f"{person.username} decides {choice} on {str(review.intent.pk)[-6:]}: {decided.state}")
    if decided.state == "undo_window" and dice.random() < 0.35:
        pause("thinks again")
        pending.undo(decided.decision.pk, person=person)
        world.undone.add(decided.decision.pk)
        world.tell(f"{person.username} takes it back")


_CASE = ("intent__downstream", "intent__policy", "intent__kind", "entry__downstream")


def _sensible(world: World, review: Review, choices: list[Choice]) -> Choice:
    """What a good reviewer would choose who knows what really happened; one in ten does not."""
    intent, dice = review.intent, world.dice
    assert intent is not None
    if dice.random() < 0.1 or Choice.CONFIRM not in choices:
        return dice.choice(choices)
    if Choice.SEND_AGAIN in choices and dice.random() < 0.3:
        return Choice.SEND_AGAIN
    return Choice.CONFIRM if world.done(intent) else Choice.FAIL


def _grounds(world: World, review: Review, choice: Choice) -> dict[str, Any]:
    intent = review.intent
    assert intent is not None
    if choice is Choice.APPROVE:
        return {"waive_guard": world.dice.random() < 0.3}
    true = {Choice.CONFIRM: bool(world.done(intent)), Choice.FAIL: not world.done(intent)}.get(choice)
    more: dict[str, Any] = {"outside": "their support, ticket 4711"} if true and world.dice.random() < 0.7 else {}
    if choice is Choice.CONFIRM:
        newest = intent.checks.order_by("-position").first()
        shown = newest.grounds_data if newest else {"entry": None, "candidates": []}
        more["entry_id"] = shown["entry"] or next(iter(shown["candidates"]), None)
    return more


def _decide_entry(world: World, review: Review, person: User) -> None:
    assert review.entry is not None
    saw = deciding_entries.seen(review)
    own = Intent.objects.filter(idempotency_key=review.entry.key).first() if review.entry.key else None
    pause("has read the page")
    choice = Choice.NOT_OURS if own is None else world.dice.choice((Choice.DUPLICATE, Choice.LINK))
    deciding_entries.decide(
        review.pk,
        person=person,
        choice=choice,
        reason=DecisionReason.OTHER,
        note="so it is",
        seen=saw,
        named=str(own.pk) if own else "",
    )
    world.tell(f"{person.username} decides {choice} on the entry {review.entry.entry_id}")


def correct(world: World) -> None:
    """Two people say that a settled intent ended the other way; they know what happened."""
    settled = Intent.objects.filter(status__in=(Status.CONFIRMED, Status.FAILED)).select_related("downstream")
    wrong = [
        intent
        for intent in settled.order_by("created_at", "pk")
        if bool(world.done(intent)) is not (intent.status == Status.CONFIRMED)
    ]
    if not wrong:
        return
    intent = world.dice.choice(wrong)
    first, second = world.dice.sample(world.cast.people, 2)
    entry = LedgerEntry.objects.filter(key=intent.idempotency_key).order_by("pk").first()
    to = overriding.OTHER[Status(intent.status)]
    what = overriding.Correction(
        to=to,
        reason=DecisionReason.MISTAKE,
        note="it was the other way",
        entry_id=entry.pk if entry and to is Status.CONFIRMED else None,
        outside="their support",
    )
    saw = overriding.seen(intent)
    pause("has read the page")
    proposed = overriding.propose(intent.pk, what, person=first, seen=saw)
    pause("has proposed it")
    overriding.agree(proposed.pk, person=second, outside="their support")
    world.tell(f"{first.username} and {second.username} correct {str(intent.pk)[-6:]} to {to}")


def operate(world: World) -> None:
    """Somebody pauses an agent, a kind or a downstream, or puts a stop on an order; or lets all of that go on."""
    person, now = world.cast.people[0], world.clock.now
    if world.stopped and world.dice.random() < 0.6:
        let_all_go_on(world)
        return
    kind = world.dice.choice(world.kinds)
    scope, name = world.dice.choice(
        (
            ("agent", world.dice.choice(world.cast.agents).name),
            ("kind", kind.name),
            ("downstream", kind.downstream.name),
            ("subject", world.dice.choice(SUBJECTS)),
            ("subject", world.dice.choice(SUBJECTS)),
        )
    )
    if scope == "subject":
        stops.place(scope, name, reason="fraud", actor_id=f"person:{person.pk}")
    else:
        pausing.pause(scope, name, reason="an outage", person=person)
    world.stopped.setdefault((scope, name), now())
    world.tell(f"{person.username} stops the {scope} {name}")


def let_all_go_on(world: World) -> None:
    """Whoever stopped it, and also what somebody was just about to write down that they had stopped."""
    person = world.cast.people[0]
    world.stopped.clear()  # from here on nobody can rely on it
    for row in rows("SELECT id FROM actions_stop WHERE lifted_at IS NULL"):
        stops.lift(row["id"], actor_id=f"person:{person.pk}")
    for scope, model in pausing.MODELS.items():
        for row in rows(f"SELECT name FROM {model._meta.db_table} WHERE paused"):
            pausing.resume(scope, row["name"], reason="it is over", person=person)
    world.tell(f"{person.username} lets everything go on")


# --- what happens at the services, and what they tell of it


def happen(world: World) -> None:
    """Something goes on at a service: what was pending ends, something is taken back, a stranger does the like."""
    dice, now = world.dice, world.clock.now()
    found = [(one, effect) for one in world.payments.values() for effect in one.effects if effect.type == "refund"]
    if not found:
        return
    pending_ = [pair for pair in found if pair[1].state == "pending"]
    payments, effect = dice.choice(pending_ if pending_ and dice.random() < 0.5 else found)
    if dice.random() < 0.2:
        payments.away_until = now + timedelta(seconds=dice.choice((10, 60)))
        world.tell(f"{payments.name}: its ledger is away until {payments.away_until:%H:%M:%S}")
        return
    if effect.state == "pending":
        payments.finish(effect, dice.choice(("succeeded", "succeeded", "failed")), now)
        world.tell(f"{payments.name}: {effect.id} {effect.state}")
    elif effect.live and not effect.not_by_us and not effect.reversed and dice.random() < 0.3:
        payments.take_back(effect, now)
        world.tell(f"{payments.name}: {effect.id} is taken back")
    elif dice.random() < 0.3:
        # Where no keys are shown, a stranger's like of the same amount can't be told from ours, by anybody.
        keyed = payments.shows_keys and dice.random() < 0.5
        key = f"strangers-{world.number('stranger')}" if keyed else ""
        payments.by_a_stranger(effect, now, key=key)
        world.tell(f"{payments.name}: a stranger's {effect.id}")


def write_hooks(world: World) -> None:
    """The services write down what they mean to tell; whether, when and how often it arrives is another matter."""
    for payments in world.payments.values():
        for effect in payments.effects:
            if (effect.id, effect.state) in payments.seen:
                continue
            payments.seen.add((effect.id, effect.state))
            event = {
                "type": f"refund.{effect.state}",
                "timestamp": world.clock.now().isoformat(),
                "data": payments.row(effect),
            }
            world.hooks.append(
                Hook(
                    f"evt_{world.number('hook')}",
                    payments,
                    json.dumps(event, sort_keys=True).encode(),
                    effect.id,
                    world.number(f"hook of {effect.id}"),
                )
            )


def deliver(world: World) -> None:
    """Any of them, in any order, again and again."""
    if not world.hooks:
        return
    told = [hook for hook in world.hooks if hook.number > 1]
    again = {hook.entry for hook in told}
    # What was told twice, as it was first and as it was then, is what can come in the wrong order.
    changed = [hook for hook in world.hooks if hook.entry in again]
    hook = world.dice.choice(changed if changed and world.dice.random() < 0.6 else world.hooks)
    world.tell(f"{hook.payments.name}: webhook {hook.id} {json.loads(hook.body)['data']['status']}")
    hand_over(world, hook)


def stuck(world: World) -> list[Hook]:
    """What the services told of entries that changed since."""
    write_hooks(world)
    again = {hook.entry for hook in world.hooks if hook.number > 1}
    return [hook for hook in world.hooks if hook.entry in again]


def deliver_late(world: World) -> None:
    """The newest of what is stuck. The oldest comes last, and may come for the first time."""
    hook = world.late.pop()
    world.tell(f"{hook.payments.name}: webhook {hook.id} at last: {json.loads(hook.body)['data']['status']}")
    hand_over(world, hook)


def hand_over(world: World, hook: Hook) -> None:
    """The service signs it and delivers it now."""
    at = world.clock.now()
    headers = {
        "webhook-id": hook.id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(ENVIRONMENT[HOOK_SECRET]).sign(hook.id, at, hook.body.decode()),
    }
    receiving.receive(hook.payments.name, headers=headers, body=hook.body)


Act = Callable[[World], None]

# How often each begins something, of so many.
MENU: dict[Act, int] = {
    propose: 14,
    repeat: 8,
    reuse: 2,
    cancel: 2,
    work: 26,
    check: 16,
    look_through: 2,
    tick: 14,
    decide: 14,
    correct: 2,
    operate: 2,
    happen: 6,
    deliver: 6,
}


MACHINES: tuple[Act, ...] = (work, check, look_through, tick)


def begin(world: World, act: Act) -> Callable[[], None]:
    """The piece of work, ready to be run as a task."""

    def run() -> None:
        assert is_in_memory(), "on another database nothing happens, and nothing breaks"
        try:
            act(world)
        except LandedError as refused:
            if act in MACHINES:
                raise
            world.tell(f"{act.__name__}: {type(refused).__name__}")

    return run
