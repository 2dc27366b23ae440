from tests.pages.conftest import world

__all__ = ["world"]
