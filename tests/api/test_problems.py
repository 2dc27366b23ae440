"""Every refusal in one form."""

import json
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404
from django.test import Client
from ninja.errors import HttpError, Throttled

from actions import errors, recording
from actions.api import problems
from actions.errors import LandedError
from tests.api.calling import Api, problem

pytestmark = pytest.mark.django_db


@pytest.fixture
def raising(monkeypatch: pytest.MonkeyPatch) -> Any:
    def arrange(error: BaseException) -> None:
        def record(*_: Any, **__: Any) -> None:
            raise error

        monkeypatch.setattr(recording, "record", record)

    return arrange


@pytest.mark.parametrize("path", ["/api/v1/nowhere", "/api/", "/api/v1/", "/api/v2/intents", "/api/v1/intents/x/y"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_address_that_is_not_there(api: Api, path: str, method: str) -> None:
    problem(api.client.generic(method, path), 404, "not_found")


@pytest.mark.parametrize(
    ("path", "method"),
    [("/api/v1/intents", "DELETE"), ("/api/v1/me", "POST"), ("/api/v1/kinds", "PUT"), ("/api/v1/intents", "PATCH")],
)
def test_a_method_that_is_not_taken(api: Api, path: str, method: str) -> None:
    answer = api.client.generic(method, path, headers=api.headers())
    problem(answer, 405, "method_not_allowed")
    assert "GET" in answer["Allow"]


def test_a_host_that_is_not_ours_is_told_so_in_the_same_form() -> None:
    answer = Client(raise_request_exception=False).get("/api/v1/me", headers={"Host": "evil.example"})
    problem(answer, 400, "bad_request")


def test_pages_of_people_keep_djangos_own_answers() -> None:
    answer = Client().get("/nowhere/")
    assert (answer.status_code, answer["Content-Type"].split(";")[0]) == (404, "text/html")


def test_a_broken_part_tells_nothing_of_itself(api: Api, raising: Any, caplog: pytest.LogCaptureFixture) -> None:
    raising(ZeroDivisionError("secret of /srv/landed"))
    answer = api.propose()
    problem(answer, 500, "internal")
    assert "secret" not in answer.content.decode()
    assert "secret of /srv/landed" in caplog.text
    assert "Traceback" in caplog.text


@pytest.mark.parametrize("error", [OperationalError("no host db-7"), InterfaceError("closed")])
def test_without_the_database_one_asks_again_with_the_same_key(api: Api, raising: Any, error: Exception) -> None:
    raising(error)
    answer = api.propose()
    body = problem(answer, 503, "unavailable")
    assert (body["retryable"], int(answer["Retry-After"]) > 0) == (True, True)
    assert "Idempotency-Key" in body["detail"]
    assert "db-7" not in answer.content.decode()


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (Http404("x"), 404, "not_found"),
        (PermissionDenied("x"), 403, "not_allowed"),
        (SuspiciousOperation("x"), 400, "bad_request"),
        (HttpError(418, "x"), 400, "bad_request"),
        (HttpError(403, "x"), 403, "not_allowed"),
        (HttpError(502, "x"), 500, "internal"),
        (Throttled(wait=3), 429, "rate_limited"),
        (errors.RateLimited(retry_after=7), 429, "rate_limited"),
        (errors.LimitExceeded(limit="100.00", remaining="4.00"), 409, "limit_exceeded"),
        (errors.Unavailable(), 503, "unavailable"),
    ],
)
def test_whatever_is_raised_gets_its_code(api: Api, raising: Any, error: Exception, status: int, code: str) -> None:
    raising(error)
    problem(api.propose(), status, code)


def test_an_errors_details_are_its_problems_members_and_its_own_waiting_time_counts(api: Api, raising: Any) -> None:
    raising(errors.RateLimited(retry_after=7, limit=120))
    answer = api.propose()
    body = problem(answer, 429, "rate_limited")
    assert (answer["Retry-After"], body["limit"], "retry_after" in body) == ("7", 120, False)


def test_no_detail_passes_for_a_member_of_the_standard(api: Api, raising: Any) -> None:
    raising(errors.StaleTransition(status="cancelled", code="x", type="y"))
    problem(api.propose(), 409, "stale")


def test_objects_in_details_stay_inside(api: Api, raising: Any) -> None:
    raising(errors.NotFound(agent=api.agent, deep=[{"kind": api.kind}], plain=1))
    body = problem(api.propose(), 404, "not_found")
    assert "agent" not in body
    assert (body["plain"], "deep" in body) == (1, False)


def test_every_error_has_a_status_of_its_own_or_of_its_parent_below_the_root() -> None:
    for kind in problems.kinds():
        mapped = next(above for above in kind.__mro__ if above in problems.HTTP_STATUS)
        assert mapped is not LandedError, kind


def test_codes_are_listed_once_and_with_a_sentence() -> None:
    rows = problems.codes()
    assert len({row.code for row in rows}) == len(rows)
    assert all(row.title.endswith(".") for row in rows), [row.title for row in rows if not row.title.endswith(".")]
    found = {row.code: (row.status, row.retryable) for row in rows}
    assert found["unsettled_duplicate"] == (409, False)
    assert found["unavailable"] == (503, True)
    assert found["scope_missing"] == (403, False)


def test_a_problem_is_json_in_utf_8(api: Api) -> None:
    answer = api.get("/intents", {"kind": "é", "zoë": "1"})
    assert "zoë" in json.loads(answer.content.decode("utf-8"))["detail"]
