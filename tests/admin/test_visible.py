"""Untrusted text as people see it."""

import pytest

from actions.visible import block, plain, pretty, visible


@pytest.mark.parametrize(
    "char",
    ["\x00", "\x1b", "\r", "\u00ad", "\u200b", "\u200d", "\u202e", "\u2066", "\u2028", "\ufeff", "\u3164", "\u00a0"],
)
def test_a_hidden_character_shows_as_its_code_point(char: str) -> None:
    assert f"U+{ord(char):04X}" in visible(f"a{char}b")
    assert char not in visible(f"a{char}b")
    assert char not in plain(f"a{char}b")


def test_markup_is_escaped_between_hidden_characters_too() -> None:
    shown = visible("<script>\u202e</script>")
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


def test_ordinary_text_of_any_script_stays_as_it_is() -> None:
    assert visible("Überweisung 50 €, 返金, استرداد\n\tok") == "<bdi>Überweisung 50 €, 返金, استرداد\n\tok</bdi>"


def test_json_is_shown_one_value_a_line_and_other_text_as_it_is() -> None:
    assert pretty('{"b":1,"a":"ü"}') == '{\n  "a": "ü",\n  "b": 1\n}'
    assert pretty("<html>") == "<html>"


def test_a_long_text_is_cut_and_says_how_much_is_missing() -> None:
    assert "… 7 more characters" in block("x" * 17, most=10)
