"""The comparison of all books, when everything has come to rest. Each function yields differences: words, and the
intents that they are about. Their numbers are those of docs/invariants.md."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.chaos.agents import Book
from tests.chaos.books import Books, Row
from tests.chaos.reviewers import Done

SETTLED = ("confirmed", "failed", "cancelled")
MAYBE = ("submitted", "unknown")


@dataclass(frozen=True)
class Difference:
    words: str
    intents: tuple[str, ...] = ()


@dataclass(frozen=True)
class Known:
    """All books: Landed's and the services' (`books`), what the agents and the people remember."""

    books: Books
    agents: Book
    decided: list[Done]

    def of(self, key: tuple[str, str]) -> Row | None:
        return self.by_key.get(key)

    @property
    def by_key(self) -> dict[tuple[str, str], Row]:
        return {(row["agent"], row["request_key"]): row for row in self.books.intents.values()}

    def excused(self, intent: Row) -> bool:
        """A person is asked about it, or it is not settled."""
        return intent["status"] not in SETTLED or intent["disputed"] or intent["in_review"]


Found = Iterator[Difference]


def acknowledged_is_found(known: Known) -> Found:
    """2: whatever an answer named is there, as it was asked for."""
    for one in known.agents.attempted:
        for told in one.told:
            row = known.books.intents.get(told["id"].replace("-", ""))
            if row is None:
                yield Difference(f"{one.key} was told {told['id']}, which is gone")
            elif _wish(row) != _asked(one) or row["idempotency_key"] != told["idempotency_key"]:
                yield Difference(f"{one.key} was told {told['id']}, which is another wish", (row["id"],))


def found_was_attempted(known: Known) -> Found:
    """2, 5: nothing is there that nobody asked for, and nobody's is taken for another's."""
    attempted = {one.key: one for one in known.agents.attempted}
    for row in known.books.intents.values():
        one = attempted.get((row["agent"], row["request_key"]))
        if one is None or _wish(row) != _asked(one):
            yield Difference(f"{row['agent']} {row['request_key']} is there, and nobody asked for it", (row["id"],))


def one_key_one_intent(known: Known) -> Found:
    """4: the same key gives the same intent, and for another payload it is refused."""
    for one in known.agents.attempted:
        if len({told["id"] for told in one.told}) > 1:
            yield Difference(f"{one.key} was told of several: {[told['id'] for told in one.told]}")
        if set(one.reused) - {"422 key_reused"}:
            yield Difference(f"{one.key}: another payload under its key was answered {one.reused}")
    for words in known.agents.wrong:
        yield Difference(words)


def _wish(row: Row) -> tuple[object, ...]:
    return row["agent"], row["request_key"], row["kind"], row["subject"], row["amount_minor"], row["currency"]


def _asked(one: object) -> tuple[object, ...]:
    order = one.order  # type: ignore[attr-defined]
    return order.agent, order.request_key, order.kind, order.subject, order.amount_minor, order.currency


def one_effect_each(known: Known) -> Found:
    """1: told by the intent that a request named, so that a second key would show as well."""
    for pk, effects in known.books.effects.items():
        live = [one for one in effects if one["status"] != "failed"]
        if len(live) > 1:
            yield Difference(f"{pk} was carried out as {', '.join(one['id'] for one in live)}", (pk,))


def effects_are_ours(known: Known) -> Found:
    """3: durable before sent. Every request that arrived is of an intent that is there, under its one key."""
    for pk, requests in known.books.requests.items():
        row = known.books.intents.get(pk)
        if row is None:
            yield Difference(f"{len(requests)} requests arrived for {pk or 'nobody'}, which is not there", (pk,))
        elif keys := {one["idempotency_key"] for one in requests} - {row["idempotency_key"]}:
            yield Difference(f"{pk} has the key {row['idempotency_key']} and was sent with {sorted(keys)}", (pk,))


def each_sending_has_an_attempt(known: Known) -> Found:
    """3, 6: no more requests than attempts, and never two open ones."""
    for pk, row in known.books.intents.items():
        attempts, requests = known.books.attempts.get(pk, []), known.books.requests.get(pk, [])
        if len(requests) > len(attempts):
            yield Difference(f"{pk} was sent {len(requests)} times in {len(attempts)} attempts", (pk,))
        if sum(one["closed_at"] is None for one in attempts) > 1 or (
            row["status"] in SETTLED and any(one["closed_at"] is None for one in attempts)
        ):
            yield Difference(f"{pk} is {row['status']} and has open attempts", (pk,))


def one_in_the_air(known: Known) -> Found:
    """1: what may have been sent blocks its subject, unless a person waived that."""
    by_subject: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in known.books.intents.values():
        by_subject[row["kind"], row["subject"]].append(row)
    for rows in by_subject.values():
        spans = sorted(
            (*span, row["id"]) for row in rows if not row["guard_waived"] for span in _in_the_air(known, row)
        )
        for (_, ended, one), (began, _, other) in itertools.pairwise(spans):
            if one != other and began < ended:
                yield Difference(f"{one} and {other} may both have been sent", (one, other))


def _in_the_air(known: Known, row: Row) -> list[tuple[str, str]]:
    spans, began = [], ""
    for step in known.books.transitions[row["id"]]:
        if step["to_status"] in MAYBE:
            began = began or str(step["at"])
        elif began:
            spans.append((began, str(step["at"])))
            began = ""
    return [*spans, (began, "9999")] if began else spans


def confirmed_was_done(known: Known) -> Found:
    """8, 21: what is confirmed stands in the service's book under its own key, for the amount that it was settled."""
    for pk, row in known.books.intents.items():
        if row["status"] != "confirmed" or known.excused(row):
            continue
        entry = known.books.really.get((row["downstream"], row["external_id"]))
        if entry is None:
            yield Difference(f"{pk} is confirmed as {row['external_id']!r}, which the book does not have", (pk,))
        elif (entry["idempotency_key"], entry["amount_minor"], entry["currency"], entry["status"]) != (
            row["idempotency_key"],
            row["settled_amount_minor"],
            row["settled_currency"],
            "succeeded",
        ):
            yield Difference(f"{pk} is confirmed as {entry}", (pk,))


def sums_are_equal(known: Known) -> Found:
    """21: per currency, what was settled is what stands in the services' books, and what the ties say."""
    settled, booked, tied, of_tied = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    matches = {one["intent_id"]: one for one in known.books.matches if one["role"] == "settles"}
    for pk, row in known.books.intents.items():
        if row["status"] != "confirmed" or known.excused(row):
            continue
        settled[row["settled_currency"]] += row["settled_amount_minor"]
        for effect in known.books.effects.get(pk, []):
            booked[effect["currency"]] += effect["amount_minor"] if effect["status"] == "succeeded" else 0
        if (match := matches.get(pk)) is not None:
            tied[match["currency"]] += match["amount_minor"]
            of_tied[row["settled_currency"]] += row["settled_amount_minor"]
    if settled != booked:
        yield Difference(f"settled {dict(settled)}, and the services carried out {dict(booked)}")
    if tied != of_tied:
        yield Difference(f"settled {dict(of_tied)}, and their entries are {dict(tied)}")


def entries_settle_one(known: Known) -> Found:
    """21, and the ninth rule: one entry, one intent."""
    named: dict[tuple[str, str], list[str]] = defaultdict(list)
    for pk, row in known.books.intents.items():
        if row["status"] == "confirmed" and row["external_id"]:
            named[row["downstream"], row["external_id"]].append(pk)
    for entry, intents in named.items():
        if len(intents) > 1:
            yield Difference(f"{entry} settles {len(intents)}", tuple(intents))
    for entry_id, many in Counter(one["entry_id"] for one in known.books.matches).items():
        if many > 1:
            yield Difference(f"entry {entry_id} is tied {many} times")


def not_done_was_not_done(known: Known) -> Found:
    """8: what failed, was cancelled or never left has no effect, unless a person is asked about it."""
    for pk, row in known.books.intents.items():
        live = [one["id"] for one in known.books.effects.get(pk, []) if one["status"] != "failed"]
        never_left = row["status"] in ("recorded", "held")
        if live and (never_left or (row["status"] in ("failed", "cancelled") and not known.excused(row))):
            yield Difference(f"{pk} is {row['status']} ({row['status_reason']}), and there is {live}", (pk,))


def other_entries_are_asked_about(known: Known) -> Found:
    """21: any other entry with one of our keys that Landed has seen is of an intent that somebody is asked about."""
    by_key = {row["idempotency_key"]: row for row in known.books.intents.values()}
    asked = {one["entry_id"] for one in known.books.reviews if one["closed_at"] is None}
    judged = {one["entry_id"] for one in known.books.matches}
    for entry in known.books.entries:
        row = by_key.get(entry["key"])
        if row is None or entry["state"] == "failed" or entry["role"] == "fee":
            continue
        settles = row["status"] == "confirmed" and row["external_id"] == entry["entry_id"]
        waits = entry["explain_at"] is not None or entry["id"] in asked or entry["id"] in judged
        if not (settles or waits or known.excused(row)):
            yield Difference(
                f"{entry['entry_id']} bears the key of {row['id']}, which is {row['status']}", (row["id"],)
            )


def settled_or_asked(known: Known) -> Found:
    """11: nothing hangs."""
    for pk, row in known.books.intents.items():
        if row["status"] not in SETTLED and not row["in_review"]:
            yield Difference(f"{pk} is {row['status']} ({row['status_reason']}), and nobody is asked", (pk,))


COMPARISONS: tuple[Callable[[Known], Found], ...] = (
    acknowledged_is_found,
    found_was_attempted,
    one_key_one_intent,
    one_effect_each,
    effects_are_ours,
    each_sending_has_an_attempt,
    one_in_the_air,
    confirmed_was_done,
    sums_are_equal,
    entries_settle_one,
    not_done_was_not_done,
    other_entries_are_asked_about,
    settled_or_asked,
)
