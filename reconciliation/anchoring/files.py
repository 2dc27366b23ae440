"""The file of an anchor: JSON lines. A head, a line for each chain in the order of ids, and a foot with the digest of
all that and its signature. Written and read as a stream."""

import hashlib
import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import IO, Any, Final
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from actions.canonical import canonical
from reconciliation.anchoring import keys
from reconciliation.reviews.verifying import Anchored

FORMAT: Final = "landed-anchor-1"
INTENT, CASE = "intent", "case"
_LONGEST_LINE: Final = 100_000


class BadAnchor(Exception):
    """A file that says nothing: no anchor, changed since, or not signed by a key that is trusted."""


@dataclass(frozen=True)
class Anchor:
    """A file whose signature holds. `head` is its first line; `digest`, of all but its last."""

    path: Path
    head: Mapping[str, Any]
    digest: str


def write(path: Path, head: Mapping[str, Any], lines: Iterable[tuple[str, Anchored]], key: Ed25519PrivateKey) -> str:
    """Writes an anchor; it is there whole and on the disk, or not at all. Returns its digest.

    Raises FileExistsError: an anchor is never written over. Other OSErrors as they come.
    """
    if path.exists():
        raise FileExistsError(f"{path} is there already")
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with beside.open("wb") as file:
            digest = _write_signed(file, head, lines, key)
            file.flush()
            os.fsync(file.fileno())
        beside.rename(path)
    finally:
        beside.unlink(missing_ok=True)
    _sync_folder(path.parent)
    return digest


def _write_signed(
    file: IO[bytes], head: Mapping[str, Any], lines: Iterable[tuple[str, Anchored]], key: Ed25519PrivateKey
) -> str:
    seen, number = hashlib.sha256(), 0
    for text in _texts(dict(head) | {"anchor": FORMAT, "key": keys.id_of(key.public_key())}, lines):
        line = f"{text}\n".encode()
        seen.update(line)
        file.write(line)
        number += 1
    foot = {"anchor": FORMAT, "digest": seen.hexdigest(), "lines": number}
    foot["signature"] = keys.sign(key, canonical(foot).encode())
    file.write(f"{canonical(foot)}\n".encode())
    return seen.hexdigest()


def _texts(head: Mapping[str, Any], lines: Iterable[tuple[str, Anchored]]) -> Iterator[str]:
    yield canonical(head)
    for what, one in lines:
        # As canonical JSON has it; there is nothing in it to escape.
        yield f'["{what}","{one.owner}",{one.length},"{one.head}"]'


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def check(path: Path, trusted: Mapping[str, Ed25519PublicKey]) -> Anchor:
    """Reads the whole file and its signature. Raises BadAnchor."""
    try:
        with path.open("rb") as file:
            head, foot, digest, number = _read(file)
    except OSError as wrong:
        raise BadAnchor(f"{path} can't be read: {wrong.strerror}.") from None
    if head.get("anchor") != FORMAT:
        raise BadAnchor(f"{path} is no anchor, or one of another version than {FORMAT}.")
    if set(foot) != {"anchor", "digest", "lines", "signature"}:
        raise BadAnchor(f"{path} is cut off: its last line, with the signature, is not there.")
    if (foot["digest"], foot["lines"]) != (digest, number):
        raise BadAnchor(f"{path} was changed since it was written: it does not have the digest that it says.")
    signed, by = (
        canonical({name: foot[name] for name in ("anchor", "digest", "lines")}).encode(),
        str(head.get("key")),
    )
    try:
        holds = keys.is_signed(signed, str(foot["signature"]), by=by, among=trusted)
    except KeyError:
        known = ", ".join(one[:16] for one in trusted) or "none"
        raise BadAnchor(f"{path} was signed with the key {by[:16]}…, which is not trusted here ({known}).") from None
    if not holds:
        raise BadAnchor(f"{path}: its signature is not one of the key {by[:16]}….")
    return Anchor(path, head, digest)


def _read(file: IO[bytes]) -> tuple[dict[str, Any], dict[str, Any], str, int]:
    """First line, last line, the digest of all but the last, and their number."""
    seen, number, last = hashlib.sha256(), 0, b""
    first = last
    while line := file.readline(_LONGEST_LINE):
        if number == 0:
            first = line
        seen.update(last)
        last, number = line, number + 1
    return _object(first), _object(last), seen.hexdigest(), number - 1


def _object(line: bytes) -> dict[str, Any]:
    with suppress(ValueError):
        found = json.loads(line)
        if isinstance(found, dict):
            return found
    return {}


def chains(anchor: Anchor, what: str) -> Iterator[Anchored]:
    """What an anchor that was checked says of intents, or of cases, in the order of their ids."""
    read_id = UUID if what == INTENT else int
    with anchor.path.open("rb") as file:
        file.readline()
        lines = takewhile(lambda line: isinstance(line, list), map(json.loads, file))
        for sort, owner, length, head in lines:
            if sort == what:
                yield Anchored(read_id(owner), length, head)


def digest_of(path: Path) -> str:
    """The digest that an anchor's last line names; empty when there is none to read."""
    with suppress(OSError), path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4_096))
        return str(_object(file.readlines()[-1:][0] if path.stat().st_size else b"").get("digest", ""))
    return ""


def check_previous(anchor: Anchor) -> None:
    """When the anchor before it is beside it: that it is the one that this one binds. Raises BadAnchor."""
    before = anchor.head.get("previous")
    if not before:
        return
    path = anchor.path.with_name(Path(before["name"]).name)
    if path.exists() and digest_of(path) != before["digest"]:
        raise BadAnchor(f"{path} is not the anchor that {anchor.path} was written after.")
