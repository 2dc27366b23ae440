from tests.flow.conftest import world

__all__ = ["world"]
