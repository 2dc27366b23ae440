"""The route that downstreams deliver their webhooks to. No token: the signature is what proves who sends."""

from django.http import HttpRequest, HttpResponse
from ninja import Router

from actions.api import problems
from actions.api.problems import BadRequest
from actions.errors import Unauthenticated
from reconciliation.api import describing
from reconciliation.webhooks import receiving

router = Router(tags=["webhooks"])


@router.post(
    "/webhooks/{slug:downstream}", response={204: None}, url_name="webhooks", openapi_extra=describing.WEBHOOK
)
def receive_webhook(request: HttpRequest, downstream: str) -> HttpResponse:
    """Takes one delivery, signed as the downstream's connector expects. 204: it is kept; the same again is, too."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    try:
        receiving.receive(downstream, headers=headers, body=_body(request))
    except Unauthenticated as refused:
        answer = problems.response(refused)
        # RFC 9110 §15.5.2 wants a challenge; a token would not help.
        answer["WWW-Authenticate"] = "Signature"
        return answer
    answer = HttpResponse(status=204)
    answer["Cache-Control"] = "no-store"
    return answer


def _body(request: HttpRequest) -> bytes:
    """Byte for byte: the signature is over exactly this. What breaks off, or is larger than the settings allow, is
    answered by the API's handlers."""
    body = request.body
    if not body and "Transfer-Encoding" in request.headers:
        # WSGI hands on no more than Content-Length says, so a chunked body arrives as an empty one.
        raise BadRequest("Send the body with a Content-Length.")
    return body
