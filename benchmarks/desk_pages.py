"""One database, one size: fills it, opens each page of the desk as a supervisor would, and prints what it took.

Started by `benchmarks.desk`, in a process of its own for each database and size: Django reads its settings once.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

OPEN_CASES, TIMES = 300, 25


def main(number: int) -> None:
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    case = _prepare(number)
    print(json.dumps({name: _measure(get) for name, get in _pages(case)}))


def _prepare(number: int) -> Any:
    """`number` settled intents, and 300 open cases that are the same whatever the number."""
    from actions import times
    from benchmarks.filling import fill
    from reconciliation import ties
    from reconciliation.models import MatchRole
    from tests import factories
    from tests.ledger.books import confirmed, make_entry
    from tests.pages.cases import make_case

    kind = factories.make_kind()
    agents = [factories.make_agent(kind) for _ in range(5)]
    template = confirmed(kind, agent=agents[0], request_key="ask-0", external_id="re_0")
    entry = make_entry(kind.downstream, subject=template.subject, key=template.idempotency_key, explain_at=None)
    ties.tie(entry, template, MatchRole.SETTLES, by="checker", now=times.now())
    fill(template, number)
    for count in range(OPEN_CASES):
        case = make_case(kind, agent=agents[count % 5], amount_minor=50_000 + count, subject=f"order-{count}")
        case.due_at = times.now() + timedelta(minutes=count - 30)
        case.save(update_fields=["due_at"])
    return case


def _pages(case: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    from django.test import Client
    from django.test.utils import setup_test_environment

    from tests import factories

    setup_test_environment()  # the host's name, and what each page was made of
    client = Client()
    client.force_login(factories.make_person("supervisor"))
    agent = case.intent.agent.name
    for name, path in {
        "queue": "/",
        "queue, filtered": f"/?agent={agent}&reason=high_value",
        "queue, second page": _second_page(client),
        "case": f"/reviews/{case.pk}/",
        "intent": f"/intents/{case.intent_id}/",
        "intents": "/intents/",
        "search, exact": f"/intents/?q={case.intent.idempotency_key}",
        "search, prefix": "/intents/?q=order-29",
        "ledger": "/ledger/",
        "team": "/team/",
        "dashboard": "/team/figures/",
    }.items():
        if client.get(path).status_code == 200:
            yield name, lambda path=path: client.get(path)


def _second_page(client: Any) -> str:
    following = client.get("/").context["page"].following
    return f"/?after={following}"


def _measure(get: Callable[[], Any]) -> dict[str, float]:
    """Milliseconds (the median of several) and queries of one request."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    get()
    with CaptureQueriesContext(connection) as captured:
        get()
    queries = len(captured)
    taken = []
    for _ in range(TIMES):
        began = time.perf_counter()
        assert get().status_code == 200
        taken.append((time.perf_counter() - began) * 1_000)
    return {"ms": round(statistics.median(taken), 2), "queries": queries}


if __name__ == "__main__":
    main(int(sys.argv[1]))
