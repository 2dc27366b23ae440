"""Files that people add to a case: stored as their bytes, never shown, never changed.

History keeps name and digest in a comment of its own, so that another file in its place is found out; what is not a
kind of file that belongs here is refused by what it contains, whatever it is called.
"""

import hashlib
import re
from collections.abc import Mapping

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet

from actions import times
from actions.errors import Invalid, NotFound
from actions.locking import for_change
from actions.models import Intent
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
    return _fault(row, _told(Comment.objects.filter(attachment=row)))


_Told = Mapping[tuple[int, str], Comment]


def _told(comments: QuerySet[Comment]) -> _Told:
    """The rows of history that name files, by file and by what they say of it."""
    rows = comments.filter(attachment__isnull=False).select_related("text").order_by("-pk")
    return {(row.attachment_id or 0, row.kind): row for row in rows}


def _fault(row: Attachment, told: _Told) -> str:
    if not _names(told.get((row.pk, CommentKind.ATTACHED)), row):
        return "The history of this case names another file than this one."
    if row.erased_at is not None:
        erased = _names(told.get((row.pk, CommentKind.ERASED)), row)
        return "" if erased else "Its bytes are gone, and nobody is on record as having erased them."
    if hashlib.sha256(row.content or b"").hexdigest() != row.digest:
        return "Its bytes are not those that were added: their digest is another one."
    return ""


def _names(said: Comment | None, row: Attachment) -> bool:
    return said is not None and (said.text.erased_at is not None or row.digest in said.text.text)


def faults(**of: Intent | Review) -> list[str]:
    """What is wrong with the files of an intent or a case, for the check of its history: bytes that are not those
    that were added, and files that are gone without a word of who erased them.

    Two queries; one file at a time, as they are large.
    """
    told = _told(Comment.objects.filter(**of))
    found: dict[int, str] = {}
    for row in Attachment.objects.filter(**of).order_by("pk").iterator(chunk_size=1):
        found[row.pk] = _fault(row, told)
    gone = {pk: "It is gone, row and all." for pk, _ in told if pk not in found}
    return [f"attachment {pk}: {why}" for pk, why in sorted({**found, **gone}.items()) if why]


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
