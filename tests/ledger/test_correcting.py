"""Two people correct what was settled wrongly: the intent, the entry and whose entry it is, in one transaction."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from actions import history, times
from actions.errors import BadDecision, PersonNotAllowed, SeenIsStale
from actions.models import Intent, Kind, Transition
from actions.statuses import Status
from reconciliation import ties
from reconciliation.models import (
    ClosedHow,
    Decision,
    DecisionReason,
    Difference,
    LedgerEntry,
    Match,
    MatchRole,
    Review,
)
from reconciliation.reviews import opening, opening_by_hand, overriding, relinking
from reconciliation.reviews.orphans import planning
from reconciliation.reviews.overriding import Correction
from tests import factories
from tests.api.calling import make_api
from tests.core.life import add_check
from tests.factories import make_downstream, make_intent, make_person
from tests.ledger.books import confirmed, failed, make_entry
from tests.pages.cases import make_case, make_unknown

pytestmark = pytest.mark.django_db


@pytest.fixture
def boss(db: None) -> User:
    return make_person("supervisor")


@pytest.fixture
def colleague(db: None) -> User:
    return make_person("reviewer")


@pytest.fixture
def kind(db: None) -> Kind:
    """Its books can't be looked into, so that no look comes in between."""
    return factories.make_kind(make_downstream(look_up="none"))


def settled_by(intent: Intent, **columns: Any) -> LedgerEntry:
    """The entry that a look tied to a confirmed intent."""
    entry = make_entry(intent.downstream, subject=intent.subject, **columns)
    ties.tie(entry, intent, MatchRole.SETTLES, by="checker", now=times.now())
    return entry


def read(intent: Intent) -> Intent:
    return Intent.objects.get(pk=intent.pk)


def did_not_happen(linked: Intent | None = None) -> Correction:
    return Correction(
        Status.FAILED, DecisionReason.MISTAKE, "It was the other one.", linked_id=linked.pk if linked else None
    )


def correct(intent: Intent, what: Correction, boss: User, colleague: User) -> Intent:
    proposal = overriding.propose(intent.pk, what, person=boss, seen=overriding.seen(read(intent)))
    return overriding.agree(proposal.pk, person=colleague)


def active(entry: LedgerEntry) -> list[tuple[Any, str]]:
    return list(Match.objects.filter(entry=entry, released_at=None).values_list("intent", "role"))


def test_the_entry_of_a_wrong_match_settles_the_other_intent_in_the_same_transaction(
    kind: Kind, boss: User, colleague: User
) -> None:
    wrong, right = confirmed(kind), make_unknown(kind)
    entry = settled_by(wrong)
    correct(wrong, did_not_happen(right), boss, colleague)
    assert (read(wrong).status, read(wrong).settled_amount_minor) == (Status.FAILED, None)
    found = read(right)
    assert (found.status, found.settled_amount_minor, found.external_id) == (Status.CONFIRMED, 5_000, entry.entry_id)
    assert active(entry) == [(right.pk, MatchRole.SETTLES)]
    assert Match.objects.filter(entry=entry, intent=wrong, released_by=f"person:{colleague.pk}").exists()
    moved = Transition.objects.filter(intent__in=[wrong, right]).order_by("-pk")[:2]
    assert len({row.at for row in moved}) == 1
    assert not Difference.objects.exists()
    assert history.faults(read(wrong)) == history.faults(read(right)) == []


def test_the_case_of_the_other_intent_ends_with_it(kind: Kind, boss: User, colleague: User) -> None:
    wrong, case = confirmed(kind), make_case(kind)
    assert case.intent is not None
    settled_by(wrong)
    correct(wrong, did_not_happen(case.intent), boss, colleague)
    assert not Review.objects.filter(closed_at=None).exists()


def test_one_that_counted_as_failed_is_corrected_along_by_the_same_two_people(
    kind: Kind, boss: User, colleague: User
) -> None:
    wrong, right = confirmed(kind), failed(kind)
    entry = settled_by(wrong)
    correct(wrong, did_not_happen(right), boss, colleague)
    assert (read(right).status, read(right).settled_by) == (Status.CONFIRMED, "override")
    assert active(entry) == [(right.pk, MatchRole.SETTLES)]


def test_one_that_is_confirmed_without_an_entry_gets_it(kind: Kind, boss: User, colleague: User) -> None:
    wrong, right = confirmed(kind), confirmed(kind)
    entry = settled_by(wrong)
    version = read(right).version
    correct(wrong, did_not_happen(right), boss, colleague)
    assert (read(right).status, read(right).version) == (Status.CONFIRMED, version)
    assert active(entry) == [(right.pk, MatchRole.SETTLES)]
    assert history.faults(read(right)) == []


def test_it_stays_confirmed_and_another_entry_settles_it(kind: Kind, boss: User, colleague: User) -> None:
    intent = confirmed(kind)
    wrong, right = settled_by(intent), make_entry(intent.downstream, amount_minor=4_850)
    before = read(intent)
    what = Correction(
        Status.CONFIRMED,
        DecisionReason.MISTAKE,
        "Their own id is on the statement.",
        settled_amount_minor=4_850,
        settled_currency="EUR",
        entry_id=right.pk,
    )
    correct(intent, what, boss, colleague)
    now = read(intent)
    assert (now.status, now.settled_amount_minor, now.external_id) == (Status.CONFIRMED, 4_850, right.entry_id)
    assert (now.settled_at, now.version) == (before.settled_at, before.version + 1)
    assert (active(wrong), active(right)) == ([], [(intent.pk, MatchRole.SETTLES)])
    assert list(Difference.objects.values_list("what", "amount_minor", "resolved_at")) == [("send", 150, None)]
    assert LedgerEntry.objects.get(pk=wrong.pk).explain_at is not None  # is it anybody's?
    assert history.faults(now) == []


def test_another_entry_for_it_and_its_own_for_another_go_together(kind: Kind, boss: User, colleague: User) -> None:
    first, second = confirmed(kind), make_unknown(kind)
    swapped, own = settled_by(first), make_entry(first.downstream)
    what = Correction(Status.CONFIRMED, DecisionReason.MISTAKE, "Swapped.", entry_id=own.pk, linked_id=second.pk)
    correct(first, what, boss, colleague)
    assert active(own) == [(first.pk, MatchRole.SETTLES)]
    assert active(swapped) == [(second.pk, MatchRole.SETTLES)]


def test_what_an_earlier_decision_left_to_send_is_not_to_be_sent_any_more(
    kind: Kind, boss: User, colleague: User
) -> None:
    intent = confirmed(kind)
    settled_by(intent)
    Difference.objects.create(intent=intent, what="send", amount_minor=100, currency="EUR", opened_at=times.now())
    correct(intent, did_not_happen(), boss, colleague)
    (left,) = Difference.objects.all()
    assert left.resolved_by == f"person:{colleague.pk}"


def test_when_the_other_intent_can_t_take_the_entry_any_more_nothing_is_changed(
    kind: Kind, boss: User, colleague: User
) -> None:
    wrong, right = confirmed(kind), confirmed(kind)
    entry = settled_by(wrong)
    proposal = overriding.propose(wrong.pk, did_not_happen(right), person=boss, seen=overriding.seen(read(wrong)))
    settled_by(right)  # a look was faster
    before = history.rows_of(wrong.pk)
    with pytest.raises(BadDecision, match="Another entry settles that intent already"):
        overriding.agree(proposal.pk, person=colleague)
    assert read(wrong).status == Status.CONFIRMED
    assert active(entry) == [(wrong.pk, MatchRole.SETTLES)]
    assert len(history.rows_of(wrong.pk)) == len(before)


def test_what_the_books_show_since_the_proposal_is_looked_at_first(kind: Kind, boss: User, colleague: User) -> None:
    intent = confirmed(kind)
    settled_by(intent)
    proposal = overriding.propose(intent.pk, did_not_happen(), person=boss, seen=overriding.seen(read(intent)))
    add_check(intent, facts_digest="f" * 64)
    with pytest.raises(SeenIsStale):
        overriding.agree(proposal.pk, person=colleague)
    assert read(intent).status == Status.CONFIRMED
    overriding.refuse(proposal.pk, person=colleague, note="Look again.")
    correct(intent, did_not_happen(), boss, colleague)
    assert read(intent).status == Status.FAILED


AGAINST = {
    "itself": ("Name another intent", lambda kind, wrong: wrong),
    "not sent": ("was not sent", lambda kind, wrong: make_intent(kind)),
    "being sent": (
        "being sent at this moment",
        lambda kind, wrong: make_intent(
            kind, to=Status.SUBMITTED, first_maybe_sent_at=times.now(), lease_until=times.now() + timedelta(minutes=1)
        ),
    ),
    "another amount": ("another amount", lambda kind, wrong: confirmed(kind, amount_minor=777)),
    "another downstream": (
        "another downstream",
        lambda kind, wrong: make_unknown(factories.make_kind(downstream=make_downstream())),
    ),
}


@pytest.mark.parametrize("name", AGAINST)
def test_an_entry_goes_only_to_an_intent_that_can_have_done_it(kind: Kind, boss: User, name: str) -> None:
    words, other = AGAINST[name]
    wrong = confirmed(kind)
    settled_by(wrong)
    with pytest.raises(BadDecision, match=words):
        overriding.propose(
            wrong.pk, did_not_happen(other(kind, wrong)), person=boss, seen=overriding.seen(read(wrong))
        )
    assert not Decision.objects.exists()


def test_an_entry_that_bears_the_intents_own_key_is_nobody_elses(kind: Kind, boss: User) -> None:
    wrong, other = confirmed(kind), make_unknown(kind)
    settled_by(wrong, key=wrong.idempotency_key)
    with pytest.raises(BadDecision, match="bears the key of another"):
        overriding.propose(wrong.pk, did_not_happen(other), person=boss, seen=overriding.seen(read(wrong)))


def test_an_entry_that_settles_another_is_taken_from_there_and_nowhere_else(kind: Kind, boss: User) -> None:
    theirs, mine = confirmed(kind), failed(kind)
    entry = settled_by(theirs)
    what = Correction(Status.CONFIRMED, DecisionReason.LEDGER, "There it is.", entry_id=entry.pk)
    with pytest.raises(BadDecision, match="correct the other"):
        overriding.propose(mine.pk, what, person=boss, seen=overriding.seen(read(mine)))


def test_saying_again_how_it_stands_is_no_correction(kind: Kind, boss: User) -> None:
    intent, other = confirmed(kind), failed(kind)
    entry = settled_by(intent)
    for what in (
        Correction(Status.CONFIRMED, DecisionReason.LEDGER, "x"),
        Correction(Status.CONFIRMED, DecisionReason.LEDGER, "x", entry_id=entry.pk),
    ):
        with pytest.raises(BadDecision, match="how it stands"):
            overriding.propose(intent.pk, what, person=boss, seen=overriding.seen(read(intent)))
    with pytest.raises(BadDecision, match="how it stands"):
        overriding.propose(other.pk, did_not_happen(), person=boss, seen=overriding.seen(read(other)))


def test_a_supervisor_proposes_and_whoever_decides_cases_agrees(kind: Kind, boss: User, colleague: User) -> None:
    intent = confirmed(kind)
    for person in (colleague, make_person("auditor")):
        with pytest.raises(PersonNotAllowed):
            overriding.propose(intent.pk, did_not_happen(), person=person, seen=overriding.seen(read(intent)))
    proposal = overriding.propose(intent.pk, did_not_happen(), person=boss, seen=overriding.seen(read(intent)))
    with pytest.raises(PersonNotAllowed):
        overriding.agree(proposal.pk, person=make_person("auditor"))
    with pytest.raises(BadDecision, match="different person"):
        overriding.agree(proposal.pk, person=boss)
    overriding.agree(proposal.pk, person=colleague)
    with pytest.raises(BadDecision, match="dealt with already"):
        overriding.agree(proposal.pk, person=make_person())


def test_what_is_said_to_have_happened_blocks_its_order_from_the_proposal_on(
    kind: Kind, boss: User, colleague: User
) -> None:
    """A failed refund, proposed again, and then it turns out that the first one landed: the second is not sent."""
    first = failed(kind)
    second = make_intent(kind, subject=first.subject)
    what = Correction(Status.CONFIRMED, DecisionReason.BANK_STATEMENT, "Line 12.")
    proposal = overriding.propose(first.pk, what, person=boss, seen=overriding.seen(read(first)))
    assert (read(first).disputed, read(second).status) == (True, Status.HELD)
    overriding.agree(proposal.pk, person=colleague)
    assert (read(first).status, read(first).disputed) == (Status.CONFIRMED, False)
    assert read(second).status == Status.HELD
    assert Review.objects.get(closed_at=None).intent == second
    assert history.faults(read(first)) == []


def test_refused_it_frees_its_order_again(kind: Kind, boss: User, colleague: User) -> None:
    intent = failed(kind)
    what = Correction(Status.CONFIRMED, DecisionReason.BANK_STATEMENT, "Line 12.")
    proposal = overriding.propose(intent.pk, what, person=boss, seen=overriding.seen(read(intent)))
    overriding.refuse(proposal.pk, person=colleague, note="Another account's line.")
    assert (read(intent).disputed, read(intent).guard_key) == (False, None)
    assert not Review.objects.filter(closed_at=None).exists()
    assert history.faults(read(intent)) == []


def test_refusing_ends_no_case_that_asks_something_else(kind: Kind, boss: User, colleague: User) -> None:
    intent = confirmed(kind)
    review = opening_by_hand.open_case(intent.pk, person=colleague, reason="The customer says no.")
    proposal = overriding.propose(intent.pk, did_not_happen(), person=boss, seen=overriding.seen(read(intent)))
    assert proposal.review_id == review.pk
    overriding.refuse(proposal.pk, person=make_person(), note="It did.")
    assert Review.objects.get(pk=review.pk).closed_at is None


def test_a_case_that_ends_otherwise_ends_the_proposal_too(kind: Kind, boss: User, colleague: User) -> None:
    wrong, right = confirmed(kind), failed(kind)
    settled_by(wrong)
    what = Correction(Status.CONFIRMED, DecisionReason.BANK_STATEMENT, "Line 12.")
    stale = overriding.propose(right.pk, what, person=boss, seen=overriding.seen(read(right)))
    correct(wrong, did_not_happen(right), boss, colleague)
    assert read(right).status == Status.CONFIRMED
    assert overriding.pending(right.pk) is None
    with pytest.raises(BadDecision, match="dealt with already"):
        overriding.agree(stale.pk, person=colleague)
    correct(right, did_not_happen(), boss, colleague)
    assert read(right).status == Status.FAILED


def test_a_disputed_one_that_gets_the_entry_stays_in_question(kind: Kind, boss: User, colleague: User) -> None:
    wrong, right = confirmed(kind), confirmed(kind)
    settled_by(wrong)
    with transaction.atomic():
        case = opening.dispute(right, now=times.now())
    correct(wrong, did_not_happen(right), boss, colleague)
    assert read(right).disputed
    assert Review.objects.get(pk=case.pk).closed_at is None


def test_what_the_named_entry_shows_is_what_was_settled(kind: Kind, boss: User, colleague: User) -> None:
    intent = failed(kind)
    entry = make_entry(intent.downstream, amount_minor=1_200)
    what = Correction(Status.CONFIRMED, DecisionReason.LEDGER, "There.", entry_id=entry.pk)
    with pytest.raises(BadDecision, match=r"The entry shows 12\.00 EUR"):
        overriding.propose(
            intent.pk,
            replace(what, settled_amount_minor=5_000, settled_currency="EUR"),
            person=boss,
            seen=overriding.seen(read(intent)),
        )
    correct(intent, what, boss, colleague)
    assert read(intent).settled_amount_minor == 1_200
    assert list(Difference.objects.values_list("what", "amount_minor")) == [("send", 3_800)]


@pytest.mark.parametrize("columns", [{"state": "pending"}, {"state": "failed"}, {"role": "reversal"}, {"key": "its"}])
def test_an_entry_that_settles_nothing_of_it_can_t_be_named(kind: Kind, boss: User, columns: dict[str, str]) -> None:
    intent, other = failed(kind), make_unknown(kind)
    columns = {"key": other.idempotency_key} if "key" in columns else columns
    entry = make_entry(intent.downstream, **columns)
    what = Correction(Status.CONFIRMED, DecisionReason.LEDGER, "There.", entry_id=entry.pk)
    with pytest.raises(BadDecision, match=r"settles nothing|key of another"):
        overriding.propose(intent.pk, what, person=boss, seen=overriding.seen(read(intent)))


def test_money_to_recover_about_the_entry_that_settles_it_now_is_not_listed_any_more(
    kind: Kind, boss: User, colleague: User
) -> None:
    intent = confirmed(kind)
    settled_by(intent)
    extra = make_entry(intent.downstream)
    ties.tie(extra, intent, MatchRole.DUPLICATE, by="person:1", now=times.now())
    Difference.objects.create(
        intent=intent, entry=extra, what="recover", amount_minor=5_000, currency="EUR", opened_at=times.now()
    )
    what = Correction(Status.CONFIRMED, DecisionReason.MISTAKE, "The other one.", entry_id=extra.pk)
    correct(intent, what, boss, colleague)
    assert active(extra) == [(intent.pk, MatchRole.SETTLES)]
    assert not Difference.objects.filter(entry=extra, resolved_at=None).exists()


def test_a_proposal_is_made_on_the_facts_that_the_page_showed(kind: Kind, boss: User) -> None:
    intent = confirmed(kind)
    seen = overriding.seen(read(intent))
    add_check(intent, facts_digest="e" * 64)
    with pytest.raises(SeenIsStale):
        overriding.propose(intent.pk, did_not_happen(), person=boss, seen=seen)
    assert not Decision.objects.exists()


@pytest.mark.parametrize("ends", ["agreed", "refused", "ended with its case"])
def test_what_is_proposed_while_the_correction_waits_is_held_and_not_refused_and_not_sent(
    kind: Kind, boss: User, colleague: User, ends: str
) -> None:
    wrong, right = confirmed(kind), failed(kind, subject="order-70")
    settled_by(wrong)
    proposal = overriding.propose(wrong.pk, did_not_happen(right), person=boss, seen=overriding.seen(read(wrong)))
    api = make_api(kind)
    held = api.intent(subject="order-70/line-1")
    mine = api.intent(subject="order-70/line-2", executor="caller", claim_token="mine")
    for intent in (held, mine):
        assert (intent.status, intent.attempts.count()) == (Status.HELD, 0)
        assert [reason.code for reason in Review.objects.get(intent=intent).reasons.all()] == ["contradiction"]
    assert api.intent(subject="order-71").status == Status.RECORDED
    assert make_api(factories.make_kind(kind.downstream)).intent(subject="order-70").status == Status.RECORDED
    if ends == "agreed":
        overriding.agree(proposal.pk, person=colleague)
    elif ends == "refused":
        overriding.refuse(proposal.pk, person=colleague, note="It was not.")
    else:
        with transaction.atomic():
            opening.close(read(wrong), ClosedHow.DECISION, now=times.now())
    assert read(held).status == Status.HELD, "a person approves it, or not"
    assert api.intent(subject="order-70/line-3").status == Status.RECORDED


@pytest.mark.parametrize(
    ("booked", "fits"),
    [
        ({"amount_minor": 5_000, "settled_amount_minor": 5_311, "settled_currency": "USD"}, True),
        ({"amount_minor": 5_311, "currency": "USD", "settled_amount_minor": 5_000, "settled_currency": "EUR"}, True),
        ({"amount_minor": 5_000, "currency": ""}, True),
        ({"amount_minor": 4_999, "settled_amount_minor": 5_001}, False),
    ],
)
@pytest.mark.parametrize("answered", [True, False])
def test_a_confirmed_one_gets_an_entry_that_shows_its_amount_as_asked_for_or_as_booked(
    kind: Kind, booked: dict[str, Any], fits: bool, answered: bool
) -> None:
    """Whether a correction says so or somebody links it; without a settled amount what was intended counts."""
    wrong, right = confirmed(kind), confirmed(kind)
    if not answered:
        Intent.objects.filter(pk=right.pk).update(settled_amount_minor=None, settled_currency="")
    entry, right = settled_by(wrong, **booked), read(right)
    words = "" if fits else "That intent was settled with another amount than this entry shows."
    assert relinking.against(entry, right, instead_of=wrong) == planning.plan(entry, right)[1] == words
