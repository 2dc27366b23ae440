"""The pages of the team: who has what, the figures, and pictures that hold no code."""

import re
import xml.etree.ElementTree as ET
from datetime import timedelta
from pathlib import Path

import pytest

from actions import times
from reconciliation.models import Notice, NoticeKind, Review
from reconciliation.views import charts
from tests import factories
from tests.desk_team.test_figures import make_sending
from tests.pages.cases import log_in, make_case, text_of

ROOT = Path(__file__).resolve().parents[2]
TOKENS = (ROOT / "static/landed/tokens.css").read_text()
TEAM = (ROOT / "static/landed/team.css").read_text()


@pytest.mark.django_db
def test_the_team_page_says_who_holds_what_until_when() -> None:
    client, _ = log_in("auditor")
    mara = factories.make_person(username="mara", first_name="Mara")
    until = times.now() + timedelta(minutes=5)
    review = make_case(amount_minor=64_000, subject="order-4812")
    Review.objects.filter(pk=review.pk).update(holder=mara, lease_until=until)
    page = text_of(client.get("/team/"))
    row = page.split('id="held-title"')[1]
    for shown in ("Mara", "order-4812", "€\u00a0640.00", f"/reviews/{review.pk}/", until.strftime("%H:%M:%S")):
        assert shown in row
    assert "Take over" not in row


@pytest.mark.django_db
def test_supervisors_are_led_to_hand_over() -> None:
    client, _ = log_in("supervisor")
    mara = factories.make_person(username="mara")
    Review.objects.filter(pk=make_case().pk).update(owner=mara)
    assert "Take over or hand over" in text_of(client.get("/team/"))


@pytest.mark.django_db
def test_cases_of_somebody_who_left_are_pointed_out() -> None:
    client, _ = log_in("supervisor")
    gone = factories.make_person(username="gone", is_active=False)
    Review.objects.filter(pk=make_case().pk).update(owner=gone)
    page = text_of(client.get("/team/"))
    assert "not active" in page
    assert "their cases need somebody" in page


@pytest.mark.django_db
def test_mail_that_was_given_up_is_said() -> None:
    client, _ = log_in("supervisor")
    assert "could not be sent" not in text_of(client.get("/team/"))
    Notice.objects.create(
        kind=NoticeKind.OVERDUE, once="o:1", created_at=times.now(), tries=6, problem="SMTPDataError 554"
    )
    page = text_of(client.get("/team/"))
    assert "1 e-mail notice could not be sent" in page
    assert "SMTPDataError 554" in page


@pytest.mark.django_db
def test_an_empty_desk_has_figures_too() -> None:
    client, _ = log_in("auditor")
    page = text_of(client.get("/team/figures/"))
    assert "No case is open." in page
    assert "Nothing was sent in these days." in page
    assert "None of them is settled yet." in page


@pytest.mark.django_db
def test_the_figures_have_three_pictures_each_with_its_table() -> None:
    client, _ = log_in("auditor")
    review = make_case(factories.make_kind(factories.make_downstream(title="<script>Bank</script>")))
    assert review.intent is not None
    make_sending(review.intent, claimed_at=times.now(), result="no_answer")
    page = text_of(client.get("/team/figures/"))
    assert "<script>Bank" not in page
    assert page.count('role="img"') == 2  # nothing is settled yet
    assert "100.0\u00a0%" in page
    for pair in page.split('<div class="pair">')[1:]:
        assert "<figure><svg" in pair
        assert '<table class="figures">' in pair


def drawn() -> list[str]:
    rows = [("under 1 h", 3), ("<b>&", 12), ("older", 0)]
    days = ["1 Jul", "2 Jul", "3 Jul"]
    series = [(f"down-{n}", [None, n * 10.0, None if n else 3.5]) for n in range(7)]
    return [
        charts.bars(rows, title="Cases"),
        charts.columns(rows, title='Time "x"'),
        charts.lines(days, series, title="Rate"),
        charts.bars([("none", 0)], title="None"),
    ]


def test_pictures_have_a_name_and_no_code_no_style_and_no_colour_of_their_own() -> None:
    for svg in drawn():
        root = ET.fromstring(svg)
        assert root.get("role") == "img"
        assert root.get("aria-label")
        for element in root.iter():
            assert element.tag in {"svg", "g", "rect", "line", "path", "text", "circle"}
            assert not {"style", "href"} & set(element.attrib)
            assert not any(name.startswith("on") for name in element.attrib)
        assert not re.search(r"#[0-9a-f]{3,6}\b", svg)


def test_every_class_of_a_picture_takes_its_colour_from_the_tokens() -> None:
    used = set(re.findall(r"chart-[a-z0-9]+-(?:fill|stroke)", "".join(drawn())))
    assert len(used) > 6
    for name in used:
        assert re.search(rf"\.{name} \{{ (fill|stroke): var\(--[a-z-]+\)", TEAM), name


def test_what_is_chosen_looks_as_what_the_system_says() -> None:
    by_system = re.search(r':not\(\[data-theme="light"\]\) \{(.*?)\}', TOKENS, re.DOTALL)
    by_choice = re.search(r':root\[data-theme="dark"\] \{\s*--(.*?)\}', TOKENS, re.DOTALL)
    assert by_system
    assert by_choice
    assert by_system[1].split() == f"--{by_choice[1]}".split()
