"""What the design promises and a machine can check: contrast, no inline code, one clock for both languages."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

from actions.statuses import Status
from reconciliation.views import words

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = sorted((ROOT / "templates").glob("*.html"))
TOKENS = (ROOT / "static/landed/tokens.css").read_text()


def tokens(theme: str) -> dict[str, str]:
    light, dark = TOKENS.split("@media")
    found = dict(re.findall(r"--([a-z-]+):\s*(#[0-9a-f]{6})", light))
    return found if theme == "light" else found | dict(re.findall(r"--([a-z-]+):\s*(#[0-9a-f]{6})", dark))


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read_in_both_themes(theme: str) -> None:
    found = tokens(theme)
    pairs = [(text, back) for text in ("ink", "muted") for back in ("page", "surface", "hover")]
    pairs += [(status.value, f"{status.value}-back") for status in Status]
    pairs += [("on-accent", "accent"), ("ink", "unknown-back")]
    weak = {pair: round(contrast(found[pair[0]], found[pair[1]]), 2) for pair in pairs}
    assert {pair: ratio for pair, ratio in weak.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_edges_of_fields_and_the_focus_can_be_seen(theme: str) -> None:
    found = tokens(theme)
    assert contrast(found["focus"], found["page"]) >= 3


def test_every_status_has_a_colour_and_an_icon() -> None:
    css = (ROOT / "static/landed/frame.css").read_text()
    icons = (ROOT / "templates/_icons.html").read_text()
    for status in Status:
        assert f".status-{status.value}" in css
        assert f'id="i-{status.value}"' in icons


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_templates_hold_no_code_and_nothing_from_elsewhere(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"\sstyle=|<style|\son[a-z]+=|javascript:", text)
    assert not re.search(r"<script(?! src=\"\{% static)", text)
    assert not re.search(r"(src|href)=\"(https?:)?//", text)
    assert "|safe" not in text
    assert "autoescape off" not in text


def test_every_post_form_carries_its_token() -> None:
    for path in TEMPLATES:
        for form in re.findall(r"<form[^>]*method=\"post\".*?</form>", path.read_text(), re.DOTALL):
            assert "{% csrf_token %}" in form, path.name


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3_599, "59 min"), (3_600, "1 h"), (172_799, "47 h"), (172_800, "2 d")],
)
def test_spans_are_one_figure(seconds: int, said: str) -> None:
    assert words.span(timedelta(seconds=seconds)) == said.replace(" ", "\u00a0")


@pytest.mark.parametrize(
    ("minor", "currency", "said"),
    [
        (64_000, "EUR", "€ 640.00"),
        (120_000, "JPY", "¥ 120,000"),
        (1_234, "KWD", "KWD 1.234"),
        (123_456_789, "CHF", "CHF 1,234,567.89"),
        (None, "EUR", "—"),
        (5, "??", "5 minor units of ??"),
    ],
)
def test_amounts_have_their_currency_and_its_decimals(minor: int | None, currency: str, said: str) -> None:
    assert words.amount(minor, currency).replace("\u00a0", " ") == said


def test_the_phases_of_sending_all_have_words() -> None:
    from actions.phases import Phase

    assert set(words.PHASES) == {phase.value for phase in Phase}
