"""Takes the snapshot of a kind's policy that an intent is governed by."""

from datetime import datetime

from actions import policy
from actions.canonical import canonical, digest
from actions.models import Kind, PolicySnapshot


def take(kind: Kind, *, now: datetime) -> PolicySnapshot:
    """The kind's policy and its downstream's declarations as they are now; equal ones share a row."""
    downstream = kind.downstream
    found = {name: getattr(kind, name) for name in policy.OF_KIND}
    found |= {name: getattr(downstream, name) for name in policy.OF_DOWNSTREAM}
    found |= {
        "kind": kind.name,
        "downstream": downstream.name,
        "config_digest": digest(canonical(downstream.config)),
    }
    text = canonical(found)
    snapshot, _ = PolicySnapshot.objects.get_or_create(
        digest=digest(f"{kind.pk}\n{text}"), defaults={"kind": kind, "text": text, "created_at": now}
    )
    return snapshot
