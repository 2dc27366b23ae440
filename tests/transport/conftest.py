from __future__ import annotations

import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from actions.transport import Call, Limits, close_idle


def _make_certificate(folder: Path, name: str) -> Path:
    pem = folder / f"{name}.pem"
    subprocess.run(
        [
            *(
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
            ),
            *("-days", "2", "-subj", f"/CN={name}", "-addext", f"subjectAltName={name}"),
            *("-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")),
        ],
        check=True,
        capture_output=True,
    )
    pem.write_text((folder / "key.pem").read_text() + (folder / "cert.pem").read_text())
    return pem


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Key and self-signed certificate for 127.0.0.1 in one file; also what a client must trust."""
    return _make_certificate(tmp_path_factory.mktemp("tls"), "IP:127.0.0.1")


@pytest.fixture(scope="session")
def certificate_of_another(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _make_certificate(tmp_path_factory.mktemp("tls"), "DNS:other.example")


@pytest.fixture(scope="session")
def tls_with() -> Callable[[Path], ssl.SSLContext]:
    def make(pem: Path) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)
        return context

    return make


@pytest.fixture
def post() -> Callable[[str], Call]:
    def make(url: str, body: bytes = b'{"amount_minor":500}') -> Call:
        headers = {"Idempotency-Key": "k-1", "Content-Type": "application/json"}
        return Call(method="POST", url=url, headers=headers, body=body)

    return make


@pytest.fixture
def limits() -> Limits:
    return Limits(connect_timeout_s=1.0, deadline_s=1.5)


@pytest.fixture(autouse=True)
def no_idle_connections():
    yield
    close_idle()
