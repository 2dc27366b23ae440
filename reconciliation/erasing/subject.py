"""Erases a subject: one transaction for each of its intents and cases."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction

from actions import chains, history, subjects, times
from actions.canonical import canonical
from actions.errors import Invalid
from actions.locking import for_change
from actions.models import Evidence, Intent, Observed
from reconciliation.erasing import finding
from reconciliation.erasing.finding import Found
from reconciliation.models import Attachment, Comment, CommentKind, Draft, ErasedFor, LedgerEntry, Review
from reconciliation.reviews import attaching, commenting, people

CONSOLE = "console"
# Why a person is erased: of the reasons for a file, those that are none of a slip of the hand.
REASONS = tuple(reason for reason in ErasedFor if reason is not ErasedFor.WRONG_FILE)
# As many digests as a comment holds, with room to spare.
_NAMED_AT_ONCE = 40


@dataclass(frozen=True)
class Erased:
    """How many intents and cases something was erased of (none of it twice), and how much: texts, files, stops."""

    intents: int = 0
    cases: int = 0
    texts: int = 0
    files: int = 0
    stops: int = 0


@dataclass(frozen=True)
class _Asked:
    reason: ErasedFor
    person: User | None

    @property
    def by(self) -> str:
        return f"person:{self.person.pk}" if self.person is not None else CONSOLE


def erase(subject: str, *, reason: str, family: bool = False, person: User | None = None) -> Erased:
    """Erases for good; what is erased already stays so. `reason`: one of REASONS; `person`: who does it, None for
    whoever has the server's console.

    Raises Invalid (reason; or what it says is still needed, and then nothing is erased), NotFound, PersonNotAllowed.
    """
    if person is not None:
        people.must(person.has_perm(attaching.ERASE))
    if reason not in REASONS:
        raise Invalid.field("reason", f"Say why: {', '.join(REASONS)}.")
    found = finding.find(subject, family=family)
    _refuse(found.against)
    asked = _Asked(ErasedFor(reason), person)
    shared, done = list(found.shared), Erased()
    for pk in found.intents:
        done = _add(done, _erase_intent(pk, asked, shared))
        shared = []
    for case in found.cases:
        done = _add(done, _erase_case(case, asked, shared))
        shared = []
    return done


def _refuse(against: Sequence[str]) -> None:
    if against:
        raise Invalid([{"field": "subject", "message": why} for why in against])


def _add(one: Erased, other: Erased) -> Erased:
    names = ("intents", "cases", "texts", "files", "stops")
    return Erased(**{name: getattr(one, name) + getattr(other, name) for name in names})


@transaction.atomic
def _erase_intent(pk: UUID, asked: _Asked, shared: Sequence[int]) -> Erased:
    subjects.lock_family_of(pk)
    intent = for_change(Intent).get(pk=pk)
    reviews = list(for_change(Review).filter(intent=intent).order_by("pk"))
    # Again under the lock: it may have been put in question since.
    _refuse([f"intent {pk}: {why}" for why in finding.objections(intent)])
    now = times.now()
    facts: dict[str, Any] = {"reason": asked.reason.value}
    also = _blank_texts(Evidence.objects.filter(intent=None, pk__in=shared), now)
    if also:
        facts["shared"] = [[one.pk, one.digest] for one in also]
    lifted = finding.about_people([intent], lifted=True)
    if pks := list(lifted.values_list("pk", flat=True)):
        facts["stops"] = pks
        lifted.filter(pk__in=pks).update(value="", key="", reason="", erased_at=now)
    if files := _blank_files(Attachment.objects.filter(intent=intent), now):
        facts["files"] = files
    own = _blank_texts(Evidence.objects.filter(intent=intent), now)
    _blank_beside(reviews, LedgerEntry.objects.filter(matches__intent=intent))
    if intent.erased_at is None:
        begin = intent.transitions.get(position=1).previous
        facts["kept"] = chains.kept_digest(intent, begin)
        Intent.objects.filter(pk=pk).update(**Intent.ERASABLE, erased_at=now, updated_at=now)
    elif not own and set(facts) == {"reason"}:
        return Erased()
    history.observe(pk, Observed.ERASED, by=asked.by, evidence=own, facts=canonical(facts), at=now)
    return Erased(intents=1, texts=len(own) + len(also), files=len(files), stops=len(pks))


@transaction.atomic
def _erase_case(pk: int, asked: _Asked, shared: Sequence[int]) -> Erased:
    """A case about an entry: what people wrote and added there. It is told by comments, which name what is gone."""
    review = commenting.locked(pk)
    _refuse([f"case {pk} is open"] if review.closed_at is None else [])
    now = times.now()
    also = _blank_texts(Evidence.objects.filter(intent=None, pk__in=shared), now)
    own = _blank_texts(Evidence.objects.filter(pk__in=_texts_of(review)), now)
    files = _blank_files(Attachment.objects.filter(review=review), now)
    _blank_beside([review], LedgerEntry.objects.filter(reviews=review))
    _tell(review, asked, [*own, *also], files)
    if not (own or also or files):
        return Erased()
    return Erased(cases=1, texts=len(own) + len(also), files=len(files))


def _texts_of(review: Review) -> set[int]:
    """Everything that the case's history rests on, but what says that something was erased: that is about nobody,
    and has to stay to be read. (Of a file alone it was said with the file's digest, which goes.)"""
    story = history.story_of_case(review)
    told = {row.text_id for row in story.rows if isinstance(row, Comment) and row.kind == CommentKind.ERASED}
    return {pk for pk, one in story.evidence.items() if pk not in told or "SHA-256" in one.text}


def _tell(review: Review, asked: _Asked, texts: Sequence[Evidence], files: Sequence[int]) -> None:
    who: dict[str, Any] = {"by": CONSOLE} if asked.person is None else {"person": asked.person}
    for file in Attachment.objects.filter(pk__in=files).order_by("pk"):
        text = f"{asked.reason.label}.\n{file.size} bytes"
        commenting.say(review, text=text, kind=CommentKind.ERASED, attachment=file, **who)
    for first in range(0, len(texts), _NAMED_AT_ONCE):
        named = "\n".join(f"evidence {one.digest}" for one in texts[first : first + _NAMED_AT_ONCE])
        text = f"{asked.reason.label}.\n{named}"
        commenting.say(review, text=text, kind=CommentKind.ERASED, **who)


def _blank_texts(found: Any, now: datetime) -> list[Evidence]:
    """Text and salt: without the salt nobody can find out by guessing what a digest was made over."""
    rows = list(found.filter(erased_at=None).order_by("pk").only("pk", "digest", "source"))
    ids = [row.pk for row in rows]
    # What a service says about its source is a text like any other; other sources are addresses and numbers.
    free = [row.pk for row in rows if row.source.startswith("service ")]
    Evidence.objects.filter(pk__in=free).update(text="", salt="", source="", erased_at=now)
    Evidence.objects.filter(pk__in=ids, erased_at=None).update(text="", salt="", erased_at=now)
    return rows


def _blank_files(found: Any, now: datetime) -> list[int]:
    """The bytes, the name, and the digest: that one has no salt. Files whose bytes somebody erased before keep none
    of the rest either."""
    rows = list(found.exclude(name="", digest="").order_by("pk").values_list("pk", "erased_at"))
    whole = [pk for pk, erased_at in rows if erased_at is None]
    Attachment.objects.filter(pk__in=whole).update(content=None, name="", digest="", erased_at=now)
    Attachment.objects.filter(pk__in=[pk for pk, _ in rows]).update(name="", digest="")
    return [pk for pk, _ in rows]


def _blank_beside(reviews: Iterable[Review], entries: Any) -> None:
    """What no chain covers: drafts, what the other side calls a case, what a service says where an entry is from."""
    Draft.objects.filter(review__in=list(reviews)).delete()
    Review.objects.filter(pk__in=[one.pk for one in reviews]).exclude(waits_reference="").update(waits_reference="")
    LedgerEntry.objects.filter(
        pk__in=list(entries.values_list("pk", flat=True)), source__startswith="service"
    ).update(source="")


def tell(found: Found) -> list[str]:
    """What would be erased and what stays, in lines for a person."""
    lines = [f"{len(found.intents)} intents and {len(found.cases)} cases about entries of {found.subject}."]
    if found.left:
        lines.append(f"Not asked for, of the same family: {', '.join(found.left)} (--family takes them as well).")
    if found.elsewhere:
        lines.append(f"Evidence of other subjects names it and stays with them: {_numbers(found.elsewhere)}.")
    if found.stops:
        lines.append(f"Stops in force stay until they are lifted: {_numbers(found.stops)}.")
    return lines


def _numbers(pks: Sequence[int]) -> str:
    more = f" and {len(pks) - 20} more" if len(pks) > 20 else ""
    return ", ".join(map(str, pks[:20])) + more
