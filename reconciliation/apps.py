"""`reconciliation`: what the books say, and who decided."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


def _after_migrate(**_: Any) -> None:
    from reconciliation import roles  # noqa: PLC0415  needs loaded models

    roles.ensure()


class ReconciliationConfig(AppConfig):
    name = "reconciliation"

    def ready(self) -> None:
        post_migrate.connect(_after_migrate, sender=self, dispatch_uid="landed-roles")
        from actions import hooks, triggers  # noqa: PLC0415  models must be loaded first
        from reconciliation import incidents  # noqa: PLC0415
        from reconciliation.reviews import listening  # noqa: PLC0415

        hooks.register(
            transition=listening.on_transition,
            contradiction=listening.on_contradiction,
            breaker=incidents.on_breaker,
            limit=incidents.on_limit,
        )
        triggers.protect(
            triggers.Rule("reconciliation.Check"),
            triggers.Rule("reconciliation.Decision"),
            triggers.Rule("reconciliation.Comment"),
            triggers.Rule(
                "reconciliation.Attachment",
                fixed=("id", "review_id", "intent_id", "person_id", "media_type", "size", "at"),
                frozen=(("erased_at", ("content",)),),
                sealed=(("erased_at", ("content",)),),
                blanks=(("erased_at", ("name", "digest")),),
            ),
            triggers.Rule("reconciliation.LedgerEntry", fixed=("id", "downstream_id", "book", "entry_id")),
            triggers.Rule(
                "reconciliation.Match",
                fixed=("id", "entry_id", "intent_id", "role", "entry_state", "amount_minor", "currency", "by", "at"),
                frozen=(("released_at", ("released_by",)),),
            ),
            triggers.Rule(
                "reconciliation.Review",
                fixed=("id", "intent_id", "entry_id", "opened_at"),
                frozen=(("closed_at", ("closed_how",)),),
            ),
            triggers.Rule("reconciliation.ReviewReason"),
            triggers.Rule(
                "reconciliation.Difference",
                fixed=("id", "intent_id", "entry_id", "decision_id", "what", "amount_minor", "currency", "opened_at"),
                frozen=(("resolved_at", ("resolved_by", "note_id")),),
            ),
            triggers.Rule(
                "reconciliation.Delivery",
                fixed=(
                    "id",
                    "downstream_id",
                    "delivery_id",
                    "topic",
                    "received_at",
                    "sent_at",
                    "about",
                    "evidence_id",
                ),
                frozen=(("applied_at", ("outcome", "tries", "next_try_at")),),
            ),
        )
