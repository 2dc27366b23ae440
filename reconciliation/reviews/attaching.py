"""Files that people add to a case: stored as their bytes, never shown, never changed.

History keeps name and digest in a comment of its own, so that another file in its place is found out; what is not a
kind of file that belongs here is refused by what it contains, whatever it is called.
"""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction

from actions import chains, times
from actions.errors import Invalid, NotFound
from actions.locking import for_change
from actions.models import Chained, Evidence, Intent, Observation, Observed
from actions.redaction import redact
from reconciliation.models import Attachment, Comment, CommentKind, ErasedFor, Review
from reconciliation.reviews import commenting, people

MOST_BYTES, MOST_FILES = 5_000_000, 10
ERASE = "reconciliation.change_attachment"
_LONGEST_NAME = 255

_SIGNATURES = (
    (b"%PDF-", "application/pdf"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
)
_TEXTS = {".csv": "text/csv", ".eml": "message/rfc822"}
# Besides tab, line feed, form feed and carriage return no text holds control characters.
_CONTROLS = frozenset(range(32)) - {9, 10, 12, 13}
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")

ALLOWED = "PDF, PNG, JPEG, plain text, CSV and e-mail (.eml)"


def attach(review_id: int, *, person: User, name: str, content: bytes) -> Attachment:
    """Adds a file to a case, open or closed. Raises Invalid (for the field `file`: empty, too large, another kind,
    too many), NotFound, PersonNotAllowed."""
    people.must(people.may_decide(person))
    media_type = _checked(content)
    with transaction.atomic():
        review = commenting.locked(review_id)
        if Attachment.objects.filter(review=review).count() >= MOST_FILES:
            raise Invalid.field("file", f"This case has {MOST_FILES} files already, which is as many as it takes.")
        row = _store(review, person, _name(name), media_type, content)
        commenting.say(review, person=person, text=_words(row), kind=CommentKind.ATTACHED, attachment=row)
    return row


def _checked(content: bytes) -> str:
    if not content:
        raise Invalid.field("file", "The file is empty.")
    if len(content) > MOST_BYTES:
        raise Invalid.field("file", f"The file is larger than {MOST_BYTES // 1_000_000} MB.")
    found = kind_of(content)
    if not found:
        raise Invalid.field("file", f"This is no kind of file that can be added here: {ALLOWED} can.")
    return found


def kind_of(content: bytes) -> str:
    """The media type by what the bytes are; empty for what is not taken."""
    for beginning, media_type in _SIGNATURES:
        if content.startswith(beginning):
            return media_type
    return "text/plain" if _is_text(content) else ""


def _is_text(content: bytes) -> bool:
    if content.startswith(_UTF_16):
        try:
            content = content.decode("utf-16").encode()
        except UnicodeDecodeError:
            return False
    return _CONTROLS.isdisjoint(content)


def _name(name: str) -> str:
    """Without folders; what hides stays and is shown for what it is. Account numbers are masked, as everywhere."""
    last = re.split(r"[\\/]", name.replace("\x00", ""))[-1].encode("utf-8", "replace").decode().strip()
    return redact(last)[:_LONGEST_NAME] or "file"


def _store(review: Review, person: User, name: str, media_type: str, content: bytes) -> Attachment:
    by_name = next((found for end, found in _TEXTS.items() if name.lower().endswith(end)), media_type)
    return Attachment.objects.create(
        review=review,
        intent_id=review.intent_id,
        person=person,
        name=name,
        media_type=by_name if media_type == "text/plain" else media_type,
        size=len(content),
        digest=hashlib.sha256(content).hexdigest(),
        content=content,
        at=times.now(),
    )


def _words(row: Attachment) -> str:
    return f"{row.name}\n{row.size} bytes, SHA-256 {row.digest}"


def fault(row: Attachment) -> str:
    """Why it is not what was added, or not what history says was erased; empty when all fits."""
    said = list(Comment.objects.filter(attachment=row))
    owner = Observation.objects.filter(intent_id=row.intent_id, what=Observed.ERASED) if row.intent_id else ()
    return _fault(look_at(row), _told([*said, *owner], _texts(said)))


@dataclass(frozen=True)
class Looked:
    """A file as it was found: what its row says, and the digest of the bytes that are there."""

    pk: int
    owner: UUID | int
    digest: str
    size: int
    erased: bool
    found: str


def look_at(row: Attachment) -> Looked:
    """Reads the bytes, and lets go of them: they are large."""
    found = hashlib.sha256(row.content or b"").hexdigest()
    return Looked(row.pk, row.intent_id or row.review_id, row.digest, row.size, row.erased_at is not None, found)


@dataclass(frozen=True)
class _Told:
    """What history says of files: the text (None: erased) of what was said of each, by file and by what was done,
    and those that an erasing of the whole subject names."""

    said: Mapping[tuple[int, str], str | None]
    with_subject: Collection[int]


def _told(rows: Iterable[Chained], texts: Mapping[int, Evidence]) -> _Told:
    said: dict[tuple[int, str], str | None] = {}
    rows = list(rows)
    for row in rows:
        if isinstance(row, Comment) and row.attachment_id is not None and row.text_id in texts:
            text = texts[row.text_id]
            said.setdefault((row.attachment_id, row.kind), None if text.erased_at is not None else text.text)
    return _Told(said, {pk for row in chains.erasings(rows) for pk in json.loads(row.facts).get("files", ())})


def _fault(row: Looked, told: _Told) -> str:
    if not _names(told, row, CommentKind.ATTACHED):
        return "The history of this case names another file than this one."
    if row.erased:
        erased = row.pk in told.with_subject or _names(told, row, CommentKind.ERASED)
        return "" if erased else "Its bytes are gone, and nobody is on record as having erased them."
    if row.found != row.digest:
        return "Its bytes are not those that were added: their digest is another one."
    return ""


def _names(told: _Told, row: Looked, kind: CommentKind) -> bool:
    if (row.pk, kind) not in told.said:
        return False
    text = told.said[row.pk, kind]
    return text is None or row.digest in text


def files_faults(files: Iterable[Looked], rows: Iterable[Chained], texts: Mapping[int, Evidence]) -> Iterator[str]:
    """What is wrong with the files of an intent or a case, given its history and the evidence that that names: bytes
    that are not those that were added, and files that are gone without a word of who erased them."""
    told = _told(rows, texts)
    found = {row.pk: _fault(row, told) for row in files}
    gone = {pk: "It is gone, row and all." for pk, _ in told.said if pk not in found}
    yield from (f"attachment {pk}: {why}" for pk, why in sorted({**found, **gone}.items()) if why)


def files_of(**of: Intent | Review) -> Iterator[Looked]:
    """The files of an intent or a case, one at a time."""
    return (look_at(row) for row in Attachment.objects.filter(**of).order_by("pk").iterator(chunk_size=1))


def _texts(said: Iterable[Comment]) -> dict[int, Evidence]:
    return Evidence.objects.in_bulk([row.text_id for row in said])


def erase(attachment_id: int, *, person: User, reason: str) -> Attachment:
    """Erases the bytes for good; name, size and digest stay, and the case says who did it and why (`reason`: one of
    `ErasedFor`). Administrators. Raises Invalid (reason), PersonNotAllowed, NotFound."""
    people.must(person.has_perm(ERASE))
    if reason not in ErasedFor.values:
        raise Invalid.field("reason", "Say why it is erased.")
    with transaction.atomic():
        review = commenting.locked(_case_of(attachment_id))
        row = for_change(Attachment).get(pk=attachment_id)
        if row.erased_at is None:
            row.content, row.erased_at = None, times.now()
            row.save(update_fields=["content", "erased_at"])
            # Not the name, which may be about somebody.
            text = f"{ErasedFor(reason).label}.\n{row.size} bytes, SHA-256 {row.digest}"
            commenting.say(review, person=person, text=text, kind=CommentKind.ERASED, attachment=row)
    return row


def _case_of(attachment_id: int) -> int:
    found = Attachment.objects.filter(pk=attachment_id).values_list("review_id", flat=True).first()
    if found is None:
        raise NotFound()
    return found
