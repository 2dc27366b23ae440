"""The fixtures of other packages that these cases use."""

from tests.flow.conftest import world
from tests.transport.conftest import certificate, tls_with

__all__ = ["certificate", "tls_with", "world"]
