"""Proposals: what an agent asks for, and the canonical form of it. Touches no table."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import jmespath
from jmespath.exceptions import JMESPathError
from jsonschema import Draft202012Validator

from actions import money, spelling, subjects
from actions.canonical import BadJson, canonical, check_params, check_text
from actions.errors import Invalid
from actions.models import AmountRule, Executor, Executors
from actions.payloads import payload
from actions.policy import Policy

MAX_NOTE, MAX_PARAMS, MAX_CONTEXT = 4_000, 32_768, 4_096
CONTEXTKEYS = ("run", "ticket", "on_behalf_of")
KEY = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)


@dataclass(frozen=True)
class Proposal:
    """What an agent asks for, as it came: amounts as the digits that were written."""

    kind: str
    subject: str | None = None
    amount: str | None = None
    currency: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    context: Mapping[str, Any] = field(default_factory=dict)
    executor: str = Executor.LANDED.value
    claim_token: str | None = None
    send_before: datetime | None = None
    repeat_of: UUID | None = None


@dataclass(frozen=True)
class Shape:
    """A proposal in canonical form: what the payload digest covers."""

    kind: str
    subject: str
    amount_minor: int | None
    currency: str
    params: str
    executor: str
    payee: str = ""
    customer: str = ""

    def payload(self) -> dict[str, Any]:
        return payload(
            kind=self.kind,
            subject=self.subject,
            amount_minor=self.amount_minor,
            currency=self.currency,
            params=self.params,
            executor=self.executor,
        )


def shape_of(proposal: Proposal, rules: Policy, *, validate: bool = True) -> Shape:
    """Raises Invalid with every field that can't be taken. `validate=False` leaves out the JSON Schema, and payee and
    customer: what was recorded once is told apart by its payload alone."""
    errors: list[dict[str, str]] = []

    def wrong(name: str, message: object) -> None:
        errors.append({"field": name, "message": str(message)})

    params = _params(proposal, rules, wrong, validate=validate)
    subject = _subject(proposal, rules, params, wrong)
    amount_minor, currency = _amount(proposal, rules, wrong)
    _texts(proposal, wrong)
    payee = _party("payee", rules.payee_from, params, wrong) if validate else ""
    customer = _party("customer", rules.customer_from, params, wrong) if validate else ""
    executors = set(Executor.values) if rules.executors == Executors.BOTH else {rules.executors}
    if proposal.executor not in executors:
        wrong("executor", f"This kind is carried out by: {', '.join(sorted(executors))}.")
    if proposal.claim_token is not None and proposal.executor != Executor.CALLER:
        wrong("claim_token", "Only an intent that the caller carries out is claimed.")
    elif proposal.claim_token is not None and not KEY.fullmatch(proposal.claim_token):
        wrong("claim_token", "1 to 255 visible ASCII characters.")
    if errors:
        raise Invalid(errors)
    return Shape(
        kind=rules.kind,
        subject=subject,
        amount_minor=amount_minor,
        currency=currency,
        params=canonical(params),
        executor=proposal.executor,
        payee=payee,
        customer=customer,
    )


def _params(proposal: Proposal, rules: Policy, wrong: Any, *, validate: bool) -> dict[str, Any]:
    params = dict(proposal.params)
    try:
        check_params(params)
        if len(canonical(params)) > MAX_PARAMS:
            wrong("params", f"Longer than {MAX_PARAMS} characters.")
    except (BadJson, ValueError) as bad:
        wrong("params", bad)
        return {}
    if validate and rules.params_schema:
        for problem in Draft202012Validator(rules.params_schema).iter_errors(params):
            wrong(".".join(["params", *map(str, problem.absolute_path)]), problem.message[:300])
    return params


def _subject(proposal: Proposal, rules: Policy, params: Mapping[str, Any], wrong: Any) -> str:
    try:
        derived = _named(rules.subject_from, params)
        if derived is not None:
            derived = subjects.canonical_subject(
                derived, folds=rules.subject_case_folds, pattern=rules.subject_pattern
            )
        if proposal.subject is None:
            if derived is None:
                wrong("subject", "Missing." if not rules.subject_from else "It can't be derived from params.")
            return derived or ""
        subject = subjects.canonical_subject(
            proposal.subject, folds=rules.subject_case_folds, pattern=rules.subject_pattern
        )
        if derived is not None and subject != derived:
            wrong("subject", f"params say {derived!r}.")
        return subject
    except subjects.BadSubject as bad:
        wrong("subject", bad)
        return ""


def _amount(proposal: Proposal, rules: Policy, wrong: Any) -> tuple[int | None, str]:
    if proposal.amount is None and proposal.currency is None:
        if rules.amount_rule == AmountRule.REQUIRED:
            wrong("amount", "Missing.")
            wrong("currency", "Missing.")
        return None, ""
    if rules.amount_rule == AmountRule.NONE:
        wrong("amount", "This kind takes no amount.")
        return None, ""
    if proposal.amount is None or proposal.currency is None:
        wrong("currency" if proposal.currency is None else "amount", "Amount and currency go together.")
        return None, ""
    try:
        return money.to_minor(proposal.amount, proposal.currency), proposal.currency
    except money.BadAmount as bad:
        try:
            money.exponent(proposal.currency)
            wrong("amount", bad)
        except money.BadAmount:
            wrong("currency", bad)
        return None, ""


def _texts(proposal: Proposal, wrong: Any) -> None:
    if len(proposal.note) > MAX_NOTE:
        wrong("note", f"Longer than {MAX_NOTE} characters.")
    for key, value in proposal.context.items():
        if key not in CONTEXTKEYS:
            wrong(f"context.{key}", f"Unknown; there are {', '.join(CONTEXTKEYS)}.")
        elif not isinstance(value, str) or len(value) > 255:
            wrong(f"context.{key}", "A text of at most 255 characters.")
    for name, text in (("note", proposal.note), *((f"context.{key}", v) for key, v in proposal.context.items())):
        try:
            check_text(str(text))
        except BadJson as bad:
            wrong(name, bad)


def _party(what: str, expression: str, params: Mapping[str, Any], wrong: Any) -> str:
    """Who is paid, or whom it is for, in the one spelling; empty when params name nobody.

    What can't be read is refused and not left out: a stop on somebody has to find everything that concerns them.
    """
    found = _found(expression, params)
    name = _text_of(found)
    if name is None:
        if found is not None:
            wrong(f"params.{expression}", f"The {what} has to be a text or a whole number.")
        return ""
    name = spelling.tidy(name).strip()
    if fault := spelling.fault(name):
        wrong(f"params.{expression}", f"The {what} {fault}.")
    return name


def _named(expression: str, params: Mapping[str, Any]) -> str | None:
    """The text or whole number that a kind's expression finds in params; None when it finds neither."""
    return _text_of(_found(expression, params))


def _found(expression: str, params: Mapping[str, Any]) -> Any:
    if not expression:
        return None
    try:
        return jmespath.search(expression, params)
    except JMESPathError:
        return None  # the expression is sound (the admin compiled it); these params don't fit it


def _text_of(found: Any) -> str | None:
    if isinstance(found, str):
        return found
    return str(found) if type(found) is int else None
