"""Everything that was ever written, read as a stream: what it finds, and that nobody waits for it."""

import threading
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from hypothesis import given, settings
from hypothesis import strategies as st

from actions import evidence, history, snapshot, times
from actions.canonical import canonical, canonical_row
from actions.merging import side_by_side
from actions.models import Evidence, EvidenceKind, Intent, Observation, Transition
from reconciliation import counting_on
from reconciliation.models import Comment, Purpose, Review
from reconciliation.reviews import commenting, verifying
from tests.core.life import whole_life
from tests.factories import make_downstream, make_intent, make_person
from tests.history.forging import delete, forged
from tests.ledger.books import orphan


def found() -> dict[str, list[str]]:
    return {name: faults for name, faults in verifying.everything() if faults}


@pytest.mark.django_db
def test_it_finds_what_the_pages_find() -> None:
    one, other, case = whole_life(), whole_life(), orphan(make_downstream())
    said = commenting.comment(case.pk, person=make_person(), text="x")

    def forge() -> None:
        Transition.objects.filter(intent=one, position=2).update(actor_id="x")
        Evidence.objects.filter(pk=said.text_id).update(text="y")

    with forged(forge):
        assert found() == {
            f"intent {one.pk}": verifying.intent_faults(Intent.objects.get(pk=one.pk)),
            f"case {case.pk}": verifying.case_faults(Review.objects.get(pk=case.pk)),
        }
    assert found() == {}
    assert len(dict(verifying.everything())) == 3, f"with {other.pk}"


@pytest.mark.django_db
def test_rows_whose_intent_is_gone_are_found() -> None:
    intent, row = whole_life(), None
    row = intent.transitions.get(position=1)
    with forged(lambda: delete(Intent.objects.filter(pk=intent.pk))):
        (faults,) = found().values()
        assert faults[0] == f"actions_transition {row.pk}: there is no such intent"
        assert len(faults) == 9


@pytest.mark.django_db
def test_evidence_whose_intent_is_gone_is_found() -> None:
    intent = make_intent()
    evidence.store(intent_id=intent.pk, kind=EvidenceKind.NOTE, source="x", content="x", now=times.now())

    def forge() -> None:
        delete(Transition.objects.filter(intent=intent))
        delete(Intent.objects.filter(pk=intent.pk))

    with forged(forge):
        assert found() == {f"intent {intent.pk}": ["1 pieces of evidence or files: there is no such intent"]}


def _of_an_intent(case: Review) -> None:
    Review.objects.filter(pk=case.pk).update(purpose=Purpose.OUTCOME)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "forge",
    [lambda case: delete(Review.objects.filter(pk=case.pk)), _of_an_intent],
    ids=["gone", "another purpose"],
)
def test_rows_whose_case_is_gone_are_found(forge: Any) -> None:
    case = orphan(make_downstream())
    row = commenting.comment(case.pk, person=make_person(), text="x")
    with forged(lambda: forge(case)):
        name = f"reconciliation_comment {row.pk}: there is no such case about an entry"
        assert found() == {f"case {case.pk}": [name]}


@pytest.mark.django_db
def test_a_row_moved_to_another_owner_is_found_at_both() -> None:
    intent, case = whole_life(), orphan(make_downstream())
    row = Comment.objects.get(intent=intent)
    with forged(lambda: Comment.objects.filter(pk=row.pk).update(intent=None, review=case)):
        assert set(found()) == {f"intent {intent.pk}", f"case {case.pk}"}


@pytest.mark.django_db
def test_a_changed_text_that_belongs_to_no_intent_is_found() -> None:
    kept = evidence.store(intent_id=None, kind=EvidenceKind.PAGE, source="x", content="x", now=times.now())
    with forged(lambda: Evidence.objects.filter(pk=kept.pk).update(text="y")):
        assert found() == {f"evidence {kept.pk}": ["its text was changed"]}


@pytest.mark.django_db
def test_the_command_names_the_first_bad_row_and_lists_so_many() -> None:
    intent, out, err = whole_life(), StringIO(), StringIO()
    row = intent.transitions.get(position=2)

    def forge() -> None:
        Transition.objects.filter(intent=intent).exclude(position=1).update(actor_id="x")
        Observation.objects.filter(intent=intent).update(by="x")

    with forged(forge):
        first = f"intent {intent.pk}: actions_transition {row.pk}: a field was changed"
        with pytest.raises(CommandError, match=f"1 of 1 histories don't hold. The first: {first}"):
            call_command("verify_history", most=2, stdout=out, stderr=err)
    lines = out.getvalue().splitlines()
    assert (lines[0], len(lines), lines[2]) == (first, 3, "… and 2 more (--most)")
    assert err.getvalue() == "100 % of 9 rows\n"


@pytest.mark.either_database
def test_elsewhere_than_on_a_terminal_each_tenth_is_a_line() -> None:
    err = StringIO()
    with counting_on.progress(40, unit="rows", err=err) as advance:
        for _ in range(40):
            advance(1)
    assert err.getvalue() == "".join(f"{tenth * 10} % of 40 rows" for tenth in range(1, 11))


@pytest.mark.django_db(transaction=True)
def test_nobody_waits_for_who_reads_and_who_reads_sees_one_moment() -> None:
    make_intent()
    begun, written = threading.Event(), threading.Event()
    counts: list[int] = []

    def read() -> None:
        try:
            with snapshot.one_moment():
                counts.append(Intent.objects.count())
                begun.set()
                written.wait(10)
                counts.append(Intent.objects.count())
            counts.append(Intent.objects.count())
        finally:
            begun.set()
            connection.close()

    reader = threading.Thread(target=read)
    reader.start()
    assert begun.wait(10)
    make_intent()
    written.set()
    reader.join(10)
    assert counts == [1, 1, 2]


@pytest.mark.either_database
def test_streams_are_read_side_by_side() -> None:
    letters = side_by_side((["a1", "a2", "c1"], lambda x: x[0]), (["b1", "c2"], lambda x: x[0]), ([], str))
    assert list(letters) == [
        ("a", [["a1", "a2"], [], []]),
        ("b", [[], ["b1"], []]),
        ("c", [["c1"], ["c2"], []]),
    ]


_values = (
    st.text(st.characters(exclude_categories=["Cs"]))
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.booleans()
    | st.none()
)


@pytest.mark.either_database
@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(st.text(max_size=5), _values | st.dictionaries(st.text(st.characters(codec="ascii")), _values))
)
def test_the_quick_canonical_text_is_the_canonical_text(value: dict[str, Any]) -> None:
    assert canonical_row(value) == canonical(value)


@pytest.mark.either_database
def test_what_has_no_canonical_form_has_none_here_either() -> None:
    for value in (2**53, 1.5):
        for write in (canonical, canonical_row):
            try:
                text = write({"a": value})
            except ValueError as none:
                text = type(none).__name__
            assert text == {2**53: "IntegerDomainError", 1.5: '{"a":1.5}'}[value]


@pytest.mark.django_db
def test_a_page_asks_the_same_few_questions_however_long_the_history(django_assert_max_num_queries: Any) -> None:
    intent = whole_life()
    with django_assert_max_num_queries(9):
        assert history.faults(intent) == []
