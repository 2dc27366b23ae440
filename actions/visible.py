"""Untrusted text for people's eyes: nothing in it can hide, reorder or pose as something else. Pure."""

import json
import unicodedata
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

# Controls, formats (bidirectional and zero-width ones), surrogates, private, unassigned, separators.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Blank, although Unicode calls them letters, marks or symbols.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u2800\u3164\uffa0")


def is_hidden(char: str) -> bool:
    """Whether a reader can't see `char` for what it is. A plain space, a tab and a line feed are fine."""
    if char in " \t\n":
        return False
    selects_variation = "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"
    category = unicodedata.category(char)
    return category in _HIDDEN or category == "Zs" or char in _BLANK or selects_variation


def plain(text: str) -> str:
    """`text` with each hidden character as its code point, such as `⟨U+202E⟩`; for titles. Not escaped."""
    return "".join(f"⟨U+{ord(char):04X}⟩" if is_hidden(char) else char for char in text)


def visible(text: str) -> SafeString:
    """`text` as HTML: escaped, kept apart from the page's own direction, hidden characters marked."""
    return format_html("<bdi>{}</bdi>", format_html_join("", "{}", ((part,) for part in _parts(text))))


def _parts(text: str) -> list[str]:
    found: list[str] = []
    run = ""
    for char in text:
        if not is_hidden(char):
            run += char
            continue
        name = unicodedata.name(char, "unnamed character")
        found += [
            run,
            format_html('<code class="hidden-char" title="{}">{}</code>', name.lower(), plain(char)),
        ]
        run = ""
    return [*found, run]


def pretty(value: Any) -> str:
    """JSON, given as its text or as values, one value a line. Text that is not JSON stays as it is."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return str(value)
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)


def block(text: str, *, most: int | None = None) -> SafeString:
    """A longer text with its line breaks; cut, saying so, after `most` characters."""
    shown = visible(text if most is None else text[:most])
    if most is None or len(text) <= most:
        return format_html('<pre class="untrusted">{}</pre>', shown)
    return format_html('<pre class="untrusted">{}</pre>… {} more characters', shown, len(text) - most)
