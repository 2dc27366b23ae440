"""The Ed25519 keys (RFC 8032) that anchors are signed with: the private one for whoever writes them, public ones for
whoever reads them. Files in PEM, as `openssl pkey` reads and writes them."""

import base64
import hashlib
import os
import secrets
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


class BadKey(Exception):
    """No such key, or none that anchors are signed with; the message says which file."""


def make(path: Path) -> Path:
    """Writes a new private key to `path`, for its owner alone, and its public one beside it; returns the latter's
    path. Raises BadKey when there is something already."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    beside = path.with_name(f"{path.name}.pub")
    try:
        if beside.exists():
            raise FileExistsError
        _write_new(path, private, mode=0o600)
        _write_new(beside, public, mode=0o644)
    except FileExistsError:
        raise BadKey(f"{path} or {beside} is there already; a key is never written over.") from None
    except OSError as wrong:
        raise BadKey(f"{path} can't be written: {wrong.strerror}.") from None
    return beside


def _write_new(path: Path, content: bytes, *, mode: int) -> None:
    """There whole or not at all, and never over another: somebody may make, or read, one at the same moment."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.link(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def private_key(path: Path) -> Ed25519PrivateKey:
    """Raises BadKey; also when others than its owner can read it."""
    content = _read(path)
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise BadKey(f"{path} can be read by others than its owner. Run: chmod 600 {path}")
    try:
        found = serialization.load_pem_private_key(content, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise BadKey(f"{path} holds no private key in PEM without a password.") from None
    if not isinstance(found, Ed25519PrivateKey):
        raise BadKey(f"{path} holds another sort of key than Ed25519.")
    return found


def public_keys(paths: Iterable[Path]) -> dict[str, Ed25519PublicKey]:
    """Public keys by their ids, from files that hold a public or a private one. Raises BadKey."""
    found = {}
    for path in paths:
        key = _public(path)
        found[id_of(key)] = key
    return found


def _public(path: Path) -> Ed25519PublicKey:
    content = _read(path)
    try:
        if b"PRIVATE" in content:
            return private_key(path).public_key()
        key = serialization.load_pem_public_key(content)
    except (ValueError, UnsupportedAlgorithm):
        raise BadKey(f"{path} holds no public key in PEM.") from None
    if not isinstance(key, Ed25519PublicKey):
        raise BadKey(f"{path} holds another sort of key than Ed25519.")
    return key


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as wrong:
        raise BadKey(f"The key {path} can't be read: {wrong.strerror}.") from None


def id_of(key: Ed25519PublicKey) -> str:
    """What a key is called: the SHA-256 of its 32 bytes, in hex."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()


def sign(key: Ed25519PrivateKey, message: bytes) -> str:
    return base64.b64encode(key.sign(message)).decode()


def is_signed(message: bytes, signature: str, *, by: str, among: Mapping[str, Ed25519PublicKey]) -> bool:
    """Whether the key with the id `by` made the signature. Raises KeyError when it is none of those."""
    try:
        among[by].verify(base64.b64decode(signature, validate=True), message)
    except (InvalidSignature, ValueError):
        return False
    return True
