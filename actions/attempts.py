"""Opens attempts: the one place where a sending begins to exist, whoever carries it out."""

from datetime import datetime

from actions.models import Attempt, Intent


def open_attempt(
    intent: Intent,
    *,
    executor: str,
    fence: int,
    lease_until: datetime,
    now: datetime,
    worker: str = "",
    claim_token_digest: str = "",
) -> Attempt:
    """The intent's next attempt. The caller holds the intent's lock and moves it to `submitted` with this `fence` in
    the same transaction."""
    return Attempt.objects.create(
        intent=intent,
        number=intent.attempts.count() + 1,
        fence=fence,
        executor=executor,
        worker=worker[:100],
        claim_token_digest=claim_token_digest,
        claimed_at=now,
        lease_until=lease_until,
    )
