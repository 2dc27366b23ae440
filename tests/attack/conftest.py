"""The fixtures of other packages that attacks use."""

from tests.blackbox.conftest import agent
from tests.flow.conftest import world
from tests.running.test_worker import bells, worker

__all__ = ["agent", "bells", "worker", "world"]
