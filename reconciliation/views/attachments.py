"""Files of a case: listed, handed out as files and never as pages, erased by administrators."""

from dataclasses import dataclass

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpResponse
from django.shortcuts import redirect

from actions.errors import Invalid, LandedError
from reconciliation.models import Attachment, ErasedFor, Review
from reconciliation.reviews import attaching, people
from reconciliation.views import raw
from reconciliation.views.frame import DeskRequest, action, page


@page
def attachment(request: DeskRequest, attachment_id: int) -> HttpResponse:
    """The bytes, if they are still those that were added."""
    row = Attachment.objects.filter(pk=attachment_id).first()
    if row is None:
        raise Http404("There is no such file.")
    if row.erased_at is not None:
        raise Http404("Its bytes were erased; the case keeps name and digest.")
    if fault := attaching.fault(row):
        return HttpResponse(f"{fault} They are not handed out.\n", status=409, content_type="text/plain")
    return raw.as_file(HttpResponse(bytes(row.content or b""), content_type=row.media_type), name=row.name)


@action
def erase(request: DeskRequest, attachment_id: int) -> HttpResponse:
    row = Attachment.objects.defer("content").filter(pk=attachment_id).first()
    if row is None:
        raise Http404("There is no such file.")
    try:
        attaching.erase(attachment_id, person=request.user, reason=request.POST.get("reason", ""))
    except Invalid as refused:
        messages.warning(request, f"Nothing was erased. {refused.details['errors'][0]['message']}")
    except LandedError as refused:
        messages.warning(request, refused.message)
    else:
        messages.success(request, "Erased. Name, size and digest stay in the history.")
    return redirect("case", row.review_id)


@dataclass(frozen=True)
class Files:
    """What a case's page shows of its files. `fault`: why the last one was not added."""

    rows: list[Attachment]
    may_erase: bool
    full: bool
    fault: str
    reasons: tuple[tuple[str, str], ...] = tuple(ErasedFor.choices)
    limits: str = f"At most {attaching.MOST_BYTES // 1_000_000} MB: {attaching.ALLOWED}."


def of_review(review: Review, person: User, *, fault: str = "") -> Files:
    rows = list(review.attachments.defer("content").select_related("person").order_by("pk"))
    may_erase = people.may_decide(person) and person.has_perm(attaching.ERASE)
    return Files(rows, may_erase, len(rows) >= attaching.MOST_FILES, fault)
