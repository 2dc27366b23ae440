"""The timeline of a case: in order, in words, with what was stored; long ones folded."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from actions import history, times
from actions.models import EvidenceKind, Intent, Observed
from actions.statuses import Status
from reconciliation.models import Choice, CommentKind, Decision, Review
from reconciliation.reviews import attaching, commenting, pending
from reconciliation.views.doings import Event
from tests import factories
from tests.pages import histories
from tests.pages.cases import log_in, make_case, text_of

pytestmark = pytest.mark.django_db


def events_of(review: Review) -> list[Event]:
    client, _ = log_in("auditor")
    found: list[Event] = client.get(f"/reviews/{review.pk}/").context["events"]
    return found


def intent_of(review: Review) -> Intent:
    assert review.intent is not None
    return review.intent


def said(events: list[Event]) -> list[str]:
    return [event.what for event in events]


def test_many_equal_looks_in_a_row_are_folded_between_the_first_and_the_last() -> None:
    review = make_case()
    for _ in range(13):
        histories.make_look(intent_of(review))
    looks = [event for event in events_of(review) if event.icon == "look"]
    assert said(looks) == [
        "Looked: not in the ledger yet; too early to tell",
        "11 more looks, all too early",
        "Looked: not in the ledger yet; too early to tell",
    ]
    assert len(looks[1].folded) == 11
    assert looks[1].until == looks[1].folded[-1].at


def test_few_looks_and_those_that_saw_something_else_are_told_one_by_one() -> None:
    review = make_case()
    for verdict in ("too_early", "too_early", "too_early", "unavailable", "absent", "absent"):
        histories.make_look(intent_of(review), verdict)
    assert not any(event.folded for event in events_of(review))


def test_what_happens_between_equal_looks_stands_between_them() -> None:
    review, person = make_case(), factories.make_person(first_name="Mara")
    for _ in range(3):
        histories.make_look(intent_of(review))
    commenting.comment(review.pk, person=person, text="I called them.")
    for _ in range(3):
        histories.make_look(intent_of(review))
    assert said(events_of(review))[-7:] == [
        *["Looked: not in the ledger yet; too early to tell"] * 3,
        "Mara commented",
        *["Looked: not in the ledger yet; too early to tell"] * 3,
    ]


def test_a_look_says_how_it_found_what() -> None:
    review = make_case()
    entry = histories.make_entry(intent_of(review), "re_77")
    histories.make_look(intent_of(review), "match", candidates=(entry.pk,))
    assert events_of(review)[-1].details == ("found by key", "re_77 €\u00a050.00")


def test_looks_that_count_against_it_and_webhooks_say_so() -> None:
    review = make_case()
    histories.make_look(intent_of(review), "absent", counts_as_absence=True)
    histories.make_look(intent_of(review), "match", by="webhook:3")
    first, second = events_of(review)[-2:]
    assert first.details == ("counts as proof that it did not happen",)
    assert second.what == "A webhook said: the ledger shows it"


def test_what_was_sent_and_answered_is_folded_away_beside_its_attempt() -> None:
    review = make_case()
    attempt = histories.make_attempt(intent_of(review))
    for kind, text in ((EvidenceKind.REQUEST, '{"method":"POST"}'), (EvidenceKind.ANSWER, '{"status":null}')):
        histories.store(intent_of(review), text, kind, attempt=attempt)
    sent = next(event for event in events_of(review) if event.what.startswith("Sent"))
    assert [piece.kind for piece in sent.pieces] == ["request", "answer"]
    client, _ = log_in()
    page = text_of(client.get(f"/reviews/{review.pk}/"))
    assert "&quot;method&quot;: &quot;POST&quot;" in page
    assert 'class="raw"><summary>' in page
    assert '<details class="raw" open' not in page


def test_a_long_answer_is_cut_and_the_whole_of_it_is_a_file() -> None:
    review = make_case()
    attempt = histories.make_attempt(intent_of(review))
    text = "<script>alert(1)</script>" + "x" * 50_000
    kept = histories.store(intent_of(review), text, EvidenceKind.ANSWER, attempt=attempt)
    client, _ = log_in("auditor")
    page = text_of(client.get(f"/reviews/{review.pk}/"))
    assert "… 48025 more characters." in page
    assert len(page) < 60_000
    answer = client.get(f"/evidence/{kept.pk}/")
    assert answer.content.decode() == text
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert answer["Content-Disposition"] == f'attachment; filename="answer-{kept.pk}.txt"'
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in answer["Content-Security-Policy"]


def test_notes_and_what_was_erased_are_no_files() -> None:
    review = make_case()
    note = histories.store(intent_of(review), "for colleagues", EvidenceKind.NOTE)
    gone = histories.store(intent_of(review), "")
    type(gone).objects.filter(pk=gone.pk).update(text="", erased_at=times.now())
    client, _ = log_in()
    for pk in (note.pk, gone.pk, 10**9):
        assert client.get(f"/evidence/{pk}/").status_code == 404


def test_every_step_of_handling_has_words() -> None:
    review, mara, jon = make_case(), *(factories.make_person(first_name=name) for name in ("Mara", "Jon"))
    for kind in CommentKind:
        if kind is CommentKind.ATTACHED:
            attaching.attach(review.pk, person=mara, name="bank.txt", content=b"line 12")
            continue
        to = jon if kind in (CommentKind.HANDED, CommentKind.TAKEN) else None
        commenting.say(review, person=mara, text=f"why {kind}", kind=kind, to=to)
    told = events_of(review)[-len(CommentKind) :]
    assert said(told) == [
        "Mara opened the case by hand",
        "Mara put it aside to wait",
        "Mara took it up again",
        "Mara handed it over to Jon",
        "Mara took it over from Jon",
        "Mara added a file",
        "Mara erased a file for good",
        "Mara said that the customer waits",
    ]
    assert told[3].said == "why handed"
    assert told[5].details[0] == "bank.txt"
    assert "SHA-256" in told[5].details[2]


def decided(review: Review, person: Any, choice: Choice, **columns: Any) -> Decision:
    row = Decision(review=review, intent=review.intent, person=person, choice=choice, seen_version=1, **columns)
    return history.append(row, owner=Intent, pk=review.intent_id, at=times.now())


def test_a_decision_that_was_voided_or_taken_back_says_so_in_both_places() -> None:
    review, mara = make_case(), factories.make_person(first_name="Mara")
    soon = times.now() + timedelta(seconds=15)
    first = decided(review, mara, Choice.CONFIRM, reason="ledger")
    pending.void(first, person=None)
    second = decided(review, mara, Choice.FAIL, reason="ledger_absent", takes_effect_at=soon)
    pending.undo(second.pk, person=mara)
    told = events_of(review)[-4:]
    assert said(told) == [
        "Mara decided: Confirm: it happened",
        "The decision was voided: it no longer fits the facts",
        "Mara decided: Fail: it did not happen",
        "Mara took the decision back",
    ]
    assert [event.details[-1] for event in told] == [
        "voided later",
        "it was: Confirm: it happened",
        "taken back later",
        "it was: Fail: it did not happen",
    ]


def test_what_changed_no_status_is_told_as_well() -> None:
    review, mara = make_case(), factories.make_person(first_name="Mara")
    pk, by = intent_of(review).pk, f"person:{mara.pk}"
    note = histories.store(intent_of(review), "<b>careful</b>", EvidenceKind.NOTE)
    for what, kept in ((Observed.LATE, []), (Observed.DISPUTED, []), (Observed.NOTE, [note])):
        history.observe(pk, what, by=by, evidence=kept, at=times.now())
    told = events_of(review)[-3:]
    assert said(told) == [
        "An answer came too late to move anything",
        "New facts contradict how it was settled",
        "Mara left a note",
    ]
    assert told[2].said == "<b>careful</b>"


def grow(review: Review, by: int) -> None:
    """One more of everything that a case's page lists."""
    intent = intent_of(review)
    person = factories.make_person()
    for number in range(by):
        histories.make_look(intent, "match" if number % 2 else "too_early")
        factories.make_intent(intent.kind, subject=f"{intent.family}/line-{intent.family}-{number}-{by}")
        commenting.comment(review.pk, person=person, text=f"comment {number}")
        histories.make_entry(intent, f"re_{by}_{number}", key="")
        history.observe(intent.pk, Observed.LATE, by=f"person:{person.pk}", at=times.now())


def test_a_case_and_its_intent_cost_the_same_with_one_of_everything_and_with_forty() -> None:
    review = make_case()
    histories.make_attempt(intent_of(review))
    client, person = log_in()
    attaching.attach(review.pk, person=person, name="a.txt", content=b"a")

    def cost(path: str) -> int:
        with CaptureQueriesContext(connection) as queries:
            assert client.get(path).status_code == 200
        return len(queries)

    paths = (f"/reviews/{review.pk}/", f"/intents/{review.intent_id}/")
    grow(review, 2)
    few = [cost(path) for path in paths]
    grow(review, 39)
    for number in range(5):
        attaching.attach(review.pk, person=factories.make_person(), name=f"{number}.txt", content=b"a")
    assert [cost(path) for path in paths] == few


def test_the_others_on_the_order_come_with_their_sum() -> None:
    kind = factories.make_kind()
    review = make_case(kind, subject="order-7")
    agent = factories.make_agent(kind, name="other-bot")
    for number, minor in enumerate((2_000, 5_000)):
        other = factories.make_intent(
            kind, agent, subject=f"order-7/{number}", amount_minor=minor, to=Status.SUBMITTED
        )
        histories.settle(other)
    factories.make_intent(kind, subject="order-7/9", amount_minor=100, currency="USD")
    client, _ = log_in()
    page = re.sub(r"<[^>]+>", "", text_of(client.get(f"/reviews/{review.pk}/"))).replace("\u00a0", " ")
    assert "2 refunds confirmed, € 70.00; 1 refund recorded, $ 1.00" in page
    assert page.count("by other-bot") == 2


def test_columns_not_tables_for_two_candidates_and_each_difference_in_words() -> None:
    review = make_case(payee="c-5")
    intent = intent_of(review)
    one = histories.make_entry(intent, "re_1")
    two = histories.make_entry(intent, "re_2", amount_minor=4_850, key="")
    histories.make_look(intent, "ambiguous", candidates=(one.pk, two.pk))
    client, _ = log_in()
    page = text_of(client.get(f"/reviews/{review.pk}/"))
    table = page.split('class="facts"')[1].split("</table>")[0]
    assert page.count('<table class="facts"') == 1
    assert "re_1" in table
    assert "re_2" in table
    assert len(re.findall(r'class="different">.*?differs</span>', table, re.DOTALL)) == 1
    assert "the ledger doesn’t say" in table
    assert "c-5" in table
