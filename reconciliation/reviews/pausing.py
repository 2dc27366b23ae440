"""People at the desk pause agents, kinds and downstreams, and let them go on: supervisors."""

from django.contrib.auth.models import User
from django.db import transaction

from actions import jobs, pausing, times
from actions.models import Agent
from actions.pausing import Changed
from reconciliation import incidents
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
    with transaction.atomic():
        done = pausing.resume(scope, name, reason=reason, person=person, seen=seen)
        if done.changed and isinstance(done.row, Agent):
            incidents.end_of_agent(done.row, times.now())
    if done.changed:
        jobs.ring_after_commit(jobs.SEND)
    return done
