"""What people do at the desk, over HTTP, as their browser would."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from actions import times
from actions.models import Intent
from reconciliation.models import Review
from tests import factories
from tests.flow.world import World

T = TypeVar("T")


def log_in(role: str = "reviewer", **columns: Any) -> tuple[Client, User]:
    person = factories.make_person(role, **columns)
    return again(person), person


def again(person: User) -> Client:
    """One more session of the same person."""
    client = Client()
    client.force_login(person)
    return client


def text_of(response: Any) -> str:
    return str(response.content.decode())


def press(page: Any, choice: str = "confirm", **more: str) -> dict[str, str]:
    """What the browser sends when that button is pressed on the page of a case."""
    seen, form = page.context["seen"], page.context["form"]
    given = {"choice": choice, "reason": "ledger", "note": ""}
    if form["entry"].value():
        given["entry"] = str(form["entry"].value())
    for name in ("settled_amount", "settled_currency"):
        given[name] = str(form[name].value() or "")
    given |= {"seen_version": str(seen.version), "seen_verdict": seen.verdict, "seen_digest": seen.digest}
    return given | more


def lost_answer(world: World, subject: str = "order-10", amount: str = "640.00") -> tuple[Intent, Review]:
    """Sent, done, no answer; the ledger shows it, and a person has to say so."""
    world.sandbox.order_fault(subject, "lose_response")
    intent = world.propose(subject, amount)
    world.send()
    world.check(intent)
    return world.read(intent), world.review(intent)


def read(review: Review) -> Review:
    return Review.objects.select_related("intent", "owner", "holder").get(pk=review.pk)


def all_at_once(acts: Sequence[Callable[[], T]]) -> list[T | BaseException]:
    """Runs each in a thread of its own, let go together; what each returned or raised, in their order."""
    found: list[T | BaseException] = [RuntimeError("never ran")] * len(acts)
    start = threading.Barrier(len(acts))

    def run(place: int, act: Callable[[], T]) -> None:
        try:
            start.wait(timeout=20)
            found[place] = act()
        except BaseException as raised:
            found[place] = raised
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=one) for one in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def beside(act: Callable[[], T], *, wait_s: float = 0.2) -> Callable[[], T | BaseException]:
    """Begins it in a thread of its own, which has so long to come to where it has to wait; gives what waits for the
    end and says what it returned or raised."""
    found: list[T | BaseException] = []

    def run() -> None:
        try:
            found.append(act())
        except BaseException as raised:
            found.append(raised)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(wait_s)

    def end() -> T | BaseException:
        thread.join()
        return found[0]

    return end


def lease_is_over(review: Review) -> None:
    Review.objects.filter(pk=review.pk).update(lease_until=times.now())
