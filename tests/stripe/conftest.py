from collections.abc import Iterator
from pathlib import Path

import pytest

from actions import times
from config import children
from config.demo import stripe
from tests.flow.world import Clock
from tests.stripe.proxy import Proxy
from tests.stripe.world import StripeWorld, make_world


@pytest.fixture(scope="session")
def localstripe(data_dir: Path) -> Iterator[str]:
    """The base URL of a localstripe of this (xdist) process."""
    process, url = stripe.start(data_dir / "localstripe.log")
    yield url
    children.stop([process], grace_s=1)


@pytest.fixture(scope="session")
def _proxy(localstripe: str) -> Iterator[Proxy]:
    with Proxy(localstripe) as found:
        yield found


@pytest.fixture
def proxy(_proxy: Proxy) -> Proxy:
    """In front of localstripe, without faults."""
    _proxy.reset()
    return _proxy


@pytest.fixture
def world(localstripe: str, proxy: Proxy, transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> StripeWorld:
    monkeypatch.setenv("LANDED_TEST_SECRET", stripe.SECRET)
    clock = Clock(times.now)
    monkeypatch.setattr(times, "now", clock)
    return make_world(proxy, stripe.Client(localstripe), clock)
