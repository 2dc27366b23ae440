"""Masks what must not be stored: secrets, card numbers, IBANs. Pure."""

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from stdnum import iban, luhn, numdb

MASK = "[masked]"

# How many digits cards of each network have, by their first digits (ISO/IEC 7812 issuer ranges).
_NETWORKS = (
    (re.compile(r"4"), {13, 16, 19}),
    (re.compile(r"5[0-9]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720"), {16}),
    (re.compile(r"3[47]"), {15}),
    (re.compile(r"3[0689]"), {14, 16}),
    (re.compile(r"35"), {16}),
    (re.compile(r"6"), {16, 17, 18, 19}),
)
# Groups of digits with at most one space or dash between them, beside no letter or other digit.
_DIGITS = re.compile(r"(?<![0-9A-Za-z])[0-9]+(?:[ -][0-9]+)*(?![0-9A-Za-z])", re.ASCII)
_UUID = re.compile(r"[0-9]{8}-[0-9]{4}-[0-9]{4}-[0-9]{4}-[0-9]{12}", re.ASCII)
_IBAN_START = re.compile(r"(?<![0-9A-Za-z])[A-Za-z]{2}[0-9]{2}(?= ?[0-9A-Za-z])", re.ASCII)
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+(?=[A-Za-z._~+/=:-]*[0-9])[A-Za-z0-9._~+/=:-]{8,}")
_SECRET_NAME = re.compile(r"(?i)secret|password|api_?key|access_?token|authorization")
# Names are cut off at a length: without one, a long row of such words takes the square of its length.
_SECRET_FIELD = re.compile(
    r'(?i)("[a-z_-]{0,64}(?:secret|password|api_?key|access_?token|authorization)[a-z_-]{0,64}"\s*:\s*)'
    r'"(?:[^"\\]|\\.)*"'
)
_LONGEST_CARD = 19


def redact(text: str, *, secrets: Iterable[str | None] = ()) -> str:
    """`text` without the given secrets, bearer tokens, secret fields, card numbers (Luhn) and IBANs (mod 97)."""
    for secret in secrets:
        if secret and len(secret) >= 4:
            # As it is, and as JSON writes it inside a string.
            for spelling in {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}:
                text = text.replace(spelling, MASK)
    text = _BEARER.sub(lambda found: f"{found[1]} {MASK}", text)
    text = _SECRET_FIELD.sub(lambda found: f'{found[1]}"{MASK}"', text)
    return _DIGITS.sub(_cards, _ibans(text))


def redact_values(value: Any, *, secrets: Iterable[str | None] = ()) -> Any:
    """The same for JSON values, text by text, before their quotes are escaped; fields by their name as well."""
    secrets = tuple(secrets)
    if isinstance(value, str):
        return redact(value, secrets=secrets)
    if isinstance(value, Mapping):
        return {
            key: MASK
            if isinstance(inner, str) and inner and _SECRET_NAME.search(str(key))
            else redact_values(inner, secrets=secrets)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [redact_values(inner, secrets=secrets) for inner in value]
    return value


def _is_card(digits: str) -> bool:
    lengths = next((lengths for begins, lengths in _NETWORKS if begins.match(digits)), set())
    return len(digits) in lengths and bool(luhn.is_valid(digits))


def _cards(found: re.Match[str]) -> str:
    """Masks each run of neighbouring groups that together are a card number; other numbers stay."""
    if _UUID.fullmatch(found[0]):
        return found[0]
    groups = re.split(r"([ -])", found[0])  # group, separator, group, …
    done, at = "", 0
    while at < len(groups):
        end = _card_end(groups, at)
        if end is None:
            done += "".join(groups[at : at + 2])
            at += 2
        else:
            done += f"{MASK}…{''.join(groups[at:end:2])[-4:]}" + "".join(groups[end : end + 1])
            at = end + 1
    return done


def _card_end(groups: list[str], at: int) -> int | None:
    """Where the longest card number that begins at this group ends; None when none does."""
    digits, found = "", None
    for end in range(at + 1, len(groups) + 1, 2):
        digits += groups[end - 1]
        if len(digits) > _LONGEST_CARD:
            break  # a text may be one row of groups a megabyte long
        if _is_card(digits):
            found = end
    return found


def _ibans(text: str) -> str:
    """Masks each stretch that is a valid IBAN of its country, however it is spaced or written."""
    done, at = "", 0
    for start in _IBAN_START.finditer(text):
        if start.start() < at:
            continue
        end = _iban_end(text, start.start())
        if end is not None:
            whole = text[start.start() : end].replace(" ", "")
            done += f"{text[at : start.start()]}{whole[:2].upper()}{MASK}…{whole[-4:]}"
            at = end
    return done + text[at:]


def _iban_end(text: str, start: int) -> int | None:
    """Where the IBAN that begins here ends, at the end of a word; None when none does."""
    left = _iban_length(text[start : start + 2].upper())
    end = start
    while left and end < len(text) and (text[end] == " " or (text[end].isascii() and text[end].isalnum())):
        left -= text[end] != " "
        end += 1
    if left or end == start or (end < len(text) and text[end].isalnum()):
        return None
    return end if iban.is_valid(text[start:end]) else None


@cache
def _iban_length(country: str) -> int:
    """How many characters an IBAN of this country has, by the registry in stdnum; 0 when it has none."""
    found = numdb.get("iban").info(f"{country}00")
    structure = dict(found[0][1]).get("bban", "") if found else ""
    sizes = re.findall(r"([0-9]+)!?[nace]", structure)
    return 4 + sum(map(int, sizes)) if sizes else 0
