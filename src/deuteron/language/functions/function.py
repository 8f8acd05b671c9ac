"""A function written in the tile language: its parameters, and what names mean in it.

    @deuteron.jit
    def add(x_ptr, n, BLOCK: tl.constexpr): ...

    add.params[2]      Parameter("BLOCK", is_constexpr=True)

Its source: `source_functions`; its cache key: `keys`. `runtime.jit.JITFunction` adds launching.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import operator
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, update_wrapper
from typing import Any, NamedTuple

from deuteron.errors import Location, UsageError, suggest
from deuteron.language.functions.references import namespace_of
from deuteron.language.functions.source import lines_of_file
from deuteron.language.functions.source_functions import SourceFunction
from deuteron.tracebacks import api_boundary

_MISSING = object()


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function of the language."""

    num: int
    name: str
    annotation: str
    default: Any
    do_not_specialize: bool = False
    do_not_specialize_on_alignment: bool = False
    is_variadic: bool = False

    @property
    def is_constexpr(self) -> bool:
        """Whether it is annotated `tl.constexpr`."""
        return self.annotation.rpartition(".")[2] == "constexpr"

    @property
    def has_default(self) -> bool:
        return self.default is not inspect.Parameter.empty

    @property
    def is_const(self) -> bool:
        """Whether it is annotated `tl.const`: a pointer that must not be stored through."""
        return self.annotation.rpartition(".")[2] == "const"


class Specialization(NamedTuple):
    """What a `repr` is given of a kernel: the known arguments, and the types of all, by name."""

    constants: dict[str, Any]
    signature: dict[str, Any]


class Function(SourceFunction):
    """A function of the tile language; within a kernel it is called, outside of one only a kernel can be launched."""

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        do_not_specialize: Sequence[str | int] = (),
        do_not_specialize_on_alignment: Sequence[str | int] = (),
        noinline: bool = False,
        repr: Callable[[Any], str] | None = None,
    ):
        """`noinline` is accepted for Triton's sake: every call is inlined. `repr` names compiled kernels."""
        if not inspect.isfunction(fn) or inspect.iscoroutinefunction(fn):
            raise UsageError(f"@jit decorates functions, got {_told(fn)}")
        if fn.__name__ == "<lambda>":
            raise UsageError("@jit decorates functions, got a lambda. Define it with `def`.")
        if not (repr is None or callable(repr)):
            raise UsageError(f"repr= of '{fn.__name__}' is a function that gives a name, got {repr!r}")
        self.fn = fn
        self.file_lines = lines_of_file(fn)
        self.noinline = noinline
        self.repr = repr or partial(_plain_name, fn.__name__)
        check_parameters(fn, "do_not_specialize", do_not_specialize)
        check_parameters(fn, "do_not_specialize_on_alignment", do_not_specialize_on_alignment)
        self._unspecialized = do_not_specialize, do_not_specialize_on_alignment
        self._read_parameters()
        update_wrapper(self, fn)

    def _read_parameters(self) -> None:
        self._signature = inspect.signature(self.fn)
        self._params = _parameters(self._signature, *self._unspecialized)
        self._defaults = _defaults(self.fn)

    def _follow_defaults(self) -> None:
        """Read the parameters again where a program has given `fn` other defaults."""
        if self.fn is not None and not _are_same(_defaults(self.fn), self._defaults):
            self._read_parameters()

    @property
    def signature(self) -> inspect.Signature:
        self._follow_defaults()
        return self._signature

    @property
    def params(self) -> tuple[Parameter, ...]:
        self._follow_defaults()
        return self._params

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.__module__}:{self.__qualname__})"

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise UsageError(
            f"'{self.__name__}' is a function of the tile language: call it within a kernel, or launch it as a kernel "
            f"with {self.__name__}[grid](...)"
        )

    def name_for(self, signature: Mapping[str, Any], constexprs: Mapping[str, Any]) -> str:
        """What the kernel compiled for these types is called; raises UsageError for what no function can be called."""
        name = self.repr(Specialization(dict(constexprs), dict(signature)))
        if not (isinstance(name, str) and name.isascii() and name.isidentifier()):
            raise UsageError(
                f"repr= of kernel '{self.__name__}' gives the name {name!r}, expected letters, digits and underscores"
            )
        return name

    @property
    def arg_names(self) -> list[str]:
        return [param.name for param in self._params]

    def location(self, node: ast.AST) -> Location:
        """Where a node of `tree` is in the file."""
        return self.source.location(node)

    def resolve(self, name: str) -> Any:
        """What a name that is not local means to Python: a variable of an enclosing function, a global, a builtin.

        Raises KeyError for a name that is not defined.
        """
        value = namespace_of(self.fn, name).get(name, _MISSING)
        if value is _MISSING:
            raise KeyError(name)
        return value

    def is_annotated_constexpr(self, name: str) -> bool:
        """Whether a global is annotated so where it is defined: `WIDTH: tl.constexpr = 64`."""
        if name not in self.fn.__globals__ or name in self.fn.__code__.co_freevars:
            return False
        annotations = self.fn.__globals__.get("__annotations__") or _annotations_of_module(self.fn.__module__)
        return annotation_text(annotations.get(name, "")).rpartition(".")[2] == "constexpr"

    def is_builtin(self, name: str) -> bool:
        """Whether a name that is not local means a builtin of Python."""
        return namespace_of(self.fn, name) is vars(builtins) and hasattr(builtins, name)


def must_use_result(function: Any, reason: str | bool = True) -> Any:
    """Decorator of a function of the language: a kernel that drops its result is refused, with the reason if given.

    Used as `@must_use_result` or `@must_use_result("Note that ...")`.
    """
    if isinstance(function, str):
        return lambda decorated: must_use_result(decorated, function)
    function.must_use_result = reason
    return function


def check_parameters(fn: Callable[..., Any], option: str, listed: Sequence[str | int]) -> None:
    """Warn of what an option lists and is no parameter, by name or index; raise UsageError for a text."""
    names = list(inspect.signature(fn).parameters)
    if isinstance(listed, str):
        raise UsageError(f"{option} of '{fn.__name__}' is a list of names. Write {option}=[{listed!r}].")
    for each in listed:
        if each not in names and not (isinstance(each, int) and 0 <= each < len(names)):
            near = suggest(each, names) if isinstance(each, str) else ""
            message = (
                f"Deuteron: {option} of '{fn.__name__}' lists {each!r}, which is ignored: the parameters are "
                f"{', '.join(names)}.{near}"
            )
            warnings.warn_explicit(message, UserWarning, fn.__code__.co_filename, fn.__code__.co_firstlineno)


def _defaults(fn: Callable[..., Any]) -> tuple[Any, ...]:
    """The values of the defaults; `__kwdefaults__` is a dictionary, which may be changed in place."""
    return fn.__defaults__ or (), *(fn.__kwdefaults__ or {}).values()


def _are_same(objects: Sequence[Any], others: Sequence[Any]) -> bool:
    return len(objects) == len(others) and all(map(operator.is_, objects, others))


def _parameters(
    signature: inspect.Signature, unspecialized: Sequence[str | int], unaligned: Sequence[str | int]
) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(
            num,
            param.name,
            annotation_text(param.annotation),
            param.default,
            num in unspecialized or param.name in unspecialized,
            num in unaligned or param.name in unaligned,
            param.kind in (param.VAR_POSITIONAL, param.VAR_KEYWORD),
        )
        for num, param in enumerate(signature.parameters.values())
    )


def ascii_name(name: str) -> str:
    """An identifier with the code of each character that is not ASCII, `gruf6udfe`: what C and assemblers take."""
    return "".join(char if char.isascii() else f"u{ord(char):x}" for char in name)


def _plain_name(name: str, specialization: Any) -> str:
    """What the kernels of a function without a `repr` are called."""
    return ascii_name(name)


def _annotations_of_module(name: str) -> Mapping[str, Any]:
    module = sys.modules.get(name)
    return inspect.get_annotations(module) if module is not None else {}


def annotation_text(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return text.strip("'\"")  # quotes within: an annotation as a string, where `annotations` is imported too


def variadic_kernel(fn: Function, parameter: Parameter) -> str:
    """What is said of a kernel with `*args` or `**kwargs`."""
    return (
        f"Kernel '{fn.__name__}' has a parameter '{fn.signature.parameters[parameter.name]}' for any number of "
        "arguments. Give it one parameter, and launch it with a tuple."
    )


def _told(fn: Any) -> str:
    """What it is that `@jit` cannot decorate, and the way out."""
    if inspect.iscoroutinefunction(fn):
        return f"'async def {fn.__name__}'. Leave out `async`: launches do not wait for a kernel."
    if isinstance(fn, staticmethod | classmethod):
        return f"the {type(fn).__name__} '{fn.__name__}'. Put @jit last, next to the function."
    inner = getattr(fn, "base_fn", getattr(fn, "fn", None))
    if isinstance(inner, Function) or inspect.isfunction(inner):
        kind = type(fn).__name__
        return f"what {kind} made of '{inner.__name__}'. Put @jit last, next to the function."
    return repr(fn)
