"""What a person reads: an intent with its whole history, beside what the services wrote down of it."""

from collections.abc import Iterator
from pathlib import Path

from tests.chaos.books import Books, Row
from tests.chaos.compare import Difference
from tests.chaos.machine import Machine

_MOST, _TAIL = 5, 25


def tell(differences: list[Difference], books: Books, machine: Machine) -> Iterator[str]:
    """The first few in full, and the end of every process's log."""
    for difference in differences[:_MOST]:
        yield f"\n--- {difference.words}"
        for pk in difference.intents:
            yield from _intent(pk, books)
    if len(differences) > _MOST:
        yield f"\n… and {len(differences) - _MOST} more"
    for log in sorted((machine.folder / "run").glob("*.log")):
        if lines := _tail(log):
            yield f"\n--- the end of {log.name}"
            yield from lines


def _tail(log: Path) -> list[str]:
    return log.read_text(errors="replace").splitlines()[-_TAIL:]


def _intent(pk: str, books: Books) -> Iterator[str]:
    row = books.intents.get(pk)
    if row is not None:
        names = ("agent", "request_key", "kind", "subject", "amount_minor", "currency", "idempotency_key", "status")
        yield "  " + " ".join(f"{name}={row[name]}" for name in (*names, "status_reason", "disputed", "in_review"))
    events = [*_steps(books.transitions.get(pk, [])), *_attempts(books.attempts.get(pk, []))]
    events += [(str(one["at"]), f"look by {one['by']}: {one['verdict']}") for one in books.checks.get(pk, [])]
    for one in books.decisions:
        if one["intent_id"] == pk:
            about = f" about {one['about_id']}" if one["about_id"] else ""
            said = f"case {one['review_id']}: {one['choice']} by {one['person_id']}{about} (decision {one['id']})"
            events.append((str(one["at"]), said))
    for at, words in sorted(events):
        yield f"    {at}  {words}"
    for one in books.requests.get(pk, []):
        yield f"    request {one['idempotency_key']}: fault {one['fault']}, {one['status']}, booked {one['entry_id']}"
    for one in books.effects.get(pk, []):
        yield f"    effect {one['id']} {one['amount_minor']} {one['currency']} {one['status']}"


def _steps(rows: list[Row]) -> list[tuple[str, str]]:
    return [
        (
            str(one["at"]),
            f"{one['from_status'] or '(new)'} → {one['to_status']} by {one['actor_id']}: {one['reason']}",
        )
        for one in rows
    ]


def _attempts(rows: list[Row]) -> list[tuple[str, str]]:
    found = []
    for one in rows:
        name = f"attempt {one['number']} (fence {one['fence']}, {one['worker']})"
        found.append((str(one["claimed_at"]), f"{name} until {one['lease_until']}"))
        if one["closed_at"]:
            late = f", later {one['late_result']} {one['late_reason']}" if one["late_result"] else ""
            how = f"closed by {one['closed_by']}: {one['result']} {one['reason']} {one['phase']}{late}"
            found.append((str(one["closed_at"]), f"{name} {how}"))
    return found
