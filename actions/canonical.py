"""Canonical JSON (RFC 8785), salted digests, and reading JSON without guessing. Pure."""

import hashlib
import json
import secrets
from collections.abc import Mapping
from typing import Any

import rfc8785

MAX_DEPTH = 64


class BadJson(ValueError):
    """The text is not JSON that has exactly one meaning; the message says what is wrong."""


def canonical(value: Any) -> str:
    """`value` as RFC 8785 text: the same value gives the same text, always and everywhere."""
    return rfc8785.dumps(value).decode()


_plain_json = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode


def canonical_row(value: Mapping[str, Any]) -> str:
    """The same text as `canonical` gives, several times as quickly, for what rows of history hold: names in ASCII,
    texts, integers, booleans and None, in nested mappings. (RFC 8785 differs from sorted JSON in floats and in the
    order of names outside of ASCII; of integers it takes those that a double holds.)"""
    return _plain_json(value) if _is_plain(value) else canonical(value)


def _is_plain(value: Mapping[str, Any]) -> bool:
    for name, inner in value.items():
        kind = type(inner)
        if kind is dict:
            if not _is_plain(inner):
                return False
        elif kind is int:
            if not -MAX_INTEGER <= inner <= MAX_INTEGER:
                return False
        elif not (kind is str or kind is bool or inner is None):
            return False
        if not name.isascii():
            return False
    return True


def new_salt() -> str:
    return secrets.token_hex(16)


def digest(text: str, *, salt: str = "") -> str:
    """SHA-256 in hex over salt and text. The salt keeps short texts (an amount, a name) from being guessed."""
    return hashlib.sha256(f"{salt}\n{text}".encode()).hexdigest()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        double = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]  # add() is None
        raise BadJson(f"The key {double!r} appears twice in one object.")
    return found


def _no_constant(name: str) -> Any:
    raise BadJson(f"{name} is not JSON.")


class Number(str):
    """A JSON number that is not an integer, kept as the digits that were written (`50.10` is not `50.1`)."""

    __slots__ = ()


def _check(value: Any, depth: int = 0) -> None:
    if depth > MAX_DEPTH:
        raise BadJson(f"The JSON is nested deeper than {MAX_DEPTH} levels.")
    if isinstance(value, str):
        check_text(value)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            check_text(key)
            _check(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _check(inner, depth + 1)


def check_text(text: str) -> None:
    """Raises BadJson for what no database stores alike: NUL and lone surrogates."""
    if "\x00" in text:
        raise BadJson("A text contains the character NUL.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadJson("A text contains half of a surrogate pair.") from None


def read_json(body: bytes) -> Any:
    """Parses UTF-8 JSON strictly.

    Refuses a byte-order mark, duplicate keys, NaN and Infinity, NUL, lone surrogates and deep nesting. Numbers
    with a fraction or an exponent come back as `Number`, so that the reader of the field decides what they mean.

    Raises:
        BadJson: with one sentence that says what is wrong.
    """
    if body.startswith(b"\xef\xbb\xbf"):
        raise BadJson("The body begins with a byte-order mark.")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise BadJson("The body is not UTF-8.") from None
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=Number)
    except RecursionError:
        raise BadJson(f"The JSON is nested deeper than {MAX_DEPTH} levels.") from None
    except json.JSONDecodeError as wrong:
        raise BadJson(f"Not JSON: {wrong.msg} at position {wrong.pos}.") from None
    except BadJson:
        raise
    except ValueError:  # Python refuses to read integers of thousands of digits
        raise BadJson("A number has too many digits.") from None
    _check(value)
    return value


# RFC 8785 numbers are IEEE doubles: beyond this an integer has no canonical form.
MAX_INTEGER = 2**53 - 1


def check_params(value: Any, path: str = "params", depth: int = 0) -> None:
    """Raises BadJson, naming the place, for what is not plain JSON that everybody reads alike.

    Only texts, integers up to 2^53, booleans, null, lists and objects with text keys; no NUL, no half surrogates,
    at most 64 levels. Numbers with a fraction are written as strings.
    """
    if depth > MAX_DEPTH:
        raise BadJson(f"{path[:60]}…: nested deeper than {MAX_DEPTH} levels.")
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, Number | float):
        raise BadJson(f"{path}: {value} is not an integer; write it as a string.")
    if isinstance(value, str):
        check_text(value)
    elif isinstance(value, int):
        if abs(value) > MAX_INTEGER:
            raise BadJson(f"{path}: {value} is too large to be read alike everywhere; write it as a string.")
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise BadJson(f"{path}: the key {key!r} is not a text.")
            check_text(key)
            check_params(inner, f"{path}.{key}", depth + 1)
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            check_params(inner, f"{path}[{number}]", depth + 1)
    else:
        raise BadJson(f"{path}: {type(value).__name__} is not JSON.")
