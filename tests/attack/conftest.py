from tests.blackbox.conftest import agent as agent
from tests.flow.conftest import world as world
