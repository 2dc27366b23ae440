"""The rest of the comparison: what people decided, and what history says of it."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable

from tests.chaos import plan
from tests.chaos.books import Row
from tests.chaos.compare import SETTLED, Difference, Found, Known


def one_decision_each(known: Known) -> Found:
    """18: of all decisions of a case one took effect, once."""
    rows = [one for one in known.books.decisions if one["choice"] == "effect"]
    for review, many in Counter(one["review_id"] for one in rows).items():
        if many > 1:
            intents = {one["intent_id"] for one in rows if one["review_id"] == review}
            yield Difference(f"in case {review} {many} decisions took effect", tuple(intents))


def one_fate_each(known: Known) -> Found:
    """18: a decision took effect, was taken back, was voided or was seconded; never two of these."""
    by_id = {row["id"]: row for row in known.books.decisions}
    for about, many in Counter(row["about_id"] for row in known.books.decisions if row["about_id"]).items():
        if many > 1:
            yield Difference(f"{many} rows speak of decision {about}", (by_id[about]["intent_id"],))


def told_decisions_are_there(known: Known) -> Found:
    """18: whoever was told that they decided finds that decision, whatever became of it."""
    there = {(one["review_id"], one["choice"]) for one in known.books.decisions if one["person_id"]}
    for review, choice in {(one.review, one.choice) for one in known.decided} - there:
        yield Difference(f"case {review}: somebody was told that {choice} is decided, and it is not there")


def _effective(known: Known) -> dict[str, list[Row]]:
    """Decisions that took effect, by intent."""
    by_id = {row["id"]: row for row in known.books.decisions}
    found: dict[str, list[Row]] = defaultdict(list)
    for row in known.books.decisions:
        if row["choice"] == "effect":
            found[row["intent_id"]].append(by_id[row["about_id"]])
    return found


def moved_on_a_decision(known: Known) -> Found:
    """18: what a person moved has a decision that took effect."""
    effective = _effective(known)
    for pk, steps in known.books.transitions.items():
        moved = sum(one["actor"] == "reviewer" for one in steps)
        if moved > len(effective[pk]):
            yield Difference(f"{pk} was moved by people {moved} times, on {len(effective[pk])} decisions", (pk,))


def two_people_above_the_limit(known: Known) -> Found:
    """19: above the second limit two different people agreed, on this payload."""
    by_id = {row["id"]: row for row in known.books.decisions}
    for pk, rows in _effective(known).items():
        intent = known.books.intents[pk]
        for second in rows if intent["amount_minor"] > plan.TWO_ABOVE else ():
            first = by_id.get(second["about_id"] or 0)
            if second["choice"] == "reject":
                continue
            if first is None or first["person_id"] == second["person_id"]:
                yield Difference(f"{pk}: one person alone decided {second['choice']}", (pk,))
            elif {first["payload_digest"], second["payload_digest"]} != {intent["payload_digest"]}:
                yield Difference(f"{pk}: {second['choice']} was decided on another payload", (pk,))


def sent_after_approval(known: Known) -> Found:
    """19: what needs approval was sent only with it."""
    effective = _effective(known)
    for pk, row in known.books.intents.items():
        approved = any(one["choice"] == "approve" for one in effective[pk])
        if row["amount_minor"] > plan.APPROVE_ABOVE and known.books.attempts.get(pk) and not approved:
            yield Difference(f"{pk} was sent, and nobody approved it", (pk,))


def status_is_its_history(known: Known) -> Found:
    """10, 16: it is where the last row of its history says, each begins where the one before ended, and what is
    settled stays."""
    for pk, row in known.books.intents.items():
        steps = known.books.transitions.get(pk, [])
        last = steps[-1] if steps else {"to_status": None, "sequence": 0}
        if (last["to_status"], last["sequence"]) != (row["status"], row["version"]):
            yield Difference(f"{pk} is {row['status']}, and its history ends with {last['to_status']}", (pk,))
        for before, after in itertools.pairwise(steps):
            if before["to_status"] != after["from_status"] or after["sequence"] != before["sequence"] + 1:
                yield Difference(f"{pk}: {before['to_status']} and then from {after['from_status']}", (pk,))
            if before["to_status"] in SETTLED and after["reason"] != "overridden":
                yield Difference(f"{pk} was {before['to_status']} and became {after['to_status']}", (pk,))


COMPARISONS: tuple[Callable[[Known], Found], ...] = (
    one_decision_each,
    one_fate_each,
    told_decisions_are_there,
    moved_on_a_decision,
    two_people_above_the_limit,
    sent_after_approval,
    status_is_its_history,
)
