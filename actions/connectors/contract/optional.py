"""What holds for a connector that looks first, looks back, or hears webhooks; others answer for nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

from actions import transport
from actions.connectors.base import (
    LOOK_UP_REASONS,
    Connector,
    ExampleLook,
    ExampleWebhook,
    HearsWebhooks,
    LooksBack,
    LooksFirst,
    LookupFailed,
    Notice,
    Page,
    Unverified,
)
from actions.connectors.contract.asking import SHOWS_NOTHING, Check, broken, reply, same
from actions.transport import Call, Phase, Reason, Reply


class _Looks(Connector, LooksFirst, Protocol): ...


class _Back(Connector, LooksBack, Protocol): ...


class _Hears(Connector, HearsWebhooks, Protocol): ...


# Looking first


def _look_of(connector: Connector) -> ExampleLook:
    assert connector.example.look is not None, "it looks first, and its example has no look"
    return connector.example.look


def _objection(connector: _Looks, replies: Iterable[Reply]) -> tuple[list[Call], str]:
    asked: list[Call] = []
    rest = iter(replies)

    def fetch(call: Call) -> Reply:
        transport.check(call)
        asked.append(call)
        return next(rest)

    return asked, connector.object_to(connector.example.target, connector.example.wanted, fetch)


def a_look_before_sending_only_reads(connector: Connector) -> None:
    if isinstance(connector, LooksFirst):
        look, target = _look_of(connector), connector.example.target
        for bodies in (look.clear, look.against):
            asked, _ = _objection(connector, [reply(200, body) for body in bodies])
            same(len(asked), len(bodies), "how often it asked")
            assert all(call.method == "GET" and call.body is None for call in asked), "a look only reads"
            assert all(call.url.startswith(target.base_url) for call in asked), "it asks something else"
            assert all((target.secret or "") not in call.url for call in asked), "the secret is in an address"


def what_a_look_finds_is_said_in_plain_words(connector: Connector) -> None:
    if isinstance(connector, LooksFirst):
        look = _look_of(connector)
        same(_objection(connector, [reply(200, body) for body in look.clear])[1], "", "an objection")
        _, against = _objection(connector, [reply(200, body) for body in look.against])
        sentence = against.endswith(".") and against[:1].isupper() and against.isprintable()
        assert sentence, f"no sentence: {against!r}"


def a_look_that_fails_lets_nothing_go(connector: Connector) -> None:
    if isinstance(connector, LooksFirst):
        bodies = _look_of(connector).clear
        for position in range(len(bodies)):
            before = [reply(200, body) for body in bodies[:position]]
            for bad in _bad_replies(bodies[position]):
                failed = _failed_look(connector, [*before, bad])
                assert failed.reason in LOOK_UP_REASONS, f"{failed.reason!r} is none of base.LOOK_UP_REASONS"


def _bad_replies(body: str) -> Iterator[Reply]:
    yield from (reply(status, body) for status in (202, 206, 302, 401, 404, 429, 500, 503))
    yield from (reply(200, nothing) for nothing in SHOWS_NOTHING)
    yield from (reply(200, body[:length]) for length in range(0, len(body), 7))
    yield broken(Phase.BODY, Reason.CUT_BODY, 200, body.encode())
    yield broken(Phase.CONNECT, Reason.CONNECT_REFUSED)


def _failed_look(connector: _Looks, replies: list[Reply]) -> LookupFailed:
    found: LookupFailed | None = None
    try:
        _objection(connector, replies)
    except LookupFailed as failed:
        found = failed
    assert found is not None, f"it was let go on {replies[-1].status}, {replies[-1].body[:30]!r}"
    return found


# Looking back

_SINCE: Final = datetime(2026, 11, 30, 11, tzinfo=UTC)


def _look_back(connector: _Back, replies: Iterable[Reply], **behind: str) -> tuple[list[Call], Iterator[Page]]:
    asked: list[Call] = []
    rest = iter(replies)

    def fetch(call: Call) -> Reply:
        transport.check(call)
        asked.append(call)
        return next(rest)

    return asked, connector.look_back(connector.example.target, fetch, since=_SINCE, **behind)


def _recent(connector: Connector) -> tuple[str, ...]:
    return connector.example.recent or connector.example.pages


def a_look_back_follows_every_page_and_only_reads(connector: Connector) -> None:
    if isinstance(connector, LooksBack):
        target, wanted, bodies = connector.example.target, connector.example.wanted, _recent(connector)
        asked, pages = _look_back(connector, [reply(200, body) for body in bodies])
        seen = list(pages)
        same([page.body for page in seen], list(bodies), "the bodies of the pages")
        assert len({call.url for call in asked}) == len(bodies) > 1, "the example needs pages, one address each"
        assert all(call.method == "GET" and call.body is None for call in asked), "a look back only reads"
        assert all(call.url.startswith(target.base_url) for call in asked), "it asks something else"
        assert all((target.secret or "") not in call.url for call in asked), "the secret is in an address"
        ours = [entry for page in seen for entry in page.entries if entry.key == wanted.idempotency_key]
        same([(entry.role, entry.state) for entry in ours], [("effect", "final")], "the entries with its key")
        assert all(entry.entry_id for page in seen for entry in page.entries), "an entry without its id"


def a_look_back_goes_on_behind_any_page(connector: Connector) -> None:
    if isinstance(connector, LooksBack):
        bodies = _recent(connector)
        asked, pages = _look_back(connector, [reply(200, body) for body in bodies])
        for position, page in enumerate(list(pages), start=1):
            if page.after is None:
                continue  # nothing is behind it, or this connector can't go on from there
            assert position < len(bodies), "something is behind the last page"
            again, rest = _look_back(connector, [reply(200, body) for body in bodies[position:]], cursor=page.after)
            same([one.body for one in rest], list(bodies[position:]), "the pages behind another")
            same([call.url for call in again], [call.url for call in asked[position:]], "what it asks for them")


def a_look_back_that_breaks_is_not_complete(connector: Connector) -> None:
    if isinstance(connector, LooksBack):
        bodies = _recent(connector)
        for position in range(len(bodies)):
            before = [reply(200, body) for body in bodies[:position]]
            for bad in _bad_replies(bodies[position]):
                asked, pages = _look_back(connector, [*before, bad])
                failed = _failed_look_back(pages)
                assert failed.reason in LOOK_UP_REASONS, f"{failed.reason!r} is none of base.LOOK_UP_REASONS"
                same([page.body for page in failed.pages], list(bodies[:position]), "the pages of the failure")
                same(len(asked), position + 1, "how often it asked")


def _failed_look_back(pages: Iterator[Page]) -> LookupFailed:
    found: LookupFailed | None = None
    try:
        list(pages)
    except LookupFailed as failed:
        found = failed
    assert found is not None, "a look back that broke was taken for a whole view"
    return found


# Hearing webhooks

_NOW: Final = datetime(2026, 11, 30, 12, tzinfo=UTC)
_GARBAGE: Final = (
    *(b"", b"null", b"true", b"7", b'"ok"', b"[]", b"{}", b"[[]]", b'{"id": ', b'{"id": NaN}', b"[" * 100_000),
    *(b'{"id":"x","id":"y"}', b'{"data":[1]}', b'{"data":{"object":7}}', b'{"id":{},"type":[],"data":{"object":[]}}'),
)
_NO_HEADERS: Final = ("", "\xe9", "9" * 400, ",", "=", "v1=", "t=,v1=", "v1,")


def _webhook_of(connector: Connector) -> ExampleWebhook:
    assert connector.example.webhook is not None, "it hears webhooks, and its example has none"
    return connector.example.webhook


def _heard(
    connector: _Hears,
    *,
    body: bytes,
    headers: Mapping[str, str] | None = None,
    secrets: Sequence[str] | None = None,
    at: datetime = _NOW,
) -> Notice | None:
    """None: it is not proven to be genuine."""
    webhook = _webhook_of(connector)
    signed = webhook.sign(body, at, webhook.secret) if headers is None else headers
    known = (webhook.secret,) if secrets is None else secrets
    said = ""
    try:
        return connector.hear(connector.example.target, headers=signed, body=body, secrets=known, now=_NOW)
    except Unverified as why:
        said = str(why)
    assert webhook.secret not in said, "what it says holds the secret"
    return None


def _is_believed(connector: _Hears, **given: Any) -> bool:
    """Whether it got as far as being read: a ValueError is for what is genuine."""
    try:
        return _heard(connector, **given) is not None
    except ValueError:
        return True


def a_genuine_webhook_names_the_intent(connector: Connector) -> None:
    if isinstance(connector, HearsWebhooks):
        wanted, body = connector.example.wanted, _webhook_of(connector).body.encode()
        notice = _heard(connector, body=body)
        assert notice is not None, "its own example is unverified"
        assert notice.delivery_id, "a delivery without an id could not be told from its repetition"
        same(notice.sent_at, _NOW, "when it was sent")
        for when in (notice.sent_at, notice.as_of or notice.sent_at):
            assert when.tzinfo is not None, "a time without its zone"
            assert when <= notice.sent_at, "it was signed before what it shows was so"
        assert wanted.idempotency_key in notice.keys, "the intent's key is not among its keys"
        for entry in notice.entries:
            same((entry.key, entry.amount_minor), (wanted.idempotency_key, wanted.amount_minor), "the entry")
            assert entry.entry_id in notice.external_ids, "the entry's id is not among its external ids"


def a_webhook_that_is_changed_is_not_believed(connector: Connector) -> None:
    if isinstance(connector, HearsWebhooks):
        webhook = _webhook_of(connector)
        body = webhook.body.encode()
        headers = webhook.sign(body, _NOW, webhook.secret)
        for changed in (body[:-1], body + b" ", b"", b"\xff" + body, *(_flip(body, n) for n in range(len(body)))):
            assert not _is_believed(connector, body=changed, headers=headers), f"believed: {changed!r}"
        for name, value in headers.items():
            for other in (*_NO_HEADERS, value[:-1], value[1:], f"9{value}"):
                bad = {**headers, name: other}
                assert not _is_believed(connector, body=body, headers=bad), f"believed: {name}: {other!r}"
            without = {given: it for given, it in headers.items() if given != name}
            assert not _is_believed(connector, body=body, headers=without), f"believed without {name}"


def _flip(body: bytes, position: int) -> bytes:
    return body[:position] + bytes([body[position] ^ 1]) + body[position + 1 :]


def a_webhook_from_another_time_is_not_believed(connector: Connector) -> None:
    if isinstance(connector, HearsWebhooks):
        body = _webhook_of(connector).body.encode()
        assert _heard(connector, body=body, at=_NOW - timedelta(minutes=1)), "one that took a minute is not believed"
        for away in (timedelta(hours=1), timedelta(days=1), timedelta(days=20_000)):
            for at in (_NOW - away, _NOW + away):
                assert not _is_believed(connector, body=body, at=at), f"believed at {_NOW}: {at}"


def any_of_its_secrets_proves_a_webhook_and_no_other(connector: Connector) -> None:
    if isinstance(connector, HearsWebhooks):
        webhook = _webhook_of(connector)
        body, other = webhook.body.encode(), webhook.secret[:-8] + webhook.secret[-8:].swapcase()
        assert other != webhook.secret, "the example's secret ends in no letters"
        assert _heard(connector, body=body, secrets=(other, webhook.secret)), "the second of two secrets"
        for wrong in ((), ("",), (other,), ("not a secret",), ("", other)):
            assert not _is_believed(connector, body=body, secrets=wrong), f"believed with {len(wrong)} others"
        with_nothing = webhook.sign(body, _NOW, other)
        assert not _is_believed(connector, body=body, headers=with_nothing), "believed with another secret"


def a_genuine_webhook_that_says_nothing_readable_is_a_value_error_or_nothing(connector: Connector) -> None:
    if isinstance(connector, HearsWebhooks):
        for body in _GARBAGE:
            try:
                notice = _heard(connector, body=body)
            except ValueError:
                continue
            assert notice is None or not notice.entries, f"entries read out of {body[:40]!r}"


CHECKS: Final[tuple[Check, ...]] = (
    a_look_before_sending_only_reads,
    what_a_look_finds_is_said_in_plain_words,
    a_look_that_fails_lets_nothing_go,
    a_look_back_follows_every_page_and_only_reads,
    a_look_back_goes_on_behind_any_page,
    a_look_back_that_breaks_is_not_complete,
    a_genuine_webhook_names_the_intent,
    a_webhook_that_is_changed_is_not_believed,
    a_webhook_from_another_time_is_not_believed,
    any_of_its_secrets_proves_a_webhook_and_no_other,
    a_genuine_webhook_that_says_nothing_readable_is_a_value_error_or_nothing,
)
