"""Money that ended up elsewhere than intended is listed until somebody says what was done about it."""

import pytest

from actions.errors import BadDecision, NotFound, PersonNotAllowed
from actions.models import Intent, Kind
from actions.statuses import Status
from reconciliation.models import Choice, DecisionReason, Difference, LeftToDo, Match, MatchRole, Verdict
from reconciliation.reviews import differences, overriding
from tests.factories import make_person
from tests.flow.test_deciding import decide
from tests.flow.test_finding_the_truth import add_entry, unknown
from tests.flow.world import World


def listed(intent: Intent) -> list[tuple[str, int | None, str]]:
    return list(Difference.objects.filter(intent=intent).values_list("what", "amount_minor", "currency"))


def shown_as(world: World, subject: str, **columns: object) -> Intent:
    """An unknown intent of 50.00 EUR that the ledger shows under its key as something else."""
    intent = unknown(world, subject)
    row = {"amount_minor": 5_000, "currency": "EUR", "idempotency_key": intent.idempotency_key} | columns
    add_entry(world, subject, **row)
    world.check(intent)
    return world.read(intent)


def boss_confirms(world: World, intent: Intent, **more: object) -> None:
    decide(world.review(intent), make_person("supervisor"), Choice.CONFIRM, note="as booked", **more)


@pytest.mark.parametrize(
    ("booked", "verdict", "left"),
    [
        ({"amount_minor": 4_850}, Verdict.PARTIAL, [(LeftToDo.SEND, 150, "EUR")]),
        ({"amount_minor": 5_100}, Verdict.MISMATCH, [(LeftToDo.RECOVER, 100, "EUR")]),
        ({"amount_minor": 5_400, "currency": "USD"}, Verdict.MISMATCH, [(LeftToDo.COMPARE, 5_400, "USD")]),
        ({}, Verdict.MATCH, []),
    ],
    ids=["less", "more", "another currency", "the same"],
)
def test_what_was_booked_instead_is_named_and_after_the_decision_what_is_left_is_listed(
    world: World, booked: dict[str, object], verdict: Verdict, left: list[tuple[str, int, str]]
) -> None:
    Kind.objects.update(limits={"EUR": {"review_above": 0}})
    intent = shown_as(world, "order-1", **booked)
    assert world.review(intent).verdict == verdict
    assert listed(intent) == [], "nothing is established yet"
    boss_confirms(world, intent)
    found = world.read(intent)
    assert found.status == Status.CONFIRMED
    assert (found.settled_amount_minor, found.settled_currency) == (
        booked.get("amount_minor", 5_000),
        booked.get("currency", "EUR"),
    )
    assert listed(intent) == left


def test_booked_twice_one_settles_it_and_the_other_is_to_come_back_and_is_not_asked_about_again(world: World) -> None:
    intent = unknown_twice(world)
    first, second = intent.downstream.entries.filter(key=intent.idempotency_key).order_by("pk")
    boss_confirms(world, intent, entry_id=first.pk)
    assert listed(intent) == [(LeftToDo.RECOVER, 5_000, "EUR")]
    assert Difference.objects.get(intent=intent).entry == second
    roles = dict(Match.objects.filter(intent=intent, released_at=None).values_list("entry", "role"))
    assert roles == {first.pk: MatchRole.SETTLES, second.pk: MatchRole.DUPLICATE}
    world.check(intent)
    assert world.read(intent).disputed is False, "judged in that state"


def unknown_twice(world: World) -> Intent:
    intent = unknown(world, "order-3")
    for _ in range(2):
        add_entry(world, "order-3", amount_minor=5_000, currency="EUR", idempotency_key=intent.idempotency_key)
    assert world.check(intent).verdict == Verdict.DUPLICATE
    return world.read(intent)


def reversed_later(world: World, subject: str) -> Intent:
    Kind.objects.update(relook="all")
    intent = world.propose(subject)
    world.send()
    add_entry(
        world, subject, amount_minor=5_000, currency="EUR", type="reversal", idempotency_key=intent.idempotency_key
    )
    world.check(intent)
    assert world.read(intent).disputed is True
    return world.read(intent)


def test_upheld_after_a_reversal_it_is_still_to_be_sent_and_the_reversal_is_known(world: World) -> None:
    intent = reversed_later(world, "order-4")
    decide(world.review(intent), make_person(), Choice.UPHOLD)
    found = world.read(intent)
    assert (found.status, found.disputed, found.guard_key) == (Status.CONFIRMED, False, None)
    assert listed(intent) == [(LeftToDo.SEND, 5_000, "EUR")]
    world.make_due(intent)
    world.check(intent)
    assert world.read(intent).disputed is False


def test_failed_and_upheld_although_the_ledger_shows_it_the_money_is_to_come_back(world: World) -> None:
    intent = unknown(world, "order-5")
    for _ in range(2):
        world.later(5)
        world.check(intent)
    assert world.read(intent).status == Status.FAILED
    add_entry(world, "order-5", amount_minor=5_000, currency="EUR", idempotency_key=intent.idempotency_key)
    world.check(intent)
    decide(world.review(intent), make_person(), Choice.UPHOLD)
    assert world.read(intent).status == Status.FAILED
    assert listed(intent) == [(LeftToDo.RECOVER, 5_000, "EUR")]


def test_an_override_releases_the_wrong_match_and_lists_what_is_left_in_the_same_transaction(world: World) -> None:
    intent = shown_as(world, "order-6")
    assert world.read(intent).status == Status.CONFIRMED
    entry = Match.objects.get(intent=intent).entry
    one, two = make_person("admin"), make_person("admin")
    proposal = overriding.propose(
        intent.pk,
        overriding.Correction(Status.FAILED, DecisionReason.MISTAKE, "it was another customer's"),
        person=one,
        seen=overriding.seen(world.read(intent)),
    )
    overriding.agree(proposal.pk, person=two)
    assert world.read(intent).status == Status.FAILED
    assert list(Match.objects.filter(entry=entry, released_at=None).values_list("role", flat=True)) == ["duplicate"]
    assert listed(intent) == [(LeftToDo.RECOVER, 5_000, "EUR")]


def test_it_is_resolved_once_by_somebody_who_may_decide_with_a_note_that_stays(world: World) -> None:
    intent = shown_as(world, "order-7", amount_minor=4_000)
    boss_confirms(world, intent)
    (left,) = differences.open_ones()
    with pytest.raises(PersonNotAllowed):
        differences.resolve(left.pk, person=make_person("auditor"), note="done")
    for note in ("", "  ", "x" * 4_001):
        with pytest.raises(BadDecision, match="note"):
            differences.resolve(left.pk, person=make_person(), note=note)
    person = make_person()
    found = differences.resolve(left.pk, person=person, note=" sent by hand, re_77 ")
    assert found.note is not None
    assert (found.resolved_by, found.note.text) == (f"person:{person.pk}", "sent by hand, re_77")
    with pytest.raises(BadDecision, match="already"):
        differences.resolve(left.pk, person=person, note="again")
    with pytest.raises(NotFound):
        differences.resolve(10**9, person=person, note="x")
    assert list(differences.open_ones()) == []


@pytest.mark.parametrize(
    ("intended", "settled", "left"),
    [
        ((100, "EUR"), (100, "EUR"), None),
        ((100, "EUR"), (100, ""), None),
        ((100, "EUR"), (99, "EUR"), (LeftToDo.SEND, 1, "EUR")),
        ((100, "EUR"), (0, "EUR"), (LeftToDo.SEND, 100, "EUR")),
        ((100, "EUR"), (101, "EUR"), (LeftToDo.RECOVER, 1, "EUR")),
        ((100, "EUR"), (100, "USD"), (LeftToDo.COMPARE, 100, "USD")),
        ((None, ""), (100, "EUR"), None),
        ((100, "EUR"), (None, ""), None),
    ],
)
def test_what_is_left_between_what_was_intended_and_what_moved(
    intended: tuple[int | None, str], settled: tuple[int | None, str], left: tuple[str, int, str] | None
) -> None:
    found = differences.between(intended, settled)
    assert (None if found is None else (found.what, found.amount_minor, found.currency)) == left


def test_a_second_entry_that_is_pending_is_nothing_to_recover_yet_and_a_case_once_it_is_final(world: World) -> None:
    intent = unknown(world, "order-8")
    key = intent.idempotency_key
    add_entry(world, "order-8", amount_minor=5_000, currency="EUR", idempotency_key=key)
    add_entry(world, "order-8", amount_minor=5_000, currency="EUR", status="pending", idempotency_key=key)
    assert world.check(intent).verdict == Verdict.DUPLICATE
    final, pending = intent.downstream.entries.filter(key=key).order_by("state")
    assert (final.state, pending.state) == ("final", "pending")
    boss_confirms(world, intent, entry_id=final.pk)
    assert listed(intent) == []
    assert not Match.objects.filter(entry=pending).exists(), "nobody has judged what it will be"
    world.make_due(intent)
    assert world.check(intent).verdict == Verdict.DUPLICATE
    assert world.read(intent).disputed is True
