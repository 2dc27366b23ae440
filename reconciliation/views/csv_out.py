"""Lists for a spreadsheet: words and figures, no colours, and no cell that a spreadsheet would run."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain, islice
from typing import cast

from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse

from actions import money

MOST = 10_000
# A spreadsheet takes these for a formula, or leaves them out (OWASP, CSV injection). The last four are full-width:
# where people write Japanese or Chinese they are taken for the same.
_FORMULA = (*"=+-@", "\t", "\r", "\n", "\x00", *"\uff1d\uff0b\uff0d\uff20")


class _Line:
    """A file that hands back what is written into it."""

    def write(self, text: str) -> str:
        return text


def harmless(cell: str) -> str:
    """A text that no spreadsheet runs: what it would take for a formula begins with an apostrophe."""
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def amount(minor: int | None, currency: str) -> str:
    """64000, "EUR" → `640.00`; minor units in words for a currency that we don't know; empty without an amount."""
    try:
        return "" if minor is None else money.to_text(minor, currency)
    except money.BadAmount:
        return f"{minor} minor units"


def time(when: datetime | None) -> str:
    """ISO 8601, UTC, whole seconds; empty for none."""
    return f"{when.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if when else ""


def lines(head: Sequence[str], rows: Iterable[Sequence[str]], *, most: int | None = None) -> Iterator[str]:
    """The lines of the file. Of more rows than `most`, the last line says that they are not all."""
    most = MOST if most is None else most
    writer = csv.writer(_Line())
    coming = iter(rows)
    for row in chain([head], islice(coming, most)):
        yield cast(str, writer.writerow([harmless(cell) for cell in row]))
    if next(coming, None) is not None:
        yield cast(
            str, writer.writerow([f"Cut here: there are more than {most} rows. Filter the list to get the rest."])
        )


def whole(name: str, head: Sequence[str], rows: Iterable[Sequence[str]], *, now: datetime) -> HttpResponse:
    """A file to download, made before it is sent."""
    return _named(HttpResponse("".join(lines(head, rows)), content_type="text/csv; charset=utf-8"), name, now)


def streamed(name: str, head: Sequence[str], rows: Iterable[Sequence[str]], *, now: datetime) -> HttpResponse:
    """The same, row by row: a long list costs no more memory than a short one."""
    return _named(StreamingHttpResponse(lines(head, rows), content_type="text/csv; charset=utf-8"), name, now)


def _named(response: HttpResponseBase, name: str, now: datetime) -> HttpResponse:
    response.headers["Content-Disposition"] = f'attachment; filename="{name}-{now:%Y-%m-%d}.csv"'
    response.headers["X-Content-Type-Options"] = "nosniff"
    # Views answer an HttpResponse; one that is streamed is not of that class, and served all the same.
    return cast(HttpResponse, response)
