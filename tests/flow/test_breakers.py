"""A downstream that gives no answers is not asked any more, but for a probe; an incident says so."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from actions import breakers, dispatch, times, transitions
from actions.connectors import registry
from actions.connectors.base import LookupFailed
from actions.models import Breaker, Downstream, Intent, Kind, Line
from actions.phases import Phase
from actions.phases import Reason as Trouble
from actions.statuses import Actor, Status
from actions.transport import Call, Reply
from reconciliation.models import Incident, IncidentKind
from tests import factories
from tests.connectors.replies import broken, reply
from tests.flow.test_sending import in_threads
from tests.flow.world import World

AWAY = broken(Phase.CONNECT, Trouble.CONNECT_FAILED)
SILENT = broken(Phase.SENT, Trouble.READ_TIMEOUT)


@pytest.fixture(autouse=True)
def three(world: World) -> None:
    Downstream.objects.update(breaker_after=3)


def answer(count: int, came: dispatch.Came) -> list[Intent]:
    """Claims so many and lets the same befall each."""
    claimed = dispatch.claim(slots=count)
    assert len(claimed) == count
    return [dispatch.save(one, came) for one in claimed]


def propose(world: World, count: int, start: int = 0) -> list[Intent]:
    return [world.propose(f"order-{start + n}") for n in range(count)]


def breaker() -> Breaker:
    return Breaker.objects.get(line=Line.SENDING)


def test_after_so_many_without_an_answer_only_a_probe_is_sent_and_an_incident_is_open(world: World) -> None:
    propose(world, 10)
    answer(3, SILENT)
    assert dispatch.claim(slots=10) == []
    incident = Incident.objects.get()
    assert (incident.kind, incident.downstream_id, incident.closed_at) == (
        IncidentKind.SENDING,
        world.downstream.pk,
        None,
    )
    assert world.downstream.paused is False, "nobody paused it"
    world.later(6)
    answer(1, SILENT)
    world.later(6)
    assert dispatch.claim(slots=10) == [], "the next probe comes later than the first"
    world.later(10)
    assert len(dispatch.claim(slots=10)) == 1
    assert Incident.objects.count() == 1


def test_any_answer_to_the_probe_closes_it_and_the_incident(world: World) -> None:
    propose(world, 6)
    answer(3, SILENT)
    world.later(6)
    answer(1, reply(422, b'{"error": {"code": "invalid"}}'))
    assert Incident.objects.get().closed_at is not None
    assert breaker().unanswered == 0
    assert len(dispatch.claim(slots=10)) == 2
    assert breaker().opened_at is None


def test_answers_in_between_begin_the_count_anew(world: World) -> None:
    propose(world, 8)
    for came in (SILENT, SILENT, reply(422, b"{}"), SILENT, SILENT):
        answer(1, came)
    assert breaker().opened_at is None
    answer(1, SILENT)
    assert breaker().opened_at is not None


@pytest.mark.parametrize(
    "came",
    [
        broken(Phase.CONNECT, Trouble.TOO_LATE),
        dispatch.Objection("person_first", "disputed"),
        dispatch.Objection("not_checked_first", "no answer"),
        reply(429, b"{}"),
    ],
    ids=["too late by our own fault", "a person first", "not seen first", "not processed"],
)
def test_what_says_nothing_of_the_downstream_does_not_count(world: World, came: dispatch.Came) -> None:
    Downstream.objects.update(
        config=world.downstream.config | {"known_errors": [{"status": 429, "result": "not_processed"}]}
    )
    propose(world, 4)
    answer(4, came)
    assert not Breaker.objects.exists()


def test_what_can_not_be_reached_waits_and_does_not_use_up_its_tries(world: World) -> None:
    """A downstream that is down for a while: without the breaker every intent would be given up in a minute."""
    Kind.objects.update(not_sent_retries=2)
    intents = propose(world, 12)
    for _ in range(30):
        for claimed in dispatch.claim(slots=10):
            dispatch.save(claimed, AWAY)
        world.later(30)
    given_up = Intent.objects.filter(status=Status.FAILED).count()
    assert given_up <= 5, "only probes are lost"
    Downstream.objects.update(breaker_after=1_000)
    world.later(400)
    assert world.send() >= len(intents) - given_up


def test_the_probe_is_an_intent_that_is_unknown_already_where_there_is_one(world: World) -> None:
    Kind.objects.update(replay="in_window", replay_schedule=[30])
    propose(world, 3)
    answer(3, SILENT)
    propose(world, 3, start=10)
    world.later(40)
    (probe,) = dispatch.claim(slots=10)
    assert Intent.objects.get(pk=probe.intent_id).transitions.filter(reason="replayed").exists()


def test_many_workers_at_once_send_one_probe(world: World) -> None:
    propose(world, 10)
    answer(3, SILENT)
    world.later(6)
    claimed: list[dispatch.Claimed] = []
    in_threads(6, lambda: claimed.extend(dispatch.claim(slots=5)))
    assert len(claimed) == 1


def test_answers_that_come_at_once_open_it_once(world: World) -> None:
    propose(world, 8)
    claimed = dispatch.claim(slots=8)
    left = list(claimed)
    in_threads(8, lambda: dispatch.save(left.pop(), SILENT))
    assert breaker().unanswered == 8
    assert Incident.objects.count() == 1


def test_a_broken_or_full_downstream_keeps_no_other_from_its_turn(world: World) -> None:
    propose(world, 30)
    other = factories.make_kind(
        factories.make_downstream(
            base_url=world.sandbox.url, config=world.downstream.config, secret_env="LANDED_TEST_SECRET"
        )
    )
    mine = factories.make_intent(other, next_attempt_at=times.now())
    Downstream.objects.filter(pk=world.downstream.pk).update(max_concurrency=2)
    assert mine.pk in [one.intent_id for one in dispatch.claim(slots=5)]


def test_the_clock_rings_for_nothing_that_a_breaker_keeps_back(world: World) -> None:
    propose(world, 5)
    answer(3, SILENT)
    assert dispatch.anything_due(times.now()) is False
    world.later(6)
    assert dispatch.anything_due(times.now()) is True


def test_somebody_who_knows_that_it_is_back_lets_the_probe_go_at_once(world: World) -> None:
    propose(world, 5)
    answer(3, SILENT)
    assert breakers.probe_now(world.downstream, Line.SENDING, now=times.now()) is True
    assert len(dispatch.claim(slots=5)) == 1
    assert breakers.probe_now(world.downstream, Line.LOOKING, now=times.now()) is False


def test_what_waits_behind_a_breaker_past_its_time_is_withdrawn_unsent(world: World) -> None:
    propose(world, 3)
    answer(3, SILENT)
    late = world.propose("order-50", send_before=world.clock() + timedelta(seconds=60))
    world.later(120)
    world.sweep()
    assert (world.read(late).status, world.read(late).status_reason) == ("cancelled", "expired")


class _Looks:
    """http_json, and a look before sending."""

    def __init__(self, world: World, says: str | Exception, method: str = "GET") -> None:
        self.inner, self.world, self.says, self.method = registry.get("http_json"), world, says, method
        self.looks = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    def object_to(self, target: object, wanted: object, fetch: Callable[[Call], Reply]) -> str:
        self.looks += 1
        assert fetch(Call(self.method, f"{self.world.sandbox.url}/v1/ledger", {})).status == 200
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


def looking(world: World, monkeypatch: pytest.MonkeyPatch, says: str | Exception, method: str = "GET") -> _Looks:

    connector = _Looks(world, says, method)
    monkeypatch.setattr(registry, "get", lambda name: connector)
    return connector


def test_an_objection_before_sending_holds_it_for_a_person_who_may_send_it_all_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    connector = looking(world, monkeypatch, "The charge is disputed.")
    intent = world.propose("order-60")
    world.send()
    found = world.read(intent)
    assert (found.status, found.status_reason, found.hold_reasons) == ("held", "held_on_objection", "objected")
    assert world.posts(intent) == 0
    assert found.approve_before is not None
    assert list(world.review(intent).reasons.values_list("code", flat=True)) == ["objected"]
    assert "The charge is disputed." in found.evidence.get(kind="answer").text
    transitions.apply(
        intent.pk,
        expected=Status.HELD,
        to=Status.RECORDED,
        actor=Actor.REVIEWER,
        actor_id="person:1",
        reason="approved",
        next_attempt_at=times.now(),
    )
    world.send()
    assert (world.read(intent).status, world.posts(intent)) == ("confirmed", 1)
    assert connector.looks == 1


def test_what_can_not_be_looked_at_before_sending_is_not_sent_and_tried_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    connector = looking(world, monkeypatch, LookupFailed("http_error", "503"))
    intent = world.propose("order-61")
    world.send()
    found = world.read(intent)
    assert (found.status, found.status_reason) == ("recorded", "not_sent")
    assert found.next_attempt_at is not None
    connector.says = ""
    world.later(5)
    world.send()
    assert (world.read(intent).status, world.posts(intent)) == ("confirmed", 1)


def test_a_look_before_sending_can_not_change_anything(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    looking(world, monkeypatch, "", method="POST")
    intent = world.propose("order-62")
    world.send()
    assert world.read(intent).attempts.get().reason == "not_checked_first"
    assert "a look before sending changes nothing" in world.read(intent).evidence.get(kind="answer").text
    assert world.posts(intent) == 0
