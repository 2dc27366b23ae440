"""Pages that only show: complete and harmless."""

import json
import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.db import connection, models
from django.test import Client

from actions import evidence, history, times, tokens
from actions.models import Agent, Attempt, Downstream, Endpoint, EvidenceKind, Intent, Kind, Stop, Token
from actions.statuses import Status
from reconciliation.models import (
    Check,
    Comment,
    Decision,
    Difference,
    Draft,
    Incident,
    LedgerEntry,
    LookBack,
    Match,
    Review,
    ReviewReason,
)
from tests.admin.conftest import browser_of
from tests.factories import make_agent, make_intent, make_kind, make_person

pytestmark = pytest.mark.django_db

EDITED = {Downstream, Kind, Agent, Token, Endpoint, User, Group}
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
    Difference.objects.create(
        intent=intent,
        entry=entry,
        what="recover",
        amount_minor=1,
        currency="EUR",
        opened_at=now,
        note=seen,
        resolved_at=now,
        resolved_by="person:1",
    )
    LookBack.objects.create(downstream=intent.downstream, next_at=now, problem=NASTY)
    Incident.objects.create(kind="sending", downstream=intent.downstream, reason="no_answers", opened_at=now)
    # What nobody sees, `stops.place` refuses; a row can name itself by its value.
    shown = NASTY[:25]
    Stop.objects.create(
        scope="payee", value=shown, key=shown, reason=NASTY, placed_by="person:1", placed_at=now, kind=kind
    )
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
    assert ours - set(registered()) == {ReviewReason, Draft}  # shown on its review's page; its writer's alone


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


def test_no_listing_offers_to_delete_what_is_selected(person: User) -> None:
    make_everything(person)
    Group.objects.create(name="reviewers")
    root = browser_of(make_person("admin", is_superuser=True))
    for model in registered():
        assert "delete_selected" not in root.get(address(model)).content.decode(), model


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


def test_an_auditor_with_view_permissions_reads_and_changes_nothing(person: User) -> None:
    intent = make_everything(person)
    auditor = make_person("auditor", is_staff=True)
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
