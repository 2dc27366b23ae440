"""What the database itself refuses, whoever writes to it and past every line of Python."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from actions import times
from actions.errors import Invalid
from actions.models import Attempt, Intent, Token, Transition
from actions.statuses import Status
from actions.tokens import create
from reconciliation.models import LedgerEntry, Match, Review
from tests.core.steps import answer, expire, read, settle, submit
from tests.core.test_statuses import ACTORS, RIGHT, STATUSES
from tests.factories import make_agent, make_downstream, make_intent, make_kind

pytestmark = pytest.mark.django_db


def refused(act: Callable[[], object]) -> bool:
    try:
        with transaction.atomic():
            act()
    except IntegrityError:
        return True
    return False


def set_raw(intent: Intent, **columns: Any) -> Callable[[], object]:
    """An UPDATE by hand, as somebody with a database shell would write it."""
    key = Intent._meta.pk.get_db_prep_value(intent.pk, connection)
    names = ", ".join(f'"{name}" = %s' for name in columns)

    def act() -> None:
        with connection.cursor() as cursor:
            cursor.execute(f'UPDATE "actions_intent" SET {names} WHERE "id" = %s', [*columns.values(), key])
            assert cursor.rowcount == 1

    return act


@pytest.mark.parametrize("status", ["sent", "", "CONFIRMED", "done", "pending", "Unknown"])
def test_an_unknown_status_is_refused(status: str) -> None:
    assert refused(set_raw(make_intent(), status=status))


def test_a_status_can_t_be_missing() -> None:
    assert refused(set_raw(make_intent(), status=None))


@pytest.mark.parametrize("status", ["confirmed", "failed", "cancelled"])
def test_what_is_settled_says_when_and_by_what(status: str) -> None:
    intent, now = make_intent(guard_key=None), times.now()
    assert refused(set_raw(intent, status=status))
    assert refused(set_raw(intent, status=status, settled_at=now))
    assert refused(set_raw(intent, status=status, settled_by="answer"))
    assert refused(set_raw(intent, status=status, settled_at=now, settled_by="hearsay"))
    assert not refused(set_raw(intent, status=status, settled_at=now, settled_by="answer"))


@pytest.mark.parametrize("status", ["held", "recorded", "submitted", "unknown"])
def test_what_is_not_settled_says_neither(status: str) -> None:
    intent = make_intent()
    assert refused(set_raw(intent, status=status, settled_at=times.now()))
    assert refused(set_raw(intent, status=status, settled_by="answer"))
    assert not refused(set_raw(intent, status=status))


def test_the_guard_is_held_only_while_open_or_disputed() -> None:
    intent = settle(make_intent(), Status.CONFIRMED)
    assert intent.guard_key is None
    assert refused(set_raw(intent, guard_key="1:order-1"))
    assert not refused(set_raw(intent, guard_key="1:order-1", disputed=True))
    assert refused(set_raw(intent, disputed=False)), "the dispute can't end and leave the guard behind"


def test_one_subject_has_one_guard() -> None:
    kind = make_kind()
    first, second = make_intent(kind, subject="order-1"), make_intent(kind, subject="order-2")
    assert refused(set_raw(second, guard_key=first.guard_key))


def test_a_lease_exists_only_while_submitted() -> None:
    intent = make_intent()
    assert refused(set_raw(intent, lease_until=times.now()))
    submit(intent)
    assert refused(set_raw(intent, status="unknown"))
    expire(intent)
    assert refused(set_raw(intent, lease_until=times.now()))


def test_a_sending_is_due_only_while_it_may_be_sent() -> None:
    intent, now = make_intent(), times.now()
    assert not refused(set_raw(intent, next_attempt_at=now))
    for status in ("held", "submitted"):
        assert refused(set_raw(intent, status=status))
    assert refused(set_raw(intent, status="confirmed", settled_at=now, settled_by="answer", guard_key=None))


def test_an_approval_expires_only_while_it_is_held() -> None:
    assert refused(set_raw(make_intent(), approve_before=times.now()))
    assert not refused(set_raw(make_intent(to=Status.HELD), approve_before=times.now()))


def test_an_amount_is_positive_and_has_a_currency() -> None:
    assert refused(lambda: make_intent(amount_minor=0))
    assert refused(lambda: make_intent(amount_minor=-1))
    assert refused(lambda: make_intent(amount_minor=5, currency=""))
    assert refused(lambda: make_intent(amount_minor=None, currency="EUR", subject="order-1").save()) is False
    assert make_intent(amount_minor=None).currency == ""


def test_keys_are_unique_and_never_empty() -> None:
    kind = make_kind()
    agent, other = make_agent(kind), make_agent(kind)
    one = make_intent(kind, agent, request_key="r-1", idempotency_key="k-1")
    assert refused(lambda: make_intent(kind, agent, request_key="r-1"))
    assert refused(lambda: make_intent(kind, other, idempotency_key="k-1"))
    assert refused(lambda: make_intent(kind, agent, idempotency_key=""))
    assert make_intent(kind, other, request_key="r-1").pk != one.pk
    assert make_intent(kind, agent).request_key is None
    assert make_intent(kind, agent).request_key is None, "no key collides with no key"


@pytest.mark.parametrize("from_", ["", *STATUSES])
def test_history_takes_only_the_pairs_of_the_table(from_: str) -> None:
    intent = make_intent()
    for sequence, to in enumerate([*STATUSES, "sent", ""], start=2):
        row = Transition(
            intent=intent,
            sequence=sequence,
            position=sequence,
            from_status=from_,
            to_status=to,
            actor="worker",
            actor_id="worker:test/1",
            reason="claimed",
            previous="x",
            digest="y",
            at=times.now(),
        )
        assert refused(lambda row=row: row.save(force_insert=True)) == ((from_, to) not in RIGHT)  # type: ignore[misc]


def test_history_takes_only_known_roles_and_each_place_once() -> None:
    intent = make_intent()

    def row(**columns: Any) -> Callable[[], object]:
        found: dict[str, Any] = {
            "intent": intent,
            "sequence": 2,
            "position": 2,
            "from_status": "recorded",
            "to_status": "submitted",
            "actor": "worker",
            "actor_id": "worker:test/1",
            "reason": "claimed",
            "previous": "x",
            "digest": "y",
            "at": times.now(),
        }
        return lambda: Transition(**(found | columns)).save(force_insert=True)

    assert refused(row(actor="somebody"))
    assert refused(row(actor=""))
    assert refused(row(sequence=1))
    assert refused(row(position=1))
    assert all(not refused(row(actor=actor, sequence=n, position=n)) for n, actor in enumerate(ACTORS, start=2))


def test_an_intent_has_at_most_one_open_attempt() -> None:
    intent = make_intent()
    attempt = submit(intent)
    now = times.now()
    second = {"intent": intent, "fence": 2, "executor": "landed", "claimed_at": now}
    lease = now + timedelta(seconds=9)
    assert refused(lambda: Attempt.objects.create(number=2, lease_until=lease, **second))
    from actions.models import Result

    answer(attempt, Result.NO_ANSWER)
    assert refused(lambda: Attempt.objects.create(number=1, lease_until=lease, **second)), "numbers don't repeat"
    assert refused(lambda: Attempt.objects.create(number=2, lease_until=now, **second)), "a lease has a length"
    assert not refused(lambda: Attempt.objects.create(number=2, lease_until=lease, **second))


def test_an_attempt_is_closed_with_result_time_and_by_whom_or_not_at_all() -> None:
    attempt, now = submit(make_intent()), times.now()
    found = Attempt.objects.filter(pk=attempt.pk)
    assert refused(lambda: found.update(closed_at=now))
    assert refused(lambda: found.update(result="confirmed"))
    assert refused(lambda: found.update(closed_at=now, result="confirmed"))
    assert refused(lambda: found.update(closed_at=now, result="fine", closed_by="answer"))
    assert refused(lambda: found.update(late_result="confirmed")), "late is only what the clock had closed"
    assert refused(lambda: found.update(closed_at=now, result="confirmed", closed_by="answer", late_result="refused"))
    assert not refused(
        lambda: found.update(closed_at=now, result="no_answer", closed_by="clock", late_result="refused")
    )


def entry(entry_id: str = "e-1", **columns: Any) -> LedgerEntry:
    now = times.now()
    found: dict[str, Any] = {
        "downstream": columns.pop("downstream", None) or make_downstream(),
        "entry_id": entry_id,
        "role": "effect",
        "state": "final",
        "first_seen_at": now,
        "last_seen_at": now,
    }
    return LedgerEntry.objects.create(**(found | columns))


def match(one: LedgerEntry, intent: Intent | None, role: str = "settles") -> Match:
    return Match.objects.create(
        entry=one, intent=intent, role=role, entry_state="final", by="checker", at=times.now()
    )


def test_one_entry_settles_one_intent_while_its_match_is_active() -> None:
    """Rule 9."""
    one, first, second = entry(), make_intent(), make_intent()
    tie = match(one, first)
    for role in ("settles", "duplicate", "not_ours"):
        assert refused(lambda role=role: match(one, second, role))  # type: ignore[misc]
    Match.objects.filter(pk=tie.pk).update(released_at=times.now(), released_by="person:1")
    assert not refused(lambda: match(one, second))
    assert refused(lambda: match(one, first))


def test_one_intent_is_settled_by_one_entry() -> None:
    intent = make_intent()
    match(entry("e-1"), intent)
    assert refused(lambda: match(entry("e-2"), intent))
    assert not refused(lambda: match(entry("e-3"), intent, "duplicate"))


def test_a_match_names_an_intent_unless_the_entry_is_not_ours() -> None:
    assert refused(lambda: match(entry("e-1"), None))
    assert refused(lambda: match(entry("e-1"), None, "duplicate"))
    assert refused(lambda: match(entry("e-1"), make_intent(), "perhaps"))
    assert not refused(lambda: match(entry("e-1"), None, "not_ours"))


def test_a_book_shows_each_entry_once_in_known_roles_and_states() -> None:
    downstream = make_downstream()
    entry("e-1", downstream=downstream)
    assert refused(lambda: entry("e-1", downstream=downstream))
    assert not refused(lambda: entry("e-1", downstream=downstream, book="bank"))
    assert refused(lambda: entry("e-2", role="gift"))
    assert refused(lambda: entry("e-2", state="maybe"))


def review(intent: Intent | None, **columns: Any) -> Review:
    now = times.now()
    found: dict[str, Any] = {"purpose": "outcome", "opened_at": now, "due_at": now}
    return Review.objects.create(intent=intent, **(found | columns))


def test_an_intent_has_at_most_one_open_review() -> None:
    intent = make_intent()
    first = review(intent)
    assert refused(lambda: review(intent))
    Review.objects.filter(pk=first.pk).update(closed_at=times.now(), closed_how="decision")
    assert not refused(lambda: review(intent))
    assert refused(lambda: review(intent))


def test_an_entry_has_at_most_one_open_review_and_a_review_is_about_something() -> None:
    one = entry()
    review(None, entry=one, purpose="entry")
    assert refused(lambda: review(None, entry=one, purpose="entry"))
    assert refused(lambda: review(None))
    assert refused(lambda: review(make_intent(), purpose="gossip"))


def test_a_closed_review_says_how_it_ended() -> None:
    found = Review.objects.filter(pk=review(make_intent()).pk)
    assert refused(lambda: found.update(closed_at=times.now()))
    assert refused(lambda: found.update(closed_how="decision"))
    assert refused(lambda: found.update(closed_at=times.now(), closed_how="somehow"))


@pytest.mark.parametrize("propose", [False, True])
@pytest.mark.parametrize("report", [False, True])
def test_evidence_is_never_granted_together_with_propose_or_report(propose: bool, report: bool) -> None:
    """Rule 12: whoever tells what the books say must not be who gains by it."""
    agent = make_agent()
    together = propose or report

    def make() -> object:
        return Token.objects.create(
            agent=agent, digest="x", may_propose=propose, may_report=report, may_give_evidence=True
        )

    assert refused(make) == together
    if together:
        with pytest.raises(Invalid):
            create(agent, may_propose=propose, may_report=report, may_give_evidence=True)
        token, _ = create(agent, may_propose=propose, may_report=report)
        assert refused(lambda: Token.objects.filter(pk=token.pk).update(may_give_evidence=True))


def test_the_history_of_an_intent_begins_with_its_first_version() -> None:
    intent = make_intent()
    assert refused(set_raw(intent, version=0))
    assert read(intent).version == 1
