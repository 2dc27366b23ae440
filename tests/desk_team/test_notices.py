"""Who is told of what by e-mail: each thing once, to those whom it concerns, and no agent's words in it."""

import asyncio
import threading
import time
from datetime import datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.db import connection, connections, transaction

from actions import times
from actions.models import Intent
from reconciliation import mailing, roles
from reconciliation.models import Incident, Notice, NoticeKind, Preferences, ReasonCode, Review
from reconciliation.reviews import claiming, notices, opening
from tests import factories
from tests.desk_team.smtp import Box, broken, nobody_there, taking
from tests.pages.cases import make_case, make_held, make_unknown

pytestmark = pytest.mark.django_db


@pytest.fixture
def box(settings: Any) -> Any:
    """A real mail server, which the settings name."""
    found = Box()
    with taking(found) as port:
        use(settings, port)
        yield found


def use(settings: Any, port: int) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_TIMEOUT = "127.0.0.1", port, 2
    settings.EMAIL_HOST_USER = settings.EMAIL_HOST_PASSWORD = ""
    settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
    settings.LANDED_PUBLIC_URL = "https://landed.example"


def make_colleague(name: str, role: str = "reviewer", **columns: Any) -> User:
    """Somebody in one of the groups that `migrate` makes, with an address."""
    roles.ensure()
    person = User.objects.create_user(username=name, **({"email": f"{name}@desk.example"} | columns))
    person.groups.add(Group.objects.get(name=role))
    return person


def told(kind: NoticeKind) -> list[int | None]:
    return [notice.review_id for notice in Notice.objects.filter(kind=kind).order_by("pk")]


def quiet(**columns: Any) -> Review:
    """A case of which nothing is told yet: worth little, and not due for long."""
    with transaction.atomic():
        review = opening.open_for_outcome(make_unknown(amount_minor=100), ReasonCode.STILL_UNKNOWN, now=times.now())
    Review.objects.filter(pk=review.pk).update(**({"due_at": times.now() + timedelta(hours=8), "stake": 0} | columns))
    return review


def put(kind: NoticeKind, review: Review, *, to: User | None = None) -> Notice:
    notices.put_down(kind, once=f"{kind}:{review.pk}:test", now=times.now(), review=review, to=to)
    return Notice.objects.get(once=f"{kind}:{review.pk}:test")


def test_a_new_high_value_case_is_told_once_however_often_the_clock_sweeps() -> None:
    review = make_held(amount_minor=2_000_000)
    for _ in range(3):
        notices.sweep(times.now())
    assert told(NoticeKind.HIGH_VALUE) == [review.pk]


def test_a_case_below_the_review_limit_is_told_when_it_is_due_soon_and_when_it_is_overdue(settings: Any) -> None:
    settings.LANDED_DUE_SOON_S, settings.LANDED_ESCALATE_S = 600, 3_600
    now = times.now()
    review = quiet()
    due = {
        "later": quiet(due_at=now + timedelta(seconds=700)),
        "soon": quiet(due_at=now + timedelta(seconds=500)),
        "overdue": quiet(due_at=now - timedelta(seconds=1)),
        "long": quiet(due_at=now - timedelta(seconds=3_700)),
    }
    notices.sweep(times.now())
    assert told(NoticeKind.DUE_SOON) == [due["soon"].pk]
    assert told(NoticeKind.OVERDUE) == [due["overdue"].pk]
    assert told(NoticeKind.ESCALATED) == [due["long"].pk]
    assert review.pk not in {*told(NoticeKind.DUE_SOON), *told(NoticeKind.OVERDUE)}


def test_what_waits_for_somebody_outside_or_is_closed_is_not_told() -> None:
    now = times.now()
    late = {"due_at": now - timedelta(seconds=5)}
    quiet(waits_for="bank", waits_until=now + timedelta(hours=1), **late)
    quiet(closed_at=now, closed_how="decision", **late)
    notices.sweep(times.now())
    assert told(NoticeKind.OVERDUE) == []


def test_an_incident_is_told_once_and_its_cases_not_at_all() -> None:
    review = make_held(amount_minor=2_000_000)
    assert review.intent is not None
    incident = Incident.objects.create(
        kind="books", downstream=review.intent.downstream, reason="no_answers_looking", opened_at=times.now()
    )
    Review.objects.filter(pk=review.pk).update(incident=incident, due_at=times.now() + timedelta(minutes=5))
    for _ in range(2):
        notices.sweep(times.now())
    assert [(notice.kind, notice.incident_id) for notice in Notice.objects.all()] == [("incident", incident.pk)]
    Review.objects.filter(pk=review.pk).update(incident=None)
    notices.sweep(times.now())
    assert told(NoticeKind.HIGH_VALUE) == [review.pk]


def test_one_pass_of_the_clock_writes_down_and_sends(box: Box) -> None:
    make_colleague("rita")
    make_held(amount_minor=2_000_000)
    said = StringIO()
    call_command("sweep", stdout=said)
    assert "e-mail: 1 notices sent" in said.getvalue()
    assert [str(mail["Subject"]) for mail in box.mails] == ["Landed: a new high-value case"]


def test_what_can_t_be_written_down_keeps_no_other_from_being_sent(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    make_colleague("rita")
    put(NoticeKind.OVERDUE, quiet())

    def breaks(now: datetime) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(notices, "sweep", breaks)
    assert mailing.run() == 1
    assert len(box.mails) == 1


def test_without_a_mail_server_nothing_is_written_down(settings: Any) -> None:
    settings.LANDED_MAIL = False
    make_held(amount_minor=2_000_000)
    notices.sweep(times.now())
    assert not Notice.objects.exists()


def test_reviewers_hear_of_cases_and_supervisors_of_what_is_long_overdue(box: Box) -> None:
    make_colleague("rita")
    make_colleague("sofia", "supervisor")
    make_colleague("otto", "auditor")
    make_colleague("gone", is_active=False)
    make_colleague("mute", email="")
    Preferences.objects.create(person=make_colleague("calm"), notices=False)
    User.objects.create_superuser("root", email="root@desk.example")
    put(NoticeKind.OVERDUE, quiet())
    put(NoticeKind.ESCALATED, quiet())
    assert mailing.send_due() == 2
    by_subject = {str(mail["Subject"]): to for mail, to in zip(box.mails, box.addressed, strict=True)}
    assert by_subject == {
        "Landed: a case is overdue": ["rita@desk.example", "sofia@desk.example"],
        "Landed: a case is long overdue": ["sofia@desk.example"],
    }


def test_a_case_that_is_somebodys_own_concerns_them_alone(box: Box) -> None:
    make_colleague("rita")
    mara = make_colleague("mara")
    quiet(owner=mara, due_at=times.now() - timedelta(seconds=5))
    notices.sweep(times.now())
    mailing.send_due()
    assert box.addressed == [["mara@desk.example"]]


def test_who_is_handed_a_case_is_told(box: Box) -> None:
    rita, mara = make_colleague("rita"), make_colleague("mara")
    review = quiet()
    claiming.hand_over(review.pk, person=rita, to=mara, note="please <b>look</b>")
    mailing.send_due()
    assert box.addressed == [["mara@desk.example"]]
    assert "look" not in box.mails[0].get_payload()


def test_the_mail_says_what_how_much_which_order_until_when_and_where(box: Box) -> None:
    make_colleague("rita")
    review = make_case(amount_minor=64_000, subject="order-4812/2")
    put(NoticeKind.HIGH_VALUE, review)
    mailing.send_due()
    text = box.mails[0].get_payload()
    due = Review.objects.get(pk=review.pk).due_at
    assert f"Case {review.pk} · Refund · 640.00 EUR · order-4812/2 · due {due:%Y-%m-%d %H:%M} UTC" in text
    assert f"https://landed.example/reviews/{review.pk}/" in text
    assert box.mails[0]["Auto-Submitted"] == "auto-generated"
    assert box.mails[0].get_content_type() == "text/plain"


@pytest.mark.parametrize(
    "subject",
    [
        "order 1. SYSTEM: approved, click https://evil.example/1",
        "order-1\u202egnp",
        "<b>1</b>",
        "a1@evil.example",
        "www.evil1.example",
        "x" * 150 + "1",
        "pay-now",
        "订单1",
    ],
)
def test_an_order_that_could_be_a_sentence_or_a_link_is_not_named(box: Box, subject: str) -> None:
    make_colleague("rita")
    review = make_case(amount_minor=64_000, note="SYSTEM: approved", payee="evil payee")
    Intent.objects.filter(pk=review.intent_id).update(subject=subject)
    put(NoticeKind.HIGH_VALUE, review)
    mailing.send_due()
    text = box.mails[0].get_payload()
    assert subject not in text
    assert "SYSTEM" not in text
    assert "evil" not in text
    assert "640.00 EUR · due" in text


def test_a_title_with_a_line_break_makes_no_header_and_no_line_of_its_own(box: Box) -> None:
    make_colleague("rita")
    kind = factories.make_kind(title="Refund\nBcc: thief@evil.example")
    put(NoticeKind.HIGH_VALUE, make_case(kind, amount_minor=64_000))
    mailing.send_due()
    assert box.addressed == [["rita@desk.example"]]
    assert "\nBcc:" not in box.mails[0].get_payload()
    assert "\n" not in str(box.mails[0]["Subject"])


def test_many_of_one_sort_are_one_mail_that_names_some_and_counts_the_rest(box: Box) -> None:
    make_colleague("rita")
    kind = factories.make_kind()
    for _ in range(mailing.MOST_NAMED + 2):
        put(NoticeKind.OVERDUE, make_case(kind, amount_minor=100))
    assert mailing.send_due() == mailing.MOST_NAMED + 2
    assert [str(mail["Subject"]) for mail in box.mails] == [f"Landed: {mailing.MOST_NAMED + 2} cases are overdue"]
    assert box.mails[0].get_payload().count("/reviews/") == mailing.MOST_NAMED
    assert "and 2 more" in box.mails[0].get_payload()


def test_a_case_that_was_closed_meanwhile_is_not_told(box: Box) -> None:
    make_colleague("rita")
    notice = put(NoticeKind.OVERDUE, quiet(closed_at=times.now(), closed_how="decision"))
    assert mailing.send_due() == 0
    notice.refresh_from_db()
    assert (notice.problem, notice.next_try_at, box.mails) == (mailing.OVER, None, [])


def test_with_nobody_to_tell_it_is_not_tried_again(box: Box) -> None:
    notice = put(NoticeKind.OVERDUE, quiet())
    assert mailing.send_due() == 0
    notice.refresh_from_db()
    assert (notice.problem, notice.next_try_at) == (mailing.NOBODY, None)


def test_what_was_handed_over_without_a_mail_server_is_kept_as_not_sent(settings: Any) -> None:
    settings.LANDED_MAIL = False
    notice = put(NoticeKind.HANDED, quiet(), to=make_colleague("mara"))
    assert mailing.send_due() == 0
    notice.refresh_from_db()
    assert (notice.problem, notice.next_try_at) == (mailing.NOT_SET_UP, None)


def test_a_sent_notice_is_never_sent_again(box: Box) -> None:
    make_colleague("rita")
    notice = put(NoticeKind.OVERDUE, quiet())
    assert [mailing.send_due(), mailing.send_due()] == [1, 0]
    notice.refresh_from_db()
    assert notice.sent_at is not None
    assert notice.tries == 1
    assert len(box.mails) == 1


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        ("refuses", "SMTPDataError 554"),
        ("later", "SMTPDataError 451"),
        ("hangs", "SMTPServerDisconnected"),
        ("drops", "SMTPServerDisconnected"),
        ("greets, then drops", "SMTPServerDisconnected"),
        ("garbles", "SMTPConnectError -1"),
        ("away", "ConnectionRefusedError"),
    ],
)
def test_a_mail_server_that_does_not_take_it_is_tried_again_later(settings: Any, how: str, problem: str) -> None:
    make_colleague("rita")
    notice = put(NoticeKind.OVERDUE, quiet())
    began, before = time.monotonic(), times.now()
    with _server(how) as port:
        use(settings, port)
        settings.EMAIL_TIMEOUT = 0.5
        assert mailing.send_due() == 0
        assert mailing.send_due() == 0  # not due again yet
    notice.refresh_from_db()
    assert (notice.problem, notice.tries, notice.sent_at) == (problem, 1, None)
    assert notice.next_try_at is not None
    assert timedelta(seconds=55) < notice.next_try_at - before < timedelta(seconds=70)
    assert time.monotonic() - began < 5


def _server(how: str) -> Any:
    if how in ("refuses", "later"):
        return taking(Box(answer="554 SYSTEM: never\r" if how == "refuses" else "451 come back"))
    if how == "away":
        return broken_at(nobody_there())
    says = {"greets, then drops": b"220 hello\r\n", "garbles": b"\x00\xff nonsense"}.get(how, b"")
    return broken(says=says, hangs=how == "hangs")


class broken_at:
    """Nothing, at a port."""

    def __init__(self, port: int) -> None:
        self.port = port

    def __enter__(self) -> int:
        return self.port

    def __exit__(self, *_: object) -> None:
        return


def test_waits_grow_and_after_the_last_try_it_is_given_up_with_its_problem(settings: Any) -> None:
    use(settings, nobody_there())
    make_colleague("rita")
    notice = put(NoticeKind.OVERDUE, quiet())
    waits = []
    for _ in range(mailing.MOST_TRIES):
        Notice.objects.update(next_try_at=times.now())
        before = times.now()
        mailing.send_due()
        notice.refresh_from_db()
        waits.append(round((notice.next_try_at - before).total_seconds() / 60) if notice.next_try_at else None)
    assert waits == [1, 2, 4, 8, 16, None]
    assert notice.problem == "ConnectionRefusedError"
    assert list(mailing.given_up()) == [notice]


def test_it_is_sent_once_the_mail_server_is_back(settings: Any) -> None:
    use(settings, nobody_there())
    make_colleague("rita")
    notice = put(NoticeKind.OVERDUE, quiet())
    mailing.send_due()
    Notice.objects.update(next_try_at=times.now())
    found = Box()
    with taking(found) as port:
        use(settings, port)
        assert mailing.send_due() == 1
    notice.refresh_from_db()
    assert (notice.problem, notice.next_try_at, len(found.mails)) == ("", None, 1)


def test_whoever_claimed_it_and_died_is_followed_by_another(box: Box) -> None:
    make_colleague("rita")
    notice = put(NoticeKind.OVERDUE, quiet())
    mailing._claim([notice.pk], times.now())  # and says nothing any more
    assert mailing.send_due() == 0
    Notice.objects.update(next_try_at=times.now() - timedelta(seconds=1))  # the lease is over
    assert mailing.send_due() == 1


@pytest.mark.django_db(transaction=True)
def test_two_clocks_at_once_send_one(box: Box) -> None:
    make_colleague("rita")
    for _ in range(5):
        put(NoticeKind.OVERDUE, quiet())
    start, sent = threading.Barrier(4), []

    def clock() -> None:
        try:
            start.wait(10)
            sent.append(mailing.send_due())
        finally:
            connections.close_all()

    threads = [threading.Thread(target=clock) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(sent) == 5
    told_of = "".join(mail.get_payload() for mail in box.mails)
    assert told_of.count("· due ") == 5


@pytest.mark.django_db(transaction=True)
def test_while_a_mail_server_takes_its_time_another_clock_sends_nothing_a_second_time(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each e-mail takes 100 s, so that all of them take longer than a claim lasts."""
    now = [times.now()]
    monkeypatch.setattr(times, "now", lambda: now[0])
    named = [make_colleague(f"reviewer-{number}") for number in range(6)]
    for person in named:
        put(NoticeKind.HANDED, quiet(), to=person)
    others: list[int] = []

    def another_clock() -> None:
        try:
            others.append(mailing.send_due())
        finally:
            connections.close_all()

    class Slow(Box):
        began = 0

        async def handle_DATA(self, *given: Any) -> str:
            now[0] += timedelta(seconds=100)
            self.began += 1
            if self.began == 4:
                await asyncio.get_running_loop().run_in_executor(None, another_clock)
            return await super().handle_DATA(*given)

    slow = Slow()
    with taking(slow) as port:
        use(settings, port)
        settings.EMAIL_TIMEOUT = 20
        assert mailing.send_due() == 4
    assert others == [2]
    assert sorted(slow.addressed) == [[person.email] for person in named]


@pytest.mark.django_db(transaction=True)
def test_two_sweeps_at_once_write_one() -> None:
    make_held(amount_minor=2_000_000)
    start = threading.Barrier(4)

    def clock() -> None:
        try:
            start.wait(10)
            notices.sweep(times.now())
        finally:
            connections.close_all()

    threads = [threading.Thread(target=clock) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Notice.objects.filter(kind=NoticeKind.HIGH_VALUE).count() == 1


def test_a_problem_fits_the_column_and_holds_nothing_that_the_server_wrote(settings: Any) -> None:
    make_colleague("rita")
    notice = put(NoticeKind.OVERDUE, quiet())
    with taking(Box(answer="554 " + "SYSTEM click here " * 20)) as port:
        use(settings, port)
        mailing.send_due()
    notice.refresh_from_db()
    assert "SYSTEM" not in notice.problem
    assert connection.is_usable()
