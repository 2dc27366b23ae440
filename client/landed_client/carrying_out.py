"""For callers who execute: claim before the call, say afterwards what came of it. Pure, as `steps` is.

What is believed of the body, in this order:

1. what it said itself (`action.confirmed(…)`, `.failed(…)`, `.not_sent()`, `.unknown()`);
2. it returned: confirmed;
3. it raised one of `not_sent`: nothing left this machine; one of `definite`: refused, with the exception as answer;
4. it raised anything else, KeyboardInterrupt and cancellation included: unknown.

A process that dies says nothing: its lease runs out and Landed calls the intent unknown by itself.
"""

import contextlib
import logging
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import uuid4

from landed_client import errors, outcomes, steps
from landed_client.intents import Intent
from landed_client.proposals import Proposing, new_request_key
from landed_client.reporting import Reporting, Said
from landed_client.retrying import Setting
from landed_client.wire import Steps

log = logging.getLogger("landed_client")

Exceptions = tuple[type[BaseException], ...]

# A body that is over sooner costs no renewal; every lease that Landed gives is longer.
FIRST_RENEWAL_S: Final = 1.0
_RENEWALS_PER_LEASE: Final = 3
# Whoever is being stopped doesn't wait long for Landed: what isn't said in time is unknown by itself.
_WHEN_STOPPED_S: Final = 5.0
_LONGEST_MESSAGE: Final = 1_000


@dataclass(frozen=True)
class Word:
    """What was said of the outcome."""

    outcome: Said
    external_id: str | None = None
    answer: Mapping[str, Any] | None = None


class Action:
    """An action that is being carried out. Send it with `idempotency_key` and no other.

    `intent`: its record; after the report, as the report left it. `unreported`: why Landed could not be told how it
    ended, None when it was told.
    """

    def __init__(self, intent: Intent, *, attempt: int, claim_token: str, idempotency_key: str) -> None:
        self.intent = intent
        self.attempt = attempt
        self.idempotency_key = idempotency_key
        self.unreported: errors.LandedError | None = None
        self._claim_token = claim_token
        self._word: Word | None = None

    def confirmed(self, *, external_id: str | None = None, answer: Mapping[str, Any] | None = None) -> None:
        """It happened. `external_id`: the downstream's own; `answer`: what it said, kept as evidence."""
        self._word = Word("confirmed", external_id, answer)

    def failed(self, answer: Mapping[str, Any]) -> None:
        """It was definitely refused, and `answer` says so. Never for a time-out or a broken connection."""
        if not answer:
            raise ValueError("A refusal needs the answer that says so; without one it is unknown.")
        self._word = Word("failed", None, answer)

    def unknown(self, answer: Mapping[str, Any] | None = None) -> None:
        """It may have happened."""
        self._word = Word("unknown", None, answer)

    def not_sent(self, answer: Mapping[str, Any] | None = None) -> None:
        """It provably never left this machine."""
        self._word = Word("not_sent", None, answer)

    @property
    def word(self) -> Word | None:
        return self._word


_current: ContextVar[Action] = ContextVar("landed_action")


def current_action() -> Action:
    """The action whose body is running, inside a `guarded` function or `executing`. Raises LookupError elsewhere."""
    return _current.get()


def enter_context(action: Action) -> Callable[[], None]:
    """Makes it the current one; returns what undoes that."""
    token = _current.set(action)

    def leave() -> None:
        # Somebody may enter in one context and leave in another; then there is nothing to undo here.
        with contextlib.suppress(ValueError):
            _current.reset(token)

    return leave


@dataclass(frozen=True)
class Terms:
    """How a body is carried out and read. `lease_s`, `renew_for`: seconds; see `Landed.executing`."""

    definite: Exceptions = ()
    not_sent: Exceptions = ()
    lease_s: int = 30
    renew_for: float = 900.0

    @property
    def renew_every(self) -> float:
        return self.lease_s / _RENEWALS_PER_LEASE


# --- before the body


def begin(fields: Proposing, setting: Setting) -> Steps[Action]:
    """Records and claims in one call; or claims what was recorded under this request key and may be sent by now.

    Raises what `propose` raises, and for an earlier run's intent: AlreadyDone when it is confirmed, Failed,
    Cancelled, Held, MayHaveHappened when somebody claimed it. NotNow where the claim can't be used any more.
    """
    _refuse_own_executor(fields)
    key, token = fields.get("request_key") or new_request_key(), uuid4().hex
    asked: Proposing = {**fields, "executor": "caller", "claim_token": token, "request_key": key}
    intent = yield from steps.propose(asked, setting)
    if intent.attempt is not None and intent.attempt.may_send:
        return Action(
            intent, attempt=intent.attempt.number, claim_token=token, idempotency_key=intent.idempotency_key
        )
    if intent.status == "recorded" and intent.step == "send":
        return (yield from _claimed(intent, token, setting))
    if intent.attempt is not None and not intent.done and (not intent.replayed or not fields.get("request_key")):
        # Claimed by this very call, and too late or stopped meanwhile: nobody else knows that nothing was sent.
        raise (yield from _given_back(intent, intent.attempt.number, token, setting))
    raise _not_now(intent)


def _refuse_own_executor(fields: Proposing) -> None:
    if named := {"executor", "claim_token"} & set(fields):
        raise TypeError(f"Whoever carries out is its own executor, with its own token: leave out {', '.join(named)}.")


def _claimed(intent: Intent, token: str, setting: Setting) -> Steps[Action]:
    claim = yield from steps.claim(intent.id, token, setting)
    if not claim.attempt.may_send:
        raise (yield from _given_back(intent, claim.attempt.number, token, setting))
    return Action(intent, attempt=claim.attempt.number, claim_token=token, idempotency_key=claim.idempotency_key)


def _given_back(intent: Intent, attempt: int, token: str, setting: Setting) -> Steps[errors.NotNow]:
    said = Reporting(attempt=attempt, claim_token=token, outcome="not_sent")
    try:
        yield from steps.report(intent.id, said, setting)
    except errors.LandedError as error:
        log.warning("intent %s was not sent, and Landed could not be told: %s", intent.id, error)
    return errors.NotNow(_NOT_SENT, code="claim_over", request_key=intent.request_key)


_NOT_SENT: Final = "The claim was over before it could be used, so nothing was sent; its record will show that."


def _not_now(intent: Intent) -> errors.LandedError:
    if intent.outcome == "confirmed":
        return errors.AlreadyDone(intent.message, intent=intent, request_key=intent.request_key)
    found = outcomes.error_of(intent)
    if type(found) is errors.OutcomeUnknown:
        return errors.MayHaveHappened(found.message, intent=intent)
    return found


# --- while it runs


def renewed(action: Action, terms: Terms, setting: Setting) -> Steps[bool]:
    """Asks for a longer lease; whether it is worth asking again."""
    try:
        yield from steps.renew(action.intent.id, action.attempt, action._claim_token, setting, lease_s=terms.lease_s)
    except errors.Unavailable as error:
        log.warning("the lease of intent %s could not be renewed: %s", action.intent.id, error)
    except errors.LandedError as error:
        log.warning("the lease of intent %s is not renewed: %s", action.intent.id, error)
        return False
    return True


# --- after it


def word_for(action: Action, error: BaseException | None, terms: Terms) -> Word:
    """What to report; see the order at the top."""
    if action.word is not None:
        return action.word
    if error is None:
        return Word("confirmed")
    if isinstance(error, terms.not_sent):
        return Word("not_sent", answer=_answer_of(error))
    return Word("failed" if isinstance(error, terms.definite) else "unknown", answer=_answer_of(error))


def _answer_of(error: BaseException) -> dict[str, str]:
    kind = type(error)
    return {"exception": f"{kind.__module__}.{kind.__qualname__}", "message": str(error)[:_LONGEST_MESSAGE]}


def end(action: Action, error: BaseException | None, terms: Terms, setting: Setting) -> Steps[None]:
    """Reports. What can't be delivered is logged and stays on `action.unreported`; it is never raised.

    The body has run: its value, or its exception, is what the caller needs, and nothing here may take its place. A
    body that returned has done it, so to raise now would tell its caller, and any framework that repeats what
    raises, something else than what happened. On Landed's side the lease runs out, the intent becomes unknown, the
    subject stays closed, and a look into the books or a person settles it; the same report may also still be made.
    """
    word = word_for(action, error, terms)
    said = Reporting(
        attempt=action.attempt,
        claim_token=action._claim_token,
        outcome=word.outcome,
        external_id=word.external_id,
        answer=word.answer,
    )
    stopped = error is not None and not isinstance(error, Exception)
    within = replace(setting, timeout=min(setting.timeout, _WHEN_STOPPED_S)) if stopped else setting
    try:
        found = yield from steps.report(action.intent.id, said, within)
    except errors.LandedError as lost:
        action.unreported = lost
        log.error("intent %s ended as %s, and Landed could not be told: %s", action.intent.id, word.outcome, lost)
    else:
        action.intent = found.under(action.intent.request_key)
