"""People at the desk pause agents, kinds and downstreams, and let them go on: supervisors."""

from django.contrib.auth.models import User

from actions import jobs, pausing
from actions.pausing import Changed
from reconciliation.reviews import people


def pause(scope: str, name: str, *, person: User, reason: str) -> Changed:
    """Nothing of it, or to it, is sent any more. Raises PersonNotAllowed, NotFound, Invalid (`reason`)."""
    people.must(people.may_supervise(person))
    return pausing.pause(scope, name, reason=reason, person=person)


def resume(scope: str, name: str, *, person: User, reason: str, seen: int | None = None) -> Changed:
    """What waited is sent from now on. `seen`: the pause that the person read about; a newer one stays as it is.

    Raises PersonNotAllowed, NotFound, Invalid (`reason`).
    """
    people.must(people.may_supervise(person))
    done = pausing.resume(scope, name, reason=reason, person=person, seen=seen)
    if done.changed:
        jobs.ring_after_commit(jobs.SEND)
    return done
