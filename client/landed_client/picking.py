"""Calls a function with those of another call's arguments that it names."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

_NAMED: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)

Picker = Callable[[tuple[Any, ...], Mapping[str, Any]], dict[str, Any]]


def picker(function: Callable[..., Any], given: Mapping[str, Any]) -> Picker:
    """From the arguments of a call of `function` to values: each of `given` as it is, or read from the arguments.

    `subject=lambda order: order` gets the argument `order`, however it was passed. Raises TypeError at once for one
    that names an argument which `function` doesn't have.
    """
    signature = inspect.signature(function)
    names = {name: _names(value, signature) for name, value in given.items() if callable(value)}

    def pick(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        there = bound.arguments
        return {
            name: value(**{one: there[one] for one in names[name]}) if name in names else value
            for name, value in given.items()
        }

    return pick


def _names(reader: Callable[..., Any], signature: inspect.Signature) -> tuple[str, ...]:
    wanted = inspect.signature(reader).parameters.values()
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in wanted):
        return tuple(signature.parameters)
    names = tuple(one.name for one in wanted if one.kind in _NAMED)
    if unknown := [name for name in names if name not in signature.parameters and not _has_default(reader, name)]:
        raise TypeError(
            f"The function has no argument {', '.join(unknown)}; it has {', '.join(signature.parameters)}."
        )
    return tuple(name for name in names if name in signature.parameters)


def _has_default(reader: Callable[..., Any], name: str) -> bool:
    return inspect.signature(reader).parameters[name].default is not inspect.Parameter.empty
