"""The steps of `benchmarks.history`, each in a process of its own: fill a database with histories that hold, write an
anchor over them, verify them against it."""

import json
import os
import resource
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

# recorded, submitted, unknown, six looks until the book shows it, confirmed
ROWS_EACH, LOOKS, BATCH = 10, 6, 1_000


def main(step: str, *arguments: str) -> None:
    import django

    django.setup()
    print(json.dumps(fill(int(arguments[0])) if step == "fill" else _measured(step)))


def fill(rows: int) -> int:
    """So many rows of history, ten to an intent, each with evidence. In bulk: what is written is what the writer
    writes, how it is written is not."""
    from django.core.management import call_command
    from django.db import connection, transaction

    from tests import factories

    call_command("migrate", verbosity=0)
    kind = factories.make_kind()
    template = factories.make_intent(kind, params={"customer": "c-1", "reason": "damaged"})
    lives = rows // ROWS_EACH
    for first in range(0, lives, BATCH):
        with transaction.atomic():
            _write([_life(template) for _ in range(first, min(first + BATCH, lives))])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return rows


def _life(template: Any) -> tuple[Any, ...]:
    """One intent that was sent, got no answer and was found in the ledger."""
    from uuid import UUID

    import uuid_utils

    from actions import chains, history
    from actions.canonical import canonical, digest, new_salt
    from actions.models import Evidence, Intent, Transition
    from actions.payloads import payload, payload_digest
    from reconciliation.models import Check

    intent = Intent(**{f.attname: getattr(template, f.attname) for f in Intent._meta.concrete_fields})
    intent.pk, intent.payload_salt = UUID(str(uuid_utils.uuid7())), new_salt()
    intent.subject = intent.family = f"order-{intent.pk}"
    intent.idempotency_key, intent.guard_key = str(intent.pk), None
    fields = payload(
        kind=template.kind.name,
        subject=intent.subject,
        amount_minor=intent.amount_minor,
        currency=intent.currency,
        params=intent.params,
        executor=intent.executor,
    )
    intent.payload_digest = payload_digest(fields, salt=intent.payload_salt)
    text, salt = canonical({"data": [{"id": str(intent.pk), "amount": 5_000, "currency": "EUR"}] * 3}), new_salt()
    seen = Evidence(
        pk=next(_numbers),
        intent=intent,
        kind="page",
        source="http://books/entries",
        text=text,
        salt=salt,
        digest=digest(text, salt=salt),
        created_at=intent.created_at,
    )
    refs = history.refs([seen])
    steps = [("", "recorded"), ("recorded", "submitted"), ("submitted", "unknown"), *[None] * LOOKS]
    steps.append(("unknown", "confirmed"))
    rows: list[Any] = []
    intent.chain_length, intent.chain_head, intent.version = 0, chains.genesis(intent), 0
    for step in steps:
        if step is None:
            row: Any = Check(
                intent=intent,
                by="checker:bench/1",
                started_at=intent.created_at,
                fence=1,
                verdict="match",
                grounds='{"by":"key","candidates":[1],"entry":1}',
                evidence=refs,
                facts_digest="f" * 64,
            )
        else:
            intent.version += 1
            intent.status = step[1]
            if intent.status == "confirmed":
                intent.settled_by, intent.settled_at = "ledger", intent.created_at + timedelta(minutes=1)
            row = Transition(
                intent=intent,
                sequence=intent.version,
                from_status=step[0],
                to_status=step[1],
                actor="worker",
                actor_id="worker:bench/1",
                reason="bench",
                facts=chains.facts_of(intent),
            )
        history.link(row, length=intent.chain_length, head=intent.chain_head, at=intent.created_at)
        intent.chain_length, intent.chain_head = row.position, row.digest
        rows.append(row)
    return intent, seen, rows


_numbers = iter(range(1, 10**9))


def _write(lives: list[tuple[Any, ...]]) -> None:
    from actions.models import Evidence, Intent, Transition
    from reconciliation.models import Check

    Intent.objects.bulk_create([intent for intent, _, _ in lives])
    Evidence.objects.bulk_create([seen for _, seen, _ in lives])
    for model in (Transition, Check):
        model._default_manager.bulk_create([row for _, _, rows in lives for row in rows if isinstance(row, model)])


def _measured(step: str) -> dict[str, float]:
    from django.conf import settings
    from django.core.management import call_command

    from reconciliation.anchoring import keys
    from reconciliation.reviews import verifying

    folder = Path(os.environ["LANDED_DATA"])
    settings.LANDED_ANCHOR_KEY = str(folder / "key")
    rows = verifying.count()
    began, cpu = time.perf_counter(), time.process_time()
    if step == "anchor":
        keys.make(folder / "key")
        call_command("anchor_history", to=folder / "anchor.jsonl", stdout=sys.stderr)
    else:
        call_command("verify_history", anchor=folder / "anchor.jsonl", stdout=sys.stderr)
    return {
        "rows": rows,
        "s": round(time.perf_counter() - began, 2),
        "cpu_s": round(time.process_time() - cpu, 2),
        "mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024, 1),
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
