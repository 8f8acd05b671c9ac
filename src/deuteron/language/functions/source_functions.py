"""Functions of which the source is known: what they refer to, however deep, and a key that changes with all of it.

    @deuteron.jit
    def add(x_ptr, n, BLOCK: tl.constexpr): ...

    add.cache_key                      "5d41..."   changes with its source and with that of every function it calls
    plain_function(row_length)         a `def` of Python that a kernel is given, to call it while it is compiled

The lines of the file are those that it has when the function is defined; nothing is parsed before it is asked for.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial, update_wrapper
from itertools import chain
from types import FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from deuteron.cached_property import cached_property
from deuteron.errors import UsageError
from deuteron.language.builtin import Builtin
from deuteron.language.constant import constexpr, unwrap
from deuteron.language.functions.lambda_source import syntax_tree
from deuteron.language.functions.names import ByName, name_of
from deuteron.language.functions.place_in_file import PlaceInFile
from deuteron.language.functions.references import (
    Name,
    Reference,
    find_references,
    is_value,
    names_in,
    references_to_defaults,
)
from deuteron.language.functions.source import FunctionSource, lines_of_file, read_source, source_of_text
from deuteron.language.functions.stable_text import is_of_users, parts_of, stable_repr


class Uses(NamedTuple):
    """The place and the source of a function with the values of what it uses, as text; and what it calls."""

    text: str
    callees: tuple[SourceFunction, ...]


class SourceFunction(ByName, PlaceInFile):
    """A function with a source, of which what it refers to and a key are known."""

    fn: Callable[..., Any]
    file_lines: Sequence[str] = ()  # of the file, when the function was defined
    num_updates = 0  # how often the source of some function was replaced

    @cached_property
    def source(self) -> FunctionSource:
        """Parsed when first asked for; raises UsageError where there is no source text."""
        return read_source(self.fn, self.file_lines)

    @property
    def tree(self) -> ast.FunctionDef:
        return self.source.tree

    def parse(self) -> ast.Module:
        """The source as Python parses it alone, a tree that may be changed."""
        return syntax_tree(self.src)

    @property
    def is_own(self) -> bool:
        """Whether it is of Deuteron's own library."""
        return self.fn is not None and _package(self.fn) == __name__.partition(".")[0]

    @property
    def references(self) -> tuple[Reference, ...]:
        """What the names and the dotted names in the source mean outside of it now, sorted by name."""
        if self.fn is None:
            raise UsageError(f"'{self.__name__}' was pickled without its Python function: it cannot be compiled again")
        return tuple(find_references(self.fn, self._names_outside))

    @cached_property
    def _names_outside(self) -> tuple[Name, ...]:
        return names_in(self.fn, self.tree.body)

    @property
    def cache_key(self) -> str:
        """SHA-256 of this source and of all that it uses now: functions, however deep, and values of globals."""
        digest = hashlib.sha256()
        for _, uses in _with_uses(self):
            digest.update(uses.text.encode())
        return digest.hexdigest()

    @property
    def uses(self) -> Uses:
        """What counts of it in a key: of a function of our own library its name, for another has another version."""
        return Uses(_name(self.fn), ()) if _is_fixed(self) else _uses_of(self)

    @property
    def src(self) -> str:
        """The text of the function from its `def`, without indentation."""
        return self.source.definition

    @src.setter
    def src(self, new_src: str) -> None:
        """How Triton before 3.4 gave a function another text."""
        warnings.warn("src = text is called _unsafe_update_src(text) now", stacklevel=2)
        self._unsafe_update_src(new_src)

    def _unsafe_update_src(self, new_src: str) -> None:
        """Take another text for the source; kernels that use it are compiled anew when they are launched next."""
        try:
            source = self.source
        except UsageError:  # a function that a program made, to give it a text
            self.__dict__["source"] = source_of_text(self.fn, new_src)
        else:
            self.__dict__["source"] = source.with_definition(new_src)
        self.__dict__.pop("_names_outside", None)
        SourceFunction.num_updates += 1

    @property
    def __globals__(self) -> dict[str, Any] | None:
        """The namespace of the module that it is defined in; None, as `fn` is, while torch sends it to a process."""
        return self.fn.__globals__ if self.fn is not None else None

    @__globals__.setter
    def __globals__(self, value: None) -> None:
        if value is not None and value is not self.fn.__globals__:
            raise UsageError(f"'{self.__name__}' is of the module that defines it: give it another function as `fn`")

    def get_capture_scope(self) -> dict[str, Any]:
        """The names that the function can use, by value: of its module, and of the functions that it is defined in."""
        cells = zip(self.fn.__code__.co_freevars, self.fn.__closure__ or (), strict=True)
        return self.fn.__globals__ | {name: cell.cell_contents for name, cell in cells}

    def is_gluon(self) -> bool:
        """Never: that is a language of Triton's own compiler."""
        return False

    @property
    def hash(self) -> str:
        """The cache key. Triton keeps it, so that programs set it to None to have it computed again, as it is here."""
        return self.cache_key

    @hash.setter
    def hash(self, value: None) -> None:
        if value is not None:
            raise UsageError(f"the hash of '{self.__name__}' is computed: it can be set to None only, got {value!r}")

    @property
    def used_global_vals(self) -> dict[tuple[str, int], tuple[Any, Any]] | None:
        """The variables that the function, with all that it calls, uses: by name and namespace, value and namespace."""
        if self.fn is None:
            return None
        variables = chain.from_iterable(map(_variables, _with_dependencies(self)))
        found = {(reference.name, reference.place[0]): reference for reference in variables}
        values = {key: reference for key, reference in found.items() if not isinstance(reference.value, SourceFunction)}
        return {key: (reference.value, reference.namespace) for key, reference in values.items()}

    @used_global_vals.setter
    def used_global_vals(self, value: dict | None) -> None:
        if value and value != self.used_global_vals:
            raise UsageError(f"the variables that '{self.__name__}' uses are found in its source")

    def watched(self) -> tuple[Reference, ...]:
        """What must not change once this function, with all that it uses, is compiled."""
        return tuple(chain.from_iterable(map(_watched, _with_dependencies(self))))


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
        return hashlib.sha256("\n".join(keys).encode()).hexdigest()


_PLAIN = frozenset({int, float, bool, str})  # in which there is nothing to unwrap


class CompileTimeFunction(SourceFunction):
    """A function of Python that kernels may call while they are compiled (Triton's `@constexpr_function`).

    It is given what constexprs hold; of a run-time value it may read the type and the shape.
    """

    def __init__(self, fn: Callable[..., Any]):
        self.fn = fn
        self.file_lines = lines_of_file(fn)
        update_wrapper(self, fn)

    def __get__(self, instance: Any, owner: type) -> CompileTimeFunction | MethodType:
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not kwargs and _PLAIN.issuperset(map(type, args)):  # as of the host's `cdiv` before each launch
            return self.fn(*args)
        return self.fn(*unwrap(args), **{name: unwrap(value) for name, value in kwargs.items()})

    def _unsafe_update_src(self, new_src: str) -> None:
        """Take another text for the source, in the same module; kernels that use it are compiled anew."""
        super()._unsafe_update_src(new_src)
        scope = {**self.fn.__globals__, **inspect.getclosurevars(self.fn).nonlocals}
        exec(compile("\n" * (self.source.first_line - 1) + new_src, self.source.file, "exec"), scope)
        self.fn = FunctionType(scope[self.__name__].__code__, scope, self.__name__, self.fn.__defaults__)


constexpr_function = CompileTimeFunction


class PlainFunction(CompileTimeFunction):
    """A function without a decorator that a kernel is given: called as Triton does it, with constexprs."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*args, **kwargs)


def plain_function(value: Any) -> PlainFunction | None:
    """None for what is no `def` or lambda, and where the source is not known, so that changes would not be seen."""
    if not isinstance(value, FunctionType):
        return None
    function = PlainFunction(value)
    with suppress(UsageError):
        return function if function.source else None
    return None


def source_function(value: Any) -> SourceFunction | None:
    """The function that a value is to a kernel: one of Python that a `tl.constexpr` holds is called now."""
    if isinstance(value, constexpr):
        return plain_function(value.value)
    return value if isinstance(value, SourceFunction) else None


def functions_in(value: Any) -> Iterator[SourceFunction]:
    """The functions that a constexpr brings: itself, those that it holds or binds, the methods of an aggregate."""
    if isinstance(value, SourceFunction):
        yield value
    elif isinstance(value, constexpr):
        yield from functions_in(value.value)
    elif isinstance(value, partial):
        yield from functions_in((value.func, value.args, value.keywords))
    elif isinstance(value, tuple | list | Mapping):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from functions_in(item)
        if is_kernel_class(type(value)):
            yield from type(value).functions()
    elif function := plain_function(value):
        yield function


def functions_of(value: Any) -> Iterator[SourceFunction]:
    """All functions that code may call by a value: those that it is or holds, however deep, the methods of classes. Not
    the language's own, whose text says nothing.
    """
    seen: dict[int, Any] = {}
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if id(part) in seen or isinstance(part, Builtin):
            continue
        seen[id(part)] = part
        if function := part if isinstance(part, SourceFunction) else plain_function(part):
            yield function
        elif is_kernel_class(part):
            yield from part.functions()
        else:
            waiting.extend(parts_of(part))


def _uses_of(fn: SourceFunction) -> Uses:
    used = list(_used_values(fn))
    lines = [_place(fn), fn.source.definition]
    callees: list[SourceFunction] = []
    for name, value in used:
        called = tuple(_callees(fn, value))
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
        is_data = is_value(value) or isinstance(value, type | ModuleType) or _is_function_for(fn, value)
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
    elif callees and isinstance(unwrap(value), FunctionType | SourceFunction):
        return
    elif is_value(value) or _has_members(value) or _is_function_for(fn, value):
        yield stable_repr(value)


def _is_function_for(fn: SourceFunction, value: Any) -> bool:
    """Whether it is a function of Python that `fn` may call while a kernel is compiled: one that is marked, or any."""
    return isinstance(value, FunctionType) and (isinstance(fn, CompileTimeFunction) or is_value(value))


def _callees(fn: SourceFunction, value: Any) -> Iterator[SourceFunction]:
    """The functions whose sources `fn` depends on where it uses a value: what Python runs calls functions of Python, of
    which those of its own package, or folder, are looked into. Of others, as those of the language, no source is read.
    """
    if not isinstance(value, FunctionType) or (_is_function_for(fn, value) and _is_near(fn.fn, value)):
        yield from functions_of(value)


def _is_near(fn: FunctionType, other: FunctionType) -> bool:
    if _package(fn) == _package(other):
        return True
    folder = os.path.dirname(fn.__code__.co_filename)
    return "site-packages" not in folder and os.path.dirname(other.__code__.co_filename) == folder


def _package(fn: FunctionType) -> str:
    return str(fn.__module__).partition(".")[0]


def _place(fn: SourceFunction) -> str:
    return _name(fn.fn) if _is_fixed(fn) else f"{_name(fn.fn)}:{fn.source.definition_line}:{fn.tree.col_offset}"


def _name(fn: Callable[..., Any]) -> str:
    return f"{name_of(fn.__module__)}.{fn.__qualname__}"


def _is_fixed(fn: SourceFunction) -> bool:
    """Whether Deuteron's version says all of it: no program gave another text to it, nor to what it calls."""
    return fn.is_own and SourceFunction.num_updates == 0


def _with_dependencies(fn: SourceFunction) -> list[SourceFunction]:
    """A function and all functions that it refers to, however deep, in an order that depends on names only."""
    return [function for function, _ in _with_uses(fn)]


def _with_uses(fn: SourceFunction) -> list[tuple[SourceFunction, Uses]]:
    """The same, each with what it uses."""
    found: dict[int, tuple[SourceFunction, Uses]] = {}

    def visit(function: SourceFunction) -> None:
        if id(function.fn) not in found:
            found[id(function.fn)] = function, (uses := function.uses)
            for callee in uses.callees:
                visit(callee)

    visit(fn)
    first, *others = found.values()
    return [first, *sorted(others, key=lambda one: (name_of(one[0].__module__), one[0].__qualname__))]


def is_kernel_class(value: Any) -> bool:
    """Whether it is a class whose methods kernels call."""
    return isinstance(value, type) and issubclass(value, KernelClass)
