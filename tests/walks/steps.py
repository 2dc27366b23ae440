"""What people do at the desk, in their own words. `page` is the browser of whoever does it."""

from typing import Any

from actions.models import Intent
from tests.flow.world import World


def press(page: Any, button: str) -> None:
    page.get_by_role("button", name=button).first.click()


def decide(page: Any, button: str, *, reason: str, note: str = "") -> None:
    page.get_by_label("Reason").first.select_option(reason)
    if note:
        page.locator("#decision [name=note]").fill(note)
    press(page, button)


def says(page: Any) -> str:
    """The one sentence that answers: what happened?"""
    return str(page.inner_text(".says"))


def unfold(page: Any, title: str) -> None:
    """Opens what is folded away, as a click on it would."""
    page.locator("summary", has_text=title).first.click()


def lose(world: World, order: str, amount: str = "50.00", *, booked: bool = False, **more: Any) -> Intent:
    """A refund that was sent and never answered; `booked`: it happened all the same."""
    world.sandbox.order_fault(order, "lose_response" if booked else "error_500_not_booked")
    intent = world.propose(order, amount, **more)
    world.send()
    return world.read(intent)


def book(world: World, intent: Intent, amount_minor: int, **columns: Any) -> None:
    """Writes an entry with the intent's key into the provider's ledger."""
    found = {
        "order": intent.subject,
        "amount_minor": amount_minor,
        "currency": intent.currency,
        "type": "refund",
        "status": "succeeded",
        "idempotency_key": intent.idempotency_key,
    }
    assert world.sandbox.call("POST", "/_control/entries", found | columns).status == 201
