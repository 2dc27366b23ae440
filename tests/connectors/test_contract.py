"""Every connector there is keeps the contract that ships, and the contract notices one that doesn't."""

from __future__ import annotations

import inspect
import itertools
from dataclasses import replace

import pytest

from actions.connectors import contract, registry
from actions.connectors.base import LOOK_UP_REASONS, REASONS, Answer, LookupFailed, Result
from actions.connectors.http_json import HttpJson
from actions.transport import Reason


@pytest.mark.parametrize("holds", contract.CHECKS, ids=contract.name_of)
@pytest.mark.parametrize("name", registry.names())
def test_a_registered_connector_keeps_the_contract(name, holds):
    holds(registry.get(name))


def test_no_check_is_forgotten():
    mine = [f for _, f in inspect.getmembers(contract, inspect.isfunction) if f.__module__ == contract.__name__]
    checks = {f for f in mine if list(inspect.signature(f).parameters) == ["connector"]}
    assert checks == set(contract.CHECKS)


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


@pytest.mark.parametrize(
    ("connector", "broken"),
    [
        (
            _SaysFailedWhenItDoesNotKnow(),
            {
                contract.another_amount_is_no_answer_and_says_what_differs,
                contract.a_success_that_shows_nothing_is_no_answer,
                contract.a_half_sent_confirmation_is_no_answer,
                contract.an_error_means_what_its_status_means,
                contract.a_replayed_error_proves_nothing,
                contract.after_the_first_byte_a_broken_call_is_no_answer_whatever_its_status,
            },
        ),
        (
            _BelievesEverySuccess(),
            {
                contract.a_pending_answer_is_accepted_with_its_id,
                contract.a_declined_one_is_refused,
                contract.another_amount_is_no_answer_and_says_what_differs,
                contract.a_success_that_shows_nothing_is_no_answer,
                contract.a_half_sent_confirmation_is_no_answer,
            },
        ),
        (
            _MakesAKeyOfItsOwn(),
            {
                contract.it_builds_the_same_bytes_every_time,
                contract.it_sends_the_intents_own_key,
                contract.what_is_stored_of_a_call_holds_no_secret,
            },
        ),
        (
            _ReadsOnePageOnly(),
            {
                contract.a_look_up_follows_every_page,
                contract.a_look_up_that_breaks_on_its_way_fails_and_keeps_what_it_saw,
                contract.a_ledger_that_goes_in_a_circle_is_left,
            },
        ),
        (
            _TakesABrokenViewForAWholeOne(),
            {
                contract.a_look_up_that_breaks_on_its_way_fails_and_keeps_what_it_saw,
                contract.a_page_that_is_not_plainly_whole_is_no_view,
                contract.a_ledger_that_goes_in_a_circle_is_left,
            },
        ),
        (_TakesAnySetting(), {contract.an_unknown_setting_is_a_problem}),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, HttpJson) else "",
)
def test_a_connector_that_breaks_the_contract_is_noticed(connector, broken):
    found = {holds for holds in contract.CHECKS if _fails(holds, connector)}
    assert found - {contract.it_has_the_name_it_is_found_by} == broken


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
