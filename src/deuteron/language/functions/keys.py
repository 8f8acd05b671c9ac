"""Keys of functions and classes: what a kernel depends on, by the source of its function and of all that this uses.

    key_of(add)         "5d41..."   SHA-256; changes with the source of `add`, of what it calls, and with globals
    Tile.class_key()    "70c2..."   of a class whose methods kernels call
    uses_of(add)        Uses(text="k.add:7:4, its source, ROWS = 128", callees=(scaled,))
    watched_by(add)     the references to what must not change once it is compiled
    variables_of(add)   those to variables

In each a function is followed by all that it refers to, however deep, in an order that depends on names only.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from deuteron.language.builtin import Builtin
from deuteron.language.constant import unwrap
from deuteron.language.functions.names import name_of
from deuteron.language.functions.references import Reference, is_value, references_to_defaults
from deuteron.language.functions.stable_text import is_of_users, stable_repr

if TYPE_CHECKING:
    from deuteron.language.functions.source_functions import SourceFunction


class Uses(NamedTuple):
    """The place and the source of a function with the values of what it uses, as text; and what it calls."""

    text: str
    callees: tuple[SourceFunction, ...]


class KernelClass:
    """A class whose methods kernels call."""

    __slots__ = ()

    @classmethod
    def functions(cls) -> Iterator[SourceFunction]:
        """The methods that are compiled, or called while compiling."""
        raise NotImplementedError

    @classmethod
    def text(cls) -> str:
        """What a compiled kernel depends on besides these."""
        raise NotImplementedError

    @classmethod
    def class_key(cls) -> str:
        """Equal for classes that mean the same to a kernel, in any process."""
        keys = [cls.text(), *(function.cache_key for function in cls.functions())]
        return hashlib.sha256("\n".join(keys).encode(errors="surrogateescape")).hexdigest()


def is_kernel_class(value: Any) -> bool:
    """Whether it is a class whose methods kernels call."""
    return isinstance(value, type) and issubclass(value, KernelClass)


def key_of(fn: SourceFunction) -> str:
    """SHA-256 of the source of a function and of all that it uses now: functions, and values of globals."""
    digest = hashlib.sha256()
    for _, uses in _with_uses(fn):
        digest.update(uses.text.encode(errors="surrogateescape"))  # a module may be called as a file is
    return digest.hexdigest()


def watched_by(fn: SourceFunction) -> tuple[Reference, ...]:
    """What must not change once a function, with all that it uses, is compiled."""
    return tuple(chain.from_iterable(map(_watched, _with_dependencies(fn))))


def variables_of(fn: SourceFunction) -> Iterator[Reference]:
    """The references of a function, and of all that it calls, to what counts in a compiled kernel."""
    return chain.from_iterable(map(_variables, _with_dependencies(fn)))


def uses_of(fn: SourceFunction) -> Uses:
    """What counts of it in a key: of a function of our own library its name, for another has another version."""
    if fn.is_fixed:
        return Uses(_name(fn.fn), ())
    used = list(_used_values(fn))
    lines = [_place(fn), fn.source.definition]
    callees: list[SourceFunction] = []
    for name, value in used:
        called = tuple(fn.callees(value))
        lines += [f"{name} = {text}" for text in _texts(fn, value, called)]
        callees += (*called, *(value.functions() if is_kernel_class(value) else ()))
    return Uses("\n".join((*lines, "")), tuple(callees))


def _used_values(fn: SourceFunction) -> Iterator[tuple[str, Any]]:
    """What names outside of a function mean, and the values of its defaults, which its text does not say."""
    for reference in fn.references:
        if not (reference.is_owner and _has_members(reference.value)):
            yield reference.name, reference.value
    parameters = inspect.signature(fn.fn).parameters.values()
    yield from ((f"{each.name}=", each.default) for each in parameters if each.default is not each.empty)


def _watched(fn: SourceFunction) -> Iterator[Reference]:
    yield from _variables(fn)
    if not fn.is_own:
        yield from references_to_defaults(fn.fn, fn.__qualname__)


def _variables(fn: SourceFunction) -> Iterator[Reference]:
    """The references to what counts in a compiled kernel; not to what is Deuteron's own or Python's, which stays."""
    for reference in fn.references:
        value = reference.value
        is_of_program = not isinstance(value, type) or is_of_users(value)
        is_only_owner = reference.is_owner and _has_members(value)
        is_data = is_value(value) or isinstance(value, type | ModuleType) or fn.may_call(value)
        if is_data and is_of_program and not (is_only_owner or reference.is_own):
            yield reference


def _has_members(value: Any) -> bool:
    """Whether it is a module or a class, of which those members count that are named."""
    return isinstance(value, ModuleType) or (isinstance(value, type) and not is_kernel_class(value))


def _texts(fn: SourceFunction, value: Any, callees: Sequence[SourceFunction]) -> Iterator[str]:
    """What the key of `fn` says of a value that it uses: where functions are, and data."""
    yield from map(_place, callees)
    if isinstance(value, Builtin):
        yield _name(inspect.unwrap(value))
    elif is_kernel_class(value):
        yield value.text()
    elif _is_function(unwrap(value), callees):
        return
    elif is_value(value) or _has_members(value) or fn.may_call(value):
        yield stable_repr(value)


def _is_function(value: Any, callees: Sequence[SourceFunction]) -> bool:
    """Whether a value is a function of which the callees say all."""
    return bool(callees) and (isinstance(value, FunctionType) or any(callee is value for callee in callees))


def _place(fn: SourceFunction) -> str:
    return _name(fn.fn) if fn.is_fixed else f"{_name(fn.fn)}:{fn.source.definition_line}:{fn.tree.col_offset}"


def _name(fn: Callable[..., Any]) -> str:
    return f"{name_of(fn.__module__)}.{fn.__qualname__}"


def _with_dependencies(fn: SourceFunction) -> list[SourceFunction]:
    """A function and all functions that it refers to, however deep, in an order that depends on names only."""
    return [function for function, _ in _with_uses(fn)]


def _with_uses(fn: SourceFunction) -> list[tuple[SourceFunction, Uses]]:
    """The same, each with what it uses."""
    found: dict[int, tuple[SourceFunction, Uses]] = {}

    def visit(function: SourceFunction) -> None:
        if id(function.fn) not in found:
            found[id(function.fn)] = function, (uses := uses_of(function))
            for callee in uses.callees:
                visit(callee)

    visit(fn)
    first, *others = found.values()
    return [first, *sorted(others, key=lambda one: (name_of(one[0].__module__), one[0].__qualname__))]
