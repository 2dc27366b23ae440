"""Finds what looks like a secret: a policy file lies in a repository, and its diff in a terminal. Pure."""

import re
from collections.abc import Iterator
from typing import Any

from actions.redaction import MASK

_NAME = re.compile(
    r"(?:[a-z0-9]+[_-])*(?:secret|password|passwd|passphrase|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|secret[_-]?key|credentials?|authorization)"
    r"|(?:x[_-])?(?:(?:access|auth|api|bearer|refresh|secret|service)[_-]?)?token",
    re.IGNORECASE,
)
_VALUE = re.compile(
    r"\b[sr]k_(?:live|test)_\w{6,}|\bwhsec_\w{6,}|\blnd_[\w-]{20,}|\bAKIA[0-9A-Z]{16}\b|\bAIza[\w-]{30,}"
    r"|\bgh[opsur]_\w{20,}|\bgithub_pat_\w{20,}|\bxox[abeoprs]-[\w-]{10,}|\bsk-[\w-]{20,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.|-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|\b(?i:bearer|basic)\s+(?=\S*[0-9])[\w.~+/=:-]{8,}|//[^/\s:@]*:[^/\s@]+@",
    re.ASCII,
)
# A run that no word, path or expression has: long, with small letters, capitals and digits; or very long hex.
_RUN = re.compile(r"[A-Za-z0-9+=_]{32,}", re.ASCII)
_HEX = re.compile(r"[0-9a-f]{40,}|[0-9A-F]{40,}", re.ASCII)
_PLACEHOLDERS = ("{secret}", "{account}")


def find(key: str, value: Any, path: str = "") -> Iterator[str]:
    """The path of each text in `value` that is a secret by its name or by its look."""
    path = path or key
    if isinstance(value, str):
        if _is_secret(key, value):
            yield path
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from find(name, inner, f"{path}.{name}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from find(key, inner, f"{path}[{number}]")


def mask(key: str, value: Any) -> Any:
    """`value` with each of those texts masked."""
    if isinstance(value, str):
        return MASK if _is_secret(key, value) else value
    if isinstance(value, dict):
        return {name: mask(name, inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [mask(key, inner) for inner in value]
    return value


def _is_secret(key: str, text: str) -> bool:
    by_name = bool(_NAME.fullmatch(key)) and text not in ("", MASK) and not any(p in text for p in _PLACEHOLDERS)
    return by_name or _looks_like_one(text)


def _looks_like_one(text: str) -> bool:
    if _VALUE.search(text) or _HEX.search(text):
        return True
    needed = (str.islower, str.isupper, str.isdigit)
    return any(all(any(map(has, run)) for has in needed) for run in _RUN.findall(text))
