"""docs/reference.md, made from the code: `make docs` writes it, and a test fails while it is out of date."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from django.conf import settings

from actions import history, triggers
from actions.api import problems
from actions.connectors import base, registry
from actions.models import Chained, Intent
from actions.reasons import HIDDEN, Reason
from actions.statuses import SETTLED, TRANSITIONS, Status
from reconciliation.models import Review
from reconciliation.words import Choice, ReasonCode, Verdict

TARGET = Path(settings.BASE_DIR) / "docs" / "reference.md"

_MEANS = {
    Status.HELD: "may not be sent before a person approves",
    Status.RECORDED: "durable, not sent, or proven not sent",
    Status.SUBMITTED: "may have been sent; no final answer yet",
    Status.UNKNOWN: "we can't tell whether it happened",
    Status.CONFIRMED: "it happened: acknowledged, in the ledger, or established by a person",
    Status.FAILED: "it did not happen: refused, or proven not done",
    Status.CANCELLED: "withdrawn or expired before anything was sent",
}


def text() -> str:
    """The whole document."""
    return (
        "\n\n".join(
            [
                "# Reference\n\nMade from the code by `make docs`; don't edit it here.",
                "## Statuses\n\n"
                + _table(
                    ("status", "means", "settled"),
                    ((f"`{s.value}`", _MEANS[s], "yes" if s in SETTLED else "no") for s in Status),
                ),
                _diagram(),
                "## Who may move an intent\n\n"
                + _table(
                    ("from", "to", "who"),
                    (
                        (f"`{from_.value}`" if from_ else "(new)", f"`{to.value}`", ", ".join(sorted(who)))
                        for (from_, to), who in TRANSITIONS.items()
                    ),
                ),
                "## `status_reason`\n\nThose marked * reach agents as `in_review`. An intent that became unknown "
                "because no usable answer came has its attempt's reason (below) instead.\n\n"
                + _table(("code", "means"), ((f"`{r.value}`{'*' if r in HIDDEN else ''}", r.label) for r in Reason)),
                "## Problem codes\n\nEvery refusal is `application/problem+json` (RFC 9457) with one of these codes. "
                "`retryable` speaks of the request, never of the action.\n\n"
                + _table(
                    ("code", "HTTP", "title", "retryable"),
                    ((f"`{c.code}`", c.status, c.title, "yes" if c.retryable else "no") for c in problems.codes()),
                ),
                "## Reasons of an attempt\n\n"
                + _table(("code", "means"), ((f"`{code}`", means) for code, means in base.REASONS.items())),
                "## Reasons why a look-up is not complete\n\n"
                + _table(("code", "means"), ((f"`{code}`", means) for code, means in base.LOOK_UP_REASONS.items())),
                "## Verdicts of a check\n\n"
                + _table(("verdict", "means"), ((f"`{v.value}`", v.label) for v in Verdict)),
                "## Reasons of a review\n\n"
                + _table(("reason", "means"), ((f"`{r.value}`", r.label) for r in ReasonCode)),
                "## Choices of a decision\n\n"
                + _table(("choice", "button"), ((f"`{c.value}`", c.label) for c in Choice)),
                "## Connectors\n\n" + "\n".join(f"- `{name}`" for name in registry.names()),
                "## History\n\nThe fields that each row's digest covers, beside `table`, `position` and `at`; see "
                "[history.md](history.md).\n\n"
                + _table(
                    ("table", "fields"),
                    ((f"`{m._meta.db_table}`", _chained(m)) for m in history.chained_models()),
                )
                + "\n\nThe genesis digest of an intent covers "
                + _names(Intent.GENESIS)
                + "; that of a case about an entry "
                + _names(Review.GENESIS)
                + ".",
                "## What the database protects\n\n"
                + _table(
                    ("table", "UPDATE is refused", "DELETE"),
                    (
                        (f"`{table}`", "always" if fixed is None else f"of {fixed}", "refused")
                        for table, fixed in _rules()
                    ),
                ),
            ]
        )
        + "\n"
    )


def _rules() -> Iterable[tuple[str, str | None]]:
    for rule in triggers.rules():
        blanks = [column for _, columns in rule.blanks for column in columns]
        but = f"; but to erase it, of {_names(blanks)}" if blanks else ""
        yield triggers.table_of(rule), None if rule.fixed is None else _names(rule.fixed) + but


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _chained(model: type[Chained]) -> str:
    later = f", and where it is set {_names(model.CHAINED_IF_SET)}" if model.CHAINED_IF_SET else ""
    return _names(model.CHAINED) + later


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(str(cell).replace('|', '∣') for cell in row)} |" for row in rows]
    return "\n".join(lines)


def _diagram() -> str:
    arrows = [
        f"  {from_.value if from_ else '[*]'} --> {to.value}"
        for from_, to in TRANSITIONS
        # Two settled statuses change into each other only by override; the diagram shows the ordinary way.
        if from_ not in SETTLED
    ]
    return "```mermaid\nstateDiagram-v2\n" + "\n".join(arrows) + "\n```"


def write() -> bool:
    """Writes the file; whether it changed."""
    now = text()
    before = TARGET.read_text() if TARGET.exists() else ""
    TARGET.write_text(now)
    return before != now


def main() -> None:
    print(f"{TARGET}: {'written' if write() else 'as it was'}")
