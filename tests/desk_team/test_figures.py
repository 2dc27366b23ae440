"""Figures from known numbers: each test states the right value."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from actions import history, times, transitions
from actions.models import Attempt, Intent, Transition
from actions.reasons import Reason
from actions.statuses import Actor, Status
from reconciliation import figures
from reconciliation.figures import open_cases, people, sendings, settling
from reconciliation.models import Choice, Decision, Review
from reconciliation.reviews import claiming
from tests import factories
from tests.pages.cases import make_case, make_held, make_unknown

pytestmark = pytest.mark.django_db


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> "Hand":
    hand = Hand(datetime(2026, 7, 15, 12, 0, tzinfo=UTC))
    monkeypatch.setattr(times, "now", hand)
    return hand


class Hand:
    """The clock's hand, for a test to set."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def on(self, **span: float) -> datetime:
        self.now += timedelta(**span)
        return self.now


def seconds(*values: float) -> list[timedelta]:
    return [timedelta(seconds=value) for value in values]


@pytest.mark.parametrize(
    ("values", "share", "right"),
    [
        ([4, 1, 3, 2], 50, 2),
        ([5, 1, 4, 2, 3], 50, 3),
        (range(1, 11), 90, 9),
        (range(1, 12), 90, 10),
        (range(1, 101), 90, 90),
        ([7], 50, 7),
        ([7], 90, 7),
        ([1, 1_000_000], 90, 1_000_000),
    ],
)
def test_percentiles_are_values_that_occurred(values: list[int], share: int, right: int) -> None:
    assert figures.percentile(seconds(*values), share) == timedelta(seconds=right)


def test_of_nothing_there_is_no_percentile() -> None:
    assert figures.percentile([], 50) is None


def test_open_cases_fall_into_one_band_each(at: Hand) -> None:
    kind = factories.make_kind()
    for age in (0, 59 * 60, 3_600, 4 * 3_600 - 1, 4 * 3_600, 86_400, 7 * 86_400, 30 * 86_400):
        at.now = datetime(2026, 7, 15, 12, 0, tzinfo=UTC) - timedelta(seconds=age)
        make_case(kind)
    at.now = datetime(2026, 7, 15, 12, 0, tzinfo=UTC)
    assert [band.count for band in open_cases.by_age(at.now)] == [2, 2, 1, 1, 2]
    assert sum(band.count for band in open_cases.by_age(at.now)) == Review.objects.count()


def test_closed_cases_count_nowhere(at: Hand) -> None:
    make_case(amount_minor=100)
    Review.objects.update(closed_at=at.now, closed_how="decision")
    assert open_cases.by_reason() == []
    assert sum(band.count for band in open_cases.by_age(at.now)) == 0
    assert [(money.currency, money.cases, money.unknown_minor) for money in open_cases.at_stake()] == [
        ("EUR", 0, 100)
    ]


def test_a_case_counts_for_each_of_its_reasons(at: Hand) -> None:
    review = make_case()
    make_case()
    review.reasons.create(code="requested", at=at.now)
    counted = [(reason.what, reason.count) for reason in open_cases.by_reason()]
    assert counted == [("high value", 2), ("asked for by a person", 1)]


def test_money_is_summed_per_currency_and_never_over_them(at: Hand) -> None:
    limits = {code: {"review_above": 10**6, "approve_above": 10**6} for code in ("EUR", "JPY", "KWD")}
    kind = factories.make_kind(limits=limits)
    make_case(kind, amount_minor=64_000)
    make_case(kind, amount_minor=1)
    make_case(kind, amount_minor=120_000, currency="JPY")
    make_unknown(kind, amount_minor=5, currency="JPY")
    make_held(kind, amount_minor=1_500, currency="KWD")
    make_case(kind, amount_minor=None)
    assert open_cases.at_stake() == [
        open_cases.AtStake("EUR", 2, 64_001, 2, 64_001),
        open_cases.AtStake("JPY", 1, 120_000, 2, 120_005),
        open_cases.AtStake("KWD", 1, 1_500, 0, 0),
    ]


def test_sums_go_past_what_the_databases_integers_hold(at: Hand) -> None:
    review = make_case(amount_minor=10**15)
    most = 2**63 - 1
    Review.objects.update(amount_minor=most)
    other = make_case(amount_minor=10**15)
    Review.objects.filter(pk=other.pk).update(amount_minor=most)
    assert review.pk != other.pk
    assert open_cases.at_stake()[0].open_minor == 2 * most


def make_sending(intent: Intent, *, claimed_at: datetime, result: str = "", number: int = 1, late: str = "") -> None:
    Attempt.objects.create(
        intent=intent,
        number=number,
        fence=number,
        executor="landed",
        claimed_at=claimed_at,
        lease_until=claimed_at + timedelta(seconds=30),
        result=result,
        closed_at=claimed_at + timedelta(seconds=5) if result else None,
        closed_by="answer" if result else "",
        late_result=late,
        late_at=claimed_at + timedelta(seconds=50) if late else None,
    )


def test_the_unknown_rate_counts_sendings_whose_end_nobody_knew(at: Hand) -> None:
    kind = factories.make_kind()
    ago = [(1, "confirmed", ""), (2, "no_answer", ""), (3, "no_answer", "confirmed"), (4, "refused", ""), (5, "", "")]
    ago += [(30, "confirmed", ""), (31, "no_answer", ""), (24 * 9, "no_answer", "")]
    for hours, result, late in ago:
        intent = factories.make_intent(kind, to=Status.SUBMITTED)
        make_sending(intent, claimed_at=at.now - timedelta(hours=hours), result=result, late=late)
    (rate,) = sendings.unknown_rates(at.now, UTC)
    assert (rate.last_day.part, rate.last_day.of) == (2, 4)  # what is under way is not counted
    assert (rate.last_days.part, rate.last_days.of) == (3, 6)
    assert rate.last_days.percent == 50
    assert [(day.day, share.part, share.of) for day, share in rate.per_day if share.of] == [(14, 1, 2), (15, 2, 4)]


def test_days_are_the_readers_days(at: Hand) -> None:
    intent = factories.make_intent(to=Status.SUBMITTED)
    make_sending(intent, claimed_at=datetime(2026, 7, 14, 23, 30, tzinfo=UTC), result="no_answer")
    (utc,) = sendings.unknown_rates(at.now, UTC)
    (berlin,) = sendings.unknown_rates(at.now, ZoneInfo("Europe/Berlin"))
    assert [day.day for day, share in utc.per_day if share.of] == [14]
    assert [day.day for day, share in berlin.per_day if share.of] == [15]


def test_downstreams_have_rates_of_their_own(at: Hand) -> None:
    for title, result in (("Bank", "no_answer"), ("Cards", "confirmed")):
        kind = factories.make_kind(factories.make_downstream(title=title))
        make_sending(factories.make_intent(kind, to=Status.SUBMITTED), claimed_at=at.now, result=result)
    rates = [(rate.name, rate.last_day.percent) for rate in sendings.unknown_rates(at.now, UTC)]
    assert rates == [("Bank", 100), ("Cards", 0)]


def settle(
    intent: Intent, *, to: Status = Status.CONFIRMED, by: str = "ledger", actor: Actor = Actor.CHECKER
) -> Intent:
    return transitions.apply(
        intent.pk,
        expected=Status(Intent.objects.get(pk=intent.pk).status),
        to=to,
        actor=actor,
        actor_id="checker" if actor is Actor.CHECKER else "person:1",
        reason=Reason.OVERRIDDEN if by == "override" else Reason.DECIDED,
        settled_by=by,
        guard_key=None,
    )


def test_the_time_to_settle_is_from_unknown_to_settled(at: Hand) -> None:
    kind, start = factories.make_kind(), at.now
    took = [(30, "ledger"), (60, "answer"), (599, "absence"), (3_600, "decision"), (86_400, "ledger")]
    for after, by in took:
        at.now = start
        intent = make_unknown(kind)
        at.on(seconds=after)
        settle(intent, by=by, actor=Actor.REVIEWER if by == "decision" else Actor.CHECKER)
    at.now = start
    make_unknown(kind)  # not settled yet: in no percentile
    settle(factories.make_intent(kind, to=Status.SUBMITTED), by="answer", actor=Actor.WORKER)  # never unknown
    at.on(days=2)
    found = settling.settling(at.now)
    assert (found.unknown, found.settled) == (6, 5)
    assert found.median == timedelta(seconds=599)
    assert found.p90 == timedelta(days=1)
    assert (found.by_machine.part, found.by_machine.of) == (4, 5)
    assert found.by_machine.percent == 80
    assert [count for _, count in found.bands] == [1, 2, 0, 1, 0, 1]


def test_what_became_unknown_before_the_last_30_days_is_left_out(at: Hand) -> None:
    settle(make_unknown())
    at.on(days=31)
    assert settling.settling(at.now).unknown == 0


def test_reversals_are_told_by_what_had_settled_it(at: Hand) -> None:
    kind = factories.make_kind()
    agents = {name: factories.make_agent(kind, name=name) for name in ("careful", "wild")}
    for agent, by in (("wild", "ledger"), ("wild", "absence"), ("wild", "decision"), ("careful", "answer")):
        actor = Actor.REVIEWER if by == "decision" else Actor.CHECKER
        intent = settle(make_unknown(kind, agent=agents[agent]), by=by, actor=actor)
        if agent == "wild":
            settle(intent, to=Status.FAILED, by="override", actor=Actor.REVIEWER)
    assert settling.reversals(at.now) == [settling.Reversed("wild", by_machine=2, by_people=1, upheld=0)]
    assert settling.reversals(at.on(days=31)) == []


def decided(review: Review, person: User, choice: Choice, *, about: Decision | None = None) -> Decision:
    row = Decision(review=review, intent=review.intent, person=person, choice=choice, about=about, seen_version=1)
    return history.append(row, owner=Intent, pk=review.intent_id, at=times.now())


def test_an_upheld_contradiction_counts_when_it_took_effect(at: Hand) -> None:
    review, person = make_case(), factories.make_person()
    vote = decided(review, person, Choice.UPHOLD)
    assert settling.reversals(at.now) == []
    decided(review, person, Choice.EFFECT, about=vote)
    (row,) = settling.reversals(at.now)
    assert (row.by_machine, row.by_people, row.upheld) == (0, 0, 1)


def test_decisions_are_counted_for_today_and_for_seven_days_without_what_was_taken_back(at: Hand) -> None:
    person, start = factories.make_person(), at.now
    for days, undone in ((0, False), (0, True), (1, False), (6, False), (8, False)):
        at.now = start - timedelta(days=days)
        review = make_case()
        vote = decided(review, person, Choice.CONFIRM)
        decided(review, person, Choice.UNDO if undone else Choice.EFFECT, about=vote)
    at.now = start
    (row,) = people.colleagues(at.now, today=start.replace(hour=0))
    assert (row.decided_today, row.decided_week) == (1, 3)


def test_the_load_tells_held_from_owned_and_counts_a_case_once(at: Hand) -> None:
    mara, jon = factories.make_person(username="mara"), factories.make_person(username="jon")
    reviews = [make_case() for _ in range(5)]
    claiming.claim(reviews[0].pk, person=mara)
    Review.objects.filter(pk=reviews[1].pk).update(owner=mara, holder=mara, lease_until=at.now + timedelta(minutes=5))
    Review.objects.filter(pk=reviews[2].pk).update(
        owner=mara, waits_for="bank", waits_until=at.now + timedelta(days=1)
    )
    Review.objects.filter(pk=reviews[3].pk).update(owner=jon)
    Review.objects.filter(pk=reviews[4].pk).update(holder=jon, lease_until=at.now - timedelta(seconds=1))  # over
    Review.objects.filter(pk__in=[one.pk for one in reviews[:4]]).update(due_at=at.now - timedelta(minutes=1))
    load = {one.person.username: one.load for one in people.colleagues(at.now, today=at.now)}
    assert load["mara"] == people.Load(held=2, owned=2, waiting=1, overdue=2, oldest=reviews[0].opened_at)
    assert load["jon"] == people.Load(held=0, owned=1, waiting=0, overdue=1, oldest=reviews[3].opened_at)


def test_figures_take_as_many_queries_for_many_as_for_one(at: Hand) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            open_cases.by_age(at.now), open_cases.by_reason(), open_cases.at_stake()
            sendings.unknown_rates(at.now, UTC), settling.settling(at.now), settling.reversals(at.now)
            people.colleagues(at.now, today=at.now), list(people.held(at.now))
        return len(seen)

    def fill() -> None:
        review, person = make_case(), factories.make_person()
        assert review.intent is not None
        make_sending(review.intent, claimed_at=at.now, result="no_answer")
        claiming.claim(review.pk, person=person)

    fill()
    first = queries()
    for _ in range(5):
        fill()
    assert queries() == first
    assert Transition.objects.count() > 10
