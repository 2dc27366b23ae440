"""Answers of Landed itself that are lost: asked for again under the same key, looked for, and never called a no."""

import logging
from collections.abc import Callable

import httpx
import pytest

from landed_client import KeyReused, Landed, NotAllowed, Unavailable
from landed_client.retrying import Setting
from landed_client.testing import FakeLanded

REFUND = {"kind": "refund", "subject": "order-1", "amount": "50.00", "currency": "EUR"}
Answer = Callable[[httpx.Request], httpx.Response]


class Script(httpx.BaseTransport):
    """Answers in this order; the last one again and again. Exceptions are raised."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers, self.requests = list(answers), list[httpx.Request]()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(found, Exception):
            raise found
        return httpx.Response(found.status_code, headers=found.headers, content=found.content, request=request)


def client_of(script: Script, pauses: list[float] | None = None, *, timeout: float = 10.0) -> Landed:
    """Its clock is moved by nothing but its own pauses."""
    passed = [0.0] if pauses is None else pauses
    setting = Setting(timeout=timeout, clock=lambda: sum(passed), jitter=lambda: 1.0)
    return Landed("https://landed.invalid", "secret-token", transport=script, setting=setting, sleep=passed.append)


def intent(**fields: object) -> httpx.Response:
    return httpx.Response(201, json={"id": "i-1", "status": "recorded", "next_step": "wait", **REFUND, **fields})


LOST = [
    httpx.ReadError("reset"),
    httpx.ReadTimeout("slow"),
    httpx.RemoteProtocolError("closed"),
    httpx.ConnectError("refused"),
    httpx.Response(502, text="<h1>Bad Gateway</h1>"),
    httpx.Response(503, json={"code": "unavailable"}),
    httpx.Response(504),
    httpx.Response(500, json={"code": "internal"}),
    httpx.Response(201, content=b'{"id": "i-1", "sta'),
    httpx.Response(200, text="<h1>Welcome</h1>"),
    intent(subject="order-2"),
    intent(amount="5.00"),
]


@pytest.mark.parametrize("lost", LOST, ids=lambda lost: type(lost).__name__ + str(getattr(lost, "status_code", "")))
def test_a_lost_answer_is_asked_for_again_with_the_same_key(lost: httpx.Response | Exception) -> None:
    script = Script(lost, lost, intent())
    found = client_of(script).actions.propose(**REFUND)
    keys = {request.headers["idempotency-key"] for request in script.requests}
    assert (found.id, keys) == ("i-1", {f'"{found.request_key}"'})
    assert len({request.content for request in script.requests}) == 1


def test_what_was_recorded_is_found_when_only_its_answers_are_lost() -> None:
    fake = FakeLanded()
    fake.lose_answers(5)
    found = fake.client(timeout=10).actions.propose(**REFUND)
    assert [one["id"] for one in fake.intents()] == [found.id]
    assert found.request_key is not None


def test_a_landed_that_is_away_may_have_recorded_it_and_says_under_which_key() -> None:
    with pytest.raises(Unavailable) as raised:
        client_of(Script(httpx.ReadTimeout("slow"))).actions.propose(**REFUND, request_key="mine")
    error = raised.value
    assert (error.request_key, error.retryable, error.may_be_recorded) == ("mine", True, True)
    assert "may have been recorded" in str(error)
    assert not isinstance(error, TimeoutError)


def test_where_no_connection_came_about_nothing_was_recorded() -> None:
    with pytest.raises(Unavailable) as raised:
        client_of(Script(httpx.ConnectError("refused"))).actions.propose(**REFUND)
    assert raised.value.may_be_recorded is False


def test_the_pauses_grow_and_are_never_shorter_than_the_server_asks_for() -> None:
    pauses: list[float] = []
    busy = httpx.Response(429, headers={"Retry-After": "3"}, json={"code": "rate_limited"})
    client_of(Script(httpx.ReadError("x"), httpx.ReadError("x"), busy, intent()), pauses).actions.propose(**REFUND)
    assert pauses == [0.2, 0.4, 3.0]


def test_a_rate_limit_that_outlasts_the_call_says_when_to_come_back() -> None:
    busy = httpx.Response(429, headers={"Retry-After": "40"}, json={"code": "rate_limited"})
    with pytest.raises(Unavailable) as raised:
        client_of(Script(busy)).actions.propose(**REFUND)
    error = raised.value
    assert (error.code, error.retry_after, error.may_be_recorded) == ("rate_limited", 40.0, False)


def test_a_refusal_after_a_lost_answer_does_not_claim_that_nothing_was_recorded() -> None:
    refused = httpx.Response(401, json={"code": "unauthenticated", "detail": "No valid token was sent."})
    with pytest.raises(NotAllowed) as raised:
        client_of(Script(httpx.ReadError("x"), refused)).actions.propose(**REFUND)
    assert raised.value.may_be_recorded is True
    with pytest.raises(NotAllowed) as at_once:
        client_of(Script(refused)).actions.propose(**REFUND)
    assert at_once.value.may_be_recorded is False


def test_what_another_payload_stands_for_is_not_taken_for_ours() -> None:
    page = httpx.Response(200, json={"data": [{"id": "i-9", "status": "confirmed", **REFUND, "amount": "7.00"}]})
    lost = [httpx.ReadError("x")] * 6
    with pytest.raises(KeyReused):
        client_of(Script(*lost, page), timeout=4).actions.propose(**REFUND, request_key="used")


def test_a_redirect_is_never_followed() -> None:
    script = Script(httpx.Response(307, headers={"Location": "https://elsewhere.invalid/"}))
    with pytest.raises(Unavailable) as raised:
        client_of(script).actions.propose(**REFUND)
    assert (raised.value.code, len(script.requests)) == ("redirected", 1)


def test_another_intents_answer_is_not_taken_for_the_one_that_was_asked_for() -> None:
    script = Script(intent(id="i-2"), intent(id="i-1", status="confirmed"))
    assert client_of(script).actions.get("i-1").id == "i-1"


def test_the_token_is_in_no_url_repr_error_or_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    script = Script(httpx.ReadError("x"))
    client = client_of(script)
    with pytest.raises(Unavailable) as raised:
        client.actions.propose(**REFUND)
    told = f"{client!r} {client.actions!r} {vars(raised.value)} {raised.value!r} {caplog.text}"
    assert "secret-token" not in told
    assert all("secret-token" not in str(request.url) for request in script.requests)
    with pytest.raises(ValueError, match="visible ASCII") as refused:
        Landed("https://landed.invalid", "secret token")
    assert "secret" not in str(refused.value)
