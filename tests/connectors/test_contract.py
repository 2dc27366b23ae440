"""Every connector there is keeps the contract that ships, and the contract notices one that doesn't."""

from __future__ import annotations

import inspect
import itertools
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from actions.connectors import contract, registry
from actions.connectors.base import LOOK_UP_REASONS, REASONS, Answer, LookupFailed, Result, Unverified
from actions.connectors.http_json import HttpJson
from actions.connectors.stripe import Stripe
from actions.transport import Call, Reason


@pytest.mark.parametrize("holds", contract.CHECKS, ids=contract.name_of)
@pytest.mark.parametrize("name", registry.names())
def test_a_registered_connector_keeps_the_contract(name, holds):
    holds(registry.get(name))


def test_no_check_is_forgotten():
    found = set()
    for module in (contract.core, contract.optional):
        mine = [f for _, f in inspect.getmembers(module, inspect.isfunction) if f.__module__ == module.__name__]
        found |= {f for f in mine if not f.__name__.startswith("_") and _takes_a_connector(f)}
    assert found == set(contract.CHECKS)


def _takes_a_connector(function):
    return list(inspect.signature(function).parameters) == ["connector"]


class _SaysFailedWhenItDoesNotKnow(HttpJson):
    def read(self, target, wanted, reply):
        answer = super().read(target, wanted, reply)
        return replace(answer, result=Result.REFUSED) if answer.result is Result.NO_ANSWER else answer


class _BelievesEverySuccess(HttpJson):
    def read(self, target, wanted, reply):
        if reply.complete and reply.status == 200:
            return Answer(Result.CONFIRMED, "confirmed", "1", wanted.amount_minor, wanted.currency, (), 200)
        return super().read(target, wanted, reply)


class _MakesAKeyOfItsOwn(HttpJson):
    keys = itertools.count()

    def build(self, target, wanted):
        return super().build(target, replace(wanted, idempotency_key=f"key-{next(self.keys)}"))


class _ReadsOnePageOnly(HttpJson):
    def look_up(self, target, wanted, fetch, *, by):
        yield next(super().look_up(target, wanted, fetch, by=by))


class _TakesABrokenViewForAWholeOne(HttpJson):
    def look_up(self, target, wanted, fetch, *, by):
        try:
            yield from super().look_up(target, wanted, fetch, by=by)
        except LookupFailed:
            return


class _TakesAnySetting(HttpJson):
    def check_config(self, config):
        return []


class _SendsSomethingWhileItLooks(Stripe):
    def object_to(self, target, wanted, fetch):
        return super().object_to(target, wanted, lambda call: fetch(replace(call, method="POST", body=b"x=1")))


class _AsksSomebodyElse(Stripe):
    def object_to(self, target, wanted, fetch):
        return super().object_to(target, wanted, lambda call: fetch(Call("GET", "https://else.example", {})))


class _LetsItGoWhenItCanNotSee(Stripe):
    def object_to(self, target, wanted, fetch):
        try:
            return super().object_to(target, wanted, fetch)
        except LookupFailed:
            return ""


class _NeverObjects(Stripe):
    def object_to(self, target, wanted, fetch):
        super().object_to(target, wanted, fetch)
        return ""


class _ObjectsInCodes(Stripe):
    def object_to(self, target, wanted, fetch):
        return super().object_to(target, wanted, fetch) and "charge_disputed"


class _LooksBackAtOnePageOnly(HttpJson):
    def look_back(self, target, fetch, *, since, **behind):
        yield next(super().look_back(target, fetch, since=since, **behind))


class _BeginsAnewWhateverTheCursor(HttpJson):
    def look_back(self, target, fetch, *, since, cursor=None):
        yield from super().look_back(target, fetch, since=since)


class _WritesWhileItLooksBack(HttpJson):
    def look_back(self, target, fetch, *, since, **behind):
        yield from super().look_back(
            target, lambda call: fetch(replace(call, method="POST", body=b"x=1")), since=since, **behind
        )


class _TakesABrokenLookBackForAWholeOne(HttpJson):
    def look_back(self, target, fetch, *, since, **behind):
        try:
            yield from super().look_back(target, fetch, since=since, **behind)
        except LookupFailed:
            return


class _BelievesEverybody(Stripe):
    """It takes the signature and the time that fit, whatever was given."""

    def hear(self, target, *, headers, body, secrets, now):
        secret = "whsec_any"
        headers = self.example.webhook.sign(body, now, secret)
        return super().hear(target, headers=headers, body=body, secrets=[secret], now=now)


class _BelievesOldOnes(Stripe):
    def hear(self, target, *, headers, body, secrets, now):
        said = headers.get("stripe-signature", "").removeprefix("t=").partition(",")[0]
        if said.isascii() and said.isdigit() and len(said) < 12:
            now = datetime.fromtimestamp(int(said), tz=UTC)
        return super().hear(target, headers=headers, body=body, secrets=secrets, now=now)


class _KnowsOneSecretOnly(Stripe):
    def hear(self, target, *, headers, body, secrets, now):
        return super().hear(target, headers=headers, body=body, secrets=secrets[:1], now=now)


class _LetsNobodySign(Stripe):
    """An empty secret is one, as hmac sees it."""

    def hear(self, target, *, headers, body, secrets, now):
        if "" in secrets:
            return self.hear(
                target,
                headers=self.example.webhook.sign(body, now, "whsec_any"),
                body=body,
                secrets=["whsec_any"],
                now=now,
            )
        return super().hear(target, headers=headers, body=body, secrets=secrets, now=now)


class _FindsNoKey(Stripe):
    def hear(self, target, *, headers, body, secrets, now):
        return replace(super().hear(target, headers=headers, body=body, secrets=secrets, now=now), keys=())


class _KnowsTheFuture(Stripe):
    def hear(self, target, *, headers, body, secrets, now):
        notice = super().hear(target, headers=headers, body=body, secrets=secrets, now=now)
        return replace(notice, as_of=datetime(2030, 1, 1, tzinfo=UTC))


class _TellsItsSecret(Stripe):
    def hear(self, target, *, headers, body, secrets, now):
        try:
            return super().hear(target, headers=headers, body=body, secrets=secrets, now=now)
        except Unverified as why:
            raise Unverified(f"{why} {secrets}") from why


@pytest.mark.parametrize(
    ("connector", "broken"),
    [
        (
            _SaysFailedWhenItDoesNotKnow(),
            {
                contract.core.another_amount_is_no_answer_and_says_what_differs,
                contract.core.a_success_that_shows_nothing_is_no_answer,
                contract.core.a_half_sent_confirmation_is_no_answer,
                contract.core.an_error_means_what_its_status_means,
                contract.core.a_replayed_error_proves_nothing,
                contract.core.after_the_first_byte_a_broken_call_is_no_answer_whatever_its_status,
            },
        ),
        (
            _BelievesEverySuccess(),
            {
                contract.core.a_pending_answer_is_accepted_with_its_id,
                contract.core.a_declined_one_is_refused,
                contract.core.another_amount_is_no_answer_and_says_what_differs,
                contract.core.a_success_that_shows_nothing_is_no_answer,
                contract.core.a_half_sent_confirmation_is_no_answer,
            },
        ),
        (
            _MakesAKeyOfItsOwn(),
            {
                contract.core.it_builds_the_same_bytes_every_time,
                contract.core.it_sends_the_intents_own_key,
                contract.core.what_is_stored_of_a_call_holds_no_secret,
            },
        ),
        (
            _ReadsOnePageOnly(),
            {
                contract.core.a_look_up_follows_every_page,
                contract.core.a_look_up_that_breaks_on_its_way_fails_and_keeps_what_it_saw,
                contract.core.a_ledger_that_goes_in_a_circle_is_left,
            },
        ),
        (
            _TakesABrokenViewForAWholeOne(),
            {
                contract.core.a_look_up_that_breaks_on_its_way_fails_and_keeps_what_it_saw,
                contract.core.a_page_that_is_not_plainly_whole_is_no_view,
                contract.core.a_ledger_that_goes_in_a_circle_is_left,
            },
        ),
        (_TakesAnySetting(), {contract.core.an_unknown_setting_is_a_problem}),
        (
            _LooksBackAtOnePageOnly(),
            {
                contract.optional.a_look_back_follows_every_page_and_only_reads,
                contract.optional.a_look_back_goes_on_behind_any_page,
                contract.optional.a_look_back_that_breaks_is_not_complete,
            },
        ),
        (_BeginsAnewWhateverTheCursor(), {contract.optional.a_look_back_goes_on_behind_any_page}),
        (_WritesWhileItLooksBack(), {contract.optional.a_look_back_follows_every_page_and_only_reads}),
        (_TakesABrokenLookBackForAWholeOne(), {contract.optional.a_look_back_that_breaks_is_not_complete}),
        (_SendsSomethingWhileItLooks(), {contract.optional.a_look_before_sending_only_reads}),
        (_AsksSomebodyElse(), {contract.optional.a_look_before_sending_only_reads}),
        (_LetsItGoWhenItCanNotSee(), {contract.optional.a_look_that_fails_lets_nothing_go}),
        (_NeverObjects(), {contract.optional.what_a_look_finds_is_said_in_plain_words}),
        (_ObjectsInCodes(), {contract.optional.what_a_look_finds_is_said_in_plain_words}),
        (
            _BelievesEverybody(),
            {
                contract.optional.a_webhook_that_is_changed_is_not_believed,
                contract.optional.a_webhook_from_another_time_is_not_believed,
                contract.optional.any_of_its_secrets_proves_a_webhook_and_no_other,
            },
        ),
        (_BelievesOldOnes(), {contract.optional.a_webhook_from_another_time_is_not_believed}),
        (_KnowsOneSecretOnly(), {contract.optional.any_of_its_secrets_proves_a_webhook_and_no_other}),
        (_LetsNobodySign(), {contract.optional.any_of_its_secrets_proves_a_webhook_and_no_other}),
        (_FindsNoKey(), {contract.optional.a_genuine_webhook_names_the_intent}),
        (_KnowsTheFuture(), {contract.optional.a_genuine_webhook_names_the_intent}),
        (
            _TellsItsSecret(),
            {
                contract.optional.a_webhook_that_is_changed_is_not_believed,
                contract.optional.a_webhook_from_another_time_is_not_believed,
                contract.optional.any_of_its_secrets_proves_a_webhook_and_no_other,
            },
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, HttpJson | Stripe) else "",
)
def test_a_connector_that_breaks_the_contract_is_noticed(connector, broken):
    found = {holds for holds in contract.CHECKS if _fails(holds, connector)}
    assert found - {contract.core.it_has_the_name_it_is_found_by} == broken


@pytest.mark.parametrize("broken", [KeyError, TypeError, RecursionError, AttributeError])
def test_whatever_hearing_garbage_raises_is_noticed(broken):
    class FallsOver(Stripe):
        def hear(self, target, *, headers, body, secrets, now):
            try:
                return super().hear(target, headers=headers, body=body, secrets=secrets, now=now)
            except ValueError as wrong:
                raise broken from wrong

    with pytest.raises(broken):
        contract.optional.a_genuine_webhook_that_says_nothing_readable_is_a_value_error_or_nothing(FallsOver())


def test_a_connector_without_the_optional_parts_has_nothing_to_answer_for():
    class Plain(HttpJson):
        hear = None
        look_back = None

    assert [contract.name_of(holds) for holds in contract.optional.CHECKS if _fails(holds, Plain())] == []


def _fails(holds, connector):
    try:
        holds(connector)
    except AssertionError as failed:
        return bool(str(failed))  # it says what is wrong, also where pytest doesn't rewrite asserts
    return False


def test_every_reason_has_a_sentence():
    for text in (*REASONS.values(), *LOOK_UP_REASONS.values()):
        assert text.endswith(".")
        assert text[0].isupper()
    assert "ok" not in REASONS
    assert set(Reason) - {Reason.OK} <= set(REASONS)
