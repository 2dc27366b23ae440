"""RQ's entry point for checks; no logic, like `actions.jobs`."""

from actions import jobs
from reconciliation import checks


def check_due(budget_s: float = 10.0) -> int:
    """Makes the checks that are due until none is, or the budget (seconds) is used. Returns how many."""
    jobs.hush(jobs.CHECK)
    return checks.run(budget_s=budget_s)
