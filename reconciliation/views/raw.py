"""What machines said and saw, as it was stored (secrets masked): its beginning on the page, the whole as a file."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F, Q
from django.db.models.functions import Length, Substr
from django.http import Http404, HttpResponse
from django.utils.http import content_disposition_header

from actions import visible
from actions.models import Evidence, EvidenceKind, Intent
from reconciliation.models import LedgerEntry
from reconciliation.views.frame import DeskRequest, page

# What machines said and saw; notes and comments stand in the timeline.
KINDS = (
    EvidenceKind.REQUEST,
    EvidenceKind.ANSWER,
    EvidenceKind.PAGE,
    EvidenceKind.REPORT,
    EvidenceKind.WEBHOOK,
    EvidenceKind.OUTSIDE,
)
# Of one piece so many characters, and so many pieces, stand on a page.
MOST, MOST_PIECES = 2_000, 60
# No page of ours, whatever the text says.
INERT = "default-src 'none'; sandbox"


@dataclass(frozen=True)
class Piece:
    """One stored observation. `head`: how it begins; `more`: characters that it has beyond that."""

    id: int
    kind: str
    source: str
    digest: str
    at: datetime
    head: str
    more: int
    erased_at: datetime | None
    attempt_id: int | None
    written: bool


def of_intent(intent: Intent, *, notes: Collection[int] = ()) -> Mapping[int, Piece]:
    """The pieces of an intent by id, those of its attempts first, then the newest; of `notes` as well. One query."""
    found = Evidence.objects.filter(Q(kind__in=KINDS) | Q(pk__in=notes), intent=intent).defer("text", "salt")
    rows = found.annotate(head=Substr("text", 1, MOST), size=Length("text"))
    return {row.pk: _piece(row) for row in rows.order_by(F("attempt").asc(nulls_last=True), "-pk")[:MOST_PIECES]}


def of_entry(entry: LedgerEntry) -> list[Piece]:
    """Where an entry is from: the webhook, or the page of a book, that told of it last."""
    found = Evidence.objects.filter(entries=entry, kind__in=KINDS).defer("text", "salt")
    return [_piece(row) for row in found.annotate(head=Substr("text", 1, MOST), size=Length("text"))]


def _piece(row: Evidence) -> Piece:
    head, size = str(getattr(row, "head", "") or ""), int(getattr(row, "size", 0) or 0)
    return Piece(
        id=row.pk,
        kind=row.get_kind_display(),
        source=row.source,
        digest=row.digest,
        at=row.created_at,
        # A text that is cut is no JSON any more, so only a whole one can be set out line by line.
        head=visible.pretty(head) if size <= MOST else head,
        more=max(0, size - MOST),
        erased_at=row.erased_at,
        attempt_id=row.attempt_id,
        written=row.kind == EvidenceKind.NOTE,
    )


@page
def raw(request: DeskRequest, evidence_id: int) -> HttpResponse:
    """The whole text of one observation, as a file that no browser takes for a page."""
    found = Evidence.objects.filter(pk=evidence_id, kind__in=KINDS).first()
    if found is None:
        raise Http404("There is no such observation.")
    if found.erased_at is not None:
        raise Http404("Its text was erased; the history keeps its digest.")
    response = HttpResponse(found.text, content_type="text/plain; charset=utf-8")
    return as_file(response, name=f"{found.kind}-{found.pk}.txt")


def as_file(response: HttpResponse, *, name: str) -> HttpResponse:
    """Marks an answer as something to be saved and never shown: its type is not guessed, nothing in it runs."""
    # Quotes, slashes and what hides have no place in the name of a file.
    safe = re.sub(r'[\\/:*?"<>|\x00-\x1f\x7f]', "_", visible.plain(name))[:150] or "file"
    response.headers["Content-Disposition"] = str(content_disposition_header(True, safe))
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Content-Security-Policy"] = INERT
    response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    return response
