"""The documents say what the code says."""

from config import reference


def test_the_reference_is_up_to_date() -> None:
    assert reference.TARGET.read_text() == reference.text(), "run `make docs`"
