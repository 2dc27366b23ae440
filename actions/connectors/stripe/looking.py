"""What speaks against a refund right before it is sent. Pure but for `fetch`, and it only reads.

A refund carries no currency: Stripe refunds in that of the payment ("Create a refund"). So it has to be the intent's.
"""

from __future__ import annotations

from typing import Any

from actions.connectors.base import Fetch, LookupFailed, Target, Wanted, text_of
from actions.connectors.paging import complete, document_of
from actions.connectors.stripe.answer import error_of
from actions.connectors.stripe.ledger import amount_of, ask, payment_asked_about
from actions.connectors.values import Unreadable, currency_code
from actions.money import describe
from actions.transport import Reply

_PATHS = {
    "charge": "/v1/charges/{}",
    "payment_intent": "/v1/payment_intents/{}?expand%5B%5D=latest_charge",
}


def object_to(target: Target, wanted: Wanted, fetch: Fetch) -> str:
    by, payment = payment_asked_about(wanted)
    reply = complete(fetch(ask(target, _PATHS[by].format(payment))))
    if reply.status == 404 and error_of(reply)[1] == "resource_missing":
        return f"Stripe knows no {by.replace('_', ' ')} {payment} in this account."
    try:
        return _speaks_against(wanted, by, payment, document_of(reply))
    except Unreadable as wrong:
        raise _unreadable(reply, str(wrong)) from wrong


def _unreadable(reply: Reply, why: str) -> LookupFailed:
    return LookupFailed("unreadable_page", why, http_status=reply.status, body=text_of(reply.body))


def _speaks_against(wanted: Wanted, by: str, payment: str, document: Any) -> str:
    _is_a(document, by)
    if document.get("id") != payment:
        raise Unreadable(f"it is about another {by}")
    charge = document if by == "charge" else document.get("latest_charge")
    if charge is None:
        return "Nothing was collected with this payment, so there is nothing to refund."
    _is_a(charge, "charge")
    # Stripe always says, and refuses refunds of disputed payments itself as well; a silent copy of it is let through.
    disputed = charge.get("disputed", False)
    if not isinstance(disputed, bool):
        raise Unreadable("it does not say whether the charge is disputed")
    if disputed:
        return "The payer disputes this payment: the bank may already be taking the money back."
    currency = currency_code(charge.get("currency"))
    if currency is None:
        raise Unreadable("the charge has no currency")
    if currency != wanted.currency:
        return (
            f"The payment was made in {currency}, and Stripe would refund it in {currency}, not in {wanted.currency}."
        )
    return _too_much(wanted, charge, currency)


def _is_a(document: Any, kind: str) -> None:
    if not isinstance(document, dict) or document.get("object") != kind:
        raise Unreadable(f"not a {kind}")


def _too_much(wanted: Wanted, charge: dict[str, Any], currency: str) -> str:
    paid, refunded = (amount_of(charge, name, currency) for name in ("amount", "amount_refunded"))
    if paid is None or refunded is None:
        raise Unreadable("the charge does not say how much of it is left")
    if wanted.amount_minor is not None and wanted.amount_minor <= paid - refunded:
        return ""
    if paid <= refunded:
        return f"This payment of {describe(paid, currency)} is refunded in full already."
    return (
        f"Only {describe(paid - refunded, currency)} of this payment are left to refund, less than the "
        f"{describe(wanted.amount_minor, currency)} of this intent."
    )
