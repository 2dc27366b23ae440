"""Which rules apply to an intent: reads a policy snapshot. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any


@dataclass(frozen=True)
class Limits:
    """In minor units of one currency; None: no such limit."""

    approve_above: int | None = None
    review_above: int | None = None
    two_people_above: int | None = None


@dataclass(frozen=True)
class Policy:
    """A kind's policy and its downstream's declarations, as they were when an intent was recorded."""

    # of the kind
    kind: str
    title: str
    executors: str
    params_schema: Mapping[str, Any]
    amount_rule: str
    subject_from: str
    subject_pattern: str
    subject_case_folds: bool
    payee_from: str
    customer_from: str
    limits: Mapping[str, Mapping[str, int]]
    duplicate_policy: str
    look_alike_policy: str
    look_alike_window_s: int
    send_before_s: int | None
    not_sent_retries: int
    replay: str
    check_schedule: list[int]
    absences_needed: int
    absence_spacing_s: int
    machine_concludes_unclosed: bool
    recheck_failed_s: list[int]
    relook: str
    review_after_s: int
    review_due_s: int
    approval_expires_s: int
    reports_trusted: bool
    customer_texts: Mapping[str, str]
    # of the downstream: whose books were asked, and what it declared
    downstream: str
    connector: str
    base_url: str
    account: str
    config_digest: str
    dedupes: bool
    dedupe_window_s: int | None
    look_up: str
    lag_s: int
    absence_conclusive: bool
    # added later: snapshots from before don't have them
    replay_schedule: Sequence[int] = (5, 15, 60, 300)
    relook_percent: int | None = None


# Which columns a snapshot takes from the downstream; the others are the kind's.
OF_DOWNSTREAM = (
    "connector",
    "base_url",
    "account",
    "dedupes",
    "dedupe_window_s",
    "look_up",
    "lag_s",
    "absence_conclusive",
)
_DERIVED = ("kind", "downstream", "config_digest")
OF_KIND = tuple(field.name for field in fields(Policy) if field.name not in (*OF_DOWNSTREAM, *_DERIVED))


@lru_cache(maxsize=1_024)
def read(text: str) -> Policy:
    """The policy that a snapshot's canonical text holds."""
    return Policy(**json.loads(text))


def limits_for(policy: Policy, currency: str) -> Limits | None:
    """The limits of one currency; None when the kind lists none for it (then it is held)."""
    found = policy.limits.get(currency)
    return None if found is None else Limits(**found)


def _above(policy: Policy, name: str, amount_minor: int | None, currency: str) -> bool:
    if amount_minor is None:
        return False
    limits = limits_for(policy, currency)
    if limits is None:
        return True
    limit: int | None = getattr(limits, name)
    return limit is not None and amount_minor > limit


def needs_approval(policy: Policy, amount_minor: int | None, currency: str) -> bool:
    """Held before sending: above the limit, or in a currency without limits."""
    return _above(policy, "approve_above", amount_minor, currency)


def needs_review(policy: Policy, amount_minor: int | None, currency: str) -> bool:
    """What is concluded from looking is decided by a person."""
    return _above(policy, "review_above", amount_minor, currency)


def needs_two_people(policy: Policy, amount_minor: int | None, currency: str) -> bool:
    """Above the second limit. Where a kind has one for some currency, any amount in a currency that it lists no
    limits for is above it: nobody has said how much one person may decide."""
    if amount_minor is None:
        return False
    if limits_for(policy, currency) is None:
        return any(limits.get("two_people_above") is not None for limits in policy.limits.values())
    return _above(policy, "two_people_above", amount_minor, currency)


def can_look_up(policy: Policy) -> bool:
    """Whether anybody looks into its books: our connector, or a service with code of its own."""
    return policy.look_up != "none"


def can_look_now(policy: Policy) -> bool:
    """Whether we can look ourselves, at this moment: our connector knows how."""
    return policy.look_up not in ("none", "service")


def relooks(policy: Policy, amount_minor: int | None, currency: str, *, lot: int) -> bool:
    """Whether what an answer confirmed is looked up once afterwards. `lot`: what the intent drew, from 0 to 99."""
    if not can_look_up(policy):
        return False
    if policy.relook == "share":
        return lot < (policy.relook_percent or 0)
    return policy.relook == "all" or (policy.relook == "above_limit" and needs_review(policy, amount_minor, currency))


def check_delay_s(policy: Policy, checks_made: int) -> int:
    """Seconds from now until the next check, after so many have been made. The schedule's last entry repeats."""
    return policy.check_schedule[min(checks_made, len(policy.check_schedule) - 1)]


def replay_safe_until(policy: Policy, first_maybe_sent_at: datetime | None) -> datetime | None:
    """Until when the same key may be sent again; None: never (or nothing was sent)."""
    if not policy.dedupes or policy.dedupe_window_s is None or first_maybe_sent_at is None:
        return None
    return first_maybe_sent_at + timedelta(seconds=policy.dedupe_window_s)


def retry_delay_s(failures: int) -> int:
    """Seconds before the next sending after `failures` that are proven not sent: 1, 2, 4 … 60."""
    return int(min(60, 2 ** max(0, failures - 1)))
