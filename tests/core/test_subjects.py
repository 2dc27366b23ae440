"""One spelling for one thing, families, and what keeps a subject blocked."""

import unicodedata
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actions import subjects
from actions.models import Intent
from actions.statuses import Status
from actions.subjects import BadSubject, canonical_subject, family_of, related
from tests.core.steps import expire, settle, submit
from tests.factories import make_intent, make_kind


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("order-4812", "order-4812"),
        ("  order-4812  ", "order-4812"),
        ("order-4812 / line-2", "order-4812/line-2"),
        ("\torder-4812/line-2\n", "order-4812/line-2"),
        ("cafe\u0301-1", "caf\u00e9-1"),
        ("\u212b", "\u00c5"),
        ("Order-4812", "Order-4812"),
        ("订单-1", "订单-1"),
        ("a b", "a b"),
        ("x" * 200, "x" * 200),
        (" " * 300 + "x", "x"),
    ],
)
def test_a_subject_has_one_spelling(text: str, canonical: str) -> None:
    assert canonical_subject(text) == canonical


@pytest.mark.parametrize(
    ("text", "folded"),
    [("ORDER-4812", "order-4812"), ("Straße", "strasse"), ("CAFE\u0301", "caf\u00e9"), ("ß/A", "ss/a")],
)
def test_case_is_folded_where_the_kind_says_so(text: str, folded: str) -> None:
    assert canonical_subject(text, folds=True) == folded


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "/",
        "order-1/",
        "/order-1",
        "a//b",
        "a/ /b",
        "x" * 201,
        "e\u0301" * 201,
        "order\x00-1",
        "order\n-1",
        "order\x7f-1",
        "order\u0085-1",
        "order-1\u200b",  # zero width space
        "order\u200d-1",  # zero width joiner
        "\ufefforder-1",  # byte-order mark
        "order\u00ad-1",  # soft hyphen
        "order-\u202e1",  # right-to-left override
        "order-\u20661\u2069",  # isolates
        "order-1\u200f",
        "order-1\u061c",
        "order\u2028-1",
        "order\u2029-1",
        "order-\ud800",
        "order-\ue000",
        "order-\U000e0041",  # tag
        "order-\uffff",
        "order-1\u2060",
    ],
)
def test_what_is_empty_overlong_or_hides_something_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(BadSubject) as told:
        canonical_subject(text)
    assert str(told.value).endswith(".")


@pytest.mark.parametrize(
    "char",
    ["\u034f", "\u115f", "\u1160", "\u17b4", "\u180b", "\u2800", "\u3164", "\uffa0", "\ufe0f", "\U000e0100"],
    ids=lambda char: f"U+{ord(char):04X}",
)
@pytest.mark.parametrize("place", ["order-1{}", "order{}-1"])
def test_what_nobody_can_see_is_refused(char: str, place: str) -> None:
    """Unicode's Default_Ignorable_Code_Point and the blanks that are letters by category."""
    with pytest.raises(BadSubject, match="invisible"):
        canonical_subject(place.format(char))


@pytest.mark.parametrize("space", ["\u00a0", "\u2003", "\u3000", "\u202f"], ids=lambda char: f"U+{ord(char):04X}")
def test_a_space_is_a_space(space: str) -> None:
    """`order 1` and `order\u00a01` look alike: either refused, or one subject."""
    with suppress(BadSubject):
        assert canonical_subject(f"order{space}1") == canonical_subject("order 1")


def test_the_length_counts_after_folding() -> None:
    with pytest.raises(BadSubject, match="200"):
        canonical_subject("ß" * 101, folds=True)


@pytest.mark.parametrize(
    ("text", "fits"), [("order-1", True), ("order-1/line-2", False), ("xorder-1", False), ("order-1x", False)]
)
def test_a_pattern_has_to_fit_the_whole_canonical_subject(text: str, fits: bool) -> None:
    if fits:
        assert canonical_subject(f" {text} ", pattern=r"order-\d+") == text
    else:
        with pytest.raises(BadSubject, match="form"):
            canonical_subject(text, pattern=r"order-\d+")


@given(st.text(max_size=30), st.booleans())
def test_a_canonical_subject_is_its_own_canonical_form(text: str, folds: bool) -> None:
    try:
        found = canonical_subject(text, folds=folds)
    except BadSubject:
        return
    assert canonical_subject(found, folds=folds) == found
    assert found == unicodedata.normalize("NFC", found)


@pytest.mark.parametrize(
    ("one", "other", "are"),
    [
        ("order-4812", "order-4812", True),
        ("order-4812", "order-4812/line-2", True),
        ("order-4812", "order-4812/line-2/part-1", True),
        ("order-4812/line-2", "order-4812/line-2/part-1", True),
        ("order-4812/line-1", "order-4812/line-2", False),
        ("order-4812/line-1", "order-4812/line-10", False),
        ("order-481", "order-4812", False),
        ("order-4812", "order-48120/line-2", False),
        ("order-4812", "Order-4812", False),
        ("order_1", "orderx1/line-1", False),
        ("order-%", "order-1/x", False),
    ],
)
def test_a_thing_and_its_parts_are_related_and_two_parts_are_not(one: str, other: str, are: bool) -> None:
    assert related(one, other) is are
    assert related(other, one) is are


@pytest.mark.parametrize(
    ("subject", "family"),
    [("order-4812", "order-4812"), ("order-4812/line-2", "order-4812"), ("a/b/c", "a"), ("order-48", "order-48")],
)
def test_the_family_is_the_subject_up_to_its_first_slash(subject: str, family: str) -> None:
    assert family_of(subject) == family


@given(st.text("ab/-", min_size=1, max_size=8), st.text("ab/-", min_size=1, max_size=8))
def test_related_subjects_are_of_one_family(one: str, other: str) -> None:
    """Otherwise the lock on the family would not cover them."""
    if related(one, other):
        assert family_of(one) == family_of(other)


@pytest.mark.django_db
@pytest.mark.parametrize("status", ["held", "recorded", "submitted", "unknown"])
def test_whatever_is_open_and_holds_the_guard_blocks_its_subject(status: str) -> None:
    kind = make_kind()
    intent = make_intent(kind, subject="order-1", to=Status.HELD if status == "held" else Status.RECORDED)
    if status in {"submitted", "unknown"}:
        submit(intent)
    if status == "unknown":
        expire(intent)
    assert [found.pk for found in subjects.blocking(kind.pk, "order-1")] == [intent.pk]
    assert subjects.blocking(kind.pk, "order-1", besides=intent.pk) == []


@pytest.mark.django_db
@pytest.mark.parametrize("to", [Status.CONFIRMED, Status.FAILED])
def test_what_is_settled_blocks_only_while_it_is_disputed(to: Status) -> None:
    kind = make_kind()
    intent = make_intent(kind, subject="order-1")
    settle(intent, to)
    assert subjects.blocking(kind.pk, "order-1") == []
    Intent.objects.filter(pk=intent.pk).update(disputed=True)
    assert [found.pk for found in subjects.blocking(kind.pk, "order-1/line-2")] == [intent.pk]


@pytest.mark.django_db
def test_a_second_one_that_waits_without_the_guard_blocks_nobody() -> None:
    kind = make_kind()
    make_intent(kind, subject="order-1", to=Status.HELD, guard_key=None)
    assert subjects.blocking(kind.pk, "order-1") == []


@pytest.mark.django_db
def test_another_kind_another_order_and_another_line_do_not_block() -> None:
    kind = make_kind()
    make_intent(make_kind(), subject="order-1")
    make_intent(kind, subject="order-10")
    make_intent(kind, subject="Order-1")
    make_intent(kind, subject="order-1/line-1")
    assert subjects.blocking(kind.pk, "order-1/line-2") == []
    assert len(subjects.blocking(kind.pk, "order-1")) == 1
