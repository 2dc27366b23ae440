"""Fixtures, found by pytest itself once `landed-client[testing]` is installed. Nothing starts before one is used."""

from collections.abc import Iterator

import pytest

from landed_client import Landed
from landed_client.testing.fake import FakeLanded
from landed_client.testing.faults import Faults
from landed_client.testing.reviewers import Reviewers
from landed_client.testing.server import Server, start_server


@pytest.fixture(scope="session")
def landed_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A real Landed with its sandbox on free ports, once per run. See `landed_client.testing.server.home`."""
    with start_server(tmp_path_factory.mktemp("landed")) as server:
        yield server


@pytest.fixture
def landed(landed_server: Server) -> Iterator[Landed]:
    """A client for the server's agent."""
    with Landed(landed_server.base_url, landed_server.token) as client:
        yield client


@pytest.fixture(scope="session")
def landed_faults(landed_server: Server) -> Iterator[Faults]:
    """Faults by order, and what was really posted and booked."""
    faults = Faults(landed_server.sandbox_url)
    yield faults
    faults.close()


@pytest.fixture(scope="session")
def landed_reviewer(landed_server: Server) -> Iterator[Reviewers]:
    """People at the desk: approve, reject, confirm, fail."""
    staff = [one for one in landed_server.logins if one["role"] in ("reviewer", "supervisor")]
    people = Reviewers(landed_server.base_url, staff)
    yield people
    people.close()


@pytest.fixture
def fake_landed() -> FakeLanded:
    """A Landed in memory: no network, no server, and time that only passes when somebody waits."""
    return FakeLanded()
