"""Adding a file to a case. A module of its own: what reads the request has to be set before anything is read."""

from io import BytesIO
from typing import Any

from django.contrib import messages
from django.core.files.uploadedfile import InMemoryUploadedFile, UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, SkipFile
from django.http import HttpRequest, HttpResponse
from django.http.multipartparser import MultiPartParserError
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from actions.errors import Invalid
from reconciliation.reviews import attaching
from reconciliation.views.case import stay
from reconciliation.views.frame import DeskRequest, action

UNREAD = "The file was not read: its name may be too long. Give it a shorter one, then add it again."


class OneSmallFile(FileUploadHandler):
    """Keeps one file of a request, and of it no more than what tells that it is too large; the rest is read and
    dropped, so that whoever sends too much is answered and costs no memory."""

    def __init__(self, request: HttpRequest | None = None) -> None:
        super().__init__(request)
        self.kept: BytesIO | None = None

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        if self.kept is not None:
            raise SkipFile
        self.kept = BytesIO()

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        if self.kept is not None and start <= attaching.MOST_BYTES:
            self.kept.write(raw_data)

    def file_complete(self, file_size: int) -> UploadedFile | None:
        if self.kept is None or self.file_name is None:
            return None
        self.kept.seek(0)
        kept = (self.kept, self.field_name, self.file_name, self.content_type or "", file_size, self.charset)
        return InMemoryUploadedFile(*kept, self.content_type_extra)


@csrf_exempt  # the handler has to be there before anything is read; `_attach` is protected
def attach(request: HttpRequest, review_id: int) -> HttpResponse:
    request.upload_handlers = [OneSmallFile(request)]
    try:
        return _attach(request, review_id=review_id)
    except MultiPartParserError:
        return _unread(request, review_id)


@action
def _unread(request: DeskRequest, review_id: int) -> HttpResponse:
    """What can't be taken apart can't be told from a forgery either, so all it gets is the page, and why."""
    return stay(request, review_id, file_fault=UNREAD)


@csrf_protect
@action
def _attach(request: DeskRequest, review_id: int) -> HttpResponse:
    given = request.FILES.get("file")
    try:
        if given is None:
            raise Invalid.field("file", "Choose a file first.")
        added = attaching.attach(review_id, person=request.user, name=given.name or "", content=given.read())
    except Invalid as refused:
        return stay(request, review_id, file_fault=refused.details["errors"][0]["message"])
    messages.success(request, f"Added, with the SHA-256 {added.digest}.")
    return stay(request, review_id)
