"""One spelling for one name: what looks the same to a reader is the same to us. Pure."""

import unicodedata

from actions.visible import is_hidden

MAX = 200


def tidy(text: str) -> str:
    """`text` in NFC, every kind of space a plain one."""
    spaced = "".join(" " if unicodedata.category(char) == "Zs" else char for char in text)
    return unicodedata.normalize("NFC", spaced)


def fault(text: str) -> str:
    """Why a tidy text can't be a name, as the end of a sentence; empty when it can."""
    if len(text) > MAX:
        return f"is longer than {MAX} characters"
    # What nobody sees would make a second name for the same thing, past whatever is kept about the first.
    if any(is_hidden(char) or char in "\t\n" for char in text):
        return "holds a control or invisible character"
    return ""
