"""One sending, one look, one decision, one recording and more, each killed at every commit and every socket write;
then whoever comes after goes on, and every invariant holds.

The points are counted, not listed here: what the code commits or sends tomorrow is a point tomorrow.
"""

from collections import Counter
from typing import Any

import pytest

from tests.kill_points.acts import ACTS
from tests.kill_points.bugs import BUGS
from tests.kill_points.conftest import Zygote

# The zygote copies this database; nothing is written into it.
pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("act", list(ACTS))
def test_wherever_it_is_killed_every_invariant_holds(zygote: Zygote, act: str) -> None:
    ran = zygote.run(act)
    assert not ran["faults"], "\n".join(f"{point}: {faults}" for point, faults in ran["faults"].items())
    assert ran["died"] >= 5
    assert ran["worlds"] >= 3, "some of them left something else behind than the others"
    assert ran["unseen"] == 0, "every commit that the database has written down was a point"


def kinds(ran: dict[str, Any]) -> Counter[tuple[str, str, str]]:
    return Counter((point["what"], point["to"], point["when"]) for point in ran["points"])


def test_the_points_are_there_that_must_be(zygote: Zygote) -> None:
    sending = kinds(zygote.run("dispatch", points=False))
    assert sending["commit", "database", "after"] >= 2, "the attempt, and its answer"
    for to in ("downstream", "redis"):
        for when in ("before", "half", "after"):
            assert sending["send", to, when] >= 1, (to, when)
    recording = kinds(zygote.run("record", points=False))
    assert recording["commit", "database", "before"] >= 1
    assert recording["send", "client", "half"] >= 1


def test_one_more_commit_in_the_product_is_one_more_point_by_itself(zygote: Zygote) -> None:
    before, after = (kinds(zygote.run("dispatch", points=False, bug=bug)) for bug in ("", "one_more_commit"))
    for when in ("before", "after"):
        more = after["write", "database", when] - before["write", "database", when]
        assert more == 2, "one at each of the two transitions"


@pytest.mark.either_database
@pytest.mark.parametrize("bug", list(BUGS))
def test_what_is_broken_on_purpose_is_found_where_somebody_dies(zygote: Zygote, bug: str) -> None:
    faults = zygote.run(BUGS[bug].act, bug=bug)["faults"]
    assert faults, "nothing was found"
    assert "nobody died" not in faults, faults
