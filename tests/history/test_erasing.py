"""Erasing a person: what was about them is gone, salts and all, and every chain still holds."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection, models, transaction

from actions import evidence, history, stops, times
from actions.canonical import canonical
from actions.errors import Invalid, KeyReused, NotFound, PersonNotAllowed
from actions.models import Evidence, EvidenceKind, Intent, Observation, Observed, Stop
from actions.payloads import payload, payload_digest
from actions.statuses import Status
from actions.triggers import rules
from reconciliation import erasing
from reconciliation.models import Attachment, Choice, Draft, Review
from reconciliation.reviews import attaching, commenting, verifying
from tests.core.life import whole_life
from tests.core.steps import faults_after, propose, read, settle
from tests.core.test_triggers import refused
from tests.factories import make_agent, make_downstream, make_intent, make_kind, make_person
from tests.flushing import without_triggers
from tests.ledger.books import decide, orphan
from tests.pages.cases import log_in, make_case, text_of

pytestmark = pytest.mark.django_db

NAME = "Jane Q. Doe"


def a_persons_order() -> Intent:
    """Confirmed by a person, with her name wherever an agent, a person or a downstream can put one."""
    params = {"customer": NAME, "account": "4711"}
    intent = whole_life(
        params=params, payee=NAME, customer=NAME, note=f"{NAME} asked", context=canonical({"on_behalf_of": NAME})
    )
    review = Review.objects.get(intent=intent)
    person = make_person("supervisor")
    commenting.comment(review.pk, person=person, text=f"I called {NAME}.")
    attaching.attach(review.pk, person=person, name=f"{NAME}.txt", content=NAME.encode())
    Draft.objects.create(review=review, person=person, text=f'{{"comment":"{NAME}"}}', at=times.now())
    Review.objects.filter(pk=review.pk).update(waits_reference=f"{NAME}'s ticket")
    evidence.store(
        intent_id=None,
        kind=EvidenceKind.PAGE,
        source="http://books",
        content=f'{{"key":"{intent.idempotency_key}","name":"{NAME}"}}',
        now=times.now(),
    )
    return read(intent)


def erase(intent: Intent, **options: Any) -> erasing.Erased:
    return erasing.erase(intent.subject, **({"reason": "asked"} | options))


def everything_stored() -> str:
    """Every value of every table, as the database has it."""
    found = []
    with connection.cursor() as cursor:
        for table in connection.introspection.django_table_names(only_existing=True):
            cursor.execute(f'SELECT * FROM "{table}"')
            found += [bytes(value) if isinstance(value, memoryview) else value for row in cursor for value in row]
    return repr(found)


def test_nothing_that_was_about_the_person_is_stored_any_more_and_the_history_holds() -> None:
    intent = a_persons_order()
    before = history.rows_of(intent.pk)
    assert NAME in everything_stored()
    done = erase(intent)
    assert NAME not in everything_stored()
    assert (done.intents, done.files) == (1, 1)
    assert verifying.intent_faults(read(intent)) == []
    assert [name for name, faults in verifying.everything() if faults] == []
    after = history.rows_of(intent.pk)
    assert [row.digest for row in after[:-1]] == [row.digest for row in before]


def test_no_salt_of_what_is_gone_is_left_to_guess_with() -> None:
    """Whoever has the digest and a list of names must not find out by trying."""
    intent = a_persons_order()
    salts = {intent.payload_salt, *Evidence.objects.values_list("salt", flat=True)}
    erase(intent)
    assert not any(salt in everything_stored() for salt in salts if salt)
    found = read(intent)
    fields = payload(
        kind=intent.kind.name,
        subject=intent.subject,
        amount_minor=intent.amount_minor,
        currency=intent.currency,
        params=intent.params,
        executor=intent.executor,
    )
    assert found.payload_digest == intent.payload_digest != payload_digest(fields, salt=found.payload_salt)


def test_what_money_needs_stays() -> None:
    intent = a_persons_order()
    erase(intent)
    found = read(intent)
    changed = {
        field.attname
        for field in Intent._meta.concrete_fields
        if getattr(found, field.attname) != getattr(intent, field.attname)
    }
    assert changed == {*Intent.ERASABLE, "erased_at", "updated_at", "chain_length", "chain_head"}
    assert (found.params_data, found.context_data) == ({}, {})


def test_the_erasing_is_a_row_of_history_that_says_who_when_and_why() -> None:
    intent, person = a_persons_order(), make_person("admin")
    texts = set(Evidence.objects.filter(intent=intent).values_list("pk", flat=True))
    erase(intent, person=person, reason="time_is_over")
    row = Observation.objects.get(intent=intent, what=Observed.ERASED)
    facts = json.loads(row.facts)
    assert (row.by, facts["reason"]) == (f"person:{person.pk}", "time_is_over")
    assert {pk for pk, _ in json.loads(row.evidence)} == texts
    assert facts["files"] == [Attachment.objects.get().pk]
    assert row == history.rows_of(intent.pk)[-1]


def test_erasing_again_changes_nothing_and_takes_what_came_since() -> None:
    intent = a_persons_order()
    erase(intent)
    first = read(intent)
    assert erase(intent) == erasing.Erased()
    assert read(intent).chain_length == first.chain_length
    late = evidence.store(intent_id=intent.pk, kind=EvidenceKind.ANSWER, source="x", content=NAME, now=times.now())
    assert erase(intent).texts == 1
    late.refresh_from_db()
    assert (late.text, late.salt) == ("", "")
    assert verifying.intent_faults(read(intent)) == []


@pytest.mark.parametrize("reason", ["", "because", "wrong_file"])
def test_a_reason_is_one_of_fixed_words(reason: str) -> None:
    with pytest.raises(Invalid):
        erase(whole_life(), reason=reason)


def test_a_person_needs_the_permission() -> None:
    intent = whole_life()
    with pytest.raises(PersonNotAllowed):
        erase(intent, person=make_person("supervisor"))
    assert read(intent).erased_at is None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"disputed": True}, "contradict"),
        ({"next_check_at": "2030-01-01T00:00:00Z"}, "looked into once more"),
    ],
    ids=["disputed", "a look is planned"],
)
def test_what_is_still_needed_is_not_erased(change: dict[str, Any], why: str) -> None:
    intent = whole_life()
    Intent.objects.filter(pk=intent.pk).update(**change)
    with pytest.raises(Invalid) as refusal:
        erase(intent)
    assert why in str(refusal.value.details)
    assert read(intent).erased_at is None


def test_nothing_of_a_subject_is_erased_while_one_of_its_intents_is_open() -> None:
    done, review = whole_life(), make_case()
    with without_triggers():
        # Another order of the same subject.
        Intent.objects.filter(pk=review.intent_id).update(subject=done.subject, family=done.family)
    out = StringIO()
    with pytest.raises(CommandError, match=f"case {review.pk} is open"):
        call_command("erase_subject", done.subject, reason="asked", stdout=out)
    assert read(done).erased_at is None
    assert Evidence.objects.exclude(erased_at=None).count() == 0


def test_a_line_is_erased_alone_unless_the_family_is_asked_for() -> None:
    kind = make_kind()
    whole, line = (
        settle(make_intent(kind, subject=name), Status.CONFIRMED) for name in ("order-1", "order-1/line-2")
    )
    Intent.objects.update(next_check_at=None)
    out = StringIO()
    call_command("erase_subject", "order-1", reason="asked", dry_run=True, stdout=out)
    assert "order-1/line-2 (--family takes them as well)" in out.getvalue()
    assert "dry run" in out.getvalue()
    assert read(whole).erased_at is None
    call_command("erase_subject", "order-1", reason="asked", stdout=out)
    assert read(whole).erased_at is not None
    assert read(line).erased_at is None
    call_command("erase_subject", "order-1", reason="asked", family=True, stdout=out)
    assert read(line).erased_at is not None
    assert "Erased: 1 intents" in out.getvalue()


def test_a_subject_that_nobody_has_is_named() -> None:
    with pytest.raises(NotFound, match="order-none"):
        erasing.erase("order-none", reason="asked")
    with pytest.raises(CommandError, match="order-none"):
        call_command("erase_subject", "order-none", reason="asked")


def test_texts_of_others_that_name_it_are_told_and_stay() -> None:
    intent, other = whole_life(), whole_life()
    text = f"together with {intent.subject}."
    kept = evidence.store(intent_id=other.pk, kind=EvidenceKind.NOTE, source="x", content=text, now=times.now())
    near = f"{intent.subject}9 and x{intent.subject}"
    evidence.store(intent_id=other.pk, kind=EvidenceKind.NOTE, source="x", content=near, now=times.now())
    assert erasing.find(intent.subject).elsewhere == (kept.pk,)
    erase(intent)
    assert Evidence.objects.get(pk=kept.pk).text == text


def test_a_lifted_stop_on_the_person_is_blanked_and_one_in_force_stays_and_is_told() -> None:
    intent = a_persons_order()
    lifted = Stop.objects.create(
        scope="customer", value=NAME, key=stops.fold(NAME), reason=NAME, placed_by="person:1", placed_at=times.now()
    )
    stops.lift(lifted.pk, actor_id="person:1")
    with transaction.atomic():
        active = Stop.objects.create(
            scope="payee", value=NAME, key=stops.fold(NAME), reason="x", placed_by="person:1", placed_at=times.now()
        )
    assert erasing.find(intent.subject).stops == (active.pk,)
    assert erase(intent).stops == 1
    lifted.refresh_from_db()
    active.refresh_from_db()
    assert (lifted.value, lifted.key, lifted.reason) == ("", "", "")
    assert active.value == NAME
    page, _ = log_in("supervisor")
    assert page.get("/stops/").status_code == 200


def test_a_case_about_an_entry_is_erased_with_its_subject() -> None:
    review, person = orphan(make_downstream()), make_person()
    commenting.comment(review.pk, person=person, text=f"It is {NAME}'s.")
    attaching.attach(review.pk, person=person, name=f"{NAME}.txt", content=b"x")
    subject = review.entry.subject
    with pytest.raises(Invalid):
        erasing.erase(subject, reason="asked")
    decide(review, person, Choice.NOT_OURS, note=f"{NAME} is not a customer")
    assert erasing.erase(subject, reason="asked").cases == 1
    assert NAME not in everything_stored()
    assert verifying.case_faults(Review.objects.get(pk=review.pk)) == []
    assert erasing.erase(subject, reason="asked") == erasing.Erased()
    desk, _ = log_in()
    assert desk.get(f"/reviews/{review.pk}/").status_code == 200


def test_a_request_key_whose_payload_is_erased_neither_pays_again_nor_says_that_it_is_the_same() -> None:
    kind = make_kind()
    agent = make_agent(kind)
    intent = propose(agent, kind, request_key="k-1").intent
    settle(intent, Status.CONFIRMED)
    Intent.objects.update(next_check_at=None)
    erase(intent)
    for amount in ("50.00", "51.00"):
        with pytest.raises(KeyReused, match="erased"):
            propose(agent, kind, request_key="k-1", amount=amount)
    assert Intent.objects.count() == 1


def test_pages_admin_and_api_show_that_it_was_erased() -> None:
    intent = a_persons_order()
    erase(intent)
    desk, _ = log_in("supervisor")
    admin, _ = log_in("admin")
    review = Review.objects.get(intent=intent)
    assert "Erased" in text_of(desk.get(f"/intents/{intent.pk}/"))
    assert "An administrator erased what it said about people" in text_of(desk.get(f"/intents/{intent.pk}/"))
    assert "links hold" in text_of(desk.get(f"/intents/{intent.pk}/"))
    for path in (f"/reviews/{review.pk}/", "/intents/", "/?tab=closed", "/did/"):
        assert desk.get(path).status_code in (200, 404), path
    page = admin.get(f"/admin/actions/intent/{intent.pk}/change/")
    assert "Holds" in text_of(page)
    assert NAME not in text_of(page)


# --- forgers


def _erased() -> Intent:
    intent = whole_life()
    erase(intent)
    return read(intent)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("amount_minor", 1),
        ("subject", "order-1"),
        ("currency", "USD"),
        ("request_key", "x"),
        ("idempotency_key", "x"),
        ("note", "It was you."),
        ("params", '{"to":"me"}'),
        ("erased_at", None),
    ],
)
def test_an_erased_intent_can_t_be_changed_unseen(name: str, value: Any) -> None:
    intent = _erased()
    assert faults_after(intent, lambda: Intent.objects.filter(pk=intent.pk).update(**{name: value}))


def test_an_intent_that_was_blanked_without_a_row_of_history_is_found() -> None:
    intent = whole_life()

    def forge() -> None:
        Intent.objects.filter(pk=intent.pk).update(**Intent.ERASABLE, erased_at=times.now())

    assert any("nobody is on record" in fault for fault in faults_after(intent, forge))


def test_a_text_that_was_blanked_without_a_row_of_history_is_found() -> None:
    intent = whole_life()
    Evidence.objects.filter(intent=intent, kind="outside").update(text="", salt="", erased_at=times.now())
    assert any("nobody is on record" in fault for fault in history.faults(read(intent)))


def test_a_text_of_an_entrys_case_that_was_blanked_without_a_row_of_history_is_found() -> None:
    review = orphan(make_downstream())
    said = commenting.comment(review.pk, person=make_person(), text="x")
    Evidence.objects.filter(pk=said.text_id).update(text="", salt="", erased_at=times.now())
    assert any("nobody is on record" in fault for fault in history.case_faults(Review.objects.get(pk=review.pk)))


def test_the_row_of_an_erasing_whose_facts_were_changed_is_found() -> None:
    intent = _erased()

    def forge() -> None:
        row = Observation.objects.get(intent=intent, what=Observed.ERASED)
        Observation.objects.filter(pk=row.pk).update(facts=row.facts.replace("asked", "not_needed"))

    assert faults_after(intent, forge)


# --- what the database lets happen


def test_the_triggers_guard_what_can_be_erased() -> None:
    (rule,) = [rule for rule in rules() if rule.model == "actions.Intent"]
    assert {name for _, names in rule.blanks for name in names} == set(Intent.ERASABLE)


@pytest.mark.parametrize(
    ("model", "name"), [(Intent, "params"), (Intent, "payee"), (Attachment, "name"), (Stop, "key")]
)
def test_what_can_be_erased_changes_into_nothing_else_and_only_then(model: type[models.Model], name: str) -> None:
    a_persons_order()
    Stop.objects.create(scope="customer", value="c", key="c", reason="x", placed_by="person:1", placed_at=times.now())
    rows = model._default_manager.all()
    also: dict[str, Any] = {"erased_at": times.now()} | ({"content": None} if model is Attachment else {})
    assert refused(lambda: rows.update(**{name: ""}))
    assert refused(lambda: rows.update(**{name: "other"}))
    assert refused(lambda: rows.update(**{name: "other"}, **also))
    assert not refused(lambda: rows.update(**{name: ""}, **also))
    assert refused(lambda: rows.update(**{name: "other"}))
    assert refused(lambda: rows.update(erased_at=None))


def test_every_text_of_every_table_is_erased_or_has_a_reason_to_stay() -> None:
    """A column that is added later is not forgotten: docs/operations.md says of each what becomes of it."""
    document = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
    kinds = (models.CharField, models.TextField, models.JSONField, models.BinaryField)
    for model in [*apps.get_app_config("actions").get_models(), *apps.get_app_config("reconciliation").get_models()]:
        if model.__name__.startswith("Historical") or model._meta.auto_created:
            continue
        for field in model._meta.concrete_fields:
            if isinstance(field, kinds) and not field.choices:
                assert f"`{model._meta.db_table}.{field.column}`" in document or (
                    f"`{model._meta.db_table}`" in document
                ), f"{model._meta.db_table}.{field.column}"
