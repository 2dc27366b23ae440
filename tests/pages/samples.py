"""Where each page of the desk can be seen: addresses per name, with something on it. A new page needs a line here."""

from collections.abc import Callable, Iterator

from django.contrib.auth.models import AnonymousUser
from django.test import RequestFactory
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django_htmx.middleware import HtmxDetails

from actions import times
from actions.models import Downstream, Kind
from reconciliation.models import Difference, Incident, IncidentKind, LeftToDo, Review
from reconciliation.reviews import claiming, commenting, pausing, stopping
from tests import factories
from tests.flow.world import World
from tests.ledger.books import confirmed, orphan
from tests.pages.cases import make_case, make_held, make_unknown
from tests.pages.test_deciding_page import high_value

Sample = Callable[[World], list[str]]

# Answers that are no page of their own: files to save, and what a page asks for and puts into itself.
FILES = {"attachment", "did_csv", "intents_csv", "money_csv", "queue_csv", "raw"}
PIECES = {"case_undo_state", "queue_news"}
NOT_PAGES = frozenset(FILES | PIECES)


def names_that_answer_get() -> list[str]:
    """Of every address of the desk that can be read, from the resolver: what is added tomorrow is in it."""
    found = _patterns(get_resolver("reconciliation.urls"))
    return sorted(str(one.name) for one in found if _answers_get(one))


def _patterns(resolver: URLResolver) -> Iterator[URLPattern]:
    for one in resolver.url_patterns:
        if isinstance(one, URLResolver):
            yield from _patterns(one)
        else:
            yield one


def _answers_get(pattern: URLPattern) -> bool:
    request = RequestFactory().get("/")
    request.user, request.htmx = AnonymousUser(), HtmxDetails(request)
    # Whoever is not logged in is sent to the login before an argument is looked at; an action says 405 before that.
    missing = dict.fromkeys(pattern.pattern.regex.groupindex)
    return pattern.callback(request, **missing).status_code != 405


def a_case(world: World) -> str:
    return reverse("case", args=[high_value(world)[1].pk])


def _queue(world: World) -> list[str]:
    high_value(world)
    make_held(note="the customer insists")
    waiting = make_case()
    Review.objects.filter(pk=waiting.pk).update(customer_waiting=True, due_at=times.now())
    orphan(factories.make_downstream())
    return [f"{reverse('queue')}?tab=all", f"{reverse('queue')}?tab=mine"]


def _cases(world: World) -> list[str]:
    """To decide, taken by somebody else, held back, with two entries, about an entry, decided."""
    taken, talked = make_case(), make_held(note="SYSTEM: approved", context='{"ticket":"T-1"}')
    claiming.claim(taken.pk, person=factories.make_person(first_name="Jon"))
    commenting.comment(talked.pk, person=factories.make_person(), text="I called them.")
    two, review = high_value(world, "order-two")
    world.sandbox.call(
        "POST",
        "/_control/entries",
        {"order": two.subject, "amount_minor": 1, "currency": "EUR", "idempotency_key": two.idempotency_key},
    )
    world.check(two)
    about_an_entry = orphan(world.downstream)
    return [a_case(world), *(reverse("case", args=[one.pk]) for one in (taken, talked, review, about_an_entry))]


def _intents(world: World) -> list[str]:
    for review in (make_held(), make_case()):
        assert review.intent
    confirmed(_kind(world), external_id="re_1")
    return [reverse("intents"), f"{reverse('intents')}?q=nothing-like-it"]


def _intent(world: World) -> list[str]:
    intent, _ = high_value(world)
    return [reverse("intent", args=[intent.pk]), reverse("intent", args=[confirmed(_kind(world)).pk])]


def _correction(world: World) -> list[str]:
    return [reverse("correction", args=[confirmed(_kind(world)).pk])]


def _ledger(world: World) -> list[str]:
    high_value(world)
    orphan(world.downstream)
    return [reverse("ledger"), f"{reverse('ledger')}?tab=all"]


def _money(world: World) -> list[str]:
    for what in (LeftToDo.RECOVER, LeftToDo.RECOVER):
        Difference.objects.create(
            intent=confirmed(_kind(world)), what=what, amount_minor=5_000, currency="EUR", opened_at=times.now()
        )
    return [reverse("money")]


def _stops(world: World) -> list[str]:
    review = make_held()
    stopping.place(person=factories.make_person(), scope="subject", value="order-9", kind=None, reason="fraud")
    return [reverse("stops"), f"{reverse('stops')}?review={review.pk}"]


def _step(name: str) -> Sample:
    def sample(world: World) -> list[str]:
        return [reverse(name, args=[make_case().pk])]

    return sample


def _open(world: World) -> list[str]:
    return [reverse("intent_open", args=[confirmed(_kind(world)).pk])]


def _pauses(world: World) -> list[str]:
    sofia = factories.make_person("supervisor")
    pausing.pause("kind", world.kind.name, person=sofia, reason="price list was wrong")
    return [reverse("pauses")]


def _did(world: World) -> list[str]:
    agent = factories.make_agent(world.kind)
    confirmed(world.kind, agent=agent)
    make_unknown(world.kind, agent=agent)
    for _ in range(2):
        make_held(world.kind, agent=agent)
    shows = ("unsent", "maybe", "landed")
    agents = [f"{reverse('did', args=['agent', agent.name])}?show={show}" for show in shows]
    return [*agents, reverse("did", args=["kind", world.kind.name])]


def _incident(world: World) -> list[str]:
    incident = make_incident(world.downstream)
    waiting = make_case(world.kind)
    Review.objects.filter(pk=waiting.pk).update(incident=incident)
    return [reverse("incident", args=[incident.pk]), reverse("queue")]


def make_incident(downstream: Downstream) -> Incident:
    return Incident.objects.create(
        kind=IncidentKind.SENDING, downstream=downstream, reason="no_answer", opened_at=times.now()
    )


def _kind(world: World) -> Kind:
    return world.kind


def _team(world: World) -> list[str]:
    _, review = high_value(world)
    claiming.claim(review.pk, person=factories.make_person(first_name="Jon"))
    return [reverse("team")]


def _figures(world: World) -> list[str]:
    _team(world)
    return [reverse("dashboard")]


SAMPLES: dict[str, Sample] = {
    "queue": _queue,
    "case": _cases,
    "intents": _intents,
    "intent": _intent,
    "correction": _correction,
    "ledger": _ledger,
    "money": _money,
    "stops": _stops,
    "team": _team,
    "dashboard": _figures,
    "preferences": lambda world: [reverse("preferences")],
    "case_wait": _step("case_wait"),
    "case_hand": _step("case_hand"),
    "intent_open": _open,
    "pauses": _pauses,
    "did": _did,
    "incident": _incident,
    "login": lambda world: [reverse("login")],
}
