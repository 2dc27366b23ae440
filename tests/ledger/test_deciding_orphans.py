"""People say what an orphan is: what follows for it and for the intent, and who may say it."""

import threading
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection

from actions import history, times
from actions.errors import BadDecision, LandedError, NotFound, PersonNotAllowed, ReviewClosed, ReviewHeld, SeenIsStale
from actions.models import Intent, Kind, Observation
from actions.statuses import Status
from reconciliation.models import (
    Choice,
    ClosedHow,
    Comment,
    Decision,
    DecisionReason,
    Difference,
    LedgerEntry,
    LeftToDo,
    Match,
    MatchRole,
    Review,
)
from reconciliation.reviews import claiming, commenting, opening, overriding, pending
from reconciliation.reviews import orphans as deciding
from tests import factories, flushing
from tests.factories import make_intent, make_person
from tests.ledger.books import case_of, confirmed, decide, failed, orphan, sweep
from tests.pages.cases import make_case, make_unknown

pytestmark = pytest.mark.django_db


@pytest.fixture
def kind() -> Kind:
    return factories.make_kind()


def read(intent: Intent) -> Intent:
    return Intent.objects.get(pk=intent.pk)


def roles(review: Review) -> list[tuple[str, Any]]:
    active = Match.objects.filter(entry=review.entry_id, released_at=None)
    return list(active.values_list("role", "intent"))


def listed(intent: Intent) -> list[tuple[str, int | None, str]]:
    return list(Difference.objects.filter(intent=intent).values_list("what", "amount_minor", "currency"))


def test_not_ours_is_one_persons_word_and_the_entry_stays_judged(kind: Kind) -> None:
    review, person = orphan(kind.downstream, amount_minor=900_000_000), make_person()
    assert decide(review, person, Choice.NOT_OURS).state == "effective"
    assert roles(review) == [(MatchRole.NOT_OURS, None)]
    review.refresh_from_db()
    assert review.closed_how == ClosedHow.DECISION
    assert [row.choice for row in review.decisions.all()] == [Choice.NOT_OURS, Choice.EFFECT]
    sweep()
    assert Review.objects.count() == 1


def test_linked_to_an_unknown_intent_it_confirms_that_and_ends_its_case(kind: Kind) -> None:
    other = make_case(kind)
    intent = other.intent
    assert intent is not None
    review, person = orphan(kind.downstream, amount_minor=4_900), make_person()
    assert decide(review, person, Choice.LINK, intent, note="by its amount").state == "effective"
    found = read(intent)
    assert (found.status, found.settled_by, found.settled_amount) == ("confirmed", "decision", "49.00")
    entry = LedgerEntry.objects.get(pk=review.entry_id)
    assert (found.external_id, found.guard_key) == (entry.entry_id, None)
    assert roles(review) == [(MatchRole.SETTLES, intent.pk)]
    assert listed(intent) == [(LeftToDo.SEND, 100, "EUR")]
    other.refresh_from_db()
    assert other.closed_how == ClosedHow.DECISION
    last = found.transitions.last()
    assert last is not None
    assert (last.actor, last.actor_id, last.evidence != "[]") == ("reviewer", f"person:{person.pk}", True)
    assert history.faults(found) == []


def test_linked_to_an_accepted_one_it_becomes_unknown_on_the_way(kind: Kind) -> None:
    intent = make_intent(kind, to=Status.SUBMITTED, first_maybe_sent_at=times.now())
    review = orphan(kind.downstream)
    decide(review, make_person(), Choice.LINK, intent)
    assert [row.to_status for row in intent.transitions.all()] == ["submitted", "unknown", "confirmed"]
    assert history.faults(read(intent)) == []


def test_linked_to_a_confirmed_one_whose_amount_fits_it_is_what_settled_it(kind: Kind) -> None:
    intent, review = confirmed(kind), orphan(kind.downstream)
    decide(review, make_person(), Choice.LINK, intent)
    assert (read(intent).version, roles(review)) == (intent.version, [(MatchRole.SETTLES, intent.pk)])
    assert listed(intent) == []
    assert [row.what for row in Observation.objects.filter(intent=intent)] == ["tied"]
    assert history.faults(read(intent)) == []


def test_linked_to_one_that_another_entry_settled_it_is_a_duplicate_and_money_to_recover(kind: Kind) -> None:
    intent = confirmed(kind)
    decide(orphan(kind.downstream), make_person(), Choice.LINK, intent)
    second = orphan(kind.downstream, amount_minor=4_000)
    decide(second, make_person(), Choice.LINK, intent)
    assert roles(second) == [(MatchRole.DUPLICATE, intent.pk)]
    assert listed(intent) == [(LeftToDo.RECOVER, 4_000, "EUR")]
    assert history.faults(read(intent)) == []


def test_the_id_of_another_entry_settles_it_as_well_as_a_tie(kind: Kind) -> None:
    intent = confirmed(kind, external_id="re_another")
    review = orphan(kind.downstream)
    decide(review, make_person(), Choice.LINK, intent)
    assert roles(review) == [(MatchRole.DUPLICATE, intent.pk)]


def test_linked_to_a_failed_one_it_disputes_that_so_that_two_people_can_correct_it(kind: Kind) -> None:
    intent, review = failed(kind), orphan(kind.downstream)
    decide(review, make_person(), Choice.LINK, intent)
    found = read(intent)
    assert (found.status, found.disputed) == (Status.FAILED, True)
    case = Review.objects.get(intent=intent, closed_at=None)
    assert "50.00 EUR" in case.grounds
    one, two = make_person("admin"), make_person("admin")
    proposal = overriding.propose(
        intent.pk,
        overriding.Correction(
            Status.CONFIRMED, DecisionReason.LEDGER, "it is there", entry_id=review.entry_id, outside="their page"
        ),
        person=one,
        seen=overriding.seen(found),
    )
    with pytest.raises(BadDecision, match="can't be looked into now"):
        overriding.agree(proposal.pk, person=two)
    overriding.agree(proposal.pk, person=two, outside="their page, too")
    assert read(intent).status == Status.CONFIRMED
    assert roles(review) == [(MatchRole.SETTLES, intent.pk)]
    assert history.faults(read(intent)) == []


def test_a_duplicate_of_a_named_intent_is_money_to_recover(kind: Kind) -> None:
    intent, review = confirmed(kind), orphan(kind.downstream)
    decide(review, make_person(), Choice.DUPLICATE, intent, named=f" {intent.idempotency_key} ")
    assert roles(review) == [(MatchRole.DUPLICATE, intent.pk)]
    assert listed(intent) == [(LeftToDo.RECOVER, 5_000, "EUR")]


def test_a_reversal_of_a_confirmed_one_is_still_to_send(kind: Kind) -> None:
    intent, review = confirmed(kind), orphan(kind.downstream, role="reversal")
    with pytest.raises(BadDecision, match="no duplicate"):
        decide(review, make_person(), Choice.DUPLICATE, intent)
    claiming.release(review.pk, person=Review.objects.get(pk=review.pk).holder or make_person())
    decide(review, make_person(), Choice.LINK, intent)
    assert roles(review) == [(MatchRole.KNOWN, intent.pk)]
    assert listed(intent) == [(LeftToDo.SEND, 5_000, "EUR")]


def held(kind: Kind) -> Intent:
    return make_intent(kind, to=Status.HELD)


def under_way(kind: Kind) -> Intent:
    return make_intent(
        kind, to=Status.SUBMITTED, lease_until=times.now().replace(year=2099), first_maybe_sent_at=times.now()
    )


@pytest.mark.parametrize(
    ("make", "choice", "columns", "why"),
    [
        (held, Choice.LINK, {}, "not sent"),
        (under_way, Choice.LINK, {}, "being sent"),
        (make_unknown, Choice.LINK, {"state": "pending"}, "not final"),
        (make_unknown, Choice.DUPLICATE, {}, "Only what is confirmed"),
        (make_unknown, Choice.LINK, {"role": "reversal"}, "Only what is confirmed"),
        (confirmed, Choice.LINK, {"amount_minor": 5_001}, "another amount"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(
    kind: Kind, make: Any, choice: Choice, columns: dict[str, Any], why: str
) -> None:
    intent, review = make(kind), orphan(kind.downstream, **columns)
    with pytest.raises(BadDecision, match=why):
        decide(review, make_person(), choice, intent)
    assert (roles(review), read(intent).version) == ([], intent.version)


def test_an_entry_that_bears_the_key_of_another_intent_is_that_ones(kind: Kind) -> None:
    other = confirmed(kind, external_id="re_known")
    review = orphan(kind.downstream, key=other.idempotency_key)
    with pytest.raises(BadDecision, match="key of another intent"):
        decide(review, make_person(), Choice.LINK, confirmed(kind))
    person = Review.objects.get(pk=review.pk).holder
    assert person is not None
    decide(review, person, Choice.LINK, other)
    assert roles(review) == [(MatchRole.DUPLICATE, other.pk)]


@pytest.mark.parametrize("named", ["", "nothing", "0193f5d2-0000-7000-8000-000000000000"])
def test_an_intent_that_there_is_not_can_t_be_named_nor_one_of_another_downstream(kind: Kind, named: str) -> None:
    review = orphan(kind.downstream)
    for name in (named, confirmed(factories.make_kind()).idempotency_key if named else ""):
        with pytest.raises(BadDecision, match=r"[Nn]ame|No intent"):
            decide(review, make_person("supervisor") if False else owner_or(review), Choice.LINK, named=name)


def owner_or(review: Review) -> Any:
    return Review.objects.select_related("holder").get(pk=review.pk).holder or make_person()


def test_reason_other_needs_a_note_and_so_does_going_against_a_recommendation(kind: Kind) -> None:
    review, person = orphan(kind.downstream), make_person()
    with pytest.raises(BadDecision, match="other"):
        decide(review, person, Choice.NOT_OURS, reason=DecisionReason.OTHER)
    Review.objects.filter(pk=review.pk).update(recommendation=Choice.LINK)
    with pytest.raises(BadDecision, match="recommendation"):
        decide(review, person, Choice.NOT_OURS)
    decide(review, person, Choice.NOT_OURS, note="a test of the provider's")
    first = Decision.objects.get(review=review, choice=Choice.NOT_OURS)
    assert first.note is not None
    assert (first.recommended, first.note.text) == ("link", "a test of the provider's")


def test_only_who_may_decide_and_holds_the_case_decides_it(kind: Kind) -> None:
    review, one = orphan(kind.downstream), make_person()
    with pytest.raises(PersonNotAllowed):
        decide(review, make_person("auditor"), Choice.NOT_OURS)
    claiming.claim(review.pk, person=one)
    with pytest.raises(ReviewHeld):
        decide(review, make_person(), Choice.NOT_OURS)
    decide(review, one, Choice.NOT_OURS)
    with pytest.raises(ReviewClosed):
        decide(review, one, Choice.NOT_OURS)
    with pytest.raises(NotFound):
        deciding.decide(
            10**9,
            person=one,
            choice=Choice.NOT_OURS,
            reason=DecisionReason.LEDGER,
            note="",
            seen=deciding.Seen(0, ""),
        )


def test_a_lease_that_ended_in_between_is_noticed_under_the_lock(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    review, other = orphan(kind.downstream), make_person()
    claiming.claim(review.pk, person=other)
    monkeypatch.setattr(claiming, "claim", lambda *_, **__: None)
    with pytest.raises(ReviewHeld):
        decide(review, make_person(), Choice.NOT_OURS)
    assert roles(review) == []


def test_an_intents_own_case_is_not_decided_here(kind: Kind) -> None:
    review = make_case(kind)
    with pytest.raises(BadDecision):
        deciding.decide(
            review.pk,
            person=make_person(),
            choice=Choice.NOT_OURS,
            reason=DecisionReason.LEDGER,
            note="",
            seen=deciding.Seen(0, ""),
        )


def test_a_page_that_shows_what_is_no_longer_so_decides_nothing(kind: Kind) -> None:
    review, person, intent = orphan(kind.downstream), make_person(), make_unknown(kind)
    entry = LedgerEntry.objects.get(pk=review.entry_id)
    alone, with_intent = deciding.seen(entry, None), deciding.seen(entry, intent)
    LedgerEntry.objects.filter(pk=entry.pk).update(amount_minor=1)
    with pytest.raises(SeenIsStale):
        decide(review, person, Choice.NOT_OURS, seen=alone)
    LedgerEntry.objects.filter(pk=entry.pk).update(amount_minor=5_000)
    settled = read(intent)
    opening_version = settled.version
    from tests.ledger.books import settle

    settle(settled, Status.CONFIRMED, settled_amount_minor=5_000, settled_currency="EUR")
    assert read(intent).version > opening_version
    with pytest.raises(SeenIsStale):
        decide(review, person, Choice.LINK, intent, seen=with_intent)
    assert roles(review) == []


def test_what_a_link_would_do_is_part_of_what_was_seen(kind: Kind) -> None:
    """A check ties another entry: the intent's version stays, and linking would make a duplicate instead."""
    intent, review, person = confirmed(kind), orphan(kind.downstream), make_person()
    entry = LedgerEntry.objects.get(pk=review.entry_id)
    saw = deciding.seen(entry, read(intent))
    decide(orphan(kind.downstream), make_person(), Choice.LINK, intent)
    with pytest.raises(SeenIsStale):
        decide(review, person, Choice.LINK, intent, seen=saw)
    assert listed(intent) == []


def test_above_the_second_limit_two_different_people_agree(kind: Kind) -> None:
    intent = make_unknown(kind, amount_minor=900_000)
    review, one, two = orphan(kind.downstream, amount_minor=900_000), make_person(), make_person()
    assert decide(review, one, Choice.LINK, intent).state == "second_person"
    assert read(intent).status == Status.UNKNOWN
    with pytest.raises(BadDecision, match="different person"):
        decide(review, one, Choice.LINK, intent)
    assert decide(review, two, Choice.LINK, intent).state == "effective"
    assert read(intent).status == Status.CONFIRMED
    rows = list(review.decisions.order_by("position").values_list("choice", "person", "about__person"))
    assert rows == [("link", one.pk, None), ("link", two.pk, one.pk), ("effect", two.pk, two.pk)]
    assert history.case_faults(Review.objects.get(pk=review.pk)) == []


def test_a_second_vote_for_something_else_voids_the_first(kind: Kind) -> None:
    intents = [make_unknown(kind, amount_minor=900_000) for _ in range(2)]
    review = orphan(kind.downstream, amount_minor=900_000)
    decide(review, make_person(), Choice.LINK, intents[0])
    assert decide(review, make_person(), Choice.LINK, intents[1]).state == "second_person"
    assert [row.choice for row in review.decisions.order_by("position")] == ["link", "void", "link"]
    assert [row.status for row in map(read, intents)] == [Status.UNKNOWN] * 2


def test_it_takes_effect_when_the_time_to_undo_it_is_over(kind: Kind, settings: LazySettings) -> None:
    settings.LANDED_UNDO_S = 60
    review, person = orphan(kind.downstream), make_person()
    row = decide(review, person, Choice.NOT_OURS).decision
    sweep()
    assert roles(review) == []
    with pytest.raises(ReviewClosed, match="takes effect in a moment"):
        decide(review, person, Choice.NOT_OURS)
    pending.undo(row.pk, person=person)
    settings.LANDED_UNDO_S = 0.001
    decide(review, person, Choice.NOT_OURS)
    sweep()
    assert roles(review) == [(MatchRole.NOT_OURS, None)]
    assert history.case_faults(Review.objects.get(pk=review.pk)) == []


def test_facts_that_move_while_it_could_be_undone_void_it(kind: Kind, settings: LazySettings) -> None:
    settings.LANDED_UNDO_S = 0.001
    review, person = orphan(kind.downstream, state="pending"), make_person()
    decide(review, person, Choice.NOT_OURS)
    LedgerEntry.objects.filter(pk=review.entry_id).update(state="final")
    sweep()
    assert roles(review) == []
    assert [row.choice for row in review.decisions.order_by("position")] == ["not_ours", "void"]
    assert case_of(LedgerEntry.objects.get(pk=review.entry_id)) == review


def test_decisions_and_comments_are_one_chain_that_begins_with_the_case(kind: Kind) -> None:
    review, person = orphan(kind.downstream), make_person()
    assert history.case_faults(review) == []
    commenting.comment(review.pk, person=person, text="the provider tests on Mondays")
    decide(review, person, Choice.NOT_OURS, note="a test")
    commenting.comment(review.pk, person=person, text="told them")
    review.refresh_from_db()
    assert review.chain_length == 4
    assert history.case_faults(review) == []
    first = Comment.objects.get(review=review, position=1)
    assert first.previous == history.genesis(review)


@pytest.mark.parametrize(
    "forge",
    [
        lambda review: Decision.objects.filter(review=review, choice="not_ours").update(choice="link"),
        lambda review: Decision.objects.filter(review=review, choice="not_ours").update(
            linked=make_intent(to=Status.RECORDED)
        ),
        lambda review: Comment.objects.filter(review=review).update(text_digest="0" * 64),
        lambda review: Comment.objects.filter(review=review)._raw_delete("default"),
        lambda review: Decision.objects.filter(review=review, choice="effect")._raw_delete("default"),
        lambda review: Review.objects.filter(pk=review.pk).update(opened_at=times.now()),
        lambda review: (
            review.decisions.first()
            .note.__class__.objects.filter(pk=review.decisions.first().note_id)
            .update(text="never said")
        ),
    ],
    ids=["choice", "intent", "comment", "comment gone", "effect gone", "the case", "the note's text"],
)
def test_whoever_rewrites_a_case_is_found(kind: Kind, forge: Any) -> None:
    review, person = orphan(kind.downstream), make_person()
    commenting.comment(review.pk, person=person, text="x")
    decide(review, person, Choice.NOT_OURS, note="a test")
    with flushing.without_triggers():
        forge(review)
        found = history.case_faults(Review.objects.get(pk=review.pk))
    assert found != []


def test_rows_of_before_keep_their_digest_although_decisions_can_name_an_intent_now(kind: Kind) -> None:
    review = make_case(kind)
    row = Decision(review=review, intent=review.intent, choice="fail", seen_version=1, at=times.now(), position=1)
    assert "linked_id" not in row.chained()
    row.linked = review.intent
    assert row.chained()["linked_id"] == str(review.intent_id)


@pytest.mark.django_db(transaction=True)
def test_two_people_at_the_same_moment_decide_it_once(kind: Kind) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has one writer at a time")
    review, intent = orphan(kind.downstream), make_unknown(kind)
    people_, start = [make_person(), make_person()], threading.Barrier(2)
    came: list[str] = []

    def act(person: Any, choice: Choice, named: Intent | None) -> None:
        start.wait()
        try:
            came.append(decide(review, person, choice, named).state)
        except LandedError as refused:
            came.append(type(refused).__name__)
        finally:
            connection.close()

    threads = [
        threading.Thread(target=act, args=(people_[0], Choice.LINK, intent)),
        threading.Thread(target=act, args=(people_[1], Choice.NOT_OURS, None)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert came.count("effective") == 1, came
    assert Match.objects.filter(entry=review.entry_id, released_at=None).count() == 1
    assert history.case_faults(Review.objects.get(pk=review.pk)) == []
    assert opening.open_review.__name__ == "open_review"
