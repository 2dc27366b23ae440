"""Run as a program: processes that stand still or die at the worst moment, for the tests beside this file.

python -m tests.cases.processes stopped_worker
python -m tests.cases.processes dying_caller KIND SUBJECT REQUEST_KEY SANDBOX
"""

import http.client
import json
import os
import signal
import sys
import time
from urllib.parse import urlsplit


def stopped_worker() -> None:
    """Claims one intent and stops itself, as if the machine slept, right before it would send."""
    from actions import dispatch

    send = dispatch.send

    def sleep_and_send(claimed: dispatch.Claimed) -> object:
        began = time.monotonic()
        os.kill(os.getpid(), signal.SIGSTOP)
        # The signal may reach the other threads first. Whoever wakes us does so after more than a second.
        while time.monotonic() - began < 1:
            time.sleep(0.01)
        return send(claimed)

    dispatch.send = sleep_and_send  # type: ignore[assignment]
    dispatch.run(budget_s=5, slots=1)


def dying_caller(kind: str, subject: str, request_key: str, sandbox: str) -> None:
    """Records, sends, and is killed before it could say what came of it."""
    from actions import services as actions

    intent = actions.record_intent(
        kind=kind, subject=subject, amount="50.00", currency="EUR", executor="caller", request_key=request_key
    )
    connection = http.client.HTTPConnection(urlsplit(sandbox).netloc, timeout=10)
    body = json.dumps({"order": subject, "amount_minor": 5_000, "currency": "EUR"})
    connection.request("POST", "/v1/refunds", body, {"Idempotency-Key": intent.idempotency_key})
    connection.getresponse().read()
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    import django

    django.setup()
    if sys.argv[1] == "stopped_worker":
        stopped_worker()
    else:
        dying_caller(*sys.argv[2:])


if __name__ == "__main__":
    main()
