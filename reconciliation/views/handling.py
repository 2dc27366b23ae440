"""What people do with a case besides deciding it, and what surrounds the moment of deciding."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView, LogoutView
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django_htmx.http import HttpResponseClientRedirect

from actions import times
from actions.errors import Invalid, LandedError, PersonNotAllowed, ReviewClosed, ReviewHeld
from actions.models import Intent
from reconciliation.handling_forms import HandlingForm, HandOverForm, OpenCaseForm, WaitForm
from reconciliation.models import AfterDeciding, Choice, Decision, Review
from reconciliation.reviews import (
    claiming,
    deciding,
    opening_by_hand,
    pending,
    people,
    preferences,
    waiting,
)
from reconciliation.reviews.deciding import Decided
from reconciliation.templatetags.desk import person as name_of
from reconciliation.views import comfort, refusals, skipping, watching
from reconciliation.views.frame import DeskRequest, action, page, page_at, show
from reconciliation.views.refusals import Refusal

DECIDED = {
    "effective": "It has taken effect.",
    "undo_window": "It takes effect when the time to undo it is over.",
    "second_person": "A second, different person has to agree before it takes effect.",
}
NO_MORE = "No case is free at the moment."
ALL_SKIPPED = "No other case is free. Those that you skipped are still in the queue."


@dataclass(frozen=True)
class Handling:
    """What this person can do with this case now; the forms are empty."""

    wait_form: WaitForm
    hand_form: HandOverForm
    is_mine: bool
    is_others: bool
    may_take_over: bool
    waits: bool
    voted: bool


def context_of(review: Review, person: User, now: datetime) -> dict[str, Any]:
    """For `_handling.html`. Nothing for whoever may not decide, and of a case that is closed or decided."""
    if review.closed_at is not None or not people.may_decide(person) or pending.decided(review) is not None:
        return {}
    held = claiming.holds_now(review, now)
    is_others = (review.owner_id or person.pk) != person.pk or (held and review.holder_id != person.pk)
    return {
        "handling": Handling(
            wait_form=WaitForm(now=now, zone=comfort.zone()),
            hand_form=HandOverForm(person=person),
            is_mine=review.owner_id == person.pk,
            is_others=is_others,
            may_take_over=is_others and people.may_supervise(person),
            waits=review.waits_until is not None,
            voted=claiming.has_voted(review, person),
        )
    }


# A step with a case: what it does, what is said afterwards, and where it leads.


def _find(review_id: int) -> Review:
    related = ("intent__kind", "entry", "owner", "holder")
    found = Review.objects.select_related(*related).filter(pk=review_id).first()
    if found is None:
        raise Http404("There is no such case.")
    return found


def _step(request: DeskRequest, review_id: int, act: Callable[[], object], said: str) -> HttpResponse:
    try:
        act()
    except LandedError as refused:
        messages.warning(request, said_of(refused))
    else:
        messages.success(request, said)
    return redirect("case", review_id)


def said_of(refused: LandedError) -> str:
    """A refusal in one line: by whom, and until or since when."""
    words = str(refused.details.get("words") or refused.message)
    who = refused.details.get("owner") or refused.details.get("by")
    if not isinstance(who, User):
        return words
    until, at = refused.details.get("until"), refused.details.get("at")
    if isinstance(refused, ReviewHeld) and isinstance(until, datetime):
        return f"{name_of(who)} has it until {_clock(until)}."
    if isinstance(refused, ReviewClosed) and isinstance(at, datetime):
        return f"{words} {name_of(who)} decided it at {_clock(at)}."
    return f"{words} It is {name_of(who)}'s."


def _clock(when: datetime) -> str:
    zone = comfort.zone()
    return f"{when.astimezone(zone):%H:%M}" if zone else f"{when:%H:%M} UTC"


def refusal_of(refused: LandedError, person: User) -> Refusal:
    """Why nothing was decided; one's own earlier decision is no bad news."""
    found = refusals.words(refused)
    if refused.details.get("words"):
        found = replace(found, title=str(refused.details["words"]))
    if isinstance(refused, ReviewClosed) and refused.details.get("by") == person:
        found = replace(found, title="You have decided this case already; nothing was decided again.")
    return found


def _go(request: DeskRequest, address: str) -> HttpResponse:
    """To another page. htmx would put it under the address of the page that it left."""
    return HttpResponseClientRedirect(address) if request.htmx else redirect(address)


def _next(request: DeskRequest, *, instead: bool = False) -> HttpResponse:
    """`instead`: of whatever they work on, which is free again then and counts as skipped: going on leads on, and not
    back to it."""
    review = claiming.take_next(person=request.user, besides=skipping.skipped(request.session))
    if review is None:
        messages.info(request, ALL_SKIPPED if skipping.skipped(request.session) else NO_MORE)
        return _go(request, reverse("queue"))
    if instead:
        for left in claiming.release_others(review.pk, person=request.user):
            skipping.skip(request.session, left)
    return _go(request, reverse("case", args=[review.pk]))


@action
def next_case(request: DeskRequest) -> HttpResponse:
    """Takes the most urgent free case that this person has not skipped, instead of the one that they had."""
    return _next(request, instead=True)


@action
def skip(request: DeskRequest, review_id: int) -> HttpResponse:
    """Gives a case back and takes the next one."""
    claiming.release(review_id, person=request.user)
    skipping.skip(request.session, review_id)
    return _next(request, instead=True)


@action
def renew(request: DeskRequest, review_id: int) -> HttpResponse:
    """Asked by the page while somebody is active on it: keeps the lease, or says by whom it was lost."""
    until = claiming.renew(review_id, person=request.user)
    lost = "" if until else said_of(claiming.why_not(review_id))
    return show(request, "_lease.html", {"review_id": review_id, "lease_until": until, "lost": lost})


@action
def keep(request: DeskRequest, review_id: int) -> HttpResponse:
    said = "This case is yours until you give it back or decide it."
    return _step(request, review_id, lambda: claiming.keep(review_id, person=request.user), said)


@action
def give_back(request: DeskRequest, review_id: int) -> HttpResponse:
    said = "The case is back in the queue for everybody."
    return _step(request, review_id, lambda: claiming.disown(review_id, person=request.user), said)


@action
def take_over(request: DeskRequest, review_id: int) -> HttpResponse:
    note = request.POST.get("note", "")
    said = "The case is yours now. Whoever had it is told on their page."
    return _step(request, review_id, lambda: claiming.take_over(review_id, person=request.user, note=note), said)


@action
def raise_case(request: DeskRequest, review_id: int) -> HttpResponse:
    waits = request.POST.get("waits") == "yes"
    said = "The customer waits: the case is at the top of the queue." if waits else "The customer does not wait."
    act = opening_by_hand.customer_waits
    return _step(request, review_id, lambda: act(review_id, person=request.user, waits=waits), said)


@action
def resume(request: DeskRequest, review_id: int) -> HttpResponse:
    note = request.POST.get("note", "")
    said = "The case does not wait any more."
    return _step(request, review_id, lambda: waiting.resume(review_id, person=request.user, note=note), said)


# Steps with a form have a page of their own, which also shows what is missing.


def _form_page(
    request: DeskRequest, review: Review, template: str, form: HandlingForm, *, status: int = 200
) -> HttpResponse:
    context = {"here": "queue", "review": review, "intent": review.intent, "step": template, "form": form}
    return show(request, "case_step.html", context, status=status)


def _with_form(
    request: DeskRequest, review: Review, template: str, form: HandlingForm, act: Callable[[], object], said: str
) -> HttpResponse:
    if not form.is_valid():
        return _form_page(request, review, template, form, status=422)
    try:
        act()
    except Invalid as wrong:
        form.refuse(wrong)
        return _form_page(request, review, template, form, status=422)
    except PersonNotAllowed:
        raise
    except LandedError as refused:
        form.add_error(None, said_of(refused))
        return _form_page(request, review, template, form, status=409)
    messages.success(request, said)
    return redirect("case", review.pk)


@page
def wait(request: DeskRequest, review_id: int) -> HttpResponse:
    form = WaitForm(now=times.now(), zone=comfort.zone())
    return _form_page(request, _find(review_id), "_wait_form.html", form)


@action
def put_aside(request: DeskRequest, review_id: int) -> HttpResponse:
    review = _find(review_id)
    told = comfort.zone_called(request.POST.get("zone", ""))
    form = WaitForm(request.POST, now=times.now(), zone=comfort.zone(), told=told)
    said = "Put aside. It comes back to you by itself at the time that you chose, or when something new is known."
    return _with_form(
        request,
        review,
        "_wait_form.html",
        form,
        lambda: waiting.put_aside(review_id, person=request.user, **form.asked()),
        said,
    )


@page
def hand(request: DeskRequest, review_id: int) -> HttpResponse:
    return _form_page(request, _find(review_id), "_hand_over.html", HandOverForm(person=request.user))


@action
def hand_over(request: DeskRequest, review_id: int) -> HttpResponse:
    review, form = _find(review_id), HandOverForm(request.POST, person=request.user)
    chosen: Any = form.cleaned_data["to"] if form.is_valid() else None
    return _with_form(
        request,
        review,
        "_hand_over.html",
        form,
        lambda: claiming.hand_over(review_id, person=request.user, to=chosen, note=form.cleaned_data["note"]),
        f"Handed over to {name_of(chosen)}, with your note.",
    )


# A case by hand, on the page of its intent.


def open_context(intent: Intent, person: User, now: datetime) -> dict[str, Any]:
    """For `_open_case.html`."""
    if not people.may_decide(person):
        return {}
    return {
        "open_form": OpenCaseForm(),
        "open_warning": opening_by_hand.warning(intent),
        "open_against": opening_by_hand.against(intent, now),
    }


def _open_page(request: DeskRequest, intent: Intent, form: OpenCaseForm, *, status: int = 200) -> HttpResponse:
    context = {"here": "intents", "review": None, "intent": intent, "step": "_open_case.html"}
    context |= open_context(intent, request.user, times.now()) | {"open_form": form, "open_now": True}
    return show(request, "case_step.html", context, status=status)


def _intent(intent_id: UUID) -> Intent:
    found = Intent.objects.select_related("kind").filter(pk=intent_id).first()
    if found is None:
        raise Http404("There is no such intent.")
    return found


@page
def open_page(request: DeskRequest, intent_id: UUID) -> HttpResponse:
    return _open_page(request, _intent(intent_id), OpenCaseForm())


@action
def open_case(request: DeskRequest, intent_id: UUID) -> HttpResponse:
    intent, form = _intent(intent_id), OpenCaseForm(request.POST)
    if not form.is_valid():
        return _open_page(request, intent, form, status=422)
    try:
        review = opening_by_hand.open_case(intent_id, person=request.user, **form.cleaned_data)
    except Invalid as wrong:
        form.refuse(wrong)
        return _open_page(request, intent, form, status=422)
    except LandedError as refused:
        form.add_error(None, said_of(refused))
        return _open_page(request, intent, form, status=409)
    messages.success(request, "The case is open.")
    return _go(request, reverse("case", args=[review.pk]))


# After deciding: where it leads, and back.


def decided(request: DeskRequest, review: Review, made: Decided) -> HttpResponse:
    """Leads on as the person prefers. From wherever they are, what was decided can be taken back for a while."""
    row = made.decision
    if made.state != "effective":
        watching.watch(request.session, [row.pk])
    likes = preferences.of(request.user).after_deciding
    if made.state != "undo_window":
        where = "" if likes == AfterDeciding.STAY else format_html(" · {}", watching.what(row))
        words = format_html("Decided: {}{}. {}", Choice(row.choice).label, where, DECIDED[made.state])
        messages.success(request, words)
    if likes == AfterDeciding.NEXT:
        return _next(request)
    if likes == AfterDeciding.QUEUE:
        return _go(request, reverse("queue"))
    return redirect("case", review.pk)


def made_already(request: DeskRequest, review: Review, ballot: Mapping[str, Any]) -> HttpResponse | None:
    """A second press of the button leads where the first one did. None: it was no second press."""
    made = deciding.made_already(review.pk, person=request.user, choice=ballot["choice"], seen=ballot["seen"])
    return decided(request, review, made) if made is not None else None


@action
def undo(request: DeskRequest, review_id: int) -> HttpResponse:
    """Takes one's own decision back, from whatever page one is on; leads to its case."""
    _find(review_id)
    number = request.POST.get("decision", "")
    pk = int(number) if number.isascii() and number.isdigit() and len(number) < 19 else 0
    try:
        pending.undo(pk, person=request.user)
    except PersonNotAllowed:
        raise
    except LandedError as refused:
        messages.warning(request, refused.message)
    else:
        watching.unwatch(request.session, pk)
        second = Decision.objects.filter(pk=pk, about__isnull=False).exists()
        rest = "Both votes are asked for anew." if second else "The case is as it was."
        messages.success(request, f"Taken back: nothing was decided. {rest}")
    return _go(request, reverse("case", args=[review_id]))


@page
def undo_state(request: DeskRequest, review_id: int) -> HttpResponse:
    """What became of a decision whose undo window has ended, asked by the page that showed it."""
    rows = Decision.objects.filter(review=review_id, choice__in=pending.CHOICES, takes_effect_at__isnull=False)
    row = rows.select_related("person").order_by("-pk").first()
    if row is None:
        raise Http404("Nothing was decided here.")
    became = Decision.objects.filter(about=row).values_list("choice", flat=True).first()
    context = {"review": _find(review_id), "pending": row, "became": became or "", "asked": True}
    return show(request, "_undo.html", context)


# Coming and going.


class LogIn(LoginView):
    """Tells whoever comes back what became of their votes meanwhile."""

    template_name = "login.html"
    redirect_authenticated_user = True

    def get_redirect_url(self) -> str:
        """Never to where one can't go, only do something."""
        return page_at(super().get_redirect_url())

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        person = form.get_user()
        seen = person.last_login
        response = super().form_valid(form)
        watching.watch(self.request.session, watching.voided_since(person, seen))
        return response


class LogOut(LogoutView):
    """Whoever goes gives back what they work on; what they own stays theirs."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if isinstance(person := request.user, User) and person.is_authenticated:
            claiming.release_all(person=person)
        return super().post(request, *args, **kwargs)
