"""Found: proposals that are taken, or that break, where they should be refused with their field named."""

from typing import Any

import pytest

from actions.errors import Invalid, LandedError
from actions.models import Intent
from actions.proposals import Proposal
from actions.recording import record
from tests.core.steps import propose
from tests.factories import make_agent, make_kind

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("params", [{"a": "x\x00"}, {"x\x00": 1}, {"a": ["\x00"]}])
def test_params_with_nul_are_refused_in_process_too(params: dict[str, Any]) -> None:
    """The HTTP API's reader refuses them; `record_intent` has no reader."""
    kind = make_kind()
    with pytest.raises(Invalid):
        propose(make_agent(kind), kind, params=params)


def test_a_payee_with_nul_is_refused_and_not_the_databases_error() -> None:
    kind = make_kind(payee_from="to")
    with pytest.raises(Invalid):
        propose(make_agent(kind), kind, params={"to": "acc\x00"})


@pytest.mark.parametrize("params", [{"a": (1.5,)}, {"a": [(0.1,)]}])
def test_a_float_inside_a_tuple_is_refused(params: dict[str, Any]) -> None:
    kind = make_kind()
    with pytest.raises(Invalid):
        propose(make_agent(kind), kind, params=params)


def test_params_nested_too_deep_are_refused() -> None:
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    kind = make_kind()
    with pytest.raises(Invalid):
        propose(make_agent(kind), kind, params={"a": deep})


@pytest.mark.parametrize("order", [["a", "b"], {"id": "a"}, True, False])
def test_a_subject_is_not_made_of_a_list_an_object_or_a_truth_value(order: object) -> None:
    """`str()` of it would become the business object that the guard keeps: "['a', 'b']"."""
    kind = make_kind(subject_from="order")
    with pytest.raises(Invalid) as told:
        propose(make_agent(kind), kind, subject=None, params={"order": order})
    assert [error["field"] for error in told.value.details["errors"]] == ["subject"]


@pytest.mark.parametrize("params", [{}, {"order": 1, "line": "x"}, {"order": None, "line": None}])
def test_an_expression_that_does_not_fit_the_params_is_the_proposals_fault(params: dict[str, Any]) -> None:
    kind = make_kind(subject_from="join('/', [order, line])")
    with pytest.raises(Invalid):
        propose(make_agent(kind), kind, subject=None, params=params)


def test_an_idempotency_key_that_another_intent_has_is_refused_by_name() -> None:
    kind = make_kind()
    agent = make_agent(kind)
    record(_proposal(kind.name, "order-1"), agent=agent, request_key=None, idempotency_key="k-1")
    with pytest.raises(LandedError):
        record(_proposal(kind.name, "order-2"), agent=agent, request_key=None, idempotency_key="k-1")
    assert Intent.objects.count() == 1


def _proposal(kind: str, subject: str) -> Proposal:
    return Proposal(kind=kind, subject=subject, amount="5.00", currency="EUR")
