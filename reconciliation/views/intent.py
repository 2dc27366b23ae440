"""One intent: what it is, what became of it, and whether its history holds."""

from uuid import UUID

from django.http import Http404, HttpResponse

from actions import times
from actions.models import Intent
from reconciliation.reviews import verifying
from reconciliation.views import correction, customer_words, enquiry, facts, handling, money
from reconciliation.views.frame import DeskRequest, page, show


@page
def intent(request: DeskRequest, intent_id: UUID) -> HttpResponse:
    related = ("kind", "agent", "downstream", "policy", "repeat_of", "look_alike_of")
    found = Intent.objects.select_related(*related).filter(pk=intent_id).first()
    if found is None:
        raise Http404("There is no such intent.")
    reviews = list(found.reviews.prefetch_related("reasons").order_by("-pk"))
    now = times.now()
    known, open_review = facts.about(found), next((review for review in reviews if review.closed_at is None), None)
    context = {
        "here": "intents",
        "intent": found,
        "known": known,
        "open_review": open_review,
        "customer": customer_words.told(found, known, open_review, now),
        "enquiry": enquiry.text(found, known),
        "closed_reviews": [review for review in reviews if review.closed_at is not None],
        "matches": list(found.matches.filter(released_at__isnull=True).select_related("entry").order_by("pk")),
        "faults": verifying.intent_faults(found),
        "lefts": money.open_of(found),
    }
    context |= correction.proposal_of(found, request.user) | handling.open_context(found, request.user, now)
    context |= handling.open_context(found, request.user, times.now())
    return show(request, "intent.html", context)
