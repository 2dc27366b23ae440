"""RQ's entry point for checks; no logic, like `actions.jobs`."""

from actions import jobs
from reconciliation import checks, look_back


def check_due(budget_s: float = 10.0) -> int:
    """Makes the checks that are due until none is, or the budget (seconds) is used; then looks through the books
    whose turn it is. Returns how many of both."""
    jobs.hush(jobs.CHECK)
    return checks.run(budget_s=budget_s) + look_back.run(budget_s=1)
