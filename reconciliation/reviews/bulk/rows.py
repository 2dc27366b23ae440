"""What somebody ticked: cases and intents, as they are now."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import QuerySet

from actions.errors import Invalid
from actions.models import Intent
from reconciliation.models import Decision, Review
from reconciliation.reviews import pending

MOST = 500
TOO_MANY = f"At most {MOST} at once: nothing was done. Tick fewer, or do the rest afterwards."
NOT_UNDERSTOOD = "This is not a list of cases or intents that the desk has made. Nothing was done."
NOTHING = "Nothing is ticked, so nothing was done."
# So much of a digest tells one history from another.
_HEAD = 16


@dataclass(frozen=True)
class Ticked:
    """One box that was ticked. `stamp`: as what it was shown; empty when it was not shown yet."""

    review_id: int | None = None
    intent_id: UUID | None = None
    stamp: str = ""


@dataclass(frozen=True)
class Row:
    """A case with its intent, an intent with its open case, or (neither) something that is not there."""

    ticked: Ticked
    review: Review | None
    intent: Intent | None
    # Decisions of its case that count and have not taken effect: first votes, and those that can be undone still.
    decisions: tuple[Decision, ...] = ()

    @property
    def there(self) -> bool:
        return self.review is not None or self.intent is not None

    @property
    def stamp(self) -> str:
        """Changes with everything that is decided, found, said or handed over about it: the head of a chain says what
        its history is, and not only how much of it there is."""
        review, intent = self.review, self.intent
        head = intent.chain_head if intent else review.chain_head if review else ""
        return f"{review.version if review else 0}.{intent.version if intent else 0}.{head[:_HEAD]}"

    @property
    def value(self) -> str:
        """What its box sends back with a confirmation."""
        ticked = self.ticked
        name = f"r{ticked.review_id}" if ticked.review_id is not None else f"i{ticked.intent_id}"
        return f"{name}@{self.stamp}"

    @property
    def moved(self) -> bool:
        """Whether it is another than the one that was shown."""
        return bool(self.ticked.stamp) and self.ticked.stamp != self.stamp


def read(*, reviews: Iterable[str] = (), intents: Iterable[str] = (), rows: Iterable[str] = ()) -> list[Ticked]:
    """What a form sent: ids of cases, ids of intents, and `Row.value`s; each once. Raises Invalid when it is nothing
    of ours, nothing at all, or too much."""
    found = [*(_ticked(f"r{value}") for value in reviews), *(_ticked(f"i{value}") for value in intents)]
    found += [_ticked(value) for value in rows]
    each_once = {(one.review_id, one.intent_id): one for one in found}
    if not each_once:
        raise Invalid.field("rows", NOTHING)
    if len(each_once) > MOST:
        raise Invalid.field("rows", TOO_MANY)
    return list(each_once.values())


def _ticked(value: str) -> Ticked:
    name, _, stamp = value.partition("@")
    sort, number = name[:1], name[1:]
    if sort == "r" and number.isascii() and number.isdigit() and len(number) < 19:
        return Ticked(review_id=int(number), stamp=stamp)
    if sort == "i" and len(number) == 36:
        try:
            return Ticked(intent_id=UUID(number), stamp=stamp)
        except ValueError:
            pass
    raise Invalid.field("rows", NOT_UNDERSTOOD)


def load(ticked: Sequence[Ticked]) -> list[Row]:
    """The rows as they are now, in the order given. The same few queries for one as for five hundred."""
    by_id = {row.pk: row for row in _reviews().filter(pk__in=[t.review_id for t in ticked if t.review_id])}
    wanted = [t.intent_id for t in ticked if t.intent_id]
    intents = {intent.pk: intent for intent in _intents().filter(pk__in=wanted)}
    open_ones = {r.intent_id: r for r in _reviews().filter(intent__in=wanted, closed_at=None)} if wanted else {}
    pairs = [_pair(one, by_id, intents, open_ones) for one in ticked]
    decided = _decisions([review for review, _ in pairs if review is not None])
    return [
        Row(one, review, intent, tuple(decided.get(review.pk, ())) if review else ())
        for one, (review, intent) in zip(ticked, pairs, strict=True)
    ]


def _pair(
    ticked: Ticked, by_id: dict[int, Review], intents: dict[UUID, Intent], open_ones: dict[UUID | None, Review]
) -> tuple[Review | None, Intent | None]:
    if ticked.review_id is not None:
        review = by_id.get(ticked.review_id)
        return review, review.intent if review else None
    return open_ones.get(ticked.intent_id), intents.get(ticked.intent_id) if ticked.intent_id else None


def _decisions(reviews: list[Review]) -> dict[int, list[Decision]]:
    found: dict[int, list[Decision]] = {}
    counting = Decision.objects.filter(review__in=reviews, choice__in=pending.VOTES, followed_by=None)
    for one in counting.select_related("person"):
        found.setdefault(one.review_id, []).append(one)
    return found


def _reviews() -> QuerySet[Review]:
    found = Review.objects.select_related(
        "intent__kind", "intent__policy", "intent__downstream", "entry", "holder", "owner"
    )
    return found.prefetch_related("intent__attempts")


def _intents() -> QuerySet[Intent]:
    return Intent.objects.select_related("kind", "policy", "downstream").prefetch_related("attempts")
