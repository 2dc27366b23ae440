"""One intent: what it is, what became of it, and whether its history holds."""

from uuid import UUID

from django.http import Http404, HttpResponse

from actions import history
from actions.models import Intent
from reconciliation.views import facts, money
from reconciliation.views.frame import DeskRequest, page, show


@page
def intent(request: DeskRequest, intent_id: UUID) -> HttpResponse:
    related = ("kind", "agent", "downstream", "policy", "repeat_of", "look_alike_of")
    found = Intent.objects.select_related(*related).filter(pk=intent_id).first()
    if found is None:
        raise Http404("There is no such intent.")
    reviews = list(found.reviews.prefetch_related("reasons").order_by("-pk"))
    context = {
        "here": "intents",
        "intent": found,
        "known": facts.about(found),
        "open_review": next((review for review in reviews if review.closed_at is None), None),
        "closed_reviews": [review for review in reviews if review.closed_at is not None],
        "matches": list(found.matches.filter(released_at__isnull=True).select_related("entry").order_by("pk")),
        "faults": history.faults(found),
        "lefts": money.open_of(found),
    }
    return show(request, "intent.html", context)
