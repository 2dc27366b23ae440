"""Columns that several of these pages share."""

from typing import Any

from django.contrib import admin
from django.utils.safestring import SafeString

from actions import money, visible
from actions.admin import shown
from actions.models import Evidence
from reconciliation.models import LedgerEntry


def _amount(minor: int | None, currency: str) -> str:
    if minor is None:
        return "-"
    try:
        return f"{money.to_text(minor, currency)} {currency}"
    except money.BadAmount:  # a book may name a currency that we don't know
        return visible.plain(f"{minor} minor units of {currency or 'an unnamed currency'}")


def _asked(row: Any) -> str:
    return _amount(row.amount_minor, row.currency)


def _settled(row: Any) -> str:
    return _amount(row.settled_amount_minor, row.settled_currency)


def _entry(row: Any) -> SafeString | str:
    return shown.to_page(LedgerEntry, row.entry_id, row.entry.entry_id) if row.entry else "-"


def said(evidence: Evidence | None, *, most: int | None = None) -> SafeString | str:
    """What a person wrote, or that it was erased."""
    if evidence is None:
        return "-"
    return "erased" if evidence.erased_at else visible.block(evidence.text, most=most)


def _note(row: Any) -> SafeString | str:
    return said(row.note, most=2_000)


def _comment(row: Any) -> SafeString | str:
    return said(row.text, most=2_000)


asked: shown.Column = admin.display(description="amount")(_asked)
settled: shown.Column = admin.display(description="settled amount")(_settled)
entry: shown.Column = admin.display(description="ledger entry")(_entry)
note: shown.Column = admin.display(description="note")(_note)
comment: shown.Column = admin.display(description="text")(_comment)
