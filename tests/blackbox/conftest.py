import pytest

from tests.blackbox.agent import Agent
from tests.demo import Demo


@pytest.fixture
def agent(demo: Demo) -> Agent:
    return Agent(demo)
