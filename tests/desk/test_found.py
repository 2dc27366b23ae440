"""Faults that a reviewer and an attacker found at the desk, each as what is right."""

import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from actions import history, policy, times
from actions.canonical import canonical
from actions.errors import BadDecision, ReviewClosed, SeenIsStale
from actions.models import Intent, Kind
from actions.statuses import Status
from reconciliation import ties
from reconciliation.models import (
    Choice,
    ClosedHow,
    Decision,
    DecisionReason,
    Draft,
    LedgerEntry,
    MatchRole,
    ReasonCode,
    Review,
)
from reconciliation.reviews import (
    claiming,
    deciding,
    drafts,
    opening,
    opening_by_hand,
    options,
    orphans,
    pending,
    waiting,
)
from reconciliation.words import WaitsFor
from tests import factories
from tests.core.life import add_check
from tests.desk.steps import log_in, lost_answer, read, text_of
from tests.factories import make_downstream, make_kind, make_person
from tests.flow.world import World
from tests.ledger.books import make_entry
from tests.pages.cases import make_case

pytestmark = pytest.mark.django_db

LIMITS = {"EUR": {"review_above": 50_000, "two_people_above": 500_000}}


def shown_since(review: Review, kind: Kind) -> LedgerEntry:
    """A look, or a service, finds an entry with the intent's key after the page was opened."""
    assert review.intent is not None
    intent = Intent.objects.select_related("policy").get(pk=review.intent_id)
    entry = make_entry(kind.downstream, subject=intent.subject, key=intent.idempotency_key, amount_minor=4_000)
    grounds = {
        "by": "key",
        "entry": entry.pk,
        "candidates": [entry.pk],
        "differs": ["amount"],
        "entry_failed": False,
        "problem": "",
    }
    check = add_check(
        intent, verdict="mismatch", grounds=canonical(grounds), facts_digest="d" * 64, fence=intent.fence
    )
    with transaction.atomic():
        opening.open_for_outcome(intent, ReasonCode.MISMATCH, now=times.now(), check=check)
    return entry


@pytest.mark.parametrize("look_up", ["both", "none", "service"])
@pytest.mark.parametrize("choice", [Choice.FAIL, Choice.CONFIRM])
def test_a_stale_tab_decides_nothing_about_an_entry_that_it_never_showed(look_up: str, choice: Choice) -> None:
    """Also when we can't look at that moment: the books are away, or are not ours to look into."""
    kind = make_kind(make_downstream(look_up=look_up))
    review = make_case(kind)
    tab = deciding.seen(review)
    shown_since(review, kind)
    with pytest.raises(SeenIsStale):
        deciding.decide(
            review.pk,
            person=make_person("supervisor"),
            choice=choice,
            reason=DecisionReason.MISTAKE,
            note="It is not there.",
            outside="Their support, ticket 1",
            seen=tab,
        )
    assert not Decision.objects.exists()


@pytest.mark.parametrize(("amount", "currency"), [(6_000, "EUR"), (64_001, "EUR"), (64_000, "USD")])
def test_another_amount_than_the_entry_shows_needs_a_source(world: World, amount: int, currency: str) -> None:
    _, review = lost_answer(world)
    (entry,) = LedgerEntry.objects.all()
    given: dict[str, Any] = {
        "choice": Choice.CONFIRM,
        "reason": DecisionReason.LEDGER,
        "note": "",
        "entry_id": entry.pk,
        "settled_amount_minor": amount,
        "settled_currency": currency,
    }
    boss = make_person("supervisor")
    with pytest.raises(BadDecision, match=r"The entry shows 640\.00 EUR, and you wrote"):
        deciding.decide(review.pk, person=boss, seen=deciding.seen(read(review)), **given)
    deciding.decide(
        review.pk, person=boss, seen=deciding.seen(read(review)), outside="Settlement file of 3 May", **given
    )
    (decision,) = Decision.objects.exclude(choice=Choice.EFFECT)
    assert (decision.settled_amount_minor, decision.settled_currency) == (amount, currency)


@pytest.mark.parametrize(
    ("amount", "currency", "two"),
    [
        (499_999, "EUR", False),
        (500_001, "EUR", True),
        (499_999, "GBP", True),  # nobody said how much of these one person may decide
        (1, "GBP", True),
        (None, "", False),
    ],
)
def test_each_amount_is_judged_by_the_limits_of_its_own_currency(
    amount: int | None, currency: str, two: bool
) -> None:
    kind = make_kind(limits=LIMITS)
    review = make_case(kind)
    assert review.intent is not None
    assert options.needs_two(review.intent, Choice.CONFIRM, amount, currency) is two


def test_a_kind_without_second_limits_asks_for_no_second_person_in_any_currency() -> None:
    review = make_case(make_kind(limits={"EUR": {"review_above": 1}}))
    assert review.intent is not None
    rules = policy.read(review.intent.policy.text)
    assert not policy.needs_two_people(rules, 10**9, "GBP")


def first_vote() -> tuple[Review, Any, Any]:
    kind = make_kind(make_downstream(look_up="none"), limits=LIMITS)
    review = make_case(kind, amount_minor=600_000)
    page, person = log_in()
    deciding.decide(
        review.pk,
        person=person,
        choice=Choice.CONFIRM,
        reason=DecisionReason.PROVIDER_SAYS,
        note="They say so.",
        outside="Ticket 1",
        seen=deciding.seen(review),
    )
    return read(review), page, person


@pytest.mark.parametrize("step", ["take", "keep"])
def test_whoever_gave_the_first_vote_can_t_keep_the_second_person_away(step: str) -> None:
    review, page, _ = first_vote()
    answer = page.post(f"/reviews/{review.pk}/{step}/", follow=True)
    assert "a different person has to decide this case now" in text_of(answer)
    assert (read(review).holder, read(review).owner) == (None, None)
    second = make_person()
    assert claiming.claim(review.pk, person=second).holder == second


@pytest.mark.parametrize("how", ["opened by hand", "asked for once more", "the customer waits"])
def test_a_case_that_waits_comes_back_when_somebody_asks_for_it(how: str) -> None:
    review, person = make_case(), make_person()
    assert review.intent_id is not None
    if how == "asked for once more":
        opening_by_hand.open_case(review.intent_id, person=person, reason="They called.")
    until = times.now() + timedelta(days=5)
    waiting.put_aside(
        review.pk,
        person=person,
        waits_for=WaitsFor.PROVIDER,
        reference="",
        until=until,
        longest=until,
        note="",
    )
    if how in ("opened by hand", "asked for once more"):
        opening_by_hand.open_case(
            review.intent_id, person=make_person(), reason="On the phone.", customer_waiting=True
        )
    else:
        opening_by_hand.customer_waits(review.pk, person=make_person(), waits=True)
    found = read(review)
    assert (found.waits_until, found.waits_for, found.customer_waiting) == (None, "", True)
    assert found.due_at < until
    assert history.faults(Intent.objects.get(pk=review.intent_id)) == []


def test_what_evidence_ended_nobody_is_said_to_have_decided() -> None:
    review, _, person = first_vote()
    intent = Intent.objects.get(pk=review.intent_id)
    with transaction.atomic():
        opening.close(intent, ClosedHow.EVIDENCE, now=times.now())
    with pytest.raises(ReviewClosed) as told:
        claiming.claim(review.pk, person=make_person())
    assert told.value.details["by"] is None
    assert person.pk


def test_keeping_a_case_and_giving_it_back_are_in_its_history() -> None:
    review, person = make_case(), make_person(first_name="Mara")
    claiming.keep(review.pk, person=person)
    claiming.disown(review.pk, person=person)
    said = [row.text.text for row in review.comments.order_by("pk")]
    assert said == ["Keeps this case as their own.", "Gives this case back, for everybody."]
    assert read(review).owner is None


def test_a_decision_that_a_look_overtook_in_its_window_is_void_and_bars_nobody(settings: Any) -> None:
    settings.LANDED_UNDO_S = 15
    kind = make_kind(make_downstream(look_up="none"))
    review = make_case(kind)
    entry = make_entry(kind.downstream, amount_minor=5_000)
    assert review.intent is not None
    grounds = {"by": "key", "entry": entry.pk, "candidates": [entry.pk], "differs": [], "entry_failed": False}
    grounds["problem"] = ""
    check = add_check(review.intent, verdict="match", grounds=canonical(grounds), facts_digest="a" * 64)
    with transaction.atomic():
        opening.renew(Intent.objects.select_related("policy").get(pk=review.intent_id), check=check, now=times.now())
    decided = deciding.decide(
        review.pk,
        person=make_person("supervisor"),
        choice=Choice.CONFIRM,
        reason=DecisionReason.LEDGER,
        note="",
        outside="Their page",
        entry_id=entry.pk,
        seen=deciding.seen(read(review)),
    )
    other = factories.make_intent(kind, to=Status.SUBMITTED)
    ties.tie(entry, other, MatchRole.SETTLES, by="checker", now=times.now())
    with pytest.MonkeyPatch.context() as patched:
        later = times.now() + timedelta(seconds=20)
        patched.setattr(times, "now", lambda: later)
        assert pending.take_effect(decided.decision.pk)
    assert Decision.objects.get(about=decided.decision).choice == Choice.VOID
    assert Intent.objects.get(pk=review.intent_id).status == Status.UNKNOWN


def tied_elsewhere(settings: Any, undo_s: int) -> tuple[Review, dict[str, Any]]:
    """A case whose ledger shows an entry, and what decides it; meanwhile another entry was tied to the intent."""
    settings.LANDED_UNDO_S = undo_s
    kind = make_kind(make_downstream(look_up="none"))
    review = make_case(kind)
    shown_since(review, kind)
    assert review.intent is not None
    entry = LedgerEntry.objects.get()
    given = {
        "person": make_person("supervisor"),
        "choice": Choice.CONFIRM,
        "reason": DecisionReason.LEDGER,
        "note": "The customer has it.",
        "outside": "Their page",
        "entry_id": entry.pk,
        "seen": deciding.seen(read(review)),
    }
    return review, given


def tie_another(review: Review) -> None:
    assert review.intent is not None
    another = make_entry(review.intent.downstream, subject=review.intent.subject)
    ties.tie(another, review.intent, MatchRole.SETTLES, by="checker", now=times.now())


def test_one_whose_intent_another_entry_settles_by_now_is_void_at_the_end_of_its_window(settings: Any) -> None:
    review, given = tied_elsewhere(settings, 15)
    made = deciding.decide(review.pk, **given)
    tie_another(review)
    with pytest.MonkeyPatch.context() as patched:
        later = times.now() + timedelta(seconds=20)
        patched.setattr(times, "now", lambda: later)
        assert pending.take_effect(made.decision.pk)
    assert Decision.objects.get(about=made.decision).choice == Choice.VOID
    assert Intent.objects.get(pk=review.intent_id).status == Status.UNKNOWN


def test_without_a_window_it_is_told_that_the_facts_have_changed(settings: Any) -> None:
    review, given = tied_elsewhere(settings, 0)
    tie_another(review)
    with pytest.raises(SeenIsStale):
        deciding.decide(review.pk, **given)
    assert not Decision.objects.exists()


def test_a_voter_who_decides_again_is_told_that_it_is_somebody_elses_turn() -> None:
    review, _, person = first_vote()
    with pytest.raises(BadDecision, match="You gave the first vote; a different person has to give the second"):
        deciding.decide(
            review.pk,
            person=person,
            choice=Choice.FAIL,
            reason=DecisionReason.MISTAKE,
            note="No.",
            outside="Ticket 2",
            seen=deciding.seen(review),
        )
    assert read(review).holder is None


def test_a_voter_who_asks_for_the_case_is_spoken_to_and_not_about() -> None:
    review, _, person = first_vote()
    with pytest.raises(BadDecision, match="You gave the first vote"):
        claiming.claim(review.pk, person=person)
    assert claiming.take_next(person=person) is None


def test_whoever_may_not_decide_any_more_does_not_prolong_what_they_held() -> None:
    review, person = make_case(), make_person()
    claiming.claim(review.pk, person=person)
    until = read(review).lease_until
    person.groups.clear()
    person.user_permissions.clear()
    assert claiming.renew(review.pk, person=User.objects.get(pk=person.pk)) is None
    assert read(review).lease_until == until


def test_a_vote_that_was_voided_on_the_way_is_not_named_as_what_ended_the_case() -> None:
    """The case ended with what was decided in another one, about the entry that settles this intent."""
    review, _, _ = first_vote()
    deciding.decide(
        review.pk,
        person=make_person("supervisor"),
        choice=Choice.FAIL,
        reason=DecisionReason.MISTAKE,
        note="It did not happen.",
        outside="Ticket 2",
        seen=deciding.seen(read(review)),
    )
    assert Decision.objects.filter(choice=Choice.VOID).exclude(person=None).exists()
    with transaction.atomic():
        opening.close(Intent.objects.get(pk=review.intent_id), ClosedHow.DECISION, now=times.now())
    with pytest.raises(ReviewClosed) as told:
        claiming.claim(review.pk, person=make_person())
    assert told.value.details["by"] is None


@pytest.mark.parametrize(
    ("columns", "two"),
    [
        ({"settled_amount_minor": 600_000, "settled_currency": "EUR"}, True),
        ({"settled_amount_minor": 4_000, "settled_currency": "GBP"}, True),
        ({"settled_amount_minor": 4_000}, False),
        ({"currency": ""}, False),  # a book that names none means the intent's
    ],
)
def test_what_an_entry_really_moved_counts_when_it_is_linked(columns: dict[str, Any], two: bool) -> None:
    kind = make_kind(limits=LIMITS)
    entry = make_entry(kind.downstream, **columns)
    assert orphans.needs_two(entry, factories.make_intent(kind)) is two


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer at a time")
def test_a_draft_that_another_tab_empties_at_that_moment_begins_anew() -> None:
    review, person = make_case(), make_person()
    drafts.keep(review.pk, person=person, note="x")
    emptied = threading.Event()

    def other_tab() -> None:
        with transaction.atomic():
            Draft.objects.select_for_update().get().delete()
            emptied.set()
            time.sleep(0.5)
        connection.close()

    other = threading.Thread(target=other_tab)
    other.start()
    emptied.wait(5)
    drafts.keep(review.pk, person=person, comment="one more")
    other.join()
    assert drafts.of(review, person=person) == drafts.Typed(comment="one more")
