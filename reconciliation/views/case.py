"""A case: what it looks like, what can be decided, and the things that people do in it.

Opening it changes nothing; taking it is a button.
"""

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpResponse
from django.shortcuts import redirect

from actions import stops, times
from actions.errors import LandedError
from actions.models import Intent
from reconciliation import checks
from reconciliation.forms import CommentForm, DecisionForm
from reconciliation.models import Check, Choice, Review
from reconciliation.reviews import claiming, commenting, deciding, drafts, options, orphans
from reconciliation.views import (
    attachments,
    correction,
    customer_words,
    enquiry,
    facts,
    handling,
    money,
    orphan,
    timeline,
    typed,
)
from reconciliation.views import stops as stops_page
from reconciliation.views.frame import DeskRequest, action, page, show
from reconciliation.views.orphan import EntryForm
from reconciliation.views.refusals import Refusal


def find(review_id: int) -> Review:
    related = (
        "intent__kind",
        "intent__agent",
        "intent__downstream",
        "intent__policy",
        "intent__repeat_of__kind",
        "entry__downstream",
        "owner",
        "holder",
    )
    found = Review.objects.select_related(*related).prefetch_related("reasons").filter(pk=review_id).first()
    if found is None:
        raise Http404("There is no such case.")
    return found


@page
def case(request: DeskRequest, review_id: int) -> HttpResponse:
    return _show(request, find(review_id))


@action
def take(request: DeskRequest, review_id: int) -> HttpResponse:
    try:
        claiming.claim(review_id, person=request.user)
    except LandedError as refused:
        messages.warning(request, refused.message)
    return redirect("case", review_id)


@action
def release(request: DeskRequest, review_id: int) -> HttpResponse:
    claiming.release(review_id, person=request.user)
    return redirect("case", review_id)


@action
def check(request: DeskRequest, review_id: int) -> HttpResponse:
    """Looks now. Network: nothing here may run inside a transaction."""
    before = find(review_id)
    intent = _intent_of(before)
    try:
        found = checks.check_by_person(intent.pk, person=request.user)
    except LandedError as refused:
        messages.warning(request, refused.message)
    else:
        same = (found.verdict, found.facts_digest) == (before.verdict, before.facts_digest)
        messages.success(request, _saw(found, same=same))
    return stay(request, review_id)


def _saw(found: Check, *, same: bool) -> str:
    details = "".join(f" {detail[:1].upper()}{detail[1:]}." for detail in timeline.check_details(found, {}))
    return f"Looked just now: {found.get_verdict_display()}.{details}{' Nothing has changed.' if same else ''}"


@action
def comment(request: DeskRequest, review_id: int) -> HttpResponse:
    review = find(review_id)
    form = CommentForm(request.POST, number=review.comments.count())
    if not form.is_valid():
        return _show(request, review, comment_form=form, status=422)
    commenting.comment(review_id, person=request.user, text=form.cleaned_data["text"])
    drafts.keep(review_id, person=request.user, comment="")
    return stay(request, review_id)


@action
def decide(request: DeskRequest, review_id: int) -> HttpResponse:
    """Decides. What was seen comes with the form; if the facts have changed, the page shows them instead."""
    review = find(review_id)
    if review.intent is None:
        return _decide_entry(request, review)
    form = DecisionForm(request.POST, intent=review.intent)
    if not form.is_valid():
        return _show(request, review, form=form, status=422)
    ballot = form.ballot()
    try:
        decided = deciding.decide(review_id, person=request.user, **ballot)
    except LandedError as refused:
        if (made := handling.made_already(request, review, ballot)) is not None:
            return made
        refusal = handling.refusal_of(refused, request.user)
        return _show(request, find(review_id), form=form, refusal=refusal)
    drafts.keep(review_id, person=request.user, note="")
    return handling.decided(request, review, decided)


def _decide_entry(request: DeskRequest, review: Review) -> HttpResponse:
    """Decides what an entry is that no intent explains. An intent that the page did not show is shown first."""
    form = EntryForm(request.POST)
    if not form.is_valid():
        return _show(request, review, entry_form=form, status=422)
    if form.names_another:
        refusal = orphan.LOOK_FIRST if _names_one(review, form) else orphan.NO_SUCH_INTENT
        return _show(request, review, entry_form=form, refusal=refusal)
    ballot = form.ballot()
    try:
        decided = orphans.decide(review.pk, person=request.user, **ballot)
    except LandedError as refused:
        if (made := handling.made_already(request, review, ballot)) is not None:
            return made
        refusal = handling.refusal_of(refused, request.user)
        return _show(request, find(review.pk), entry_form=form, refusal=refusal)
    drafts.keep(review.pk, person=request.user, note="")
    return handling.decided(request, review, decided)


def _names_one(review: Review, form: EntryForm) -> bool:
    return review.entry is not None and orphans.find(review.entry, form.names_another) is not None


def _intent_of(review: Review) -> Intent:
    if review.intent is None:
        raise Http404("This case is about an entry that no intent explains.")
    return review.intent


def _show(
    request: DeskRequest,
    review: Review,
    *,
    form: DecisionForm | None = None,
    entry_form: EntryForm | None = None,
    comment_form: CommentForm | None = None,
    refusal: Refusal | None = None,
    file_fault: str = "",
    status: int = 200,
) -> HttpResponse:
    now, person, intent = times.now(), request.user, review.intent
    decisions = facts.decisions_of(review)
    known = facts.about(intent) if intent else None
    offered = options.options(review, person=person)
    vote, pending = facts.vote_of(review), facts.pending_of(review)
    number = review.comments.count()
    context: dict[str, Any] = {
        "here": "queue",
        "now": now,
        "review": review,
        "intent": intent,
        "known": known,
        "headline": facts.headline(review, decisions[0] if decisions else None),
        "holding": facts.holding(review, person, now),
        "options": offered,
        "needs_two": intent is not None and any(options.needs_two(intent, option.choice) for option in offered),
        "confirms": any(option.choice == Choice.CONFIRM for option in offered),
        "blockers": facts.blockers(review),
        "stops": stops_page.rows(stops.of_intent(intent)) if intent else [],
        "seen": deciding.seen(review),
        "decisions": decisions,
        "vote": vote,
        "pending": pending,
        "asked_again": None,
        "waits": pending is not None or (vote is not None and vote.person_id == person.pk),
        "events": known.events if known else timeline.of_review(review),
        "form": form or _fresh_form(intent, known, typed.besides(request, review)),
        "comment_form": comment_form or _comment_form(number, _unsaved(form or entry_form, refusal)),
        "refusal": refusal,
        "lefts": money.open_of(intent),
        "files": attachments.of_review(review, person, fault=file_fault),
        "customer": customer_words.told(intent, known, review, now) if intent and known else "",
        "enquiry": enquiry.text(intent, known) if intent and known else "",
    }
    context |= correction.proposal_of(intent, person) | handling.context_of(review, person, now)
    if intent is None:
        context |= orphan.context_of(review, person, entry_form)
    if decisions and review.closed_at is None and not (vote or pending):
        context["asked_again"] = facts.asked_again(review)
    _remember(context, review, person)
    return show(request, "case.html", context, status=refusal.status if refusal else status)


def stay(request: DeskRequest, review_id: int, *, file_fault: str = "") -> HttpResponse:
    """The case after a step that decides nothing, in place: what was typed for the decision came along and stays.
    `file_fault`: why a file was not added."""
    if not request.htmx and not file_fault:
        return redirect("case", review_id)
    return _show(request, find(review_id), file_fault=file_fault, status=422 if file_fault else 200)


def _remember(context: dict[str, Any], review: Review, person: User) -> None:
    """Puts back what the person had begun to write, and has it kept while they go on."""
    begun = drafts.of(review, person=person)
    orphan_form = context["orphan"]["form"] if "orphan" in context else None
    typed.remember(orphan_form or context["form"], "note", review, text=begun.note)
    typed.remember(context["comment_form"], "text", review, text=begun.comment)


def _fresh_form(intent: Intent | None, known: facts.Known | None, begun: Mapping[str, Any]) -> DecisionForm:
    form = DecisionForm(intent=intent, entry=facts.only(known.candidates) if known else None)
    form.initial = {**form.initial, **begun}
    return form


def _comment_form(number: int, unsaved: str) -> CommentForm:
    form = CommentForm(number=number, initial={"text": unsaved})
    if unsaved:
        # Another field than the one on the page, which would be kept as it is, and empty.
        form.fields["text"].widget.attrs["id"] = f"id_comment_{number}_kept"
    return form


def _unsaved(form: DecisionForm | EntryForm | None, refusal: Refusal | None) -> str:
    """A note whose decision can't be made any more goes where it can still be kept."""
    return form.cleaned_data["note"] if form and refusal and refusal.note_is_homeless else ""
