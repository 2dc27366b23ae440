"""What people are told of by e-mail: written down here, in the transaction of what it is about; sent by the clock."""

from datetime import datetime

from django.contrib.auth.models import User

from reconciliation.models import Notice, NoticeKind, Review


def handed(review: Review, *, to: User, now: datetime) -> None:
    """Somebody was handed a case."""
    put_down(NoticeKind.HANDED, once=f"handed:{review.pk}:{review.version}:{to.pk}", now=now, review=review, to=to)


def put_down(
    kind: NoticeKind, *, once: str, now: datetime, review: Review | None = None, to: User | None = None
) -> None:
    """To be sent once, whoever says so how often. `once` names what it is about."""
    Notice.objects.get_or_create(
        once=once, defaults={"kind": kind, "review": review, "to": to, "created_at": now, "next_try_at": now}
    )
