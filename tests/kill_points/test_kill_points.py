"""Killed at every point."""

import json

import pytest

from tests.kill_points.acts import ACTS
from tests.kill_points.conftest import Zygote

# The zygote copies this database; nothing is written into it.
pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("act", list(ACTS))
def test_wherever_it_is_killed_every_invariant_holds(zygote: Zygote, act: str) -> None:
    ran = zygote.run(act)
    with open("/tmp/kp.log", "a") as log:
        print(act, len(ran["points"]), ran["rounds"], ran["cpu_s"], ran["unseen"], file=log)
        for point in ran["points"]:
            print("   ", *point.values(), file=log)
        print(json.dumps(ran["faults"], indent=1), file=log)
    assert not ran["faults"]
