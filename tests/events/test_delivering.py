"""Webhooks that Landed sends: signed, tried again, given up, and never a way into the network behind it."""

import json
import time
from datetime import timedelta
from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from actions import times
from actions.models import DeliveryTry, Endpoint, EventDelivery
from actions.notifying import claiming, planning, posting, replaying, running, saving, schedule, secrets
from actions.statuses import Status
from tests.core.steps import expire, race, settle, submit
from tests.events.making import deliver, make_endpoint, only
from tests.events.receiving import Receiver, receiving
from tests.factories import make_agent, make_intent, make_kind
from tests.flow.world import Clock

pytestmark = pytest.mark.django_db


def tell(agent: Any = None, to: Status = Status.CONFIRMED) -> Any:
    """Something that is told: an intent that settles."""
    agent = agent or make_agent()
    return settle(make_intent(make_kind(), agent), to)


def results() -> list[str]:
    return list(DeliveryTry.objects.order_by("pk").values_list("result", flat=True))


def test_a_settled_intent_is_told_once_and_the_receiver_can_verify_it(receiver: Receiver) -> None:
    agent = make_agent()
    _, secret = make_endpoint(agent, receiver.url)
    intent = tell(agent)
    assert deliver() == 1
    assert deliver() == 0
    (came,) = receiver.came
    event = intent.events.get(type="intent.settled")
    assert Webhook(secret).verify(came.body, came.headers) == {
        "type": "intent.settled",
        "timestamp": event.at.isoformat().replace("+00:00", "Z"),
        "data": {"intent": str(intent.pk), "sequence": 3, "position": event.position, "status": "confirmed"},
    }
    assert came.headers["webhook-id"] == f"evt_{event.pk}"
    assert (only().state, only().attempts, results()) == ("delivered", 1, ["delivered"])
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(came.body.replace(b"confirmed", b"cancelled"), came.headers)


def test_it_hears_of_its_own_agents_wanted_events_from_now_on(receiver: Receiver) -> None:
    agent = make_agent()
    tell(agent)
    make_endpoint(agent, receiver.url, types=["intent.unknown", "review.opened"])
    tell()
    tell(agent)
    intent = make_intent(make_kind(), agent)
    submit(intent)
    expire(intent)
    deliver()
    assert receiver.types == ["intent.unknown"]
    assert receiver.came[0].json["data"]["intent"] == str(intent.pk)


def test_what_fails_is_tried_again_later_under_the_same_id(receiver: Receiver, clock: Clock) -> None:
    agent = make_agent()
    make_endpoint(agent, receiver.url)
    tell(agent)
    receiver.status, receiver.body = 500, b"<b>oh\x00no</b>" + b"x" * 5_000
    deliver()
    assert (only().state, only().last_status, only().last_error) == ("pending", 500, "HTTP 500")
    row = DeliveryTry.objects.get()
    assert (row.result, len(row.answer), "\x00" in row.answer) == ("again", 1_000, False)
    assert deliver() == 0, "not yet"
    clock.ahead += timedelta(seconds=6)
    receiver.status = 200
    assert deliver() == 1
    assert len({one.headers["webhook-id"] for one in receiver.came}) == 1
    first, second = (one.headers["webhook-signature"] for one in receiver.came)
    assert first != second, "signed anew, for its own time"
    endpoint = Endpoint.objects.get()
    assert (only().state, results()[-1], endpoint.failures, endpoint.not_before) == (
        "delivered",
        "delivered",
        0,
        None,
    )


def test_after_two_days_it_is_given_up_and_can_be_asked_for_again(receiver: Receiver, clock: Clock) -> None:
    agent = make_agent()
    endpoint, _ = make_endpoint(agent, receiver.url)
    tell(agent)
    receiver.status = 503
    planned = times.now()
    for _ in range(schedule.MOST_ATTEMPTS):
        assert deliver() == 1
        last = times.now()
        clock.ahead += max(timedelta(0), (only().next_at or last) - times.now()) + timedelta(minutes=6)
    assert (only().state, only().attempts, results()[-1]) == ("given_up", 9, "given_up")
    assert timedelta(hours=36) < last - planned < timedelta(days=2)
    assert deliver() == 0
    receiver.status = 200
    assert replaying.replay_given_up(endpoint) == 1
    assert deliver() == 1
    assert (only().state, len({one.headers["webhook-id"] for one in receiver.came})) == ("delivered", 1)


def test_what_nobody_came_to_try_within_two_days_is_given_up(receiver: Receiver, clock: Clock) -> None:
    agent = make_agent()
    endpoint, _ = make_endpoint(agent, receiver.url)
    tell(agent)
    planning.plan()
    Endpoint.objects.filter(pk=endpoint.pk).update(active=False)
    clock.ahead += timedelta(days=2, seconds=1)
    assert deliver() == 0
    assert (only().state, only().last_error) == ("given_up", planning.TOO_OLD)


def test_a_receiver_that_is_gone_is_switched_off_until_a_person_switches_it_on(
    receiver: Receiver, clock: Clock
) -> None:
    agent = make_agent()
    endpoint, _ = make_endpoint(agent, receiver.url)
    tell(agent)
    receiver.status = 410
    deliver()
    endpoint.refresh_from_db()
    assert (endpoint.active, "410 Gone" in endpoint.inactive_because) == (False, True)
    assert endpoint.history.count() == 2, "somebody will ask since when"  # type: ignore[attr-defined]  # simple-history
    tell(agent)
    receiver.status = 200
    clock.ahead += timedelta(hours=1)
    assert deliver() == 0
    Endpoint.objects.update(active=True)
    assert deliver() == 1, "what happened meanwhile is told"
    assert sorted(EventDelivery.objects.values_list("state", flat=True)) == ["delivered", "given_up"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120),
        ("999999", 6 * 3_600),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", None),
        ("Wed, 21 Oct 2015 99999999999999999999:28:00 GMT", None),
        ("Wed, 21 Oct 2015 07:28:00 +99999999999999", None),
    ],
)
def test_patience_that_a_receiver_asks_for_is_read_and_capped(text: str, seconds: int | None) -> None:
    found = schedule.retry_after({"retry-after": text}, times.now())
    assert found == (None if seconds is None else timedelta(seconds=seconds))


def test_patience_that_nobody_can_read_is_a_failed_try_like_any_other(receiver: Receiver) -> None:
    agent = make_agent()
    endpoint, _ = make_endpoint(agent, receiver.url)
    tell(agent)
    receiver.status, receiver.headers = 503, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 +99999999999999"}
    deliver()
    endpoint.refresh_from_db()
    assert (only().lease_until, results(), endpoint.failures) == (None, ["again"], 1)


def test_patience_that_a_receiver_asks_for_is_given_to_it_as_a_whole(receiver: Receiver, clock: Clock) -> None:
    agent = make_agent()
    make_endpoint(agent, receiver.url)
    tell(agent)
    receiver.status, receiver.headers = 429, {"Retry-After": "600"}
    deliver()
    tell(agent)
    clock.ahead += timedelta(seconds=590)
    assert deliver() == 0
    clock.ahead += timedelta(seconds=11)
    receiver.status = 200
    assert deliver() == 2


def test_a_redirect_is_not_followed(receiver: Receiver, settings: Any) -> None:
    agent = make_agent()
    make_endpoint(agent, receiver.url)
    tell(agent)
    receiver.status, receiver.headers = 307, {"Location": receiver.url + "/elsewhere"}
    deliver()
    assert [one.path for one in receiver.came] == ["/hooks"]
    assert only().last_error == "HTTP 307"


def test_a_receiver_that_hangs_holds_up_no_other(receiver: Receiver, settings: Any) -> None:
    slow, quick = make_agent(), make_agent()
    settings.LANDED_DELIVERY_SLOTS = 3
    with receiving() as other:
        settings.LANDED_PRIVATE_RECEIVERS = [receiver.place, other.place]
        make_endpoint(slow, receiver.url)
        make_endpoint(quick, other.url)
        for _ in range(4):
            tell(slow)
            tell(quick)
        receiver.hold.clear()
        done: list[int] = []
        planning.plan()

        def claim(free: int) -> list[claiming.Claimed]:
            done.append(len(other.came))
            if len(other.came) == 4:
                receiver.hold.set()
            return claiming.claim(free)

        running.loop.run(claim=claim, work=posting.post, save=saving.save, slots=3, budget_s=6)
    assert (len(other.came), len(receiver.came)) == (4, 4)
    assert max(done) == 4


@pytest.mark.django_db(transaction=True)
def test_what_happens_while_one_is_slow_reaches_the_others_all_the_same(receiver: Receiver, settings: Any) -> None:
    slow, quick = make_agent(), make_agent()
    with receiving() as other:
        settings.LANDED_PRIVATE_RECEIVERS = [receiver.place, other.place]
        make_endpoint(slow, receiver.url)
        make_endpoint(quick, other.url)
        tell(slow)
        receiver.hold.clear()

        def act(number: int) -> int:
            if number == 0:
                return running.deliver_due(budget_s=8)
            until = time.monotonic() + 4
            while not receiver.came and time.monotonic() < until:
                time.sleep(0.02)
            tell(quick)
            while not other.came and time.monotonic() < until:
                time.sleep(0.02)
            came = len(other.came)
            receiver.hold.set()
            return came

        assert race(2, act) == [2, 1]


def test_to_one_that_fails_one_is_sent_at_a_time(receiver: Receiver, clock: Clock) -> None:
    agent = make_agent()
    make_endpoint(agent, receiver.url)
    for _ in range(5):
        tell(agent)
    receiver.status = 500
    deliver()
    assert 1 <= len(receiver.came) <= claiming.AT_ONCE
    before = len(receiver.came)
    clock.ahead += timedelta(seconds=10)
    deliver()
    assert len(receiver.came) == before + 1


@pytest.mark.django_db(transaction=True)
def test_of_two_sweeps_at_once_each_delivery_has_one(receiver: Receiver) -> None:
    agent = make_agent()
    make_endpoint(agent, receiver.url)
    for _ in range(6):
        tell(agent)
    assert sum(race(2, lambda _: deliver())) == 6  # type: ignore[arg-type]  # an exception fails it
    assert len({one.headers["webhook-id"] for one in receiver.came}) == len(receiver.came) == 6
    assert results() == ["delivered"] * 6


def test_whoever_dies_between_sending_and_saving_is_followed_by_another(receiver: Receiver, clock: Clock) -> None:
    agent = make_agent()
    make_endpoint(agent, receiver.url)
    tell(agent)
    planning.plan()
    (claimed,) = claiming.claim(5)
    reply = posting.post(claimed)  # and then it is killed
    assert deliver() == 0, "it is somebody's until the lease is over"
    clock.ahead += claiming.LEASE + timedelta(seconds=1)
    assert deliver() == 1
    assert len(receiver.came) == 2
    assert len({one.headers["webhook-id"] for one in receiver.came}) == 1
    assert (only().state, only().attempts, results()) == ("delivered", 2, ["lost", "delivered"])
    saving.save(claimed, reply)  # it was only slow
    assert only().state == "delivered"


def test_a_failure_that_is_saved_too_late_takes_nothing_back(receiver: Receiver, clock: Clock) -> None:
    agent = make_agent()
    make_endpoint(agent, receiver.url)
    tell(agent)
    planning.plan()
    (first,) = claiming.claim(5)
    receiver.status = 500
    failed = posting.post(first)
    clock.ahead += claiming.LEASE + timedelta(seconds=1)
    (second,) = claiming.claim(5)
    saving.save(first, failed)
    assert only().lease_until == second.lease_until, "the second one still has it"
    receiver.status = 200
    saving.save(second, posting.post(second))
    assert only().state == "delivered"


def test_while_a_secret_is_rotated_either_verifies(receiver: Receiver, clock: Clock) -> None:
    agent = make_agent()
    endpoint, old = make_endpoint(agent, receiver.url)
    new = secrets.rotate(endpoint)
    assert old != new
    tell(agent)
    deliver()
    (came,) = receiver.came
    for secret in (old, new):
        Webhook(secret).verify(came.body, came.headers)
    assert secrets.signing(endpoint, times.now() + secrets.OVERLAP) == [new]
    assert secrets.signing(endpoint, times.now()) == [new, old]
    third = secrets.rotate(endpoint, at_once=True)
    assert secrets.signing(endpoint, times.now()) == [third]


def test_while_the_secret_key_is_exchanged_receivers_notice_nothing(receiver: Receiver, settings: Any) -> None:
    agent = make_agent()
    endpoint, secret = make_endpoint(agent, receiver.url)
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another-" * 8, [settings.SECRET_KEY]
    tell(agent)
    deliver()
    Webhook(secret).verify(receiver.came[0].body, receiver.came[0].headers)
    assert secret not in json.dumps(list(Endpoint.objects.values()), default=str)
    settings.SECRET_KEY_FALLBACKS = []
    assert secret not in secrets.signing(endpoint, times.now())


def test_two_endpoints_never_share_a_secret() -> None:
    agent = make_agent()
    found = {make_endpoint(agent, "https://a.example/")[1] for _ in range(3)}
    assert len(found) == 3
