"""Makes a function look like another to the frameworks that read a tool's schema off a signature. Pure."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints


def with_parameters_of(
    proposal: Callable[..., Any], call: Callable[..., Any], *first: inspect.Parameter
) -> Callable[..., Any]:
    """`call` with the name, docstring and parameters of `proposal`, after `first`, and a text as its answer.

    Types are resolved where `proposal` was written. What a proposal returns is nothing for the model.
    """
    hints = get_type_hints(proposal, include_extras=True) | {"return": str}
    given = inspect.signature(proposal).parameters.values()
    typed = [one.replace(annotation=hints.get(one.name, one.annotation)) for one in given]
    functools.update_wrapper(call, proposal)
    # Or whoever inspects it looks through to the original.
    del call.__wrapped__  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in first} | hints
    call.__signature__ = inspect.Signature([*first, *typed], return_annotation=str)  # type: ignore[attr-defined]
    return call
