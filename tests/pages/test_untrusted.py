"""What an agent, a downstream or a person wrote can be read, and does nothing."""

import re
from typing import Any

import pytest

from actions import evidence, times
from actions.models import EvidenceKind
from reconciliation.models import LedgerEntry
from tests import factories
from tests.pages.cases import log_in, make_case, text_of

pytestmark = pytest.mark.django_db

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)> {{ 7|add:7 }} {% url 'x' %} javascript:alert(1)"
BIDI = "pay \u202edereffo\u202c \u200bnow\u2066"


def pages(review: Any) -> list[str]:
    client, _ = log_in()
    paths = ("/", f"/reviews/{review.pk}/", f"/intents/{review.intent_id}/", "/intents/")
    return [text_of(client.get(path)) for path in paths]


def hostile_case() -> Any:
    kind = factories.make_kind()
    review = make_case(
        kind,
        subject="order-<b>1</b>",
        note=HOSTILE + BIDI,
        params={"link": "javascript:alert(1)", '"><script>': HOSTILE},
        payee=HOSTILE[:200],
        external_id="<i>re_1</i>",
        context='{"ticket":"<script>alert(2)</script>"}',
    )
    now = times.now()
    LedgerEntry.objects.create(
        downstream=kind.downstream,
        entry_id="<script>re_2</script>",
        role="effect",
        state="final",
        subject=review.intent.subject,
        key=HOSTILE[:100],
        amount_minor=1,
        currency="USD",
        first_seen_at=now,
        last_seen_at=now,
    )
    for text in (HOSTILE, '{"a":"<script>alert(3)</script>"}'):
        evidence.store(intent_id=review.intent_id, kind=EvidenceKind.ANSWER, source=HOSTILE, content=text, now=now)
    return review


def test_markup_stays_text() -> None:
    for page in pages(hostile_case()):
        main = page.split("<main", 1)[1]
        assert "<script" not in main
        assert "<img" not in main
        assert "<b>1" not in main
        assert "<i>re_1" not in main
        assert " onerror" not in re.sub(r"&lt;img src=x onerror", "", main)


def test_template_syntax_stays_text() -> None:
    page = pages(hostile_case())[1]
    assert "{{ 7|add:7 }}" in page
    assert "{% url &#x27;x&#x27; %}" in page


def test_nothing_that_was_written_becomes_an_address() -> None:
    for page in pages(hostile_case()):
        for address in re.findall(r'(?:href|src|action)="([^"]*)"', page):
            assert address == "" or address[0] in "/?#", address


def test_characters_that_hide_or_reorder_are_shown_as_what_they_are() -> None:
    page = pages(hostile_case())[1]
    for char in "\u202e\u202c\u200b\u2066":
        assert char not in page
        assert f"⟨U+{ord(char):04X}⟩" in page


def test_what_the_agent_wrote_is_marked_as_such() -> None:
    page = pages(hostile_case())[1]
    assert "Written by the agent (unverified)" in page


def test_the_search_shows_what_was_asked_as_text() -> None:
    client, _ = log_in()
    page = text_of(client.get("/intents/", {"q": HOSTILE}))
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_erased_evidence_says_so() -> None:
    review = hostile_case()
    review.intent.evidence.update(text="", erased_at=times.now())
    assert "Its text was erased" in pages(review)[1]
