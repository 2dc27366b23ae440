"""The fixtures of other packages that attacks use."""

from tests.blackbox.conftest import agent
from tests.flow.conftest import world
from tests.running.test_worker import bells, start_worker, worker

__all__ = ["agent", "bells", "start_worker", "worker", "world"]
