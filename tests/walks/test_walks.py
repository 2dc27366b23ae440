"""Ten cases that a support lead has had, each walked through at the desk in a real browser."""

from datetime import timedelta
from uuid import UUID

import pytest
import uuid_utils

from actions import breakers, times
from actions.models import Downstream, Intent, Kind, Line
from actions.statuses import Status
from reconciliation.models import Incident, Review, Verdict
from reconciliation.reviews import relinking
from tests import factories
from tests.browsing import open_case, row_of
from tests.flow.world import World
from tests.ledger.books import confirmed
from tests.pages.cases import make_case
from tests.pages.many import make_cases
from tests.walks.conftest import SitDown
from tests.walks.steps import book, decide, lose, press, says, unfold

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_ledger_shows_another_amount(world: World, sit_down: SitDown) -> None:
    """50.00 were meant, 48.50 booked: what was settled is what the ledger says, and the rest is not forgotten."""
    intent = lose(world, "order-5120")
    book(world, intent, 4_850)
    world.later(5)
    assert world.check(intent).verdict == Verdict.PARTIAL

    rita = sit_down("Rita")
    open_case(rita, "order-5120")
    row = rita.locator("table.facts tr", has_text="Amount").first
    assert "50.00" in row.inner_text()
    assert "48.50" in row.inner_text()
    assert "differs" in row.inner_text()
    assert rita.input_value("[name=settled_amount]") == "48.50"
    decide(rita, "Confirm: it happened", reason="ledger", note="A fee was taken off.")
    rita.wait_for_selector("text=It has taken effect")

    assert says(rita) == "It happened."
    found = world.read(intent)
    assert (found.status, found.settled_amount_minor) == ("confirmed", 4_850)
    rita.goto("/money/")
    assert "1.50" in rita.inner_text("main")
    assert "order-5120" in rita.inner_text("main")


def test_the_ledger_shows_two_entries(world: World, sit_down: SitDown) -> None:
    """Both are shown beside the intent. One is it; the other is money to get back, and stays on a list."""
    intent = lose(world, "order-88", booked=True)
    book(world, intent, 5_000)
    world.later(5)
    world.check(intent)

    rita = sit_down("Rita")
    open_case(rita, "order-88")
    assert rita.locator("table.facts thead th", has_text="Ledger").count() == 2
    chosen = rita.locator(".settles input[type=radio]").first.get_attribute("value")
    rita.locator(".settles input[type=radio]").first.check()
    decide(rita, "Confirm: it happened", reason="ledger", note="The first one is ours.")
    rita.wait_for_selector("text=It has taken effect")

    assert world.read(intent).status == "confirmed"
    settles = relinking.settling(world.read(intent))
    assert settles is not None
    assert str(settles.pk) == chosen
    rita.goto("/money/")
    assert "Money to recover € 50.00" in rita.inner_text(".lefts").replace("\u00a0", " ")


def test_nothing_after_twenty_minutes_and_the_customer_waits(world: World, sit_down: SitDown) -> None:
    """What can be told to the customer stands there. The ledger can't show it, so nobody says that it failed."""
    Downstream.objects.update(absence_conclusive=False)
    older = make_case(world.kind)
    Review.objects.filter(pk=older.pk).update(due_at=times.now())
    intent = lose(world, "order-4813")
    world.later(1_200)
    world.check(intent)

    rita = sit_down("Rita")
    open_case(rita, "order-4813")
    unfold(rita, "More")
    press(rita, "The customer waits")
    rita.wait_for_selector("text=customer waits")
    rita.goto("/")
    first = rita.locator("#main tbody tr").first
    assert "order-4813" in first.inner_text()
    assert "waiting" in first.inner_text()
    first.locator("a.row-link").click()
    rita.wait_for_selector("text=For the customer")
    assert "failed" not in rita.inner_text(".say").lower()
    copied = rita.get_by_role("button", name="Copy", exact=True).first.get_attribute("data-copy")
    assert copied == rita.inner_text(".say .quote")
    assert intent.idempotency_key in str(rita.get_by_role("button", name="Copy enquiry").get_attribute("data-copy"))


def test_a_transfer_is_held_for_approval(world: World, sit_down: SitDown) -> None:
    """Nothing leaves before a person says so; then exactly one request does."""
    Kind.objects.update(title="Transfer", limits={"EUR": {"approve_above": 100_000}})
    intent = world.propose("inv-88/2", "1200.00")
    world.send()
    assert (world.read(intent).status, world.posts(intent)) == ("held", 0)

    rita = sit_down("Rita")
    open_case(rita, "inv-88/2")
    assert "Transfer" in rita.inner_text("h1")
    assert rita.get_by_role("button", name="Confirm: it happened").count() == 0
    decide(rita, "Approve: send it", reason="justified")
    rita.wait_for_selector("text=It has taken effect")

    world.send()
    found = world.read(intent)
    assert (found.status, world.posts(intent)) == ("confirmed", 1)


def test_a_half_finished_case_goes_over_at_the_end_of_a_shift(world: World, sit_down: SitDown) -> None:
    """What Rita knew comes with it; her leaving frees nothing that she handed over, and Ravi decides."""
    intent = lose(world, "order-77", "640.00", booked=True)
    world.later(5)
    world.check(intent)
    rita, ravi = sit_down("Rita"), sit_down("Ravi")
    open_case(rita, "order-77")
    press(rita, "Take this case")
    rita.wait_for_selector("text=held by you until")
    unfold(rita, "More")
    unfold(rita, "Hand it over")
    rita.get_by_label("To", exact=True).select_option(label="Ravi")
    rita.locator("#id_hand_note").fill("Customer sends her bank statement tonight.")
    press(rita, "Hand it over")
    rita.wait_for_selector("text=Handed over to Ravi")
    press(rita, "Log out")
    rita.wait_for_url("**/login/")

    open_case(ravi, "order-77", tab="mine")
    assert "Customer sends her bank statement tonight." in ravi.inner_text("main")
    decide(ravi, "Confirm: it happened", reason="ledger")
    ravi.wait_for_selector("text=It has taken effect")
    assert world.read(intent).status == "confirmed"


def test_the_wrong_one_was_confirmed(world: World, sit_down: SitDown) -> None:
    """A supervisor says what is true, a second person agrees, and the agent sees it on its next read."""
    intent = world.propose("order-31")
    world.send()
    world.later(5)
    world.check(intent)
    assert world.read(intent).status == "confirmed"

    sofia, ravi = sit_down("Sofia", "supervisor"), sit_down("Ravi")
    sofia.goto(f"/intents/{intent.pk}/")
    sofia.get_by_role("link", name="Correct how it was settled").click()
    sofia.get_by_label("It did not happen").check()
    sofia.get_by_label("Reason").select_option("provider_says")
    sofia.locator("[name=note]").fill("The provider took it back: test booking.")
    press(sofia, "Propose the correction")
    sofia.wait_for_selector("text=Proposed.")
    assert sofia.get_by_role("button", name="Agree").count() == 0
    assert world.read(intent).status == "confirmed"

    ravi.goto(f"/intents/{intent.pk}/")
    ravi.get_by_role("link", name="Look at it").click()
    assert "The provider took it back" in ravi.inner_text("main")
    press(ravi, "Agree")
    ravi.wait_for_selector("text=it is corrected")
    assert world.read(intent).status == "failed"


def test_a_downstream_is_down_and_four_hundred_cases_wait_for_it(world: World, sit_down: SitDown) -> None:
    """One line, not four hundred; nobody is given one of them; the rest of the queue goes on."""
    Downstream.objects.filter(pk=world.downstream.pk).update(breaker_after=1)
    cases = make_cases(400, world.kind, prefix="down")
    breakers.unanswered(Downstream.objects.get(pk=world.downstream.pk), Line.SENDING, now=times.now())
    incident = Incident.objects.get(closed_at=None)
    Review.objects.filter(pk__in=[one.pk for one in cases]).update(incident=incident)
    other = factories.make_intent(to=Status.HELD, hold_reasons="approval", subject="order-of-another")

    rita = sit_down("Rita")
    rita.goto("/")
    assert "400 cases" in rita.inner_text(".outage")
    assert rita.locator("#main tbody tr").count() == 1
    press(rita, "Next case")
    rita.wait_for_selector("text=held by you until")
    assert "order-of-another" in rita.inner_text("main")
    assert Review.objects.get(intent=other).holder.first_name == "Rita"
    rita.keyboard.press("n")
    rita.wait_for_selector("text=No case is free at the moment")
    rita.locator(".outage a").first.click()
    rita.wait_for_selector("text=goes on")
    assert "400 cases wait" in rita.inner_text("main")


def test_the_provider_answers_tomorrow(world: World, sit_down: SitDown) -> None:
    """The case leaves everybody's queue and comes back by itself, to whoever put it aside."""
    Downstream.objects.update(absence_conclusive=False)
    intent = lose(world, "order-61")
    for _ in range(3):
        world.later(400)
        world.check(intent)

    rita, ravi = sit_down("Rita"), sit_down("Ravi")
    open_case(rita, "order-61")
    unfold(rita, "More")
    unfold(rita, "Wait for somebody")
    rita.get_by_label("Waits for").select_option("provider")
    rita.locator("[name=reference]").fill("T-4711")
    press(rita, "Put it aside until then")
    rita.wait_for_selector("text=Put aside.")
    assert "T-4711" in rita.inner_text("main")
    for page in (rita, ravi):
        page.goto("/?tab=unclaimed")
        assert row_of(page, "order-61").count() == 0
    press(ravi, "Next case")
    ravi.wait_for_selector("text=No case is free at the moment")
    rita.goto("/?tab=waiting")
    assert row_of(rita, "order-61").count() == 1

    world.later(timedelta(days=2).total_seconds())
    world.sweep()
    rita.goto("/?tab=waiting")
    assert row_of(rita, "order-61").count() == 0
    rita.goto("/?tab=mine")
    assert row_of(rita, "order-61").count() == 1


def test_fraud_is_suspected(world: World, sit_down: SitDown) -> None:
    """From the case: stop whom it would go to, reject it, and the next attempt does not leave either."""
    Kind.objects.update(limits={"EUR": {"approve_above": 10_000}})
    intent = world.propose("order-13", "120.00")
    rita = sit_down("Rita")
    open_case(rita, "order-13")
    rita.get_by_role("link", name="subject").click()
    rita.get_by_label("Reason").fill("Three refunds, three names, one account")
    press(rita, "Place the stop")
    rita.wait_for_selector("text=Stopped:")
    assert "order-13" in rita.inner_text("h1 + *, .title")
    decide(rita, "Reject: don't send it", reason="suspected_fraud", note="See the stop.")
    rita.wait_for_selector("text=Rejected: it is not sent.")
    assert world.read(intent).status == "cancelled"

    again = world.propose("order-13", "20.00")
    world.send()
    assert (world.read(again).status, world.posts(again)) == ("held", 0)
    rita.goto("/")
    assert row_of(rita, "order-13").count() == 1


def test_one_agent_proposed_three_hundred_refunds(world: World, sit_down: SitDown) -> None:
    """Stop it first; then see what is unsent and what landed; then cancel what is unsent, all at once."""
    agent = factories.make_agent(world.kind, name="wild-bot")
    copy(confirmed(world.kind, agent=agent, subject="landed", amount_minor=1_000), 280)
    copy(factories.make_intent(world.kind, agent, subject="unsent", amount_minor=1_000), 20)

    sofia = sit_down("Sofia", "supervisor")
    sofia.goto("/pauses/")
    sofia.get_by_label("What", exact=True).select_option("agent:wild-bot")
    sofia.get_by_label("Reason").fill("Refunds whatever it is asked")
    press(sofia, "Pause it")
    sofia.wait_for_selector("text=Refunds whatever it is asked")
    sofia.goto("/agent/wild-bot/?show=landed")
    assert "This agent is paused." in sofia.inner_text("main")
    landed = sofia.inner_text("table.sums tr:has-text('Landed')")
    assert "280" in landed
    assert "2,800.00" in landed
    saved = sofia.request.get(sofia.get_by_role("link", name="Export as CSV").get_attribute("href")).text()
    assert saved.count("wild-bot") == 280

    sofia.get_by_role("link", name="Unsent").click()
    press(sofia, "Cancel all 20")
    sofia.wait_for_selector("text=Nothing is done yet.")
    assert Intent.objects.filter(agent=agent, status="cancelled").count() == 0
    sofia.get_by_label("Note").fill("The agent ran wild.")
    press(sofia, "Cancel 20")
    sofia.wait_for_selector("text=20 of 20 cancelled")
    assert Intent.objects.filter(agent=agent, status="cancelled").count() == 20
    world.send()
    assert world.sandbox.requests("unsent-1") == []


def copy(first: Intent, count: int) -> None:
    """Makes it so many in all, on orders of their own."""
    columns = {field.attname: getattr(first, field.attname) for field in Intent._meta.concrete_fields}
    Intent.objects.bulk_create(Intent(**(columns | own(f"{first.subject}-{number}"))) for number in range(1, count))


def own(order: str) -> dict[str, object]:
    key = str(uuid_utils.uuid7())
    return {"id": UUID(key), "subject": order, "family": order, "idempotency_key": key, "guard_key": None}
