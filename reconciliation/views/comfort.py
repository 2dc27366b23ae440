"""The reader's own time zone and locale, while one request is answered.

Kept beside the request and not handed through every function: amounts and times are shown in a hundred places, and
each has one reader. Looked up when it is first asked for, so that whoever needs neither (agents) costs no query.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from babel import Locale
from babel.core import UnknownLocaleError
from babel.numbers import (
    NumberPattern,
    get_currency_symbol,
    get_decimal_symbol,
    get_group_symbol,
    parse_pattern,
)

from actions import money
from reconciliation.models import Preferences

# Locales that amounts are offered in, each with how it writes 1234.50 EUR: nobody has to know what `de_CH` does.
LOCALES = (
    *("en_GB", "en_US", "en_IE", "en_IN", "cs_CZ", "da_DK", "de_AT", "de_CH", "de_DE", "es_ES", "fi_FI", "fr_CH"),
    *("fr_FR", "it_IT", "ja_JP", "nl_NL", "nb_NO", "pl_PL", "pt_BR", "pt_PT", "sv_SE"),
)

_LETTER_THEN_NUMBER = re.compile(r"(?<=[A-Za-z])(?=-?[0-9])")

Likes = Callable[[], Preferences | None]
_reader: ContextVar[Likes | None] = ContextVar("landed_reader", default=None)


@contextmanager
def reading(likes: Likes) -> Iterator[None]:
    """Inside, times and amounts are shown as the reader likes them. `likes` is called when first needed."""
    token = _reader.set(likes)
    try:
        yield
    finally:
        _reader.reset(token)


def likes() -> Preferences | None:
    """What the reader chose; None: nobody reads (a worker, a test) or they are not logged in."""
    ask = _reader.get()
    return ask() if ask is not None else None


def zone() -> tzinfo | None:
    """The reader's time zone; None: they chose none, and the browser's own is used."""
    chosen = likes()
    return zone_called(chosen.time_zone) if chosen else None


def locale() -> str:
    """The locale that the reader chose for amounts; empty: none."""
    chosen = likes()
    return chosen.locale if chosen else ""


@lru_cache(maxsize=1)
def zones() -> tuple[str, ...]:
    """The IANA names to choose from: places, and UTC; not the old names that only stand for others."""
    places = ("Africa/", "America/", "Antarctica/", "Arctic/", "Asia/", "Atlantic/", "Australia/", "Europe/")
    found = (name for name in available_timezones() if name.startswith((*places, "Indian/", "Pacific/")))
    return ("UTC", *sorted(found))


def zone_called(name: str) -> tzinfo | None:
    """None for no name, and for one that this machine does not know (any more): a page shows all the same."""
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def zone_name(at: tzinfo) -> str:
    """`Europe/Berlin`, or `UTC`."""
    return at.key if isinstance(at, ZoneInfo) else "UTC"


def clock(when: datetime, now: datetime, at: tzinfo = UTC) -> str:
    """`10:01:03`, with the day when it is not today's there."""
    local = when.astimezone(at)
    same_day = local.date() == now.astimezone(at).date()
    return f"{local:%H:%M:%S}" if same_day else f"{local:%Y-%m-%d %H:%M}"


def amount(minor: int, currency: str, locale: str) -> str:
    """1234567, "EUR", "de_DE" → `12.345,67 €`: every minor unit, never rounded.

    How many decimals there are is ISO 4217's word (IDR 2), not CLDR's (IDR 0): an amount that was rounded for show
    is another amount. Raises money.BadAmount for a currency not in force, UnknownLocaleError for the locale.
    """
    pattern, value = _pattern(locale, money.exponent(currency)), Decimal(money.to_text(minor, currency))
    apostrophes = get_group_symbol(locale) == "'"
    shown = pattern.apply(value, "en" if apostrophes else locale, currency=currency, currency_digits=False)
    if apostrophes:
        shown = _with_apostrophes(shown, currency, locale)
    # `KWD 1.999`, not `KWD1.999`: CLDR's own rule for letters beside digits, which Babel leaves out.
    return _LETTER_THEN_NUMBER.sub("\N{NO-BREAK SPACE}", shown).replace(" ", "\N{NO-BREAK SPACE}")


def _with_apostrophes(shown: str, currency: str, locale: str) -> str:
    """Babel 2.19 takes the apostrophes out of Swiss numbers, as it does with quotes in a pattern: so they are put
    into what it writes with English separators."""
    number = shown.replace(get_currency_symbol(currency, locale="en"), "\0")
    swiss = number.translate({ord(","): "\N{RIGHT SINGLE QUOTATION MARK}", ord("."): get_decimal_symbol(locale)})
    return swiss.replace("\0", get_currency_symbol(currency, locale=locale))


@lru_cache(maxsize=256)
def _pattern(locale: str, decimals: int) -> NumberPattern:
    try:
        found = parse_pattern(Locale.parse(locale).currency_formats["standard"].pattern)
    except ValueError as wrong:
        raise UnknownLocaleError(locale) from wrong
    found.frac_prec = (decimals, decimals)
    return found
