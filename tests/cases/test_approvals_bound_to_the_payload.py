"""An approval is for the payload that a person read: what somebody writes into the table past the triggers, between
that and the sending, is not sent.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from actions import callers, history, times
from actions.errors import LandedError
from actions.models import Intent, Kind
from actions.payloads import payload, payload_digest
from actions.statuses import Status
from reconciliation.models import Choice, Decision
from tests.cases.test_approvals import approve, change_amount, held
from tests.flow.world import World
from tests.flushing import without_triggers


def change_amount_and_digest(intent: Intent) -> None:
    """Somebody who knows how the digest is made."""
    found = Intent.objects.select_related("kind").get(pk=intent.pk)
    fields = payload(
        kind=found.kind.name,
        subject=found.subject,
        amount_minor=400_00,
        currency=found.currency,
        params=found.params,
        executor=found.executor,
    )
    with without_triggers():
        Intent.objects.filter(pk=intent.pk).update(
            amount_minor=400_00, payload_digest=payload_digest(fields, salt=found.payload_salt)
        )


FORGERIES = [change_amount, change_amount_and_digest]
Forge = Callable[[Intent], None]


@pytest.mark.parametrize("forge", FORGERIES)
def test_what_was_changed_after_its_approval_is_not_sent_whatever_digest_it_has(world: World, forge: Forge) -> None:
    intent = held(world)
    approve(world, intent)
    forge(intent)
    world.send()
    assert world.posts(intent) == 0
    assert world.read(intent).status == Status.HELD
    assert history.faults(world.read(intent)) != []


@pytest.mark.parametrize("forge", FORGERIES)
def test_what_needed_no_approval_and_was_changed_is_not_sent_either(world: World, forge: Forge) -> None:
    intent = world.propose("order-1", "40.00")
    forge(intent)
    world.send()
    assert world.posts(intent) == 0


@pytest.mark.parametrize("forge", FORGERIES)
def test_what_was_changed_after_its_approval_is_not_claimed(world: World, forge: Forge) -> None:
    intent = held(world, executor="caller")
    approve(world, intent)
    forge(intent)
    with pytest.raises(LandedError):
        callers.claim(intent.pk, claim_token="t-1", actor_id="agent:1")
    assert intent.attempts.count() == 0


@pytest.mark.parametrize("forge", FORGERIES)
def test_an_approval_of_what_was_changed_before_takes_no_effect(world: World, forge: Forge) -> None:
    intent = held(world)
    forge(intent)
    with pytest.raises(LandedError):
        approve(world, intent)
    assert world.read(intent).status == Status.HELD
    assert (world.send(), world.posts(intent)) == (0, 0)


@pytest.mark.parametrize("forge", FORGERIES)
def test_what_was_changed_in_the_undo_window_is_not_approved(world: World, forge: Forge, settings: Any) -> None:
    settings.LANDED_UNDO_S = 15
    intent = held(world)
    assert approve(world, intent).state == "undo_window"
    forge(intent)
    world.later(16)
    world.sweep()
    assert world.read(intent).status == Status.HELD
    assert Decision.objects.filter(choice=Choice.VOID).count() == 1
    assert (world.send(), world.posts(intent)) == (0, 0)


@pytest.mark.parametrize("forge", FORGERIES)
def test_two_votes_on_two_payloads_are_not_two_votes(world: World, forge: Forge) -> None:
    intent = held(world, review_above=1_000, two_people_above=2_000)
    assert approve(world, intent).state == "second_person"
    forge(intent)
    with suppress(LandedError):
        assert approve(world, intent).state == "second_person"
    assert world.read(intent).status == Status.HELD
    assert not Decision.objects.filter(choice=Choice.EFFECT).exists()
    assert (world.send(), world.posts(intent)) == (0, 0)


def test_who_approves_too_late_is_told_so_although_no_clock_ran(world: World) -> None:
    Kind.objects.update(approval_expires_s=3_600)
    intent = held(world)
    found = world.read(intent)
    assert found.approve_before is not None
    world.later((found.approve_before - times.now()).total_seconds() + 1)
    with pytest.raises(LandedError):
        approve(world, intent)
    world.sweep()
    found = world.read(intent)
    assert (found.status, found.status_reason) == ("cancelled", "approval_expired")
