"""JSON with exactly one meaning, and the digests over it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actions.canonical import (
    MAX_DEPTH,
    MAX_INTEGER,
    BadJson,
    Number,
    canonical,
    check_params,
    digest,
    new_salt,
    read_json,
)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"\xef\xbb\xbf{}", "byte-order mark"),
        (b"\xff{}", "UTF-8"),
        ('{"a": "x"}'.encode("utf-16"), "UTF-8"),
        (b'{"a": "x\\u0000"}', "NUL"),
        (b'{"x\\u0000": 1}', "NUL"),
        (b'{"a": ["\\ud800"]}', "surrogate"),
        (b'{"a": "\\udfff\\ud800"}', "surrogate"),
        (b'{"\\ud83d": 1}', "surrogate"),
        (b'{"a": 1, "a": 1}', "'a' appears twice"),
        (b'{"deep": [{"a": 1, "b": 2, "\\u0061": 3}]}', "'a' appears twice"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": Infinity}', "Infinity"),
        (b'{"a": -Infinity}', "Infinity"),
        (b"[" * 100_000 + b"]" * 100_000, "nested deeper"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested deeper"),
        (b"[" * 100_000, "nested deeper"),
        (b"[" * (MAX_DEPTH + 2) + b"]" * (MAX_DEPTH + 2), "nested deeper"),
        (b"1" * 100_000, "too many digits"),
        (b'{"a": -' + b"9" * 5_000 + b"}", "too many digits"),
        (b"", "Not JSON"),
        (b"{", "Not JSON"),
        (b"{} {}", "Not JSON"),
        (b"{'a': 1}", "Not JSON"),
        (b'{"a": 01}', "Not JSON"),
        (b'{"a": +1}', "Not JSON"),
        (b'{"a": 1,}', "Not JSON"),
        (b'{"a": "\n"}', "Not JSON"),
    ],
    ids=lambda value: value[:14].decode("latin-1") if isinstance(value, bytes) else None,
)
def test_what_has_no_single_meaning_is_refused_with_a_sentence(body: bytes, why: str) -> None:
    with pytest.raises(BadJson, match=why) as told:
        read_json(body)
    assert str(told.value).endswith(".")
    assert len(str(told.value)) < 200, "the sentence must not carry the body along"


def test_nesting_up_to_the_limit_is_read() -> None:
    assert read_json(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH) is not None


def test_a_whole_pair_of_surrogates_is_one_character() -> None:
    assert read_json(b'{"a": "\\ud83d\\ude00"}') == {"a": "\U0001f600"}


@pytest.mark.parametrize("digits", ["50.10", "0.1", "1e2", "1E400", "-0.0", "1.0", "9007199254740993.0"])
def test_a_fraction_comes_back_as_the_digits_that_were_written(digits: str) -> None:
    found = read_json(b'{"a": %s}' % digits.encode())["a"]
    assert isinstance(found, Number)
    assert found == digits


def test_an_integer_comes_back_as_an_integer_of_whatever_size() -> None:
    found = read_json(b'{"a": 123456789012345678901234567890, "b": true, "c": -7}')
    assert found == {"a": 123456789012345678901234567890, "b": True, "c": -7}
    assert not isinstance(found["a"], Number)


@pytest.mark.parametrize(
    ("params", "where"),
    [
        ({"a": Number("1.5")}, "params.a"),
        ({"a": {"b": [1, Number("1e2")]}}, r"params.a.b\[1\]"),
        ({"a": 1.0}, "params.a"),
        ({"a": [float("nan")]}, r"params.a\[0\]"),
        ({"a": MAX_INTEGER + 1}, "params.a"),
        ({"a": -MAX_INTEGER - 1}, "params.a"),
        ([Number("0.1")], r"params\[0\]"),
    ],
)
def test_params_take_integers_only_and_the_message_says_where(params: object, where: str) -> None:
    with pytest.raises(BadJson, match=where):
        check_params(params)


def test_integers_that_every_reader_reads_alike_are_taken() -> None:
    check_params({"a": MAX_INTEGER, "b": [-MAX_INTEGER, 0, True, None, "1.5"], "c": {"d": "x"}})


def test_the_same_value_has_the_same_text_whatever_its_order_or_spacing() -> None:
    one = read_json(b'{"b": 1, "a": ["\\u00e9", null], "\\u20ac": "x", "\\ud83d\\ude00": 0}')
    other = read_json('{ "\U0001f600":0,"€": "x", "a":["é",null] ,"b":1}'.encode())
    assert canonical(one) == canonical(other) == '{"a":["é",null],"b":1,"€":"x","\U0001f600":0}'


_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MAX_INTEGER, MAX_INTEGER)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abé€\U0001f600", max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(_values)
def test_canonical_text_reads_back_as_the_value_and_is_its_own_canonical_text(value: object) -> None:
    text = canonical(value)
    assert json.loads(text) == value
    assert canonical(json.loads(text)) == text


def test_a_digest_depends_on_text_and_salt() -> None:
    salt = new_salt()
    assert digest("50.00", salt=salt) == digest("50.00", salt=salt)
    assert digest("50.00", salt=salt) != digest("50.00", salt=new_salt())
    assert digest("50.00", salt=salt) != digest("50.01", salt=salt)
    assert digest("50.00", salt=salt) != digest("50.00")
    assert len({new_salt() for _ in range(100)}) == 100
    assert len(bytes.fromhex(salt)) == 16
