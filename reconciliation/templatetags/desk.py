"""What templates need beyond if and for: untrusted text, amounts, times."""

from datetime import UTC, datetime
from typing import Any

from django import template
from django.contrib.auth.models import AbstractBaseUser
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from actions import visible as untrusted
from actions.models import Evidence
from reconciliation.views import comfort, words

register = template.Library()

# More of one piece of evidence than this is not put on a page.
MOST_EVIDENCE = 20_000


@register.filter
def visible(text: object) -> SafeString:
    """Text that an agent or a downstream wrote: escaped, hidden and direction-changing characters marked."""
    return untrusted.visible("" if text is None else str(text))


@register.filter
def evidence_text(evidence: Evidence) -> SafeString:
    return untrusted.block(untrusted.pretty(evidence.text), most=MOST_EVIDENCE)


@register.filter
def copyable(text: object) -> SafeString:
    """An order number or a key: monospaced; landed.js copies it on click."""
    return format_html('<code class="copy" data-copy="{}">{}</code>', str(text), visible(text))


@register.filter
def percent(share: float | None) -> str:
    """`3.1 %`; a dash where there was nothing to take a share of."""
    return "–" if share is None else f"{share:.1f}\N{NO-BREAK SPACE}%"


@register.filter
def size(octets: int) -> str:
    """Of a file: `41 kB`."""
    return words.size(octets)


@register.filter
def person(user: AbstractBaseUser | None) -> str:
    if user is None:
        return "—"
    full_name = getattr(user, "get_full_name", str)()
    return str(full_name or user.get_username())


@register.simple_tag
def amount(minor: int | None, currency: str) -> SafeString:
    return format_html('<span class="amount" title="{}">{}</span>', currency, words.amount(minor, currency))


def _now(context: Any) -> datetime:
    found = context.get("now")
    return found if isinstance(found, datetime) else timezone.now()


def _time(when: datetime, how: str, text: str) -> SafeString:
    utc = when.astimezone(UTC)
    return format_html(
        '<time datetime="{}" data-{} title="{}">{}</time>',
        utc.isoformat(timespec="milliseconds"),
        how,
        f"{utc:%Y-%m-%d %H:%M:%S} UTC",
        text,
    )


@register.simple_tag(takes_context=True)
def since(context: Any, when: datetime | None) -> SafeString | str:
    """`12 min`: for how long."""
    return "" if when is None else _time(when, "since", words.span(_now(context) - when))


@register.simple_tag(takes_context=True)
def ago(context: Any, when: datetime | None) -> SafeString | str:
    return "" if when is None else _time(when, "ago", f"{words.span(_now(context) - when)} ago")


@register.simple_tag(takes_context=True)
def until(context: Any, when: datetime | None) -> SafeString | str:
    """`in 3 h`, or `18 min late`."""
    return "" if when is None else _time(when, "until", words.until(when, _now(context)))


@register.simple_tag(takes_context=True)
def left(context: Any, when: datetime) -> SafeString:
    """`in 12 s`: what undo.js counts down."""
    shown = _time(when, "left", words.until(when, _now(context)) if when > _now(context) else "now")
    return format_html('<span class="left">{}</span>', shown)


@register.simple_tag(takes_context=True)
def clock(context: Any, when: datetime | None) -> SafeString | str:
    """`10:01:03`, with the day when it is not today: in the time zone that the reader chose. While they chose none it
    is UTC, and landed.js shows it in the browser's (`data-clock`)."""
    if when is None:
        return ""
    chosen = comfort.zone()
    # `data-zoned`: it is the reader's own already.
    return _time(when, "zoned" if chosen else "clock", comfort.clock(when, _now(context), chosen or UTC))
