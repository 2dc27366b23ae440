"""What a review of the desk found: told once for ever, stakes of nothing, work that others did meanwhile."""

from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.db import OperationalError, transaction
from django.utils.html import escape

from actions import history, times
from actions.models import Intent
from reconciliation import incidents, mailing, orphans
from reconciliation.models import (
    Attachment,
    Choice,
    ClosedHow,
    Decision,
    DecisionReason,
    Incident,
    LedgerEntry,
    Notice,
    NoticeKind,
    ReasonCode,
    Review,
    WaitsFor,
)
from reconciliation.reviews import (
    attaching,
    claiming,
    commenting,
    deciding,
    notices,
    opening,
    opening_by_hand,
    pending,
    stakes,
    verifying,
    waiting,
)
from reconciliation.reviews.bulk import rows, running
from reconciliation.reviews.bulk.judging import MOVED, Asked, Bulk
from tests import factories
from tests.factories import make_person
from tests.flushing import without_triggers
from tests.ledger import books
from tests.pages.cases import log_in, make_case, make_held, make_unknown, text_of

pytestmark = pytest.mark.django_db

HELD_LIMITS = {"EUR": {"review_above": 10, "two_people_above": 100, "approve_above": 10}}


# notices


def _told(kind: NoticeKind) -> int:
    return Notice.objects.filter(kind=kind).count()


def _due(review: Review, **columns: Any) -> None:
    Review.objects.filter(pk=review.pk).update(**columns)
    for _ in range(2):
        notices.sweep(times.now())


def test_what_was_put_aside_and_is_overdue_again_is_told_again(settings: Any) -> None:
    settings.LANDED_DUE_SOON_S, settings.LANDED_ESCALATE_S = 600, 3_600
    review, me, now = make_case(), make_person(), times.now()
    for ago, kind in ((-60, NoticeKind.DUE_SOON), (60, NoticeKind.OVERDUE), (4_000, NoticeKind.ESCALATED)):
        _due(review, due_at=now - timedelta(seconds=ago))
        assert _told(kind) == 1
    until = now + timedelta(days=2)
    waiting.put_aside(
        review.pk, person=me, waits_for=WaitsFor.BANK, reference="", until=until, longest=until, note=""
    )
    notices.sweep(times.now())
    _due(review, waits_until=now - timedelta(hours=2))
    assert waiting.time_is_over(review.pk)
    for ago, kind in ((-70, NoticeKind.DUE_SOON), (70, NoticeKind.OVERDUE), (4_010, NoticeKind.ESCALATED)):
        _due(review, due_at=now - timedelta(seconds=ago))
        assert _told(kind) == 2
    assert _told(NoticeKind.HIGH_VALUE) == 1
    assert all(len(notice.once) <= 80 for notice in Notice.objects.all())


def test_while_the_mail_server_hangs_the_next_e_mail_is_not_claimed(settings: Any, monkeypatch: Any) -> None:
    """Else its claim runs out in the meantime, and a second clock sends it too."""
    review = make_case()
    for kind in (NoticeKind.OVERDUE, NoticeKind.DUE_SOON):
        notices.put_down(kind, once=str(kind), now=times.now(), review=review)
    untouched: list[int] = []
    send = mailing._send

    def hangs(claimed: Any) -> int:
        untouched.append(Notice.objects.filter(tries=0).count())
        return send(claimed)

    monkeypatch.setattr(mailing, "_send", hangs)
    mailing.send_due()
    assert untouched == [1, 0]


def test_what_another_clock_has_claimed_meanwhile_is_left_to_it() -> None:
    review = make_case()
    notices.put_down(NoticeKind.OVERDUE, once="x", now=times.now(), review=review)
    keys = list(Notice.objects.values_list("pk", flat=True))
    assert [len(mailing._claim(keys, times.now())) for _ in range(2)] == [1, 0]


# stakes


def test_an_orphan_has_the_stake_of_the_strictest_kind_and_is_told_of_as_high_value() -> None:
    kind = factories.make_kind(limits={"EUR": {"review_above": 50_000}, "USD": {"review_above": 7}})
    factories.make_kind(kind.downstream, limits={"EUR": {"review_above": 20_000}})
    factories.make_kind(kind.downstream, limits={"USD": {"review_above": 1}})
    factories.make_kind(limits={"EUR": {"review_above": 1}})
    review = books.orphan(kind.downstream, amount_minor=100_000_000)
    assert review.stake == 100_000_000 * 1_000 // 20_000
    small = books.orphan(kind.downstream, amount_minor=10_000)
    assert small.stake == 500
    notices.sweep(times.now())
    assert [notice.review_id for notice in Notice.objects.filter(kind=NoticeKind.HIGH_VALUE)] == [review.pk]


def test_an_orphan_whose_currency_has_no_limit_is_worth_one_and_without_an_amount_nothing() -> None:
    kind = factories.make_kind(limits={"EUR": {"review_above": None}})
    assert books.orphan(kind.downstream).stake == stakes.LIMIT
    assert books.orphan(kind.downstream, amount_minor=None, currency="").stake == 0
    notices.sweep(times.now())
    assert not Notice.objects.exists()


def test_what_is_in_a_currency_that_no_kind_lists_is_of_high_value_and_told_of() -> None:
    kind = factories.make_kind(limits={"USD": {"review_above": 7}})
    entries = [books.orphan(kind.downstream), books.orphan(factories.make_downstream())]
    nameless = books.orphan(kind.downstream, currency="")
    case = make_held(kind)
    notices.sweep(times.now())
    told = Notice.objects.filter(kind=NoticeKind.HIGH_VALUE).values_list("review_id", flat=True)
    assert set(told) == {review.pk for review in (*entries, nameless, case)}


def test_open_cases_of_before_get_their_stake_and_nothing_else_changes() -> None:
    kind = factories.make_kind()
    entry, case, none = books.orphan(kind.downstream, amount_minor=100_000), make_case(kind), make_case(kind)
    ended, other = make_case(kind), make_case(factories.make_kind(limits={"USD": {"review_above": 1}}))
    Review.objects.filter(pk=none.pk).update(amount_minor=None)
    Review.objects.filter(pk=ended.pk).update(closed_at=times.now(), closed_how=ClosedHow.DECISION)
    right = {review.pk: review.stake for review in (entry, case, other)}
    Review.objects.update(stake=0)
    kept = books.orphan(kind.downstream)
    Review.objects.filter(pk=kept.pk).update(stake=77)
    before = list(Review.objects.order_by("pk").values_list("pk", "version"))
    migration = import_module("reconciliation.migrations.0011_stakes_of_open_cases")
    migration.give(apps, None)
    found = dict(Review.objects.values_list("pk", "stake"))
    assert found == right | {none.pk: 0, ended.pk: 0, kept.pk: 77}
    assert list(Review.objects.order_by("pk").values_list("pk", "version")) == before


# incidents


@pytest.mark.parametrize(("left", "gathered"), [(timedelta(hours=-1), True), (timedelta(minutes=5), False)])
def test_a_lease_keeps_a_case_out_of_its_incident_while_it_lasts(left: timedelta, gathered: bool) -> None:
    kind, now = factories.make_kind(), times.now()
    with transaction.atomic():
        review = opening.open_for_outcome(make_unknown(kind), ReasonCode.STILL_UNKNOWN, now=now)
    claiming.claim(review.pk, person=make_person())
    Review.objects.filter(pk=review.pk).update(lease_until=now + left)
    Incident.objects.create(kind="books", downstream=kind.downstream, reason="no_answers_looking", opened_at=now)
    incidents.sweep(now)
    review.refresh_from_db()
    assert (review.incident_id is not None) is gathered


# many at once, while others work


def _ticked(*reviews: Review) -> list[rows.Ticked]:
    """As a preview showed them."""
    shown = rows.load([rows.Ticked(review_id=review.pk) for review in reviews])
    return rows.read(rows=[row.value for row in shown])


def _meanwhile(monkeypatch: pytest.MonkeyPatch, does: Any) -> None:
    """While the first row is done, somebody else does something with the others."""
    real, once = running._one, [does]

    def one(*args: Any) -> Any:
        found = real(*args)
        if once:
            once.pop()()
        return found

    monkeypatch.setattr(running, "_one", one)


def _right_after_reading(monkeypatch: pytest.MonkeyPatch, does: Any) -> None:
    """Between the judging of a row and its lock, somebody else does something with it."""
    real = running.judge

    def judge(*args: Any, **more: Any) -> Any:
        found = real(*args, **more)
        does()
        return found

    monkeypatch.setattr(running, "judge", judge)


def _approve(review: Review) -> None:
    deciding.decide(
        review.pk,
        person=make_person(),
        choice=Choice.APPROVE,
        reason=DecisionReason.MISTAKE,
        note="ok",
        seen=deciding.seen(review),
    )


def _asked() -> Asked:
    until = times.now() + timedelta(hours=2)
    return Asked(
        note="all of them",
        to=make_person(),
        reason=DecisionReason.MISTAKE,
        waits_for=WaitsFor.BANK,
        until=until,
        longest=until,
    )


MANY = pytest.mark.parametrize("action", [Bulk.REJECT, Bulk.ASSIGN, Bulk.WAIT])


@MANY
def test_a_vote_that_is_given_while_earlier_rows_are_done_stands(action: Bulk, monkeypatch: Any) -> None:
    kind = factories.make_kind(limits=HELD_LIMITS)
    first, second = make_held(kind), make_held(kind)
    _meanwhile(monkeypatch, lambda: _approve(second))
    came = running.run(action, _ticked(first, second), asked=_asked(), person=make_person())
    assert came[1].came is running.Came.NOT_DONE
    assert not Decision.objects.filter(review=second, choice=Choice.VOID).exists()
    second.refresh_from_db()
    assert (second.closed_at, second.owner, second.waits_until) == (None, None, None)


@MANY
@pytest.mark.parametrize("does", ["votes", "raises"])
def test_what_happens_between_the_judging_and_the_lock_stops_it(action: Bulk, does: str, monkeypatch: Any) -> None:
    held, person, asked = make_held(factories.make_kind(limits=HELD_LIMITS)), make_person(), _asked()
    other = make_person()

    def meanwhile() -> None:
        if does == "votes":
            _approve(held)
        else:
            opening_by_hand.customer_waits(held.pk, person=other, waits=True)

    _right_after_reading(monkeypatch, meanwhile)
    (came,) = running.run(action, _ticked(held), asked=asked, person=person)
    assert (came.came, came.words) == (running.Came.NOT_DONE, MOVED)
    assert not Decision.objects.filter(review=held, choice__in=[Choice.VOID, Choice.REJECT]).exists()
    held.refresh_from_db()
    assert (held.closed_at, held.owner, held.waits_until) == (None, None, None)
    # Nobody looks at it: a refusal leaves no lease behind.
    assert held.holder is None


def test_a_database_that_is_away_when_a_row_is_read_anew_leaves_it_and_the_rest_untried(monkeypatch: Any) -> None:
    first, second = make_held(), make_held()
    ticked, real, calls = _ticked(first, second), running.load, []

    def load(given: Any) -> Any:
        calls.append(given)
        if len(calls) > 1:
            raise OperationalError("the server closed the connection")
        return real(given)

    monkeypatch.setattr(running, "load", load)
    came = running.run(Bulk.CANCEL, ticked, asked=Asked(note="x"), person=make_person())
    assert [one.came.value for one in came] == ["not_tried", "not_tried"]
    assert len(calls) == 2


@pytest.mark.parametrize("when", ["since it was shown", "right after it was read"])
def test_a_history_as_long_as_it_was_and_another_is_not_what_was_shown(when: str, monkeypatch: Any) -> None:
    review = make_case()
    ticked = _ticked(review)

    def rewritten() -> None:
        Intent.objects.filter(pk=review.intent_id).update(chain_head="f" * 64)

    if when == "since it was shown":
        rewritten()
    else:
        _right_after_reading(monkeypatch, rewritten)
    (came,) = running.run(Bulk.CHECK, ticked, asked=Asked(note="x"), person=make_person())
    assert (came.came, came.words) == (running.Came.NOT_DONE, MOVED)


# files


def test_erasing_a_file_says_who_in_the_history_of_its_case() -> None:
    boss = make_person("admin")
    for review in (make_case(), books.orphan(factories.make_downstream())):
        row = attaching.attach(review.pk, person=make_person(), name="a.txt", content=b"hello")
        for _ in range(2):
            attaching.erase(row.pk, person=boss, reason="asked")
        said = review.comments.select_related("text").order_by("-pk")[0]
        assert (review.comments.count(), said.person, said.kind, said.attachment) == (2, boss, "erased", row)
        assert "The person it is about asked for it." in said.text.text
        assert row.digest in said.text.text
        review.refresh_from_db()
        if review.intent is None:
            assert verifying.case_faults(review) == []
        else:
            assert verifying.intent_faults(Intent.objects.get(pk=review.intent.pk)) == []


def test_the_page_of_an_intent_says_that_a_files_bytes_are_others() -> None:
    client, person = log_in()
    review = make_case()
    assert review.intent is not None
    kept = attaching.attach(review.pk, person=person, name="kept.txt", content=b"kept")
    changed = attaching.attach(review.pk, person=person, name="a.txt", content=b"hello")
    page = f"/intents/{review.intent.pk}/"
    assert "It does not hold" not in text_of(client.get(page))
    with without_triggers():
        Attachment.objects.filter(pk=changed.pk).update(content=b"other")
    shown = text_of(client.get(page))
    assert escape(f"attachment {changed.pk}: Its bytes are not those that were added") in shown
    assert f"attachment {kept.pk}:" not in shown


# entries that something explains by now


def _explain(review: Review) -> None:
    LedgerEntry.objects.filter(pk=review.entry_id).update(state="failed")


@pytest.mark.parametrize("undo_s", [0, 60])
def test_a_case_that_evidence_closes_voids_what_people_had_decided_in_it(undo_s: int, settings: Any) -> None:
    """A first vote (of two), or a decision in its undo window."""
    settings.LANDED_UNDO_S = undo_s
    kind = factories.make_kind(limits={"EUR": {"review_above": 10, "two_people_above": 100 if not undo_s else None}})
    intent, person = books.confirmed(kind, subject="order-x"), make_person()
    review = books.orphan(kind.downstream)
    made = books.decide(review, person, Choice.DUPLICATE, intent).decision
    assert made.takes_effect_at is None if not undo_s else made.takes_effect_at is not None
    _explain(review)
    assert orphans.close_case(review.pk)
    void = Decision.objects.get(about=made)
    assert (void.choice, void.person, void.entry_id, void.linked_id) == ("void", None, review.entry_id, intent.pk)
    review.refresh_from_db()
    assert review.closed_how == ClosedHow.EVIDENCE
    assert history.case_faults(review) == []


def test_a_case_that_evidence_closes_leaves_what_was_undone_as_it_is(settings: Any) -> None:
    settings.LANDED_UNDO_S = 60
    review, person = books.orphan(factories.make_kind().downstream), make_person()
    made = books.decide(review, person, Choice.NOT_OURS).decision
    pending.undo(made.pk, person=person)
    commenting.comment(review.pk, person=person, text="x")
    _explain(review)
    assert orphans.close_case(review.pk)
    assert [row.choice for row in Decision.objects.filter(about=made)] == ["undo"]
