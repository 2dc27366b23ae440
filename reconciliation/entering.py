"""Forms that a key must not send: Enter in a field decides nothing.

A browser answers Enter with the first button of a form, and where the field is no text with the first that is enabled
(radios, boxes and lists in Chromium). So the first one is enabled and says that it was Enter (`_enter.html`).
"""

from typing import Any

from django import forms
from django.forms.utils import ErrorDict


class PressedForm(forms.Form):
    """A form that is valid only when one of its own buttons was pressed."""

    @property
    def entered(self) -> bool:
        """Whether it was sent by Enter in a field: then that is said, and nothing else about it."""
        return self.is_bound and "enter" in self.data

    def is_valid(self) -> bool:
        return super().is_valid() and not self.entered

    def full_clean(self) -> None:
        super().full_clean()
        if self.entered:
            self._errors: Any = ErrorDict()
