"""What the page of a case about an entry offers: the intents that it could belong to, and the form to decide it."""

from typing import Any

from django import forms
from django.contrib.auth.models import User

from reconciliation.entering import PressedForm
from reconciliation.forms import MAX_TEXT
from reconciliation.models import Choice, DecisionReason, EntryRole, LedgerEntry, Review
from reconciliation.reviews import orphans, people, verifying
from reconciliation.reviews.orphans import Offer, Seen
from reconciliation.views import raw
from reconciliation.views.refusals import Refusal

_FOLLOWS = {
    Choice.LINK: "What follows for the intent stands beside it.",
    Choice.DUPLICATE: "The intent stays as it is, and this entry is listed as money to recover.",
    Choice.NOT_OURS: "Nothing else changes. It is asked about again only if the entry changes its state.",
}
LOOK_FIRST = Refusal(
    title="Nothing was decided yet.",
    text="The intent that you named is now among those below. Look at it, then decide.",
    status=422,
)


NO_SUCH_INTENT = Refusal(
    title="Nothing was decided.", text="No intent of this downstream has that id or idempotency key.", status=422
)


class EntryForm(PressedForm):
    """A decision about an entry. `named` is an intent as the page showed it; `other` one that it did not show."""

    choice = forms.ChoiceField(
        choices=[(choice.value, choice.label) for choice in orphans.CHOICES],
        error_messages={"required": "Press one of the buttons below."},
    )
    reason = forms.ChoiceField(
        choices=[("", "Choose a reason"), *DecisionReason.choices], error_messages={"required": "Choose a reason."}
    )
    note = forms.CharField(
        required=False, max_length=MAX_TEXT, widget=forms.Textarea(attrs={"rows": 2, "maxlength": MAX_TEXT})
    )
    named = forms.CharField(required=False, max_length=200)
    other = forms.CharField(
        required=False,
        max_length=255,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    besides = forms.CharField(required=False, max_length=255, widget=forms.HiddenInput)
    seen_digest = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)

    def ballot(self) -> dict[str, Any]:
        """The arguments of `orphans.decide`."""
        found = self.cleaned_data
        choice = Choice(found["choice"])
        named, seen = "", Seen(0, found["seen_digest"])
        if choice is not Choice.NOT_OURS:
            named, seen = _shown(found["named"])
        return {
            "choice": choice,
            "reason": DecisionReason(found["reason"]),
            "note": found["note"],
            "named": named,
            "seen": seen,
        }

    @property
    def names_another(self) -> str:
        """The intent that the person wrote down and has not seen yet; empty when the choice needs none."""
        needs_one = self.cleaned_data.get("choice") in (Choice.LINK, Choice.DUPLICATE)
        return str(self.cleaned_data.get("other", "")).strip() if needs_one else ""


def value_of(offer: Offer) -> str:
    """How a form names an intent together with what was seen of it."""
    return f"{offer.intent.pk}:{offer.seen.version}:{offer.seen.digest}"


def _shown(value: str) -> tuple[str, Seen]:
    pk, _, seen = value.partition(":")
    version, _, digest = seen.partition(":")
    number = int(version) if version.isascii() and version.isdigit() and len(version) < 10 else 0
    return pk, Seen(number, digest)


def context_of(review: Review, person: User, form: EntryForm | None) -> dict[str, Any]:
    """What `case.html` shows beside the entry; nothing to decide with for those who may not."""
    entry = review.entry
    assert entry is not None
    context: dict[str, Any] = {
        "pieces": raw.of_entry(entry),
        "faults": verifying.case_faults(review),
    }
    if orphans.blocked(review) or not people.may_decide(person):
        return context
    besides = str(form.data.get("other") or form.data.get("besides") or "") if form else ""
    offers = orphans.offers(entry, besides=besides)
    chosen = str(form.data.get("named", "")) if form else ""
    if besides and offers and orphans.find(entry, besides) is not None:
        chosen = value_of(offers[0])
    return context | {
        "orphan": {
            "offers": [(value_of(offer), offer, chosen.split(":")[0] == str(offer.intent.pk)) for offer in offers],
            "choices": _choices(review, entry),
            "seen": orphans.seen(entry, None),
            "besides": besides,
            "form": form or EntryForm(),
        }
    }


def _choices(review: Review, entry: LedgerEntry) -> list[tuple[Choice, str, bool]]:
    wanted = [one for one in orphans.CHOICES if one is not Choice.DUPLICATE or entry.role == EntryRole.EFFECT]
    return [(choice, _FOLLOWS[choice], choice == review.recommendation) for choice in wanted]
