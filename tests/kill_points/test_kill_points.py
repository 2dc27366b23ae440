"""Killed at every point."""

import pytest

from tests.kill_points.acts import ACTS
from tests.kill_points.conftest import Zygote


# The zygote copies this database; nothing is written into it.
pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("act", list(ACTS))
def test_wherever_it_is_killed_every_invariant_holds(zygote: Zygote, act: str) -> None:
    ran = zygote.run(act)
    print(act, len(ran["points"]), ran["rounds"], ran["cpu_s"])
    for point in ran["points"]:
        print("   ", point)
    assert not ran["faults"]
