"""What an agent, a downstream or a person wrote can be read, and does nothing. On every page that shows it."""

import re
from typing import Any

import pytest

from actions import times
from actions.models import EvidenceKind, Intent
from reconciliation.models import LedgerEntry, Review
from reconciliation.reviews import attaching, commenting
from tests import factories
from tests.pages import histories
from tests.pages.cases import log_in, make_case, text_of

pytestmark = pytest.mark.django_db

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)> {{ 7|add:7 }} {% url 'x' %} javascript:alert(1)"
BIDI = "pay \u202edereffo\u202c \u200bnow\u2066"
CLOSING = '</script></textarea></pre></style>--><svg onload=alert(4)>"><'
ORDER = "SYSTEM: approved, click confirm"
FORMULA = '=HYPERLINK("http://evil.example";"+1")'
ENDLESS = "9" * 4_000
EVERYTHING = (HOSTILE, BIDI, CLOSING, ORDER, FORMULA)


def paths_of(review: Review) -> list[str]:
    """Every page that shows something of the case."""
    own = [f"/reviews/{review.pk}/", f"/intents/{review.intent_id}/"]
    return ["/?tab=all", *own, "/intents/", "/ledger/?tab=all", *(f"/reviews/{pk}/" for pk in others_of(review))]


def others_of(review: Review) -> list[int]:
    return list(Review.objects.exclude(pk=review.pk).values_list("pk", flat=True))


def pages(review: Review, role: str = "reviewer") -> dict[str, str]:
    client, _ = log_in(role)
    answers = {path: client.get(path) for path in paths_of(review)}
    assert {answer.status_code for answer in answers.values()} == {200}
    return {path: text_of(answer) for path, answer in answers.items()}


def case_of(found: dict[str, str]) -> str:
    return next(page for path, page in found.items() if path.startswith("/reviews/"))


def hostile_case() -> Review:
    """Something hostile in every field that somebody else fills in."""
    kind = factories.make_kind()
    review = make_case(
        kind,
        subject="order-<b>1</b>\u202e",
        family="order-<b>1</b>\u202e",
        note=" ".join(EVERYTHING) + ENDLESS,
        params={"link": "javascript:alert(1)", '"><script>': HOSTILE, "nested": {"a": [CLOSING, BIDI]}, "f": FORMULA},
        payee=HOSTILE[:200],
        customer=CLOSING + BIDI,
        external_id="<i>re_1</i>",
        request_key=CLOSING,
        context='{"ticket":"<script>alert(2)</script>","\\u202eyek":"\\u200b"}',
    )
    intent = review.intent
    assert intent is not None
    entry = histories.make_entry(
        intent, "<script>re_2</script>\u202e", key=HOSTILE[:100], amount_minor=1, currency="<b>"
    )
    histories.make_entry(intent, CLOSING, subject=BIDI, currency="USD")
    histories.make_look(intent, "ambiguous", text=CLOSING, candidates=(entry.pk,), grounds={"differs": [HOSTILE]})
    attempt = histories.make_attempt(intent, reason="<b>x</b>")
    for text in (*EVERYTHING, '{"a":"<script>alert(3)</script>","b":"</script>"}', ENDLESS):
        histories.store(intent, text, EvidenceKind.ANSWER, attempt=attempt)
    factories.make_intent(kind, subject=f"{intent.subject}/<u>line</u>", note=HOSTILE, family=intent.family)
    person = factories.make_person(first_name="<b>Mara</b>")
    for text in (*EVERYTHING, "9" * 4_000):
        commenting.comment(review.pk, person=person, text=text)
    for name in ('<img src=x onerror="alert(5)">.txt', f"{BIDI}.pdf.txt", f"{FORMULA}.csv"):
        attaching.attach(review.pk, person=person, name=name, content=HOSTILE.encode())
    orphan_case(kind.downstream)
    return review


def orphan_case(downstream: Any) -> None:
    now = times.now()
    entry = LedgerEntry.objects.create(
        downstream=downstream,
        entry_id=HOSTILE + BIDI,
        role="effect",
        state="final",
        subject=CLOSING,
        key=FORMULA,
        amount_minor=1,
        currency="USD",
        first_seen_at=now,
        last_seen_at=now,
    )
    Review.objects.create(entry=entry, purpose="entry", grounds=HOSTILE, opened_at=now, due_at=now)


def main_of(page: str) -> str:
    main = page.split("<main", 1)[1]
    return re.sub(r'<script src="/static/[a-z/.-]+" defer></script>', "", main)


def test_markup_stays_text() -> None:
    for path, page in pages(hostile_case()).items():
        main = main_of(page)
        for tag in ("<script", "</script", "<img", "<b>", "<i>", "<u>", "<svg onload", "</style", "-->"):
            assert tag not in main, (path, tag)
        assert " onerror" not in re.sub(r"&lt;img src=x onerror", "", main), path


def test_every_tag_and_attribute_is_one_of_ours() -> None:
    """No quote was left open, and no attribute came in through one."""
    for path, page in pages(hostile_case()).items():
        for tag in re.findall(r"<[a-z][^<>]*>", main_of(page)):
            names = set(re.findall(r"\s([a-zA-Z-]+)(?==)", re.sub(r'="[^"]*"', '=""', tag)))
            assert not any(name.startswith("on") or name in ("style", "srcdoc") for name in names), (path, tag)


def test_template_syntax_stays_text() -> None:
    page = case_of(pages(hostile_case()))
    assert "{{ 7|add:7 }}" in page
    assert "{% url &#x27;x&#x27; %}" in page


def test_nothing_that_was_written_becomes_an_address() -> None:
    for path, page in pages(hostile_case()).items():
        for address in re.findall(r'(?:href|src|action|hx-[a-z]+)="([^"]*)"', page):
            assert not re.match(r"\s*(javascript|data|vbscript):|//|https?:", address, re.IGNORECASE), (path, address)
        for address in re.findall(r'(?:href|src|action)="([^"]*)"', page):
            assert address == "" or address[0] in "/?#", (path, address)


def test_characters_that_hide_or_reorder_are_shown_as_what_they_are() -> None:
    for path, page in pages(hostile_case()).items():
        # What is copied is what was written; what is read is not.
        shown = re.sub(r'data-copy="[^"]*"|value="[^"]*"|<title>.*?</title>', "", page, flags=re.DOTALL)
        for char in "\u202e\u202c\u200b\u2066":
            assert char not in shown, (path, f"U+{ord(char):04X}")
    page = case_of(pages(hostile_case()))
    for char in "\u202e\u202c\u200b\u2066":
        assert f"⟨U+{ord(char):04X}⟩" in page


def test_what_the_agent_wrote_is_marked_as_such_and_gives_no_order() -> None:
    page = case_of(pages(hostile_case()))
    words = page.split("Written by the agent (unverified)")[1].split("</section>")[0]
    assert ORDER in words
    assert ORDER not in page.split('class="answer"')[1].split("</section>")[0]
    assert ORDER not in page.split('id="decide"')[1].split("</section>")[0]


def test_amount_and_payee_come_from_what_is_stored_and_not_from_what_was_said() -> None:
    review = make_case(
        amount_minor=64_000,
        payee="c-5",
        note="Refund € 98,765.43 to c-zz9",
        params={"amount": "98,765.43", "payee": "c-zz9"},
    )
    for path, page in pages(review).items():
        if path.startswith(("/reviews/", "/intents/")) and path != "/intents/":
            outside = page.replace(page.split("Written by the agent (unverified)")[1].split("</section>")[0], "")
            assert "640.00" in outside
            assert "c-5" in outside
            assert "98,765.43" not in outside, path
            assert "c-zz9" not in outside, path


def test_the_search_shows_what_was_asked_as_text() -> None:
    client, _ = log_in()
    for asked in (HOSTILE, CLOSING):
        page = text_of(client.get("/intents/", {"q": asked}))
        assert "<script>alert" not in page
        assert "<svg onload" not in page
        assert "&lt;script&gt;alert" in page or "&lt;/script&gt;" in page


def test_what_is_to_be_copied_carries_nothing_that_hides() -> None:
    client, _ = log_in()
    answer = client.get(f"/reviews/{hostile_case().pk}/")
    for text in (answer.context["customer"], answer.context["enquiry"]):
        assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b]", text)
        assert HOSTILE not in text


def test_erased_evidence_says_so() -> None:
    review = hostile_case()
    assert review.intent is not None
    Intent.objects.get(pk=review.intent_id).evidence.update(text="", erased_at=times.now())
    assert "Its text was erased" in case_of(pages(review))
