"""What somebody found who set out to break the desk, and what is right instead."""

import base64
import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.test import Client

from actions import times
from actions.errors import ReviewClosed
from actions.models import Intent
from reconciliation.models import Choice, Decision, ReasonCode, Review, WaitsFor
from reconciliation.reviews import claiming, opening, pending, waiting
from reconciliation.reviews.bulk import running
from reconciliation.views.csv_out import harmless
from tests import factories
from tests.browsing import DESKTOP, let_in
from tests.flow.world import Clock, World
from tests.ledger.books import confirmed, failed, orphan
from tests.pages.cases import hidden_of, log_in, make_case, make_held, make_unknown, text_of
from tests.pages.test_deciding_page import high_value, vote

DAY = timedelta(days=1)
ENTERED = "Enter decides nothing here, so nothing was done."


# Enter decides nothing


def fields_of(page: Any, form: str) -> list[str]:
    """Every field of a form that Enter can be pressed in, by what it is."""
    found: list[str] = page.eval_on_selector_all(
        f"{form} input:not([type=hidden]), {form} select",
        "all => all.map((one, at) => { one.dataset.at = at; return one.type; })",
    )
    return found


def press_enter_everywhere(page: Any, path: str, form: str) -> set[str]:
    """In every field of that form, on a page that is fresh each time. What kinds of field there were."""
    sent: list[str] = []
    page.on(
        "request", lambda one: sent.append(one.url) if one.method == "POST" and "/draft/" not in one.url else None
    )
    page.goto(path)
    found = fields_of(page, form)
    for at in range(len(found)):
        page.goto(path)
        fields_of(page, form)
        if page.query_selector(f"{form} [name=reason]"):
            page.select_option(f"{form} [name=reason]", index=1)
        page.fill(f"{form} [name=note]", "what I know")
        field = page.locator(f"{form} [data-at='{at}']")
        field.evaluate("one => { const d = one.closest('details'); if (d) d.open = true; one.focus(); }")
        page.keyboard.press("Enter")
        page.keyboard.press("Escape")  # the list of a select may have opened
        page.wait_for_timeout(150)
        assert sent == [], found[at]
        assert Decision.objects.count() == 0, found[at]
        assert page.input_value(f"{form} [name=note]") == "what I know", found[at]
        if found[at] in ("text", "radio", "checkbox"):
            assert page.locator(f"{form} [data-entered]").is_visible(), found[at]
    return set(found)


@pytest.fixture
def page(new_context: Any, live_server: Any) -> Any:
    context = new_context(viewport=DESKTOP)
    let_in(context, factories.make_person("supervisor"), live_server.url)
    return context.new_page()


@pytest.mark.django_db(transaction=True)
def test_enter_decides_no_case_whatever_the_field_is(world: World, page: Any) -> None:
    _, review = high_value(world)
    kinds = press_enter_everywhere(page, f"/reviews/{review.pk}/", "#decision")
    assert kinds >= {"text", "radio", "select-one"}
    assert page.locator("#decision [name=entry]").count() >= 2


@pytest.mark.django_db(transaction=True)
def test_enter_on_the_tick_that_waives_the_guard_approves_nothing(page: Any) -> None:
    first = make_unknown()
    review = make_held(first.kind, subject=first.subject, guard_key=None)
    assert "checkbox" in press_enter_everywhere(page, f"/reviews/{review.pk}/", "#decision")


@pytest.mark.django_db(transaction=True)
def test_enter_decides_nothing_about_an_entry(page: Any) -> None:
    kind = factories.make_kind()
    intent = make_unknown(kind)
    review = orphan(kind.downstream, subject=intent.subject)
    assert press_enter_everywhere(page, f"/reviews/{review.pk}/", "#decision") >= {"text", "radio"}


@pytest.mark.django_db(transaction=True)
def test_enter_proposes_no_correction(page: Any) -> None:
    intent = confirmed(factories.make_kind(factories.make_downstream(look_up="none")))
    path = f"/intents/{intent.pk}/correct/"
    assert press_enter_everywhere(page, path, "form[action$='/propose/']") >= {"text", "radio", "select-one"}


@pytest.mark.django_db(transaction=True)
def test_enter_decides_nothing_without_scripts_and_all_that_was_filled_in_stays(
    world: World, new_context: Any, live_server: Any
) -> None:
    intent, review = high_value(world)
    context = new_context(viewport=DESKTOP, java_script_enabled=False)
    let_in(context, factories.make_person(), live_server.url)
    plain = context.new_page()
    plain.goto(f"/reviews/{review.pk}/")
    plain.select_option("#decision [name=reason]", "ledger")
    plain.fill("#decision [name=note]", "what I know")
    plain.locator("#decision [name=entry]").last.check()
    plain.locator("#decision [name=entry]").last.press("Enter")
    plain.wait_for_selector(f"text={ENTERED}")
    assert plain.locator("#decision [data-entered]").is_visible()
    assert plain.locator("#decision [data-entered]").bounding_box()["y"] < DESKTOP["height"]
    assert plain.locator("#decision [name=note]").input_value() == "what I know"
    assert plain.locator("#decision [name=reason]").input_value() == "ledger"
    assert plain.locator("#decision [name=entry]").last.is_checked()
    assert plain.locator(".errors").count() == 0
    assert (Decision.objects.count(), Intent.objects.get(pk=intent.pk).status) == (0, "unknown")


@pytest.mark.django_db
def test_what_enter_sends_decides_nothing_even_with_a_choice_beside_it() -> None:
    review = make_held()
    client, _ = log_in()
    path = f"/reviews/{review.pk}/"
    given = {"choice": "reject", "reason": "not_justified", "note": "kept", **hidden_of(client.get(path))}
    answer = client.post(path + "decide/", given | {"enter": "yes"})
    assert answer.status_code == 422
    assert ENTERED in text_of(answer)
    assert "kept" in text_of(answer)
    assert not Decision.objects.exists()


@pytest.mark.django_db
def test_enter_in_the_fields_of_a_bulk_action_does_it_with_none() -> None:
    review = make_held()
    client, _ = log_in()
    shown = client.post("/bulk/", {"action": "reject", "ids": [review.pk]})
    row = shown.context["can"][0].row.value
    given = {"action": "reject", "step": "confirm", "row": [row], "reason": "not_justified", "note": "kept"}
    answer = client.post("/bulk/", given | {"enter": "yes"})
    assert answer.status_code == 422
    assert ENTERED in text_of(answer)
    assert not Decision.objects.exists()
    assert client.post("/bulk/", given).status_code == 200
    assert Decision.objects.filter(choice=Choice.REJECT).exists()


# putting aside moves nothing to later for good


def put_aside(review: Review, person: Any, **until: float) -> Review:
    then = times.now() + timedelta(**until)
    waiting.put_aside(
        review.pk, person=person, waits_for=WaitsFor.BANK, reference="", until=then, longest=then, note=""
    )
    return Review.objects.get(pk=review.pk)


def resumed(review: Review, person: Any) -> Review:
    waiting.resume(review.pk, person=person)
    return Review.objects.get(pk=review.pk)


@pytest.mark.django_db
@pytest.mark.parametrize("about", ["outcome", "approval", "entry"])
def test_a_case_that_is_taken_up_early_is_due_as_it_was_before(about: str) -> None:
    kind = factories.make_kind()
    make = {"outcome": make_case, "approval": make_held, "entry": lambda one: orphan(one.downstream)}
    review = make[about](kind)  # type: ignore[operator]
    person = factories.make_person()
    before = Review.objects.get(pk=review.pk).due_at
    assert put_aside(review, person, days=6).due_at > before + DAY
    assert resumed(review, person).due_at == before


@pytest.mark.django_db
def test_an_approval_that_is_taken_up_early_is_due_when_it_expires_at_the_latest() -> None:
    now = times.now()
    review = make_held(approve_before=now + timedelta(hours=1, minutes=30))
    person = factories.make_person()
    before = Review.objects.get(pk=review.pk).due_at
    put_aside(review, person, hours=1)
    assert resumed(review, person).due_at == before
    assert before <= now + timedelta(hours=1, minutes=30)


@pytest.mark.django_db
def test_a_case_that_would_have_been_due_meanwhile_is_due_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(times.now)
    monkeypatch.setattr(times, "now", clock)
    review, person = make_case(), factories.make_person()
    put_aside(review, person, days=6)
    clock.ahead += 5 * DAY
    now = times.now()
    found = resumed(review, person)
    assert now <= found.due_at <= times.now()


@pytest.mark.django_db
def test_new_facts_bring_a_case_back_with_its_earlier_due_time() -> None:
    review, person = make_case(), factories.make_person()
    before = review.due_at
    put_aside(review, person, days=6)
    intent = Intent.objects.get(pk=review.intent_id)
    with transaction.atomic():
        opening.open_for_outcome(intent, ReasonCode.CONTRADICTION, now=times.now(), recommendation=Choice.FAIL)
    found = Review.objects.get(pk=review.pk)
    assert (found.waits_until, found.due_at) == (None, before)


@pytest.mark.django_db
def test_a_nearer_time_to_come_back_takes_the_place_of_the_one_before() -> None:
    review, person = make_case(), factories.make_person()
    put_aside(review, person, days=6)
    found = put_aside(review, person, days=2)
    assert found.due_at == found.waits_until


@pytest.mark.django_db
def test_a_first_vote_in_a_case_that_waits_leaves_its_due_time_as_it_was() -> None:
    review, person = make_case(), factories.make_person()
    before = review.due_at
    put_aside(review, person, days=6)
    claiming.claim(review.pk, person=person)
    claiming.stand_back(review.pk, person=person)
    found = Review.objects.get(pk=review.pk)
    assert (found.waits_until, found.due_at) == (None, before)


@pytest.mark.django_db
def test_a_case_whose_time_is_over_stays_due_since_then() -> None:
    review, person = make_case(), factories.make_person()
    put_aside(review, person, days=6)
    over = times.now() - timedelta(minutes=1)
    Review.objects.filter(pk=review.pk).update(waits_until=over, due_at=over)
    assert waiting.time_is_over(review.pk)
    assert Review.objects.get(pk=review.pk).due_at == over


# no address and no form breaks a page


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("at", "zone"), [("9999-12-31T23:59", "America/New_York"), ("0001-01-01T00:00", "Asia/Tokyo")]
)
def test_a_time_that_no_calendar_holds_is_refused_beside_its_field(at: str, zone: str) -> None:
    review = make_case()
    client, _ = log_in()
    given = {"waits_for": "bank", "later": "at", "at": at, "zone": zone, "longest": "604800"}
    answer = client.post(f"/reviews/{review.pk}/put-aside/", given)
    assert answer.status_code == 422
    assert "There is no such time." in text_of(answer)


@pytest.mark.django_db
@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_cursor_that_no_calendar_holds_shows_the_first_page(at: str) -> None:
    kind = factories.make_kind()
    review = make_case(kind)
    client, _ = log_in()
    cursors = [[at, 1], [at, str(review.intent_id)], [0, at, 0, 1], [0, at, 1], [at]]
    paths = [
        "/money/",
        "/",
        "/?order=age",
        "/?order=stake",
        f"/kind/{kind.name}/?since={at}",
        "/intents/",
        "/ledger/",
    ]
    for parts in cursors:
        cursor = base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")
        for path in paths:
            answer = client.get(path, {"after": cursor}) if "?" not in path else client.get(f"{path}&after={cursor}")
            assert answer.status_code == 200, (path, parts)


@pytest.mark.django_db
@pytest.mark.parametrize("number", [2**63, 10**19 - 1, 10**40])
def test_an_id_that_no_database_holds_is_no_address(number: int) -> None:
    client, _ = log_in("supervisor")
    for path in ("/reviews/{}/", "/reviews/{}/undo-state/", "/attachments/{}/", "/evidence/{}/", "/incidents/{}/"):
        assert client.get(path.format(number)).status_code == 404, path
    for path in ("skip", "take", "renew", "undo", "attach", "put-aside", "draft", "decide"):
        assert client.post(f"/reviews/{number}/{path}/").status_code == 404, path
    assert client.post(f"/money/{number}/resolve/", {"note": "x"}).status_code == 404
    assert client.get(f"/reviews/{2**63 - 1}/undo-state/").status_code == 404


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/next/", "/login/", "/admin/login/", "/preferences/keep/"])
def test_a_form_in_another_encoding_is_not_understood(path: str) -> None:
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    client.get("/login/")
    kind = "application/x-www-form-urlencoded; charset=utf-7"
    answer = client.post(path, b"a=1", content_type=kind)
    assert answer.status_code == 400
    assert "Nothing was changed." in text_of(answer)
    assert "default-src" in answer["Content-Security-Policy"]
    assert client.post(path, b"a=1", content_type=kind.replace("utf-7", "UTF-8")).status_code == 403


# who was faster, in bulk


@pytest.mark.django_db
def test_in_bulk_too_whoever_comes_second_reads_by_whom_and_when(world: World, settings: Any) -> None:
    settings.LANDED_UNDO_S = 15
    _, review = high_value(world)
    client, _ = log_in(first_name="Mara")
    path = f"/reviews/{review.pk}/"
    client.post(path + "decide/", vote(client.get(path)))
    with pytest.raises(ReviewClosed) as refused:
        pending.refuse_decided(review)
    at = Decision.objects.get(review=review).at
    words = running._words(refused.value)
    assert f"Mara decided this case at {at:%H:%M:%S} UTC." in words


# one person, one case


@pytest.mark.django_db
def test_going_on_to_the_next_case_gives_back_the_one_before_and_does_not_lead_back_to_it() -> None:
    kind = factories.make_kind()
    first, second, third = (make_case(kind) for _ in range(3))
    client, person = log_in()
    assert [client.post("/next/").url for _ in range(3)] == [f"/reviews/{one.pk}/" for one in (first, second, third)]
    assert list(Review.objects.filter(holder=person)) == [third]
    # With no other one to be had they keep the one that they have.
    assert client.post("/next/").url == "/"
    assert list(Review.objects.filter(holder=person)) == [third]
    other, _ = log_in()
    assert other.post("/next/").url == f"/reviews/{first.pk}/"


@pytest.mark.django_db
def test_what_was_taken_by_hand_stays_until_the_next_one_and_what_is_owned_stays_for_good() -> None:
    kind = factories.make_kind()
    owned, by_hand, too, _, _ = (make_case(kind) for _ in range(5))
    client, person = log_in()
    client.post(f"/reviews/{owned.pk}/keep/")
    client.post(f"/reviews/{by_hand.pk}/take/")
    client.post(f"/reviews/{too.pk}/take/")
    assert Review.objects.filter(holder=person).count() == 3
    client.post("/next/")
    assert set(Review.objects.filter(holder=person)) >= {owned}
    assert Review.objects.filter(holder=person).count() == 2
    assert Review.objects.get(pk=owned.pk).owner == person
    client.post(f"/reviews/{by_hand.pk}/take/")
    last = Review.objects.filter(holder=person).exclude(pk__in=[owned.pk, by_hand.pk]).get()
    client.post(f"/reviews/{last.pk}/skip/")
    assert Review.objects.get(pk=by_hand.pk).holder is None


@pytest.mark.django_db
def test_a_decision_that_can_still_be_undone_stays_in_ones_hands(world: World, settings: Any) -> None:
    settings.LANDED_UNDO_S = 15
    _, review = high_value(world)
    make_case(world.kind)
    client, person = log_in()
    path = f"/reviews/{review.pk}/"
    client.post(path + "take/")
    client.post(path + "decide/", vote(client.get(path)))
    held_by = Review.objects.get(pk=review.pk).holder
    client.post("/next/")
    assert Review.objects.get(pk=review.pk).holder == held_by == person


# small ones


@pytest.mark.parametrize("sign", "＝＋－＠")
def test_a_full_width_sign_begins_no_formula(sign: str) -> None:
    assert harmless(f"{sign}1") == f"'{sign}1"
    assert harmless(f"x{sign}1") == f"x{sign}1"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("wanted", "leads_to"),
    [
        ("/reviews/7/decide/", "/reviews/7/"),
        ("/reviews/7/attach/", "/reviews/7/"),
        ("/next/", "/"),
        ("/bulk/", "/"),
        ("/preferences/keep/", "/"),
        ("/reviews/7/hand/", "/reviews/7/hand/"),
        ("/?tab=mine", "/?tab=mine"),
        ("/nowhere/", "/nowhere/"),
        ("/admin/", "/admin/"),
        ("/logout/", "/"),
    ],
)
def test_the_login_leads_to_pages_only(wanted: str, leads_to: str) -> None:
    person = factories.make_person()
    person.set_password("correct horse 1")
    person.save()
    given = {"username": person.username, "password": "correct horse 1", "next": wanted}
    assert Client().post("/login/", given)["Location"] == leads_to
    client, _ = log_in()
    assert client.get("/login/", {"next": wanted})["Location"] == leads_to


@pytest.mark.django_db
def test_a_file_whose_name_is_too_long_to_be_read_is_told_beside_the_field() -> None:
    review = make_case()
    client, _ = log_in()
    content = SimpleUploadedFile("statement.pdf", b"%PDF-1.7 x")
    content._name = "n" * 5_000 + ".pdf"  # type: ignore[attr-defined]  # the setter would shorten it
    answer = client.post(f"/reviews/{review.pk}/attach/", {"file": content})
    assert answer.status_code == 422
    assert "its name may be too long" in text_of(answer)
    stranger = Client().post(f"/reviews/{review.pk}/attach/", {"file": content})
    assert stranger.status_code == 302


@pytest.mark.django_db
def test_an_intent_to_tie_an_entry_to_is_refused_where_no_entry_is_tied() -> None:
    intent = failed(factories.make_kind(factories.make_downstream(look_up="none")))
    client, _ = log_in("supervisor")
    path = f"/intents/{intent.pk}/correct/"
    form = client.get(path).context["form"]
    given = {"to": "confirmed", "reason": "mistake", "note": "x", "seen_version": str(form["seen_version"].value())}
    given |= {"seen_digest": form["seen_digest"].value(), "outside": "bank statement"}
    answer = client.post(path + "propose/", given | {"linked": "some-key"})
    assert answer.status_code == 422
    assert "No entry settles this intent, so none can be tied to another." in text_of(answer)
    assert not Decision.objects.exists()
    client.post(path + "propose/", given | {"linked": " "})
    assert Decision.objects.filter(choice=Choice.CORRECT).exists()
