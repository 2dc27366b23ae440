"""Masks what must not be stored: secrets, card numbers, IBANs. Pure."""

import re
from collections.abc import Iterable

MASK = "[masked]"

_CARD = re.compile(r"(?<![0-9A-Za-z-])(?:[0-9][ -]?){12,18}[0-9](?![0-9A-Za-z-])", re.ASCII)
_IBAN = re.compile(r"(?<![0-9A-Za-z])[A-Z]{2}[0-9]{2}(?: ?[0-9A-Z]){11,30}(?![0-9A-Za-z])", re.ASCII)
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=:-]{8,}")
_SECRET_FIELD = re.compile(
    r'(?i)("(?:[a-z_-]*(?:secret|password|api_?key|access_token|authorization))"\s*:\s*)"(?:[^"\\]|\\.)*"'
)


def _luhn(digits: str) -> bool:
    total = 0
    for place, char in enumerate(reversed(digits)):
        value = int(char) * (2 if place % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def _card(found: re.Match[str]) -> str:
    digits = re.sub(r"[ -]", "", found[0])
    # First digits of payment cards are 2 to 6; other long numbers (times, ids) are left alone.
    return f"{MASK}…{digits[-4:]}" if digits[0] in "23456" and _luhn(digits) else found[0]


def _iban(found: re.Match[str]) -> str:
    text = found[0].replace(" ", "")
    if len(text) < 15:
        return found[0]
    number = int("".join(str(int(char, 36)) for char in text[4:] + text[:4]))
    return f"{text[:2]}{MASK}…{text[-4:]}" if number % 97 == 1 else found[0]


def redact(text: str, *, secrets: Iterable[str | None] = ()) -> str:
    """`text` without the given secrets, bearer tokens, card numbers (Luhn) and IBANs (mod 97)."""
    for secret in secrets:
        if secret and len(secret) >= 4:
            text = text.replace(secret, MASK)
    text = _BEARER.sub(lambda found: f"{found[1]} {MASK}", text)
    text = _SECRET_FIELD.sub(lambda found: f'{found[1]}"{MASK}"', text)
    return _IBAN.sub(_iban, _CARD.sub(_card, text))
