"""Pages that only show: complete, harmless, and at a cost that doesn't grow."""

import json
import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.db import connection, models
from django.test import Client
from django.test.utils import CaptureQueriesContext

from actions import evidence, history, times, tokens
from actions.models import Agent, Attempt, Downstream, EvidenceKind, Intent, Kind, Token
from actions.statuses import Status
from reconciliation.models import (
    Check,
    Comment,
    Decision,
    Incident,
    LedgerEntry,
    Match,
    Review,
    ReviewReason,
)
from tests.admin.conftest import browser_of
from tests.factories import make_agent, make_intent, make_kind, make_person

pytestmark = pytest.mark.django_db

EDITED = {Downstream, Kind, Agent, Token, User, Group}
NASTY = "<script>alert(1)</script>\u202egnp\u200b"


def make_everything(person: User) -> Intent:
    """An intent with a row of every sort hanging on it, each holding what an attacker would write."""
    kind = make_kind()
    agent = make_agent(kind)
    tokens.create(agent)
    now = times.now()
    intent = make_intent(
        kind,
        agent,
        to=Status.SUBMITTED,
        params={"reason": NASTY},
        note=NASTY,
        context=json.dumps({"run": NASTY}),
        external_id=NASTY,
        payee=NASTY,
    )
    attempt = Attempt.objects.create(
        intent=intent,
        number=1,
        fence=1,
        executor="landed",
        worker=NASTY[:100],
        claimed_at=now,
        lease_until=now.replace(year=now.year + 1),
    )
    seen = evidence.store(
        intent_id=intent.pk,
        attempt=attempt,
        kind=EvidenceKind.ANSWER,
        source=NASTY,
        content={"body": NASTY},
        now=now,
    )
    entry = LedgerEntry.objects.create(
        downstream=intent.downstream,
        entry_id=NASTY,
        role="effect",
        state="final",
        key=NASTY,
        subject=NASTY,
        amount_minor=5_000,
        currency="EUR",
        settled_amount_minor=1,
        settled_currency="???",
        evidence=seen,
        first_seen_at=now,
        last_seen_at=now,
    )
    Match.objects.create(entry=entry, intent=intent, role="settles", entry_state="final", by="checker", at=now)
    review = Review.objects.create(
        intent=intent, purpose="outcome", grounds=NASTY, owner=person, opened_at=now, due_at=now
    )
    ReviewReason.objects.create(review=review, code="mismatch", at=now)
    history.append(
        Check(
            intent=intent,
            by="checker:1",
            started_at=now,
            fence=1,
            verdict="mismatch",
            grounds=json.dumps({"seen": NASTY}),
            facts_digest="0" * 64,
            evidence=history.refs([seen]),
        ),
        owner=Intent,
        pk=intent.pk,
        at=now,
    )
    history.append(
        Decision(
            review=review,
            intent=intent,
            person=person,
            choice="confirm",
            reason="ledger",
            note=seen,
            entry=entry,
            seen_version=1,
        ),
        owner=Intent,
        pk=intent.pk,
        at=now,
    )
    history.append(
        Comment(review=review, intent=intent, person=person, text=seen, text_digest=seen.digest),
        owner=Intent,
        pk=intent.pk,
        at=now,
    )
    Incident.objects.create(kind="sending", downstream=intent.downstream, reason="no_answers", opened_at=now)
    return intent


def registered() -> list[type[models.Model]]:
    return [model for model in admin.site._registry if model._meta.managed]


def address(model: type[models.Model], *rest: Any) -> str:
    return "/".join(["/admin", model._meta.app_label, str(model._meta.model_name), *map(str, rest), ""])


def every_page(page: Client, person: User) -> list[tuple[str, str]]:
    make_everything(person)
    found = ["/admin/", "/admin/actions/", "/admin/reconciliation/"]
    for model in registered():
        found.append(address(model))
        found += [address(model, admin.utils.quote(row.pk), "change") for row in model._default_manager.all()[:3]]
    answers = [(path, page.get(path)) for path in found]
    assert {path: answer.status_code for path, answer in answers if answer.status_code != 200} == {}
    return [(path, answer.content.decode()) for path, answer in answers]


def test_every_table_has_a_page() -> None:
    ours = {
        model
        for model in connection.introspection.installed_models(connection.introspection.table_names())
        if model._meta.app_label in ("actions", "reconciliation")
        and not model.__name__.startswith("Historical")
        and not model._meta.auto_created
    }
    assert ours - set(registered()) == {ReviewReason}  # shown on its review's page


def test_no_page_runs_or_hides_what_others_wrote(person: User) -> None:
    root = make_person("admin", is_superuser=True)
    for path, html in every_page(browser_of(root), person):
        assert "<script>alert" not in html, path
        assert "\u202e" not in html, path
        assert "\u200b" not in html, path


def test_no_page_needs_inline_code_or_style(person: User) -> None:
    """The policy in config.middleware forbids them."""
    root = make_person("admin", is_superuser=True)
    forbidden = re.compile(r"<style|<script(?![^>]*\ssrc=)|<[^>]+\s(style|on[a-z]+)=", re.IGNORECASE)
    for path, html in every_page(browser_of(root), person):
        found = forbidden.search(html)
        assert found is None, f"{path}: {found and found[0]}"


def test_nothing_that_history_refers_to_is_deleted_here(page: Client, person: User) -> None:
    make_everything(person)
    root = browser_of(make_person("admin", is_superuser=True))
    for model in set(registered()) - {Group}:
        for row in model._default_manager.all()[:1]:
            key = admin.utils.quote(row.pk)
            assert root.post(address(model, key, "delete"), {"post": "yes"}).status_code == 403, model
            root.post(address(model), {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"})
            assert model._default_manager.filter(pk=row.pk).exists(), model


def test_what_is_not_policy_is_neither_added_nor_changed(person: User) -> None:
    make_everything(person)
    root = browser_of(make_person("admin", is_superuser=True))
    for model in set(registered()) - EDITED:
        assert root.post(address(model, "add"), {}).status_code == 403, model
        for row in model._default_manager.all()[:1]:
            key = admin.utils.quote(row.pk)
            assert root.post(address(model, key, "change"), {"note": "x"}).status_code == 403, model


def test_the_intents_page_marks_what_the_agent_wrote_and_shows_all_that_hangs_on_it(
    page: Client, person: User
) -> None:
    intent = make_everything(person)
    html = page.get(address(Intent, intent.pk, "change")).content.decode()
    assert "Note (written by the agent)" in html
    assert "Params (written by the agent)" in html
    assert "⟨U+202E⟩" in html
    for group in ("attempts", "transitions", "evidence", "checks", "matches", "reviews", "decisions", "comments"):
        assert f'id="{group}-group"' in html
    assert "Holds: all 4 links" in html


def test_the_intents_page_says_when_its_history_was_tampered_with(page: Client, person: User) -> None:
    intent = make_everything(person)
    Intent.objects.filter(pk=intent.pk).update(chain_head="0" * 64)
    assert "tampered with" in page.get(address(Intent, intent.pk, "change")).content.decode()


@pytest.fixture
def some(db: None) -> list[Intent]:
    kind = make_kind()
    return [
        make_intent(kind, subject=subject, external_id=external_id, idempotency_key=key)
        for subject, external_id, key in [
            ("order-4812", "", "key-a1"),
            ("order-4812x", "re_77", "key-a2"),
            ("order-5/line-1", "re_78", "key-b1"),
            ("order-5/line-2", "order-4812", "key-b2"),
        ]
    ]


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ("order-4812", [0, 3]),  # exact: not order-4812x; the last by its external id
        ("order-48", [0, 1, 3]),
        ("order-5", [2, 3]),
        ("order-5/line-2", [3]),
        ("order-5/line", [2, 3]),
        ("key-a2", [1]),
        ("key-a", [0, 1]),
        ("re_78", [2]),
        ("re_7", [1, 2]),
        (" re_78 ", [2]),
        ("%", []),
        ("rder-4812", []),
    ],
)
def test_an_intent_is_found_by_what_people_have_in_hand(
    page: Client, some: list[Intent], term: str, expected: list[int]
) -> None:
    found = page.get("/admin/actions/intent/", {"q": term}).context["cl"].result_list
    assert sorted(some.index(intent) for intent in found) == expected


def test_an_intent_is_found_by_its_id_and_by_how_that_begins(page: Client, some: list[Intent]) -> None:
    for term in (str(some[1].pk), some[1].pk.hex, str(some[1].pk)[:35]):
        found = page.get("/admin/actions/intent/", {"q": term}).context["cl"].result_list
        assert some[1] in found, term
        assert some[3] not in found or len(term) < 36


def test_the_listing_asks_the_same_few_questions_however_many_there_are(page: Client) -> None:
    kind = make_kind()
    counts = []
    for more in (1, 30):
        for _ in range(more):
            make_intent(kind)
        with CaptureQueriesContext(connection) as queries:
            page.get("/admin/actions/intent/")
        counts.append(len(queries))
        for query in queries:
            if "COUNT" in query["sql"]:
                assert "LIMIT 2000" in query["sql"]
    assert counts[0] == counts[1]


def test_the_listing_doesnt_sort_history(page: Client, some: list[Intent]) -> None:
    """`?o=` would sort millions of rows by a column without an index."""
    with CaptureQueriesContext(connection) as queries:
        page.get("/admin/actions/intent/", {"o": "4"})
    (listing,) = (q["sql"] for q in queries if "ORDER BY" in q["sql"] and 'FROM "actions_intent"' in q["sql"])
    assert 'ORDER BY "actions_intent"."id" DESC' in listing


@pytest.mark.parametrize("value", ["unsettled", "disputed", "either"])
def test_open_intents_are_filtered(page: Client, some: list[Intent], value: str) -> None:
    found = page.get("/admin/actions/intent/", {"open": value}).context["cl"].result_list
    assert len(found) == (0 if value == "disputed" else 4)


def test_an_auditor_with_view_permissions_reads_and_changes_nothing(person: User) -> None:
    intent = make_everything(person)
    auditor = make_person("auditor", is_staff=True)
    from django.contrib.auth.models import Permission

    auditor.user_permissions.add(*Permission.objects.filter(codename__startswith="view_"))
    page = browser_of(auditor)
    html = page.get(address(Intent, intent.pk, "change")).content.decode()
    assert "Override" not in html
    assert "Add a note" not in html
    for row in (intent.downstream, intent.kind, intent.agent):
        assert page.get(address(type(row), row.pk, "change")).status_code == 200
        assert page.post(address(type(row), row.pk, "change"), {"title": "x"}).status_code == 403
    for path in (f"intent/{intent.pk}/note/", f"intent/{intent.pk}/override/", "downstream/1/clone/"):
        assert page.get(f"/admin/actions/{path}").status_code == 403


def test_only_a_superuser_makes_or_changes_superusers(page: Client, person: User) -> None:
    root = make_person("admin", is_superuser=True)
    path = address(User, root.pk, "change")
    assert page.post(path, {"username": "x"}).status_code == 403
    assert page.get(f"/admin/auth/user/{root.pk}/password/").status_code == 403
    form = page.get(address(User, person.pk, "change")).context["adminform"].form
    assert not {"is_superuser", "user_permissions"} & set(form.fields)
