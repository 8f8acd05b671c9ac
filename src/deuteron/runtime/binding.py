"""The arguments of one launch, bound to the parameters of a kernel.

in_order(fn, args, kwargs)     the arguments in the order of the parameters, and the other keywords
bound.tokens               ("*fp32:16", "i32", 128)         what they mean to a compile
bound.runtime_values()     [x, 1000]                        what the compiled kernel takes
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from deuteron.backend.arrays import split_token
from deuteron.backend.devices import Device
from deuteron.errors import LaunchError, UsageError, counted
from deuteron.language.functions.function import Parameter, variadic_kernel
from deuteron.options import is_option
from deuteron.runtime.specialise import Token, is_passed, named_tokens, passed_values

if TYPE_CHECKING:
    from deuteron.runtime.jit import JITFunction


class Binding(NamedTuple):
    """The arguments of one launch, in the order of the parameters, and what they mean to a compile."""

    values: list[Any]
    options: dict[str, Any]
    tokens: tuple[Token, ...]
    passed: list[Any]

    def runtime_indices(self) -> tuple[int, ...]:
        """The arguments that the compiled kernel takes."""
        return tuple(index for index, token in enumerate(self.tokens) if is_passed(token))

    def runtime_values(self) -> list[Any]:
        """What the user passed for them, the parts of tuples and descriptors one by one."""
        pairs = zip(self.values, self.tokens, strict=True)
        return [part for value, token in pairs for part in passed_values(value, token)]

    def flat_values(self) -> list[Any]:
        """What is passed for them: addresses and numbers."""
        return flat(self.passed[index] for index in self.runtime_indices())

    def for_overlapping(self) -> Binding:
        """The same for a kernel that is compiled for arguments which may be views of one array."""
        return self.with_option("may_alias")

    def with_option(self, name: str) -> Binding:
        return self._replace(options={**self.options, name: True})

    def named_tokens(self, params: Sequence[Parameter]) -> Iterator[tuple[str, str]]:
        """The tokens of all arguments but constexprs, with their names; those of tuples one by one."""
        for param, value, token in zip(params, self.values, self.tokens, strict=True):
            for name, its in named_tokens(param.name, value, token):
                if isinstance(its, str):
                    yield name, its

    def devices(self, params: Sequence[Parameter]) -> Iterator[tuple[str, Device]]:
        """The arrays among the arguments, by name, with the device that each is on."""
        for name, token in self.named_tokens(params):
            device = split_token(token)[2]
            if device is not None:
                yield name, device


def flat(values: Iterable[Any]) -> list[Any]:
    """The values that are passed, those of tuples and descriptors one by one."""
    return [part for value in values for part in (value if isinstance(value, tuple) else (value,))]


def in_order(fn: JITFunction, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments in the order of the parameters, and the keywords that are no parameters."""
    values, options = list(args), kwargs
    if len(args) > len(fn.arg_names):
        _check_not_variadic(fn)
        raise LaunchError(f"{usage(fn)}, got {counted(len(args), 'argument')}")
    for param in fn.params[len(args) :]:
        if param.name in options:
            values.append(options.pop(param.name))
        elif param.has_default:
            values.append(param.default)
        else:
            _check_not_variadic(fn)
            raise _missing(fn, param.name, options)
    if options:
        _check_not_bound(fn, options, fn.arg_names[: len(args)])
    return values, options


def _check_not_bound(fn: JITFunction, options: dict[str, Any], bound: Sequence[str]) -> None:
    for name in bound:
        if name in options:
            raise LaunchError(f"{usage(fn)}: argument '{name}' is given twice")


def _check_not_variadic(fn: JITFunction) -> None:
    for param in fn.params:
        if param.is_variadic:
            raise UsageError(variadic_kernel(fn, param), fn.location(fn.tree))


def _missing(fn: JITFunction, name: str, keywords: Iterable[str]) -> LaunchError:
    """The error for an argument that is not given, with a keyword that may be meant to be it."""
    unknown = next((keyword for keyword in keywords if keyword not in fn.arg_names and not is_option(keyword)), None)
    meant = f", and there is no '{unknown}'. Did you mean '{name}'?" if unknown else ""
    if not unknown and fn.arg_names[0] == "self":
        meant = ". A kernel is bound to no object: leave out 'self', or pass it"
    return LaunchError(f"{usage(fn)}: argument '{name}' is missing{meant}")


def usage(fn: JITFunction) -> str:
    return f"kernel '{fn.__name__}' takes {', '.join(fn.arg_names)}"
