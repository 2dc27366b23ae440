"""What a person is typing in a case: kept while they type, put back into the fields when they come again."""

from typing import Any

from django.forms import Form
from django.http import HttpResponse
from django.urls import reverse

from reconciliation.models import Review
from reconciliation.reviews import claiming, drafts
from reconciliation.views.frame import DeskRequest, action

# What of a decision's form stays as it was while something else is done on the page.
_ALWAYS = ("reason", "note", "outside")
# And what only while the facts are those that were seen: it says something about them.
_ABOUT_FACTS = ("entry", "settled_amount", "settled_currency", "waive_guard")


@action
def draft(request: DeskRequest, review_id: int) -> HttpResponse:
    """Keeps what is being typed; typing is being at work, so one's own lease goes on. 204: nothing on the page
    changes."""
    note, comment = request.POST.get("note"), request.POST.get("text")
    drafts.keep(review_id, person=request.user, note=note, comment=comment)
    claiming.renew(review_id, person=request.user)
    return HttpResponse(status=204)


def remember(form: Form, name: str, review: Review, *, text: str = "") -> None:
    """Lets a field be stored while it is typed in, and begin with `text`, if nothing else is in it."""
    form.fields[name].widget.attrs |= {
        "rows": 1,
        "hx-post": reverse("case_draft", args=[review.pk]),
        "hx-trigger": "input changed delay:1s",
        "hx-swap": "none",
        "hx-params": f"{name},csrfmiddlewaretoken",
        # Once the form itself is on its way nothing is kept any more: it would come back after it was sent.
        "hx-sync": "closest form:abort",
    }
    if text and not form.initial.get(name):
        form.initial[name] = text


def besides(request: DeskRequest, review: Review) -> dict[str, Any]:
    """What was typed in the decision's form, when that came along with another step (`hx-include`)."""
    given = request.POST
    same = (given.get("seen_digest"), given.get("seen_verdict")) == (review.facts_digest, review.verdict)
    return {name: given[name] for name in (*_ALWAYS, *(_ABOUT_FACTS if same else ())) if name in given}
