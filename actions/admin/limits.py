"""The limits of an agent as a table of inputs, amounts in the currency itself: nobody writes minor units by hand."""

from collections.abc import Mapping, Sequence
from itertools import count, takewhile
from typing import Any, Final

from django import forms
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from actions import limit_rules, money
from actions.limit_rules import AMOUNTS, LimitName
from actions.policy_files import values

_EMPTY_ROWS: Final = 3
_ALL: Final = "all kinds together"
_HEADS: Final = {
    "kind": "For",
    "currency": "Currency",
    LimitName.PER_ACTION: "One action",
    LimitName.PER_DAY: "24 hours",
    LimitName.PER_SUBJECT_DAY: "24 hours, one subject",
    LimitName.OPEN: "Unsettled at a time",
}
_SIZES: Final[Mapping[str, int]] = {"currency": 4, LimitName.OPEN: 5, "intents": 5, "minutes": 5}
_TEXTS: Final = [name for name in _HEADS if name != "kind"]
_VELOCITY: Final = ("intents", "minutes")

Row = Mapping[str, str]


def as_texts(limits: Mapping[str, Any]) -> dict[str, Any]:
    """Stored limits as the table's texts: `rows`, and a velocity's `intents` and `minutes`."""
    rows = _rows(limits, "")
    for kind, narrower in sorted(limits.get("kinds", {}).items()):
        rows += _rows(narrower, kind)
    velocity = {name: str(limits.get("velocity", {}).get(name, "")) for name in _VELOCITY}
    return {"rows": rows, **velocity}


def _rows(limits: Mapping[str, Any], kind: str) -> list[Row]:
    written = values.limits_as_written(limits.get("amounts", {}))
    rows = [
        {"kind": kind, "currency": currency} | {name: str(text) for name, text in texts.items()}
        for currency, texts in sorted(written.items())
    ]
    if "open" in limits:
        # Beside the first currency, as it counts whatever the currency.
        rows = rows or [{"kind": kind, "currency": ""}]
        rows[0][LimitName.OPEN] = str(limits["open"])
    return list(rows)


def read(texts: Mapping[str, Any]) -> dict[str, Any]:
    """What the texts store. Raises ValidationError with a sentence for everything that is wrong."""
    found: dict[str, Any] = {}
    wrong: list[str] = []
    for number, row in enumerate(texts["rows"], 1):
        if any(row.get(name) for name in _TEXTS):
            wrong += [f"Row {number}: {sentence}" for sentence in _add(found, row)]
    if any(texts[name] for name in _VELOCITY):
        found["velocity"] = {name: _whole(texts[name]) for name in _VELOCITY}
    if wrong:
        raise forms.ValidationError(wrong)
    return found


def _add(found: dict[str, Any], row: Row) -> list[str]:
    """Puts one row into `found`; what is wrong with it."""
    level = found.setdefault("kinds", {}).setdefault(row["kind"], {}) if row["kind"] else found
    wrong = []
    if row.get(LimitName.OPEN):
        if "open" in level:
            wrong.append("There is an earlier row with how many may be unsettled.")
        level["open"] = _whole(row[LimitName.OPEN])
    amounts = {name: row[name] for name in AMOUNTS if row.get(name)}
    currency = row["currency"]
    if not currency:
        return [*wrong, "An amount needs its currency."] if amounts else wrong
    if currency in level.setdefault("amounts", {}):
        return [*wrong, f"There is an earlier row for {currency}."]
    level["amounts"][currency] = {}
    for name, text in amounts.items():
        try:
            level["amounts"][currency][name] = values.limit_to_minor(text, currency)
        except money.BadAmount as bad:
            wrong.append(f"{_HEADS[name]}: {bad}")
    return wrong


def _whole(text: str) -> int | str:
    """What is no number stays as it is: the field's validator says what it has to be."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text


class LimitsTable(forms.Widget):
    """A row for each kind and currency, and a few empty ones."""

    kinds: Sequence[str] = ()

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return f"{name}-0-currency" not in data

    def value_from_datadict(self, data: Any, files: Any, name: str) -> dict[str, Any] | None:
        if self.value_omitted_from_data(data, files, name):
            return None
        numbers = takewhile(lambda number: f"{name}-{number}-currency" in data, count())
        rows = [{cell: data.get(f"{name}-{number}-{cell}", "").strip() for cell in _HEADS} for number in numbers]
        return {"rows": rows, **{part: data.get(f"{name}-{part}", "").strip() for part in _VELOCITY}}

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        texts = value if isinstance(value, dict) and "rows" in value else as_texts(value or {})
        shown = [*texts["rows"], *({} for _ in range(_EMPTY_ROWS))]
        return format_html(
            "<div><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>"
            "<p>Paused after more than {} proposals in {} minutes.</p></div>",
            format_html_join("", '<th scope="col">{}</th>', ((head,) for head in _HEADS.values())),
            format_html_join("", "<tr>{}</tr>", ((self._row(f"{name}-{n}", row),) for n, row in enumerate(shown))),
            *(_input(f"{name}-{part}", part, texts[part], size=_size(part)) for part in _VELOCITY),
        )

    def _row(self, name: str, row: Row) -> SafeString:
        kind = row.get("kind", "")
        names = ["", *self.kinds, *([kind] if kind and kind not in self.kinds else [])]
        options = ((one, SafeString(" selected") if one == kind else "", one or _ALL) for one in names)
        select = format_html(
            '<td><select name="{}" aria-label="{}">{}</select></td>',
            f"{name}-kind",
            _HEADS["kind"],
            format_html_join("", '<option value="{}"{}>{}</option>', options),
        )
        inputs = ((_input(f"{name}-{cell}", _HEADS[cell], row.get(cell, ""), size=_size(cell)),) for cell in _TEXTS)
        return format_html("{}{}", select, format_html_join("", "<td>{}</td>", inputs))


def _size(cell: str) -> int:
    return _SIZES.get(cell, 9)


def _input(name: str, label: str, value: str, *, size: int) -> SafeString:
    return format_html(
        '<input type="text" name="{}" value="{}" aria-label="{}" size="{}" maxlength="20" autocomplete="off">',
        name,
        value,
        label,
        size,
    )


class LimitsField(forms.Field):
    widget = LimitsTable

    def __init__(self) -> None:
        super().__init__(
            required=False,
            help_text="Amounts in the currency itself, such as 100.00; empty: no such limit. Where any currency is "
            "listed, an amount in one that isn't is held for approval. An empty row is left out. See docs/limits.md.",
        )

    def clean(self, value: Any) -> dict[str, Any] | None:
        """What is stored; None when the form didn't show the table."""
        if value is None:
            return None
        found = read(value)
        if wrong := limit_rules.faults(found):
            raise forms.ValidationError([f"{path}: {sentence}" for path, sentence in wrong])
        return found
