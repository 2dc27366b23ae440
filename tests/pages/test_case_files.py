"""Files of a case: what is taken, that it comes back as it was, and that no browser takes it for a page."""

import hashlib
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from actions import history, times
from actions.models import Intent
from reconciliation.models import Attachment, Comment, Review
from reconciliation.reviews import attaching, verifying
from tests import factories
from tests.flushing import without_triggers
from tests.ledger.books import orphan
from tests.pages.cases import log_in, make_case, text_of

pytestmark = pytest.mark.django_db
PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 20


def add(client: Client, review: Review, content: bytes, name: str = "statement.pdf") -> Any:
    return client.post(f"/reviews/{review.pk}/attach/", {"file": SimpleUploadedFile(name, content)}, follow=True)


def attached(content: bytes = b"%PDF-1.7 x", name: str = "statement.pdf") -> Attachment:
    return attaching.attach(make_case().pk, person=factories.make_person(), name=name, content=content)


def test_a_file_is_listed_with_its_size_and_digest_and_told_in_the_timeline() -> None:
    review = make_case()
    client, _ = log_in(first_name="Mara")
    page = text_of(add(client, review, b"%PDF-1.7 x"))
    digest = hashlib.sha256(b"%PDF-1.7 x").hexdigest()
    assert f"Added, with the SHA-256 {digest}." in page
    assert f'data-copy="{digest}"' in page
    assert "10\u00a0bytes" in page
    assert "Mara added a file" in page


@pytest.mark.parametrize(
    ("name", "content", "media_type"),
    [
        ("a.pdf", b"%PDF-1.7 x", "application/pdf"),
        ("a.png", PNG, "image/png"),
        ("a.jpg", b"\xff\xd8\xff\xe0x", "image/jpeg"),
        ("a.txt", b"hello", "text/plain"),
        ("a.csv", b"a;b\r\n1;2", "text/csv"),
        ("a.eml", b"From: a@example.com\r\n\r\nhi", "message/rfc822"),
        ("latin.csv", "Müller;1".encode("cp1252"), "text/csv"),
        ("windows.txt", "hello".encode("utf-16"), "text/plain"),
        ("page.html", b"<script>alert(1)</script>", "text/plain"),
        ("picture.svg", b"<svg onload=alert(1)>", "text/plain"),
        ("no-picture.pdf", PNG, "image/png"),
    ],
)
def test_what_it_is_goes_by_its_content_and_comes_back_byte_for_byte(
    name: str, content: bytes, media_type: str
) -> None:
    row = attached(content, name)
    client, _ = log_in("auditor")
    answer = client.get(f"/attachments/{row.pk}/")
    assert answer.content == content
    assert answer["Content-Type"] == media_type
    assert answer["Content-Disposition"].startswith("attachment; filename=")
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert "no-store" in answer["Cache-Control"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "The submitted file is empty|The file is empty|Choose a file first"),
        (b"MZ\x90\x00\x03", "This is no kind of file that can be added here"),
        (b"PK\x03\x04zip", "This is no kind of file that can be added here"),
        (b"%PDF-" + b"x" * 5_000_000, "The file is larger than 5 MB."),
        (b"x" * 12_000_000, "The file is larger than 5 MB."),
    ],
    ids=["empty", "program", "archive", "a little too large", "much too large"],
)
def test_what_is_not_taken_is_said_and_nothing_is_stored(content: bytes, said: str) -> None:
    review = make_case()
    client, _ = log_in()
    response = add(client, review, content)
    assert response.status_code == 422
    assert any(words in text_of(response) for words in said.split("|"))
    assert not Attachment.objects.exists()
    assert not Comment.objects.exists()


def test_without_a_file_there_is_a_sentence_and_no_more() -> None:
    review = make_case()
    client, _ = log_in()
    response = client.post(f"/reviews/{review.pk}/attach/", {})
    assert response.status_code == 422
    assert "Choose a file first." in text_of(response)


def test_a_case_takes_ten() -> None:
    review, person = make_case(), factories.make_person()
    for number in range(10):
        attaching.attach(review.pk, person=person, name=f"{number}.txt", content=b"x")
    client, _ = log_in()
    assert "This case takes no more files." in text_of(client.get(f"/reviews/{review.pk}/"))
    response = add(client, review, b"x", "11.txt")
    assert response.status_code == 422
    assert "has 10 files already" in text_of(response)


def test_of_several_files_at_once_the_first_is_taken() -> None:
    review = make_case()
    client, _ = log_in()
    given = [SimpleUploadedFile(f"{number}.txt", b"x") for number in range(3)]
    client.post(f"/reviews/{review.pk}/attach/", {"file": given})
    assert [row.name for row in Attachment.objects.all()] == ["0.txt"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\a\\bill.txt", "bill.txt"),
        ("pay\u202efdp.txt", "pay\u202efdp.txt"),
        ("card 4111 1111 1111 1111.txt", "card [masked]…1111.txt"),
        ("", "file"),
        ("a\x00b\ud800.txt", "ab?.txt"),
        ("x" * 400, "x" * 255),
    ],
)
def test_a_name_has_no_folders_and_stays_what_it_was(given: str, kept: str) -> None:
    assert attached(b"x", given).name == kept


def test_a_name_that_hides_something_hides_nothing_in_what_is_saved() -> None:
    row = attached(b"x", 'a"\r\nSet-Cookie: x\u202e.txt')
    client, _ = log_in()
    answer = client.get(f"/attachments/{row.pk}/")
    assert "Set-Cookie" not in answer.headers
    assert "%E2%9F%A8U%2B202E%E2%9F%A9" in answer["Content-Disposition"]


def test_its_digest_is_part_of_the_history() -> None:
    row = attached()
    assert row.intent is not None
    row.intent.refresh_from_db()
    assert history.faults(row.intent) == []
    said = Comment.objects.get(attachment=row)
    assert (said.kind, row.digest in said.text.text) == ("attached", True)


def test_bytes_that_are_not_those_that_were_added_are_not_handed_out() -> None:
    row = attached()
    with without_triggers():
        Attachment.objects.filter(pk=row.pk).update(content=b"%PDF-1.7 y")
    client, _ = log_in()
    answer = client.get(f"/attachments/{row.pk}/")
    assert answer.status_code == 409
    assert "not those that were added" in text_of(answer)


def test_another_file_with_its_own_digest_does_not_pass_for_it() -> None:
    row = attached()
    with without_triggers():
        other = b"%PDF-1.7 y"
        Attachment.objects.filter(pk=row.pk).update(content=other, digest=hashlib.sha256(other).hexdigest())
    client, _ = log_in()
    answer = client.get(f"/attachments/{row.pk}/")
    assert answer.status_code == 409
    assert "names another file" in text_of(answer)


def test_an_administrator_erases_the_bytes_and_name_and_digest_stay() -> None:
    row = attached()
    for role, code in (("reviewer", 302), ("supervisor", 302)):
        client, _ = log_in(role)
        assert client.post(f"/attachments/{row.pk}/erase/").status_code == code
        row.refresh_from_db()
        assert row.content is not None, role
    client, person = log_in("admin")
    for reason in ({}, {"reason": "a story about Ms Ito"}):
        page = text_of(client.post(f"/attachments/{row.pk}/erase/", reason, follow=True))
        assert "Nothing was erased. Say why it is erased." in page
    page = text_of(client.post(f"/attachments/{row.pk}/erase/", {"reason": "wrong_file"}, follow=True))
    row.refresh_from_db()
    assert row.content is None
    said = Comment.objects.select_related("text").get(kind="erased")
    assert (said.person, said.attachment) == (person, row)
    assert said.text.text.startswith("It was added by mistake.")
    assert row.name not in said.text.text
    assert row.intent is not None
    assert verifying.intent_faults(Intent.objects.get(pk=row.intent_id)) == []
    assert "its bytes were erased" in page
    assert "statement.pdf" in page
    assert row.digest[:12] in page
    assert client.get(f"/attachments/{row.pk}/").status_code == 404
    assert client.get(f"/attachments/{row.pk}/erase/").status_code == 405


def _erased_behind_our_back(row: Attachment) -> None:
    Attachment.objects.filter(pk=row.pk).update(content=None, erased_at=times.now())


def _exchanged(row: Attachment) -> None:
    Attachment.objects.filter(pk=row.pk).update(content=b"%PDF-1.7 y")


@pytest.mark.parametrize(
    ("tamper", "words"),
    [
        (_erased_behind_our_back, "nobody is on record as having erased them"),
        (_exchanged, "not those that were added"),
    ],
)
def test_the_check_of_a_history_finds_files_that_were_tampered_with(
    tamper: Callable[[Attachment], None], words: str
) -> None:
    row = attached()
    out = StringIO()
    call_command("verify_history", stdout=out)
    assert out.getvalue() == "All 1 histories hold.\n"
    with without_triggers():
        tamper(row)
    desk, _ = log_in()
    admin, _ = log_in("admin")
    for page in (
        desk.get(f"/intents/{row.intent_id}/"),
        admin.get(f"/admin/actions/intent/{row.intent_id}/change/"),
        admin.get(f"/admin/reconciliation/attachment/{row.pk}/change/"),
    ):
        assert words in text_of(page)
    with pytest.raises(CommandError, match="1 of 1 histories don't hold"):
        call_command("verify_history", stdout=out)
    assert f"attachment {row.pk}: " in out.getvalue()


def test_a_file_of_an_entrys_case_is_checked_with_its_case() -> None:
    review = orphan(factories.make_downstream())
    row = attaching.attach(review.pk, person=factories.make_person(), name="a.txt", content=b"x")
    assert verifying.case_faults(Review.objects.get(pk=review.pk)) == []
    with without_triggers():
        _exchanged(row)
    assert len(verifying.case_faults(Review.objects.get(pk=review.pk))) == 1


def test_only_those_who_decide_add_files_and_only_with_their_token() -> None:
    review = make_case()
    auditor, _ = log_in("auditor")
    assert add(auditor, review, b"x", "a.txt").status_code == 403
    assert 'name="file"' not in text_of(auditor.get(f"/reviews/{review.pk}/"))
    client, person = log_in()
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(person)
    assert (
        strict.post(f"/reviews/{review.pk}/attach/", {"file": SimpleUploadedFile("a.txt", b"x")}).status_code == 403
    )
    assert client.get(f"/reviews/{review.pk}/attach/").status_code == 405
    assert Client().get("/attachments/1/").status_code == 302
    assert not Attachment.objects.exists()
