"""Times in the reader's zone and amounts in their locale: the same moment, the same money."""

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.template import Context, Template

from actions import money
from reconciliation.models import Preferences
from reconciliation.views import comfort, words

NOW = datetime(2026, 7, 1, 22, 30, tzinfo=UTC)


def as_liked(source: str, *, now: datetime = NOW, likes: Preferences | None = None, **context: Any) -> str:
    with comfort.reading(lambda: likes):
        return Template("{% load desk %}" + source).render(Context({"now": now} | context))


@pytest.mark.parametrize(
    ("minor", "currency", "locale", "shown"),
    [
        (123_456_789, "EUR", "de_DE", "1.234.567,89 €"),
        (123_456_789, "EUR", "fr_FR", "1\u202f234\u202f567,89 €"),
        (123_456_789, "EUR", "en_IN", "€12,34,567.89"),
        (123_456_789, "EUR", "de_CH", "EUR 1’234’567.89"),
        (123_456_789, "CHF", "fr_CH", "1’234’567,89 CHF"),
        (123_456_789, "EUR", "nl_NL", "€ 1.234.567,89"),
        # ISO 4217 counts two decimals of the rupiah; CLDR shows none and would round.
        (12_345, "IDR", "de_DE", "123,45 IDR"),
        (500, "JPY", "de_DE", "500 ¥"),
        (1_999, "KWD", "en_US", "KWD 1.999"),
        (-50, "EUR", "en_GB", "-€0.50"),
        # More than a float could hold.
        (999_999_999_999_999_999, "EUR", "en_GB", "€9,999,999,999,999,999.99"),
    ],
)
def test_an_amount_is_exact_in_every_locale(minor: int, currency: str, locale: str, shown: str) -> None:
    assert comfort.amount(minor, currency, locale).replace("\u00a0", " ") == shown


@pytest.mark.parametrize("locale", comfort.LOCALES)
@pytest.mark.parametrize(("minor", "currency"), [(1, "EUR"), (100_000_01, "EUR"), (12_345, "IDR"), (7, "BHD")])
def test_every_digit_is_shown_in_every_locale_on_offer(locale: str, minor: int, currency: str) -> None:
    digits = "".join(letter for letter in comfort.amount(minor, currency, locale) if letter.isdigit())
    assert digits == money.to_text(minor, currency).replace(".", "")


def test_who_chose_no_locale_reads_amounts_as_the_desk_writes_them() -> None:
    assert words.amount(64_000, "EUR") == "€\u00a0640.00"
    assert "€\u00a0640.00" in as_liked('{% amount 64000 "EUR" %}', likes=Preferences())
    assert "640,00\u00a0€" in as_liked('{% amount 64000 "EUR" %}', likes=Preferences(locale="de_DE"))


@pytest.mark.parametrize("currency", ["XXX", "EURO", ""])
def test_a_currency_that_is_none_shows_minor_units_in_every_locale(currency: str) -> None:
    assert "5\u00a0minor units of" in as_liked("{% amount 5 c %}", likes=Preferences(locale="de_DE"), c=currency)


def test_a_locale_that_nobody_offers_shows_the_amount_all_the_same() -> None:
    assert "5\u00a0minor units" in as_liked('{% amount 5 "EUR" %}', likes=Preferences(locale="tlh_XX"))


def test_a_time_is_in_the_chosen_zone_with_utc_on_hover() -> None:
    told = as_liked("{% clock when %}", likes=Preferences(time_zone="Europe/Berlin"), when=NOW)
    assert ">00:30:00<" in told
    assert 'title="2026-07-01 22:30:00 UTC"' in told
    assert "data-clock" not in told  # landed.js would put it into the browser's zone


def test_today_is_the_readers_today() -> None:
    earlier = datetime(2026, 7, 1, 21, 59, tzinfo=UTC)
    told = as_liked("{% clock when %}", likes=Preferences(time_zone="Europe/Berlin"), when=earlier)
    assert ">2026-07-01 23:59<" in told  # it is the 2nd in Berlin by now
    assert ">21:59:00<" in as_liked("{% clock when %}", when=earlier)


def test_summer_time_counts_at_the_time_shown_not_now() -> None:
    winter = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
    told = as_liked("{% clock when %}", likes=Preferences(time_zone="Europe/Berlin"), when=winter)
    assert ">2026-01-05 13:00<" in told


@pytest.mark.parametrize("zone", ["", "Mars/Olympus", "../../etc/passwd", "Europe/"])
def test_without_a_zone_that_there_is_the_browser_says_the_time(zone: str) -> None:
    told = as_liked("{% clock when %}", likes=Preferences(time_zone=zone), when=NOW)
    assert "data-clock" in told
    assert ">22:30:00<" in told


def test_one_readers_likes_end_with_their_request() -> None:
    with comfort.reading(lambda: Preferences(time_zone="Asia/Tokyo", locale="de_DE")):
        assert comfort.zone() == ZoneInfo("Asia/Tokyo")
    assert comfort.zone() is None
    assert comfort.locale() == ""
