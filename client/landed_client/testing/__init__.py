"""For tests of programs that use Landed: a real server with faults on order, and a fake without a network."""

from landed_client.testing.fake import FakeKind, FakeLanded
from landed_client.testing.faults import Faults
from landed_client.testing.reviewers import Reviewers
from landed_client.testing.server import Server, start_server

__all__ = ["FakeKind", "FakeLanded", "Faults", "Reviewers", "Server", "start_server"]
