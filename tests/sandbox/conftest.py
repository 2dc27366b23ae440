import uuid
from collections.abc import Iterator

import pytest
from sandbox_client import Sandbox, start_sandbox


def _run(*arguments: str) -> Iterator[Sandbox]:
    sandbox = start_sandbox(*arguments)
    yield sandbox
    sandbox.process.kill()
    sandbox.process.wait()


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """One process for all tests that keep to orders of their own."""
    books = tmp_path_factory.mktemp("sandbox") / "books.sqlite3"
    yield from _run("--port", "0", "--books", str(books))


@pytest.fixture
def own_sandbox() -> Iterator[Sandbox]:
    """A process of the test's own, for tests that change what all orders share."""
    yield from _run()


@pytest.fixture
def order() -> str:
    return f"order-{uuid.uuid4().hex[:12]}"
