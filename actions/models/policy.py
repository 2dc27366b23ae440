"""What governs an intent: the downstream it goes to and the kind it is of."""

from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from simple_history.models import HistoricalRecords

from actions import money

SLUG = RegexValidator(r"^[a-z][a-z0-9_-]{0,63}\Z", "Small letters, digits, - and _, beginning with a letter.")


def valid_base_url(value: str) -> None:
    """http or https, a host (one label is enough inside a cluster), perhaps a port and a path; nothing else."""
    try:
        found = urlsplit(value)
        sound = found.scheme in ("http", "https") and found.hostname and found.port != 0
    except ValueError:
        sound = False
    if not sound or found.username or found.query or found.fragment or not value.isascii() or " " in value:
        raise ValidationError("An address such as https://api.example.com/base, without user, query or fragment.")


_ENVIRONMENT = RegexValidator(r"^[A-Z][A-Z0-9_]*\Z", "The NAME of an environment variable, in capitals.")


class LookUp(models.TextChoices):
    KEY = "key", "by idempotency key"
    SUBJECT = "subject", "by subject"
    BOTH = "both", "by key, then by subject"
    SERVICE = "service", "by a service with code of its own"
    NONE = "none", "not at all"


class Downstream(models.Model):
    """An external system and what it declares it can do. Nothing about it is assumed."""

    name = models.CharField(max_length=64, unique=True, validators=[SLUG])
    title = models.CharField(max_length=100)
    connector = models.CharField(max_length=64, help_text="Which connector speaks to it.")
    base_url = models.CharField(
        max_length=500, validators=[valid_base_url], help_text="Where it is; the connector adds the paths."
    )
    account = models.CharField(
        max_length=200,
        blank=True,
        help_text="Whose books they are; can't change while an intent is unsettled.",
    )
    secret_env = models.CharField(
        max_length=100,
        blank=True,
        validators=[_ENVIRONMENT],
        help_text="Name of the environment variable that holds the secret; never the secret itself.",
    )
    config = models.JSONField(default=dict, blank=True, help_text="What the connector needs to know.")
    webhook_secret_env = models.CharField(
        max_length=100,
        blank=True,
        validators=[_ENVIRONMENT],
        help_text="Name of the environment variable with the secret of its webhooks. Empty: it sends none.",
    )
    webhook_old_secret_env = models.CharField(
        max_length=100, blank=True, validators=[_ENVIRONMENT], help_text="The secret before, while it is changed."
    )

    dedupes = models.BooleanField(default=False, help_text="It carries out one key once.")
    dedupe_window_s = models.PositiveIntegerField(
        null=True, blank=True, help_text="For how many seconds it remembers a key. Empty: it doesn't say."
    )
    look_up = models.CharField(max_length=8, choices=LookUp, default=LookUp.NONE)
    lag_s = models.PositiveIntegerField(default=60, help_text="After how many seconds an effect shows for certain.")
    absence_conclusive = models.BooleanField(
        default=False, help_text="What its books don't show after the lag did not happen."
    )

    look_back_s = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(60)],
        help_text="How often, in seconds, its books are looked through for what no intent explains. Empty: never.",
    )

    connect_timeout_ms = models.PositiveIntegerField(default=3_000, validators=[MinValueValidator(50)])
    deadline_ms = models.PositiveIntegerField(
        default=20_000, validators=[MinValueValidator(100), MaxValueValidator(120_000)]
    )
    lease_margin_ms = models.PositiveIntegerField(default=10_000, validators=[MinValueValidator(500)])
    max_concurrency = models.PositiveIntegerField(default=8, validators=[MinValueValidator(1)])
    max_look_ups = models.PositiveIntegerField(
        default=4, validators=[MinValueValidator(1)], help_text="So many looks into its books at once."
    )
    breaker_after = models.PositiveIntegerField(
        default=10,
        validators=[MinValueValidator(1)],
        help_text="After so many in a row without an answer only a probe is sent, or looked up.",
    )
    paused = models.BooleanField(default=False)
    pause_reason = models.CharField(max_length=200, blank=True)

    history = HistoricalRecords()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(name="downstream_look_up_valid", condition=models.Q(look_up__in=LookUp.values)),
            models.CheckConstraint(
                name="downstream_window_needs_dedupe",
                condition=models.Q(dedupe_window_s__isnull=True) | models.Q(dedupes=True),
            ),
        ]

    def __str__(self) -> str:
        return self.name

    # Changing these while intents are unsettled would make look-ups answer about other books.
    IDENTITY = (
        "name",
        "connector",
        "base_url",
        "account",
        "secret_env",
        "look_up",
        "absence_conclusive",
        "config",
    )


class Executors(models.TextChoices):
    LANDED = "landed", "Landed"
    CALLER = "caller", "the caller"
    BOTH = "both", "either"


class AmountRule(models.TextChoices):
    REQUIRED = "required", "required"
    OPTIONAL = "optional", "optional"
    NONE = "none", "not taken"


class DuplicatePolicy(models.TextChoices):
    REFUSE = "refuse", "refuse"
    HOLD = "hold", "hold for a person"


class LookAlikePolicy(models.TextChoices):
    REFUSE = "refuse", "refuse"
    HOLD = "hold", "hold for a person"
    ALLOW = "allow", "allow"


class Replay(models.TextChoices):
    NEVER = "never", "never by machine"
    IN_WINDOW = "in_window", "same key, while the downstream dedupes it"


class Relook(models.TextChoices):
    NONE = "none", "none"
    ABOVE_LIMIT = "above_limit", "those above the review limit"
    SHARE = "share", "a share of them"
    ALL = "all", "all"


def valid_limits(value: Any) -> None:
    """`{"EUR": {"approve_above": 1000000, "review_above": 50000, "two_people_above": 500000}}`, minor units."""
    names = {"approve_above", "review_above", "two_people_above"}
    if not isinstance(value, dict):
        raise ValidationError("An object: currency → limits in minor units.")
    for currency, limits in value.items():
        try:
            money.exponent(currency)
        except money.BadAmount as wrong:
            raise ValidationError(str(wrong)) from None
        if not isinstance(limits, dict) or not set(limits) <= names:
            raise ValidationError(f"{currency}: only {', '.join(sorted(names))}.")
        review, two = limits.get("review_above"), limits.get("two_people_above")
        if two is not None and (review is None or review > two):
            raise ValidationError(f"{currency}: two people without a review below them: set review_above lower.")
        for name, limit in limits.items():
            if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
                raise ValidationError(f"{currency}.{name}: a whole number of minor units, or leave it out.")


def valid_schedule(value: Any) -> None:
    ok = isinstance(value, list) and value and all(type(v) is int and 0 < v <= 7 * 86_400 for v in value)
    if not ok:
        raise ValidationError("A list of seconds, such as [2, 5, 15, 60, 300]; the last one repeats.")


def default_schedule() -> list[int]:
    return [30, 60, 300, 900, 3_600]


def default_replays() -> list[int]:
    return [5, 15, 60, 300]


def default_rechecks() -> list[int]:
    return [3_600, 86_400]


class Kind(models.Model):
    """A sort of action and the policy that governs it. Each intent keeps a snapshot of it as it was."""

    name = models.CharField(max_length=64, unique=True, validators=[SLUG])
    title = models.CharField(max_length=100)
    downstream = models.ForeignKey(Downstream, on_delete=models.PROTECT, related_name="kinds")
    executors = models.CharField(max_length=8, choices=Executors, default=Executors.LANDED)
    params_schema = models.JSONField(default=dict, blank=True, help_text="JSON Schema (2020-12) of params.")
    amount_rule = models.CharField(max_length=8, choices=AmountRule, default=AmountRule.REQUIRED)

    subject_from = models.CharField(
        max_length=200, blank=True, help_text="JMESPath into params; empty: the caller names the subject."
    )
    subject_pattern = models.CharField(
        max_length=200,
        blank=True,
        help_text="Regular expression that the whole canonical subject must match.",
    )
    subject_case_folds = models.BooleanField(default=False, help_text="Order-1 and order-1 are the same.")
    payee_from = models.CharField(max_length=200, blank=True, help_text="JMESPath into params.")
    customer_from = models.CharField(max_length=200, blank=True, help_text="JMESPath into params.")

    limits = models.JSONField(
        default=dict,
        blank=True,
        validators=[valid_limits],
        help_text="Per currency, in minor units. A currency that is not listed is held for approval.",
    )
    duplicate_policy = models.CharField(max_length=8, choices=DuplicatePolicy, default=DuplicatePolicy.REFUSE)
    look_alike_policy = models.CharField(max_length=8, choices=LookAlikePolicy, default=LookAlikePolicy.HOLD)
    look_alike_window_s = models.PositiveIntegerField(default=86_400)
    send_before_s = models.PositiveIntegerField(
        null=True, blank=True, default=86_400, help_text="Nothing is sent this long after it was proposed."
    )
    not_sent_retries = models.PositiveIntegerField(default=5)
    replay = models.CharField(max_length=10, choices=Replay, default=Replay.NEVER)
    replay_schedule = models.JSONField(
        default=default_replays,
        validators=[valid_schedule],
        help_text="Seconds from no answer until the same key is sent again; as many times as there are entries.",
    )

    check_schedule = models.JSONField(default=default_schedule, validators=[valid_schedule])
    absences_needed = models.PositiveIntegerField(default=2, validators=[MinValueValidator(1)])
    absence_spacing_s = models.PositiveIntegerField(default=30)
    machine_concludes_unclosed = models.BooleanField(
        default=False,
        help_text="Absence may fail an intent by machine although a worker never closed its attempt.",
    )
    recheck_failed_s = models.JSONField(default=default_rechecks, validators=[valid_schedule])
    relook = models.CharField(
        max_length=12,
        choices=Relook,
        default=Relook.NONE,
        help_text="Confirmed ones that are looked up once.",
    )
    relook_percent = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(99)],
        help_text="With a share: so many of a hundred.",
    )
    review_after_s = models.PositiveIntegerField(default=900, help_text="Unknown for longer: a person.")
    review_due_s = models.PositiveIntegerField(default=14_400)
    approval_expires_s = models.PositiveIntegerField(default=86_400)
    reports_trusted = models.BooleanField(
        default=False, help_text="What the caller reports settles; else it only leads to a check."
    )
    customer_texts = models.JSONField(default=dict, blank=True, help_text="Per status: a sentence for the customer.")

    paused = models.BooleanField(default=False)
    pause_reason = models.CharField(max_length=200, blank=True)

    history = HistoricalRecords()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                name="kind_relook_share_says_how_many",
                # A comparison with nothing is neither true nor false, and passes.
                condition=models.Q(relook=Relook.SHARE, relook_percent__isnull=False, relook_percent__range=(1, 99))
                | (~models.Q(relook=Relook.SHARE) & models.Q(relook_percent__isnull=True)),
                violation_error_message="A share of them needs relook_percent, from 1 to 99; nothing else takes one.",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class PolicySnapshot(models.Model):
    """A kind's policy and its downstream's declarations as they were; intents refer to it. Never changes."""

    digest = models.CharField(primary_key=True, max_length=64)
    kind = models.ForeignKey(Kind, on_delete=models.PROTECT, related_name="snapshots")
    text = models.TextField(help_text="Canonical JSON.")
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.kind_id}:{self.digest[:8]}"
