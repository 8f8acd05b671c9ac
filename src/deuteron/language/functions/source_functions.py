"""Functions of which the source is known, with what they refer to; their key is in `keys`.

    @deuteron.jit
    def add(x_ptr, n, BLOCK: tl.constexpr): ...

    add.cache_key                      "5d41..."   changes with its source and with that of every function it calls
    plain_function(row_length)         a `def` of Python that a kernel is given, to call it while it is compiled

The lines of the file are those that it has when the function is defined; nothing is parsed before it is asked for.
"""

from __future__ import annotations

import ast
import inspect
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial, update_wrapper
from types import FunctionType, MethodType
from typing import Any

from deuteron.cached_property import cached_property
from deuteron.errors import UsageError
from deuteron.language.builtin import Builtin
from deuteron.language.constant import constexpr, unwrap
from deuteron.language.functions.keys import is_kernel_class, key_of, variables_of, watched_by
from deuteron.language.functions.lambda_source import syntax_tree
from deuteron.language.functions.names import ByName
from deuteron.language.functions.place_in_file import PlaceInFile
from deuteron.language.functions.references import Name, Reference, find_references, is_value, names_in
from deuteron.language.functions.source import FunctionSource, lines_of_file, read_source, source_of_text
from deuteron.language.functions.stable_text import parts_of


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
        return key_of(self)

    @property
    def is_fixed(self) -> bool:
        """Whether Deuteron's version says all of it: no program gave another text to it, nor to what it calls."""
        return self.is_own and SourceFunction.num_updates == 0

    def may_call(self, value: Any) -> bool:
        """Whether it is a function of Python that this one may call while a kernel is compiled: one that is marked."""
        return isinstance(value, FunctionType) and is_value(value)

    def callees(self, value: Any) -> Iterator[SourceFunction]:
        """The functions whose sources it depends on where it uses a value: what Python runs calls functions of Python,
        of which those of its own package, or folder, are looked into. Of others no source is read.
        """
        if not isinstance(value, FunctionType) or (self.may_call(value) and _is_near(self.fn, value)):
            yield from functions_of(value)

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
        found = {(reference.name, reference.place[0]): reference for reference in variables_of(self)}
        values = {key: reference for key, reference in found.items() if not isinstance(reference.value, SourceFunction)}
        return {key: (reference.value, reference.namespace) for key, reference in values.items()}

    @used_global_vals.setter
    def used_global_vals(self, value: dict | None) -> None:
        if value and value != self.used_global_vals:
            raise UsageError(f"the variables that '{self.__name__}' uses are found in its source")

    def watched(self) -> tuple[Reference, ...]:
        """What must not change once this function, with all that it uses, is compiled."""
        return watched_by(self)


_PLAIN = frozenset({int, float, bool, str})  # in which there is nothing to unwrap


class CompileTimeFunction(SourceFunction):
    """A function of Python that kernels may call while they are compiled (Triton's `@constexpr_function`).

    It is given what constexprs hold; of a run-time value it may read the type and the shape.
    """

    def __init__(self, fn: Callable[..., Any]):
        self.fn = fn
        self.file_lines = lines_of_file(fn)
        update_wrapper(self, fn)

    def may_call(self, value: Any) -> bool:
        return isinstance(value, FunctionType)

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


def _is_near(fn: FunctionType, other: FunctionType) -> bool:
    if _package(fn) == _package(other):
        return True
    folder = os.path.dirname(fn.__code__.co_filename)
    return "site-packages" not in folder and os.path.dirname(other.__code__.co_filename) == folder


def _package(fn: FunctionType) -> str:
    return str(fn.__module__).partition(".")[0]
