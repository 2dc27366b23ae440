"""`reconciliation`: what the books say, and who decided."""

from django.apps import AppConfig


class ReconciliationConfig(AppConfig):
    name = "reconciliation"

    def ready(self) -> None:
        from actions import hooks, triggers  # noqa: PLC0415  models must be loaded first
        from reconciliation import incidents  # noqa: PLC0415
        from reconciliation.reviews import listening  # noqa: PLC0415

        hooks.register(
            transition=listening.on_transition, contradiction=listening.on_contradiction, breaker=incidents.on_breaker
        )
        triggers.protect(
            triggers.Rule("reconciliation.Check"),
            triggers.Rule("reconciliation.Decision"),
            triggers.Rule("reconciliation.Comment"),
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
