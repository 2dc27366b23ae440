"""Three hundred refunds by one agent, as a support lead lives through it."""

import threading
from typing import Any

import pytest
from django.db import connections

from actions import dispatch
from actions.models import Intent, Transition
from actions.statuses import Status
from tests import factories
from tests.desk_wild import scenes
from tests.desk_wild.scenes import confirm, main_of
from tests.pages.cases import log_in

UNSENT, UNKNOWN, LANDED = 258, 12, 30


@pytest.mark.django_db(transaction=True)
def test_three_hundred_refunds_by_one_agent() -> None:
    kind = scenes.sendable(title="Refund")
    agent = factories.make_agent(kind, name="support-bot")
    for _ in range(UNSENT):
        scenes.recorded(kind, agent, amount_minor=5_000)
    for _ in range(UNKNOWN):
        scenes.unknown(kind, agent, amount_minor=5_000)
    for _ in range(LANDED):
        scenes.landed(kind, agent, amount_minor=5_000)
    client, person = log_in("supervisor", first_name="Sofia")

    # She opens the agent's page and sees it all in one look.
    page = main_of(client.get("/agent/support-bot/"))
    for words in ("not paused", "€\u00a012,900.00", "€\u00a0600.00", "€\u00a01,500.00"):
        assert words in page

    # While she reads, a worker goes on sending: it has claimed five when she pauses the agent.
    claimed = dispatch.claim(slots=5)
    assert len(claimed) == 5
    given = {"what": "agent:support-bot", "reason": "Refunds without orders", "back": "/agent/support-bot/"}
    page = main_of(client.post("/pauses/pause/", given, follow=True))
    assert "This agent is paused." in page
    assert dispatch.claim(slots=8) == []
    agent.refresh_from_db()
    assert agent.paused

    # All that is unsent is cancelled: previewed, then done, an answer for each.
    preview = client.post(
        "/bulk/",
        {"action": "cancel", "all": "unsent", "scope": "agent", "name": "support-bot", "back": given["back"]},
    )
    assert "253 of 253 would be cancelled, " in main_of(preview)
    assert Intent.objects.filter(status=Status.CANCELLED).count() == 0
    done = confirm(client, preview, note="Refunds without orders")
    assert "253 of 253 cancelled" in main_of(done)
    assert Intent.objects.filter(agent=agent, status=Status.CANCELLED).count() == 253
    assert Transition.objects.filter(to_status="cancelled", actor_id=f"person:{person.pk}").count() == 253

    # What may have happened is left as it is, and listed apart with its sum.
    response = client.get("/agent/support-bot/?show=maybe")
    counts = {group.name: group.count for group in response.context["groups"]}
    assert counts == {"unsent": 0, "maybe": UNKNOWN + 5, "landed": LANDED, "not": 253}

    # Pressed once more, nothing more is changed.
    again = confirm(client, preview, note="Refunds without orders")
    assert len(again.context["already"]) == 253
    assert Transition.objects.filter(to_status="cancelled").count() == 253


@pytest.mark.django_db(transaction=True)
def test_cancelled_in_bulk_while_workers_claim_nothing_is_both_cancelled_and_sent() -> None:
    """Nobody paused anything: she cancels straight away, and two workers claim at the same time."""
    kind = scenes.sendable()
    agent = factories.make_agent(kind)
    down = kind.downstream
    down.max_concurrency = 1_000
    down.save()
    made = [scenes.recorded(kind, agent) for _ in range(40)]
    client, _ = log_in("supervisor")
    preview = client.post("/bulk/", {"action": "cancel", "intents": [str(one.pk) for one in made], "back": "/"})
    assert len(preview.context["can"]) == 40
    go, sent = threading.Event(), []

    def work() -> None:
        go.wait()
        while claimed := dispatch.claim(slots=2):
            sent.extend(one.intent_id for one in claimed)
        connections.close_all()

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    go.set()
    done: Any = confirm(client, preview, note="x")
    for worker in workers:
        worker.join()
    cancelled = {one.row.intent.pk for one in done.context["done"]}
    refused = done.context["not_done"]
    assert len(cancelled) + len(refused) == 40
    assert cancelled.isdisjoint(sent)
    assert len(sent) == len(set(sent)) == len(refused)
    assert {one.row.intent.pk for one in refused} == set(sent)
    assert all("it can't be cancelled any more" in one.words for one in refused)
    for intent in Intent.objects.all():
        assert intent.status == (Status.CANCELLED if intent.pk in cancelled else Status.SUBMITTED)
        assert intent.attempts.count() == (0 if intent.pk in cancelled else 1)
