"""The intent, its attempts, its transitions and the evidence."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from django.db import models
from django.db.models import F, Q

from actions import money
from actions.reasons import Reason
from actions.statuses import COUNTED, SETTLED, TRANSITIONS, UNSETTLED, Actor, Status

from .agents import Agent
from .history import Chained
from .policy import Downstream, Kind, PolicySnapshot


class Executor(models.TextChoices):
    LANDED = "landed", "Landed"
    CALLER = "caller", "the caller"


class SettledBy(models.TextChoices):
    ANSWER = "answer", "the downstream's answer"
    LEDGER = "ledger", "the ledger"
    ABSENCE = "absence", "its absence from the ledger"
    REPORT = "report", "the caller's report"
    DECISION = "decision", "a person's decision"
    OVERRIDE = "override", "an override"
    NOTHING_SENT = "nothing_sent", "nothing was sent"


class Intent(models.Model):
    """One recorded wish to act. Only `actions.transitions` assigns `status`."""

    id = models.UUIDField(primary_key=True, editable=False)
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="intents")
    kind = models.ForeignKey(Kind, on_delete=models.PROTECT, related_name="intents")
    policy = models.ForeignKey(PolicySnapshot, on_delete=models.PROTECT, related_name="intents")
    downstream = models.ForeignKey(Downstream, on_delete=models.PROTECT, related_name="intents")
    executor = models.CharField(max_length=8, choices=Executor)

    subject = models.CharField(max_length=200, help_text="Canonical: order-4812 or order-4812/line-2.")
    family = models.CharField(max_length=200, help_text="The subject up to its first slash.")
    amount_minor = models.BigIntegerField(null=True)
    currency = models.CharField(max_length=3, blank=True)
    # Decimals of the currency as they were: codes go out of force, amounts stay what they are.
    amount_exponent = models.PositiveSmallIntegerField(default=0)
    params = models.TextField(help_text="Canonical JSON.")
    payee = models.CharField(max_length=200, blank=True)
    customer = models.CharField(max_length=200, blank=True)
    note = models.TextField(blank=True, help_text="Written by the agent; untrusted.")
    context = models.TextField(default="{}", help_text="Canonical JSON; never sent downstream.")
    payload_salt = models.CharField(max_length=32)
    payload_digest = models.CharField(max_length=64)
    request_key = models.CharField(max_length=255, null=True)  # noqa: DJ001  NULLs don't collide in the unique index
    idempotency_key = models.CharField(max_length=255, unique=True)
    repeat_of = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="repeats")
    look_alike_of = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="look_alikes")

    status = models.CharField(max_length=10, choices=Status)
    status_reason = models.CharField(max_length=40)
    status_since = models.DateTimeField()
    guard_key = models.CharField(max_length=255, null=True, unique=True)  # noqa: DJ001  as above
    guard_waived = models.BooleanField(default=False)
    disputed = models.BooleanField(default=False)
    hold_reasons = models.CharField(max_length=200, blank=True, help_text="Comma-separated; for people only.")

    external_id = models.CharField(max_length=255, blank=True)
    settled_amount_minor = models.BigIntegerField(null=True)
    settled_currency = models.CharField(max_length=3, blank=True)
    settled_by = models.CharField(max_length=12, choices=SettledBy, blank=True)
    settled_at = models.DateTimeField(null=True)

    fence = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    send_before = models.DateTimeField(null=True)
    approve_before = models.DateTimeField(null=True, help_text="While it is held: until when.")
    next_attempt_at = models.DateTimeField(null=True)
    next_check_at = models.DateTimeField(null=True)
    looking_until = models.DateTimeField(null=True, help_text="Somebody looks into the books, until then at most.")
    checks_made = models.PositiveIntegerField(default=0, help_text="Since it became unknown.")
    first_maybe_sent_at = models.DateTimeField(null=True, help_text="From here the key's window counts.")

    version = models.PositiveIntegerField(help_text="Sequence of its last transition.")
    chain_length = models.PositiveIntegerField(default=0)
    chain_head = models.CharField(max_length=64)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    erased_at = models.DateTimeField(
        null=True, help_text="When what it said about people was erased; its history says by whom and why."
    )

    # What the first link of its history rests on: set when it is recorded, never changed.
    GENESIS: ClassVar[tuple[str, ...]] = (
        "id",
        "agent_id",
        "kind_id",
        "downstream_id",
        "policy_id",
        "executor",
        "payload_digest",
        "idempotency_key",
        "request_key",
        "payload_salt",
        "repeat_of_id",
        "look_alike_of_id",
        "send_before",
        "created_at",
    )
    # What may be about people, with what it is when it is erased. Keys, ids and amounts stay: see docs/operations.md.
    ERASABLE: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"params": "{}", "context": "{}", "note": "", "payee": "", "customer": "", "payload_salt": ""}
    )

    class Meta:
        ordering = ["-created_at", "-id"]
        permissions = [("override_intent", "Can override a settled intent")]
        constraints = [
            models.UniqueConstraint(name="intent_request_key_once", fields=["agent", "request_key"]),
            models.CheckConstraint(name="intent_status_valid", condition=Q(status__in=Status.values)),
            models.CheckConstraint(name="intent_executor_valid", condition=Q(executor__in=Executor.values)),
            models.CheckConstraint(
                name="intent_settled_has_time",
                condition=Q(status__in=sorted(SETTLED), settled_at__isnull=False)
                | Q(status__in=sorted(UNSETTLED), settled_at__isnull=True),
            ),
            models.CheckConstraint(
                name="intent_settled_by_valid",
                condition=Q(status__in=sorted(SETTLED), settled_by__in=SettledBy.values)
                | Q(status__in=sorted(UNSETTLED), settled_by=""),
            ),
            models.CheckConstraint(
                name="intent_guard_only_while_open",
                condition=Q(guard_key__isnull=True) | Q(status__in=sorted(UNSETTLED)) | Q(disputed=True),
            ),
            models.CheckConstraint(
                name="intent_amount_and_currency",
                condition=Q(amount_minor__isnull=True, currency="") | (Q(amount_minor__gt=0) & ~Q(currency="")),
            ),
            models.CheckConstraint(
                name="intent_lease_only_while_submitted",
                condition=Q(lease_until__isnull=True) | Q(status=Status.SUBMITTED),
            ),
            models.CheckConstraint(
                name="intent_sending_only_while_open",
                condition=Q(next_attempt_at__isnull=True) | Q(status__in=[Status.RECORDED, Status.UNKNOWN]),
            ),
            models.CheckConstraint(
                name="intent_approval_only_while_held",
                condition=Q(approve_before__isnull=True) | Q(status=Status.HELD),
            ),
            models.CheckConstraint(name="intent_history_begins", condition=Q(version__gte=1)),
            models.CheckConstraint(name="intent_keys_not_empty", condition=~Q(idempotency_key="")),
        ]
        # Every hot query rides an index over what is open, so its cost follows what is open and not history.
        indexes = [
            models.Index(
                name="intent_due_to_send",
                fields=["next_attempt_at"],
                condition=Q(next_attempt_at__isnull=False),
            ),
            models.Index(
                name="intent_due_to_check", fields=["next_check_at"], condition=Q(next_check_at__isnull=False)
            ),
            models.Index(
                name="intent_being_looked_up",
                fields=["looking_until"],
                condition=Q(looking_until__isnull=False),
            ),
            models.Index(name="intent_lease_over", fields=["lease_until"], condition=Q(lease_until__isnull=False)),
            models.Index(
                name="intent_too_old_to_send",
                fields=["send_before"],
                condition=Q(status__in=[Status.HELD, Status.RECORDED], send_before__isnull=False),
            ),
            models.Index(
                name="intent_approval_over",
                fields=["approve_before"],
                condition=Q(approve_before__isnull=False),
            ),
            models.Index(
                name="intent_open_family",
                fields=["kind", "family"],
                condition=Q(status__in=sorted(UNSETTLED)) | Q(disputed=True),
            ),
            models.Index(
                name="intent_open_of_agent",
                fields=["agent", "kind"],
                condition=Q(status__in=sorted(UNSETTLED)),
            ),
            # What uses up an agent's limits, with everything that its sum reads.
            models.Index(
                name="intent_counted",
                fields=[
                    *("agent", "currency", "created_at", "kind"),
                    *("amount_minor", "settled_amount_minor", "settled_currency"),
                ],
                condition=Q(status__in=sorted(COUNTED)) | Q(disputed=True),
            ),
            models.Index(
                name="intent_open_since",
                fields=["status", "status_since"],
                condition=Q(status__in=sorted(UNSETTLED)),
            ),
            # The operator classes let PostgreSQL find prefixes in any collation; SQLite's indexes are binary anyway.
            models.Index(
                name="intent_family_history",
                fields=["family", "-created_at"],
                opclasses=["varchar_pattern_ops", "timestamptz_ops"],
            ),
            models.Index(
                name="intent_request_key",
                fields=["request_key"],
                condition=Q(request_key__isnull=False),
                opclasses=["varchar_pattern_ops"],
            ),
            models.Index(name="intent_status_newest", fields=["status", "-id"]),
            models.Index(name="intent_kind_newest", fields=["kind", "-id"]),
            models.Index(name="intent_disputed_newest", fields=["-id"], condition=Q(disputed=True)),
            models.Index(name="intent_agent_newest", fields=["agent", "-created_at", "-id"]),
            models.Index(name="intent_agent_updates", fields=["agent", "updated_at"]),
            models.Index(
                name="intent_external_id",
                fields=["external_id"],
                condition=~Q(external_id=""),
                opclasses=["varchar_pattern_ops"],
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind_id} {self.subject} {self.status}"

    @property
    def settled(self) -> bool:
        return self.status in SETTLED

    @property
    def amount(self) -> str | None:
        """The amount as a decimal string, or None."""
        return None if self.amount_minor is None else money.render(self.amount_minor, self.amount_exponent)

    @property
    def settled_amount(self) -> str | None:
        if self.settled_amount_minor is None:
            return None
        if self.settled_currency in ("", self.currency):
            return money.render(self.settled_amount_minor, self.amount_exponent)
        return money.to_text(self.settled_amount_minor, self.settled_currency)

    @property
    def params_data(self) -> dict[str, Any]:
        found = json.loads(self.params)
        assert isinstance(found, dict)
        return found

    @property
    def context_data(self) -> dict[str, Any]:
        found = json.loads(self.context)
        assert isinstance(found, dict)
        return found


class Result(models.TextChoices):
    """What an attempt came to."""

    CONFIRMED = "confirmed", "confirmed"
    ACCEPTED = "accepted", "accepted, pending"
    REFUSED = "refused", "refused"
    NOT_SENT = "not_sent", "not sent"
    NO_ANSWER = "no_answer", "no answer"


# What proves that an attempt had no effect.
HARMLESS = frozenset({Result.REFUSED, Result.NOT_SENT})


class ClosedBy(models.TextChoices):
    ANSWER = "answer", "its own answer"
    REPORT = "report", "the caller's report"
    CLOCK = "clock", "the clock"


class Attempt(models.Model):
    """One sending of an intent. Committed before the first byte leaves."""

    intent = models.ForeignKey(Intent, on_delete=models.PROTECT, related_name="attempts")
    number = models.PositiveIntegerField()
    fence = models.PositiveIntegerField()
    executor = models.CharField(max_length=8, choices=Executor)
    claim_token_digest = models.CharField(max_length=64, blank=True)
    worker = models.CharField(max_length=100, blank=True)
    claimed_at = models.DateTimeField()
    lease_until = models.DateTimeField()

    phase = models.CharField(max_length=16, blank=True, help_text="How far the request got.")
    result = models.CharField(max_length=10, choices=Result, blank=True)
    reason = models.CharField(max_length=40, blank=True)
    http_status = models.PositiveIntegerField(null=True)
    closed_at = models.DateTimeField(null=True)
    closed_by = models.CharField(max_length=8, choices=ClosedBy, blank=True)
    # Its own answer, when it came after "no answer" had closed it: added once.
    late_result = models.CharField(max_length=10, choices=Result, blank=True)
    late_reason = models.CharField(max_length=40, blank=True)
    late_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["intent", "number"]
        constraints = [
            models.UniqueConstraint(name="attempt_number_once", fields=["intent", "number"]),
            models.UniqueConstraint(name="attempt_one_open", fields=["intent"], condition=Q(closed_at__isnull=True)),
            models.CheckConstraint(
                name="attempt_closed_has_result",
                condition=Q(closed_at__isnull=True, result="", closed_by="")
                | Q(closed_at__isnull=False, result__in=Result.values, closed_by__in=ClosedBy.values),
            ),
            models.CheckConstraint(
                name="attempt_late_only_after_silence",
                condition=Q(late_result="") | Q(result=Result.NO_ANSWER, late_result__in=Result.values),
            ),
            models.CheckConstraint(name="attempt_lease_after_claim", condition=Q(lease_until__gt=F("claimed_at"))),
        ]
        indexes = [models.Index(name="attempt_claimed", fields=["claimed_at"])]  # figures of the last days

    def __str__(self) -> str:
        return f"{self.intent_id}#{self.number}"

    @property
    def known_result(self) -> str:
        """What is known of it now; empty while it is open."""
        return self.late_result or self.result

    @property
    def harmless(self) -> bool:
        """Proven to have had no effect: refused, or not sent."""
        return self.known_result in HARMLESS

    @property
    def closed_by_itself(self) -> bool:
        """Whether whoever sent it also said how it ended; else its worker may have died in the middle."""
        return self.closed_by in (ClosedBy.ANSWER, ClosedBy.REPORT) or bool(self.late_result)


class EvidenceKind(models.TextChoices):
    REQUEST = "request", "request"
    ANSWER = "answer", "answer"
    PAGE = "page", "page of entries"
    REPORT = "report", "caller's report"
    WEBHOOK = "webhook", "webhook"
    NOTE = "note", "note"
    OUTSIDE = "outside", "outside evidence"


class Evidence(models.Model):
    """One stored observation. Its text can be erased once; what it was can't be changed."""

    intent = models.ForeignKey(Intent, null=True, on_delete=models.PROTECT, related_name="evidence")
    attempt = models.ForeignKey(Attempt, null=True, on_delete=models.PROTECT, related_name="evidence")
    kind = models.CharField(max_length=8, choices=EvidenceKind)
    source = models.CharField(max_length=200, help_text="Where it is from: a URL, a person, an agent.")
    text = models.TextField(help_text="Secrets, card numbers and IBANs are masked before it is stored.")
    salt = models.CharField(max_length=32)
    digest = models.CharField(max_length=64)
    created_at = models.DateTimeField()
    erased_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["id"]
        verbose_name_plural = "evidence"

    def __str__(self) -> str:
        return f"{self.kind} {self.digest[:8]}"


def _known_pairs() -> Q:
    found = Q()
    for from_, to in TRANSITIONS:
        found |= Q(from_status=from_ or "", to_status=to)
    return found


class Transition(Chained):
    """One change of status: who, when, why, on what evidence."""

    intent = models.ForeignKey(Intent, on_delete=models.PROTECT, related_name="transitions")
    sequence = models.PositiveIntegerField()
    from_status = models.CharField(max_length=10, choices=Status, blank=True)
    to_status = models.CharField(max_length=10, choices=Status)
    actor = models.CharField(max_length=14, choices=Actor)
    actor_id = models.CharField(max_length=100, help_text="agent:7, worker:host/12, person:3; never a name.")
    reason = models.CharField(max_length=40)
    evidence = models.TextField(default="[]", help_text="Canonical JSON: [[id, digest], …].")
    facts = models.TextField(default="{}", help_text="Canonical JSON: the columns of FACTS as they were after it.")

    CHAINED = (
        "intent_id",
        "sequence",
        "from_status",
        "to_status",
        "actor",
        "actor_id",
        "reason",
        "evidence",
        "facts",
    )
    # What of the intent a transition pins down, so that changing it afterwards shows.
    FACTS = (
        "fence",
        "external_id",
        "settled_amount_minor",
        "settled_currency",
        "settled_by",
        "guard_waived",
    )

    class Meta:
        ordering = ["intent", "sequence"]
        constraints = [
            models.UniqueConstraint(name="transition_sequence_once", fields=["intent", "sequence"]),
            models.UniqueConstraint(name="transition_position_once", fields=["intent", "position"]),
            models.CheckConstraint(name="transition_in_table", condition=_known_pairs()),
            models.CheckConstraint(name="transition_actor_valid", condition=Q(actor__in=Actor.values)),
        ]
        # Figures of the last days, which count few of all transitions.
        indexes = [
            models.Index(name="transition_to_unknown", fields=["at"], condition=Q(to_status=Status.UNKNOWN)),
            models.Index(name="transition_overridden", fields=["at"], condition=Q(reason=Reason.OVERRIDDEN)),
        ]

    def __str__(self) -> str:
        return f"{self.intent_id}:{self.sequence} {self.from_status}→{self.to_status}"


class Observed(models.TextChoices):
    """What an observation is about."""

    ACCEPTED = "accepted", "an answer that says pending"
    LATE = "late", "an answer that came too late to move anything"
    AGAIN = "again", "an answer that was heard before, or another than before"
    DISPUTED = "disputed", "new facts contradict the status"
    UPHELD = "upheld", "a person upheld the status"
    TIED = "tied", "a person said what a ledger entry has to do with it"
    NOTE = "note", "an administrator's note"
    ERASED = "erased", "what it said about people was erased"


class Observation(Chained):
    """Something that history has to keep although no status changed."""

    intent = models.ForeignKey(Intent, on_delete=models.PROTECT, related_name="observations")
    what = models.CharField(max_length=10, choices=Observed)
    by = models.CharField(max_length=100, help_text="worker:host/12, checker, person:3; never a name.")
    evidence = models.TextField(default="[]", help_text="Canonical JSON: [[id, digest], …].")
    facts = models.TextField(
        blank=True, help_text="Canonical JSON. Of an erasing: why, which files, and the digest over what was kept."
    )

    CHAINED = ("intent_id", "what", "by", "evidence")
    CHAINED_IF_SET = ("facts",)

    class Meta:
        ordering = ["intent", "position"]
        constraints = [
            models.UniqueConstraint(name="observation_position_once", fields=["intent", "position"]),
            models.CheckConstraint(name="observation_what_valid", condition=Q(what__in=Observed.values)),
        ]

    def __str__(self) -> str:
        return f"{self.intent_id}:{self.what}"
