"""Services that look with code of their own: what is due is handed out once, what they saw is judged like a look."""

from datetime import timedelta
from typing import Any

import pytest

from actions import tokens, transitions
from actions.errors import BadDecision, Invalid
from actions.models import Agent, Downstream, Evidence, Intent, Kind, Result
from actions.statuses import Status
from reconciliation import checks
from reconciliation.models import Check, Choice, LedgerEntry, Review
from tests.api.calling import Api, fields_of, make_api, problem
from tests.core.steps import answer, race, settle, submit
from tests.factories import make_agent, make_downstream, make_intent, make_kind, make_person
from tests.flow.world import Clock
from tests.hooks.hooking import Hooks, make_hooks

ROWS: dict[str, Any] = {"may_propose": False, "may_give_evidence": True}


@pytest.fixture
def books(db: None, clock: Clock) -> Hooks:
    """Books that only a service can look into. An effect shows within a minute; two absences settle."""
    return make_hooks(clock, look_up="service", absence_conclusive=True)


@pytest.fixture
def service(books: Hooks) -> Api:
    return make_api(books.kind, token=ROWS)


def due(service: Api, **query: Any) -> list[dict[str, Any]]:
    found = service.get("/checks/due", query)
    assert found.status_code == 200, found.content
    data: list[dict[str, Any]] = found.json()["data"]
    return data


def claim(books: Hooks, service: Api, intent: Intent) -> dict[str, Any]:
    """The intent's look, due now."""
    Intent.objects.filter(pk=intent.pk).update(next_check_at=intent.created_at)
    (offer,) = [one for one in due(service) if one["intent_id"] == str(intent.pk)]
    return offer


def row(intent: Intent, **more: Any) -> dict[str, Any]:
    found = {
        "entry_id": f"re_{intent.pk}",
        "role": "effect",
        "state": "final",
        "key": intent.idempotency_key,
        "subject": intent.subject,
        "amount": intent.amount,
        "currency": intent.currency,
        "booked_at": intent.created_at.isoformat(),
    } | more
    return {name: value for name, value in found.items() if value is not ...}


def say(service: Api, intent: Intent, *rows: dict[str, Any], **more: Any) -> Any:
    body: dict[str, Any] = {"check": None, "complete": True, "source": "the bank's files", "entries": list(rows)}
    body = {name: value for name, value in (body | more).items() if value is not ...}
    return service.post(f"/intents/{intent.pk}/evidence", body)


def said(service: Api, intent: Intent, *rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    found = say(service, intent, *rows, **more)
    assert found.status_code == 200, found.content
    body: dict[str, Any] = found.json()
    return body


# --- what is due


def test_what_is_due_is_handed_out_with_all_that_a_look_needs(books: Hooks, service: Api) -> None:
    intent = books.unknown()
    assert due(service) == [], "not before its time"
    assert intent.next_check_at is not None
    books.later(40)
    (offer,) = due(service)
    assert offer | {"check": "", "answer_before": ""} == {
        "check": "",
        "answer_before": "",
        "intent_id": str(intent.pk),
        "kind": books.kind.name,
        "subject": intent.subject,
        "amount": "50.00",
        "currency": "EUR",
        "params": {},
        "idempotency_key": intent.idempotency_key,
        "external_id": None,
        "first_maybe_sent_at": intent.first_maybe_sent_at.isoformat().replace("+00:00", "Z")  # type: ignore[union-attr]
        if intent.first_maybe_sent_at
        else None,
        "fence": 1,
    }
    taken_until = books.read(intent).next_check_at
    assert taken_until is not None
    assert offer["answer_before"] == taken_until.isoformat().replace("+00:00", "Z")


def test_a_check_is_handed_out_again_when_its_time_is_over_and_not_before(books: Hooks, service: Api) -> None:
    books.unknown()
    other = make_api(books.kind, token=ROWS)
    books.later(40)
    assert len(due(service)) == 1
    assert due(service) == due(other) == []
    books.later(80)  # twice the deadline and a margin
    assert len(due(other)) == 1


@pytest.mark.django_db(transaction=True)
def test_of_services_that_ask_at_once_each_check_goes_to_one(transactional_db: None, books: Hooks) -> None:
    intents = [books.unknown() for _ in range(6)]
    apis = [make_api(books.kind, token=ROWS) for _ in range(4)]
    books.later(40)
    found = race(4, lambda number: [one["intent_id"] for one in due(apis[number])])
    assert sorted(pk for ids in found for pk in ids) == sorted(str(intent.pk) for intent in intents)  # type: ignore[union-attr]


def test_our_own_workers_leave_them_alone_and_the_clock_rings_for_none_of_them(books: Hooks) -> None:
    from reconciliation import sweep

    books.unknown()
    books.later(40)
    assert checks.claim(limit=10) == []
    assert sweep.sweep().due_to_check is False


def test_limit_and_kind_narrow_it_and_what_is_mistyped_claims_nothing(books: Hooks, service: Api) -> None:
    more = make_kind(books.downstream, check_schedule=[30])
    service.agent.kinds.add(more)
    for kind in (books.kind, books.kind, more):
        answer(submit(make_intent(kind)), Result.NO_ANSWER)
    books.later(40)
    for query in ({"limt": "1"}, {"limit": "0"}, {"limit": "101"}, {"limit": "1.5"}, {"kind": ["a", "b"]}):
        problem(service.get("/checks/due", query), 400, "bad_query")
    assert [one["kind"] for one in due(service, kind=more.name)] == [more.name]
    assert due(service, kind="no-such-kind") == []
    assert len(due(service, limit="1")) == 1
    assert len(due(service)) == 1


def test_an_agent_serves_its_own_kinds_whoever_proposed(books: Hooks, service: Api) -> None:
    intent = books.unknown()
    stranger = make_api(make_kind(books.downstream), token=ROWS)
    books.later(40)
    assert due(stranger) == []
    problem(say(stranger, intent, row(intent)), 404, "not_found")
    assert intent.agent_id != service.agent.pk
    assert len(due(service)) == 1


@pytest.mark.parametrize("look_up", ["key", "subject", "both", "none"])
def test_only_what_a_service_looks_into_is_handed_out(books: Hooks, service: Api, look_up: str) -> None:
    books.unknown()
    Downstream.objects.update(look_up=look_up)
    books.later(40)
    assert due(service) == []


# --- who may


@pytest.mark.parametrize("scopes", [{}, {"may_report": True}, {"may_propose": False}])
def test_no_other_scope_gives_evidence(books: Hooks, scopes: dict[str, bool]) -> None:
    intent = books.unknown()
    api = make_api(books.kind, token=scopes)
    problem(api.get("/checks/due"), 403, "scope_missing")
    problem(say(api, intent, row(intent)), 403, "scope_missing")
    books.sound(intent, Status.UNKNOWN)


def test_whoever_proposes_or_reports_never_gives_evidence_with_the_same_token(books: Hooks) -> None:
    agent = make_agent(books.kind)
    for both in ({"may_propose": True}, {"may_report": True, "may_propose": False}):
        with pytest.raises(Invalid):
            tokens.create(agent, may_give_evidence=True, **both)


def test_a_token_is_needed_and_a_paused_agent_is_not_heard(books: Hooks, service: Api) -> None:
    intent = books.unknown()
    problem(service.client.get("/api/v1/checks/due"), 401, "unauthenticated")
    Agent.objects.filter(pk=service.agent.pk).update(paused=True)
    problem(service.get("/checks/due"), 403, "agent_paused")
    problem(say(service, intent, row(intent)), 403, "agent_paused")
    books.sound(intent, Status.UNKNOWN)


def test_where_we_look_ourselves_nobody_else_says_what_is_there(watched: Hooks) -> None:
    api, intent = make_api(watched.kind, token=ROWS), watched.unknown()
    problem(say(api, intent, row(intent)), 403, "not_allowed")
    assert not LedgerEntry.objects.exists()


# --- what they saw


def test_what_it_saw_confirms_it_by_the_same_rules_as_our_own_look(books: Hooks, service: Api) -> None:
    intent = books.unknown()
    body = said(service, intent, row(intent), check=claim(books, service, intent)["check"])
    assert (body["verdict"], body["counts_as_absence"]) == ("match", False)
    assert (body["intent"]["status"], body["intent"]["id"]) == ("confirmed", str(intent.pk))
    found, check = books.sound(intent, Status.CONFIRMED), Check.objects.get()
    assert (found.settled_by, found.external_id) == ("ledger", f"re_{intent.pk}")
    assert check.by.startswith(f"service:{service.agent.pk}/")
    assert "the bank's files" in LedgerEntry.objects.get().source
    kept = intent.evidence.get(kind="page")
    assert kept.source == f"service {service.agent.name}: the bank's files"
    assert intent.idempotency_key in kept.text


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ([{"amount": "48.50"}], "partial"),
        ([{"currency": "USD"}], "mismatch"),
        ([{"entry_id": "a"}, {"entry_id": "b"}], "duplicate"),
        ([{"entry_id": "a", "key": ...}, {"entry_id": "b", "key": ...}], "ambiguous"),
        ([{"key": ...}], "match"),
        ([{"key": "somebody-elses"}], "too_early"),
        ([{"state": "pending"}], "pending"),
        ([{"role": "reversal"}], "mismatch"),
    ],
)
def test_the_verdicts_are_those_of_a_look(
    books: Hooks, service: Api, rows: list[dict[str, Any]], verdict: str
) -> None:
    intent = books.unknown()
    body = said(service, intent, *(row(intent, **one) for one in rows))
    assert body["verdict"] == verdict
    assert books.read(intent).status == (Status.CONFIRMED if verdict == "match" else Status.UNKNOWN)


def test_above_the_limit_a_person_decides_whatever_a_service_says(books: Hooks, service: Api) -> None:
    intent = books.unknown(amount_minor=60_000)
    body = said(service, intent, row(intent), check=claim(books, service, intent)["check"])
    assert (body["verdict"], body["intent"]["status"]) == ("match", "unknown")
    assert body["intent"]["next_step"] == "wait_for_person"
    assert books.reasons(intent) == ["high_value"]
    assert Review.objects.get().recommendation == Choice.CONFIRM


def test_the_answer_shows_nothing_of_the_proposers_context(books: Hooks, service: Api) -> None:
    intent = books.unknown(context='{"on_behalf_of":"c-5"}')
    assert said(service, intent)["intent"]["context"] == {}


# --- absence


def test_absence_counts_when_it_was_claimed_complete_late_enough_and_spaced(books: Hooks, service: Api) -> None:
    Kind.objects.update(absence_spacing_s=20)
    intent = make_intent(Kind.objects.get(pk=books.kind.pk))
    answer(submit(intent), Result.NO_ANSWER)

    def look(**more: Any) -> tuple[str, bool]:
        body = said(service, intent, check=claim(books, service, intent)["check"], **more)
        return body["verdict"], body["counts_as_absence"]

    assert look() == ("too_early", False), "before the lag is over"
    books.later(61)
    assert look(complete=False, problem="half of the files are missing") == ("unavailable", False)
    assert look() == ("absent", True)
    assert look() == ("absent", False), "not spaced from the one before"
    assert books.sound(intent, Status.UNKNOWN).checks_made == 4
    books.later(21)
    assert look() == ("absent", True)
    found = books.sound(intent, Status.FAILED)
    assert (found.settled_by, found.status_reason) == ("absence", "absent_from_ledger")
    assert found.next_check_at is not None, "it is looked up again later, as always"


def test_it_counts_from_when_it_was_claimed_and_not_from_when_the_service_says(books: Hooks, service: Api) -> None:
    intent = books.unknown()
    offer = claim(books, service, intent)
    books.later(61)  # the lag is over now; it was not when the look was claimed
    later = (books.clock() - timedelta(seconds=1)).isoformat()
    body = said(service, intent, check=offer["check"], started_at=later)
    assert (body["verdict"], body["counts_as_absence"]) == ("too_early", False)


def test_by_its_own_word_from_before_the_claim_it_counts_as_no_absence(books: Hooks, service: Api) -> None:
    intent = books.unknown()
    books.later(200)
    offer = claim(books, service, intent)
    earlier = (books.clock() - timedelta(seconds=90)).isoformat()
    body = said(service, intent, check=offer["check"], started_at=earlier)
    assert (body["verdict"], body["counts_as_absence"]) == ("absent", False)


def test_what_is_said_unasked_is_judged_and_never_counts_as_absence(books: Hooks, service: Api) -> None:
    intent = books.unknown()
    books.later(61)
    plan = books.read(intent).next_check_at
    for number in range(5):
        body = said(service, intent, source=f"file {number}")
        assert (body["verdict"], body["counts_as_absence"]) == ("absent", False)
        books.later(61)
    found = books.sound(intent, Status.UNKNOWN)
    assert (found.next_check_at, found.checks_made) == (plan, 0), "nor does it put off what is planned"
    said(service, intent, row(intent))
    books.sound(intent, Status.CONFIRMED)


def test_a_failed_entry_said_unasked_fails_it_only_if_it_was_seen_late_enough(books: Hooks, service: Api) -> None:
    intent = books.unknown()
    seen_at = books.clock()
    tomorrow = (seen_at + timedelta(days=1)).isoformat()
    assert said(service, intent, row(intent, state="failed"), started_at=tomorrow)["verdict"] == "too_early"
    books.later(120)
    body = said(service, intent, row(intent, state="failed"), started_at=seen_at.isoformat())
    assert body["verdict"] == "too_early"
    books.sound(intent, Status.UNKNOWN)
    assert said(service, intent, row(intent, state="failed"))["verdict"] == "match"
    assert books.sound(intent, Status.FAILED).status_reason == "failed_in_ledger"


def test_an_answer_after_its_time_is_heard_and_is_no_absence(books: Hooks, service: Api) -> None:
    intent = books.unknown()
    books.later(61)
    offer = claim(books, service, intent)
    books.later(100)
    body = said(service, intent, check=offer["check"])
    assert (body["verdict"], body["counts_as_absence"]) == ("absent", False)


def test_news_since_the_claim_takes_the_absence_back_and_asks_for_another_look(books: Hooks, service: Api) -> None:
    intent = books.unknown()
    books.later(61)
    offer = claim(books, service, intent)
    books.tell(intent, status="pending")
    body = said(service, intent, check=offer["check"])
    assert (body["verdict"], body["counts_as_absence"]) == ("absent", False)
    assert [one["intent_id"] for one in due(service)] == [str(intent.pk)]


def test_a_new_attempt_since_the_claim_settles_nothing_by_what_was_seen(books: Hooks, service: Api) -> None:
    intent = books.unknown()
    offer = claim(books, service, intent)
    submit(intent)
    said(service, intent, row(intent), check=offer["check"])
    found = books.sound(intent, Status.SUBMITTED)
    assert found.next_check_at is not None
    assert found.next_check_at <= books.clock(), "and it is looked at again at once"


def test_an_absence_is_none_where_the_books_are_not_conclusive(clock: Clock, db: None) -> None:
    books = make_hooks(clock, look_up="service", absence_conclusive=False)
    service, intent = make_api(books.kind, token=ROWS), books.unknown()
    books.later(61)
    body = said(service, intent, check=claim(books, service, intent)["check"])
    assert (body["verdict"], body["counts_as_absence"]) == ("absent", False)


# --- again


def test_the_same_answer_again_is_the_same_answer(books: Hooks, service: Api) -> None:
    intent = books.unknown()
    books.later(61)
    offer = claim(books, service, intent)
    bodies = [said(service, intent, check=offer["check"]) for _ in range(3)]
    assert [(body["verdict"], body["counts_as_absence"]) for body in bodies] == [("absent", True)] * 3
    assert (Check.objects.count(), intent.evidence.filter(kind="page").count()) == (1, 1)
    books.sound(intent, Status.UNKNOWN)
    unasked = [said(service, intent, source="again") for _ in range(3)]
    assert {body["verdict"] for body in unasked} == {"absent"}
    assert Check.objects.count() == 2


def test_something_else_under_a_claim_that_was_answered_is_heard_and_counts_as_nothing(
    books: Hooks, service: Api
) -> None:
    intent = books.unknown()
    books.later(61)
    offer = claim(books, service, intent)
    said(service, intent, check=offer["check"])
    books.later(61)
    for source in ("another file", "another file", "a third"):
        assert said(service, intent, check=offer["check"], source=source)["counts_as_absence"] is False
    assert Check.objects.count() == 3, "and once each"
    books.sound(intent, Status.UNKNOWN)
    said(service, intent, row(intent), check=offer["check"])
    books.sound(intent, Status.CONFIRMED)


@pytest.mark.django_db(transaction=True)
def test_the_same_answer_many_times_at_once_is_one_check(transactional_db: None, books: Hooks, service: Api) -> None:
    intent = books.unknown()
    books.later(61)
    check = claim(books, service, intent)["check"]
    apis = [Api(service.agent, service.kind, service.token) for _ in range(4)]
    found = race(4, lambda number: said(apis[number], intent, check=check)["counts_as_absence"])
    assert found == [True] * 4
    assert Check.objects.count() == 1
    books.sound(intent, Status.UNKNOWN)


# --- claims of others, forged, for something else


def test_a_claim_is_good_for_its_agent_and_its_intent_alone(books: Hooks, service: Api) -> None:
    one, other = books.unknown(), books.unknown()
    books.later(61)
    offers = {offer["intent_id"]: offer["check"] for offer in due(service)}
    stranger = make_api(books.kind, token=ROWS)
    mine = offers[str(one.pk)]
    for api, intent, check in (
        (stranger, one, mine),
        (service, other, mine),
        (service, one, mine[:-1]),
        (service, one, "made-up"),
        (service, one, ""),
    ):
        assert fields_of(say(api, intent, row(intent), check=check)) == ["check"]
    assert not Check.objects.exists()
    # Another token of the same agent goes on with what the first one claimed.
    _, text = tokens.create(service.agent, **ROWS)
    assert said(Api(service.agent, service.kind, text), one, check=mine)["counts_as_absence"]


# --- what can't be taken


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"complete": ...}, ["complete"]),
        ({"complete": "yes"}, ["complete"]),
        ({"complete": 1}, ["complete"]),
        ({"complete": False}, ["problem"]),
        ({"problem": "none really"}, ["problem"]),
        ({"source": ...}, ["source"]),
        ({"source": ""}, ["source"]),
        ({"source": 7}, ["source"]),
        ({"source": "x" * 201}, ["source"]),
        ({"started_at": "yesterday"}, ["started_at"]),
        ({"started_at": "2026-11-29T12:00:00"}, ["started_at"]),
        ({"check": 7}, ["check"]),
        ({"entries": ...}, ["entries"]),
        ({"entries": {}}, ["entries"]),
        ({"entries": [7]}, ["entries[0]"]),
        ({"verdict": "absent"}, ["verdict"]),
        ({"counts_as_absence": True, "status": "failed"}, ["counts_as_absence", "status"]),
    ],
)
def test_a_body_that_can_not_be_taken_is_refused_field_by_field(
    books: Hooks, service: Api, body: dict[str, Any], fields: list[str]
) -> None:
    intent = books.unknown()
    assert fields_of(say(service, intent, **body)) == fields
    assert (Check.objects.count(), LedgerEntry.objects.count()) == (0, 0)


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        ({"role": "refund"}, "role"),
        ({"role": ...}, "role"),
        ({"state": "done"}, "state"),
        ({"amount": "50,00"}, "amount"),
        ({"amount": "-50.00"}, "amount"),
        ({"amount": "50.001"}, "amount"),
        ({"amount": True}, "amount"),
        ({"amount": "1e3"}, "amount"),
        ({"currency": "euro"}, "amount"),
        ({"currency": ...}, "currency"),
        ({"amount": ...}, "amount"),
        ({"booked_at": "today"}, "booked_at"),
        ({"key": 7}, "key"),
        ({"key": "k" * 256}, "key"),
        ({"entry_id": "e" * 256}, "entry_id"),
        ({"subject": "s" * 201}, "subject"),
        ({"settles": "me"}, "settles"),
    ],
)
def test_an_entry_that_can_not_be_taken_is_named_by_its_place(
    books: Hooks, service: Api, entry: dict[str, Any], field: str
) -> None:
    intent = books.unknown()
    answered = say(service, intent, row(intent, entry_id="a"), row(intent, **({"entry_id": "b"} | entry)))
    assert fields_of(answered) == [f"entries[1].{field}"]
    assert not Check.objects.exists()


def test_one_id_twice_and_more_than_can_be_one_intents_are_refused(books: Hooks, service: Api) -> None:
    intent = books.unknown()
    assert fields_of(say(service, intent, row(intent), row(intent))) == ["entries[1].entry_id"]
    assert fields_of(say(service, intent, *({} for _ in range(1_001)))) == ["entries"]


@pytest.mark.parametrize("raw", [b"", b"[]", b'{"check":null,"check":null}', b'{"complete":NaN}', b"\xff"])
def test_a_body_that_is_not_strict_json_is_refused(books: Hooks, service: Api, raw: bytes) -> None:
    intent = books.unknown()
    problem(service.post(f"/intents/{intent.pk}/evidence", raw), 400, "bad_json")


def test_numbers_are_read_from_their_digits_and_secrets_are_masked(books: Hooks, service: Api) -> None:
    intent = books.unknown()
    raw = (
        b'{"complete":true,"source":"sk_test_never_to_be_stored","entries":[{"role":"effect","state":"final",'
        b'"key":"' + intent.idempotency_key.encode() + b'","amount":50.00,"currency":"EUR"}]}'
    )
    assert service.post(f"/intents/{intent.pk}/evidence", raw).json()["verdict"] == "match"
    entry, kept = LedgerEntry.objects.get(), Evidence.objects.get(kind="page")
    assert (entry.amount_minor, entry.entry_id[:7]) == (5_000, "digest:")
    assert '"amount":"50.00"' in kept.text
    assert "sk_test_never" not in kept.text + kept.source


# --- beside it


def test_settled_ones_listen_to_services_too(books: Hooks, service: Api) -> None:
    intent = make_intent(books.kind)
    settle(intent, Status.FAILED)
    assert said(service, intent, row(intent))["intent"]["disputed"] is True
    assert books.reasons(intent) == ["contradiction"]
    books.sound(intent, Status.FAILED)


def test_what_was_not_sent_is_doubted_only_when_its_own_key_shows(books: Hooks, service: Api) -> None:
    intent = make_intent(books.kind)
    answer(submit(intent), Result.NOT_SENT, reason="not_processed")
    for rows in ([], [row(intent, key=...)], [row(intent, state="failed")]):
        said(service, intent, *rows)
        books.sound(intent, Status.RECORDED)
    said(service, intent, row(intent))
    assert books.sound(intent, Status.UNKNOWN).status_reason == "contradicted"


def test_a_service_that_stopped_looking_ends_in_no_silence(books: Hooks) -> None:
    unknown, accepted = books.unknown(), make_intent(books.kind)
    answer(submit(accepted), Result.ACCEPTED, external_id="re_1")
    books.later(900 + 301)
    books.sweep()
    assert books.reasons(unknown) == ["still_unknown"]
    assert books.reasons(accepted) == ["still_unknown"]
    # What is waited for is still offered.
    assert books.read(unknown).next_check_at is not None


def test_nobody_here_can_look_there_for_a_person_and_the_service_is_asked(books: Hooks, service: Api) -> None:
    intent = books.unknown()
    assert due(service) == []
    with pytest.raises(BadDecision, match="service"):
        checks.check_by_person(intent.pk, person=make_person())
    assert [one["intent_id"] for one in due(service)] == [str(intent.pk)]


def test_once_a_connector_looks_the_old_ones_are_looked_up_as_it_can(books: Hooks) -> None:
    intent = make_intent(books.kind)
    settle(intent, Status.FAILED)
    transitions.note(intent.pk, next_check_at=intent.created_at)
    Downstream.objects.update(look_up="both")
    (claimed,) = checks.claim(limit=5)
    assert claimed.ways == ("key", "subject")
    assert make_downstream(look_up="service").look_up == "service"
