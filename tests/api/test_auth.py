"""Tokens and scopes."""

from datetime import timedelta

import pytest

from actions import times, tokens
from actions.models import Intent
from tests.api.calling import Api, make_api, new_key, problem
from tests.factories import make_token

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", "Bearer x", "Bearer lnd_short", "Basic dTpw", "Token {}", "{}", "Bearer {}x"],
)
def test_without_a_valid_token_nothing_is_answered(api: Api, header: str | None) -> None:
    text = header.format(api.token) if header is not None else None
    answer = api.get("/me", Authorization=text)
    problem(answer, 401, "unauthenticated")
    assert answer["WWW-Authenticate"] == "Bearer"


def test_the_schemes_name_is_read_in_any_case(api: Api) -> None:
    assert api.get("/me", Authorization=f"bearer {api.token}").status_code == 200


def test_a_token_in_the_address_counts_for_nothing(api: Api) -> None:
    for name in ("token", "access_token", "authorization"):
        problem(api.get("/me", {name: api.token}, Authorization=None), 401, "unauthenticated")
    problem(api.get("/intents", {"access_token": api.token}), 400, "bad_query")


def test_revoked_expired_and_unknown_look_alike(api: Api) -> None:
    expired = make_token(api.agent, expires_at=times.now() - timedelta(seconds=1))
    revoked, text = tokens.create(api.agent)
    tokens.revoke(revoked)
    details = {
        problem(api.get("/me", Authorization=f"Bearer {one}"), 401, "unauthenticated")["detail"]
        for one in (expired, text, f"lnd_{'a' * 43}")
    }
    assert len(details) == 1


def test_who_is_not_known_learns_nothing_of_a_bad_body_or_key(api: Api) -> None:
    problem(api.propose_raw(b"{", Authorization=None, Idempotency_Key=None), 401, "unauthenticated")


def test_a_missing_scope_is_named(db: None) -> None:
    reader = make_api(token={"may_propose": False})
    assert problem(reader.propose(), 403, "scope_missing")["scope"] == "propose"
    assert not Intent.objects.exists()
    proposer = make_api(token={"may_read": False})
    intent = proposer.recorded()
    for path in ("/intents", f"/intents/{intent['id']}", f"/intents/{intent['id']}/history"):
        body = problem(proposer.get(path), 403, "scope_missing")
        assert (body["scope"], "read" in body["detail"]) == ("read", True)
    reader.agent, reader.token = proposer.agent, make_token(proposer.agent, may_propose=False)
    problem(reader.post(f"/intents/{intent['id']}/cancel"), 403, "scope_missing")


def test_the_scope_comes_before_the_body_and_the_key(db: None) -> None:
    reader = make_api(token={"may_propose": False})
    problem(reader.propose_raw(b"{", Idempotency_Key=None), 403, "scope_missing")


def test_an_evidence_token_neither_proposes_nor_lists_kinds(db: None) -> None:
    auditor = make_api(token={"may_propose": False, "may_read": False, "may_give_evidence": True})
    problem(auditor.propose(), 403, "scope_missing")
    problem(auditor.get("/kinds"), 403, "scope_missing")
    assert auditor.get("/me").json()["scopes"] == ["evidence"]


def test_a_session_of_the_desk_is_no_token(api: Api, admin_client: object) -> None:
    api.client.cookies = admin_client.cookies  # type: ignore[attr-defined]
    answer = api.propose(key=new_key(), headers={"Authorization": None})
    problem(answer, 401, "unauthenticated")
