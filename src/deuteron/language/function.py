"""A function written in the tile language: its source, parameters, what it refers to, its cache key.

    @deuteron.jit
    def add(x_ptr, n, BLOCK: tl.constexpr): ...

    add.params[2]      Parameter("BLOCK", is_constexpr=True)
    add.cache_key      "5d41..."   changes with its source and with that of every function it calls

Nothing is read or parsed before it is asked for. `runtime.jit.JITFunction` adds launching.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, update_wrapper
from types import FunctionType, MethodType
from typing import Any, NamedTuple

from deuteron.errors import Location, UsageError
from deuteron.language.constant import constexpr, unwrap
from deuteron.language.modules import name_of
from deuteron.language.references import (
    Reference,
    find_references,
    is_value,
    names_in,
    namespace_of,
    stable_repr,
    watched,
)
from deuteron.language.source import FunctionSource, read_source

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


class SourceFunction:
    """A function with a source, of which what it refers to and a key are known."""

    fn: Callable[..., Any]
    num_updates = 0  # how often the source of some function was replaced

    @cached_property
    def source(self) -> FunctionSource:
        """Read when first asked for; raises UsageError where there is no source text."""
        return read_source(self.fn)

    @property
    def tree(self) -> ast.FunctionDef:
        return self.source.tree

    @property
    def references(self) -> tuple[Reference, ...]:
        """What the names and the dotted names in the source mean outside of it now, sorted by name."""
        if self.fn is None:
            raise UsageError(f"'{self.__name__}' was pickled without its Python function: it cannot be compiled again")
        return tuple(find_references(self.fn, self._names_outside))

    @cached_property
    def _names_outside(self) -> tuple[ast.expr, ...]:
        return names_in(self.fn, self.tree.body)

    @property
    def cache_key(self) -> str:
        """SHA-256 of this source and of all that it uses now: functions, however deep, and values of globals."""
        digest = hashlib.sha256()
        for fn in _with_dependencies(self):
            digest.update(f"{_place(fn)}\n{fn.source.definition}".encode())
            for name, value, *_ in fn.references:
                function = source_function(value)
                if function is not None:
                    digest.update(f"{name} = {_place(function)}\n".encode())
                elif is_kernel_class(value):
                    digest.update(f"{name} = {value.text()}\n".encode())
                elif is_value(value):
                    digest.update(f"{name} = {stable_repr(value)}\n".encode())
        return digest.hexdigest()

    @property
    def src(self) -> str:
        """The text of the function from its `def`, without indentation."""
        return self.source.definition

    @property
    def raw_src(self) -> list[str]:
        """The lines of the function in its file, with its decorators."""
        return list(self.source.lines)

    @property
    def starting_line_number(self) -> int:
        return self.source.first_line

    def _unsafe_update_src(self, new_src: str) -> None:
        """Take another text for the source; kernels that use it are compiled anew when they are launched next."""
        self.__dict__["source"] = self.source.with_definition(new_src)
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
        found = {(reference.name, reference.place[0]): reference for reference in self.watched()}
        values = {key: reference for key, reference in found.items() if not isinstance(reference.value, SourceFunction)}
        return {key: (reference.value, reference.namespace) for key, reference in values.items()}

    @used_global_vals.setter
    def used_global_vals(self, value: dict | None) -> None:
        if value and value != self.used_global_vals:
            raise UsageError(f"the variables that '{self.__name__}' uses are found in its source")

    def watched(self) -> tuple[Reference, ...]:
        """What must not change once this function, with all that it uses, is compiled."""
        return tuple(reference for fn in _with_dependencies(self) for reference in watched(fn.references))


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
        self.fn = fn
        self.noinline = noinline
        self.repr = repr or partial(_plain_name, fn.__name__)
        self.signature = inspect.signature(fn)
        self.params = _parameters(self.signature, do_not_specialize, do_not_specialize_on_alignment)
        update_wrapper(self, fn)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.__module__}.{self.__qualname__})"

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
        return [param.name for param in self.params]

    @property
    def is_own(self) -> bool:
        """Whether it is of Deuteron's own library."""
        return str(self.fn.__module__).partition(".")[0] == __name__.partition(".")[0]

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


class CompileTimeFunction(SourceFunction):
    """A function of Python that kernels may call while they are compiled (Triton's `@constexpr_function`).

    It is given what constexprs hold; of a run-time value it may read the type and the shape.
    """

    def __init__(self, fn: Callable[..., Any]):
        self.fn = fn
        update_wrapper(self, fn)

    def __get__(self, instance: Any, owner: type) -> CompileTimeFunction | MethodType:
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*unwrap(args), **{name: unwrap(value) for name, value in kwargs.items()})

    def _unsafe_update_src(self, new_src: str) -> None:
        """Take another text for the source, in the same module; kernels that use it are compiled anew."""
        super()._unsafe_update_src(new_src)
        scope = {**self.fn.__globals__, **inspect.getclosurevars(self.fn).nonlocals}
        exec(compile("\n" * (self.source.first_line - 1) + new_src, self.source.file, "exec"), scope)
        self.fn = FunctionType(scope[self.__name__].__code__, scope, self.__name__, self.fn.__defaults__)


constexpr_function = CompileTimeFunction


def source_function(value: Any) -> SourceFunction | None:
    """The function whose source a kernel depends on that uses a value: a `def` in a `tl.constexpr` is called now."""
    if isinstance(value, constexpr) and isinstance(value.value, FunctionType) and value.value.__name__ != "<lambda>":
        return CompileTimeFunction(value.value)
    return value if isinstance(value, SourceFunction) else None


def must_use_result(function: Any, reason: str | bool = True) -> Any:
    """Decorator of a function of the language: a kernel that drops its result is refused, with the reason if given.

    Used as `@must_use_result` or `@must_use_result("Note that ...")`.
    """
    if isinstance(function, str):
        return lambda decorated: must_use_result(decorated, function)
    function.must_use_result = reason
    return function


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


def _plain_name(name: str, specialization: Any) -> str:
    """What the kernels of a function without a `repr` are called."""
    return name


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
    inner = getattr(fn, "base_fn", getattr(fn, "fn", None))
    if isinstance(inner, Function) or inspect.isfunction(inner):
        kind = type(fn).__name__
        return f"what {kind} made of '{inner.__name__}'. Put @jit last, next to the function."
    return repr(fn)


def _place(fn: SourceFunction) -> str:
    return f"{name_of(fn.fn.__module__)}.{fn.__qualname__}:{fn.source.definition_line}:{fn.tree.col_offset}"


def _with_dependencies(fn: SourceFunction) -> list[SourceFunction]:
    """A function and all functions that it refers to, however deep, in an order that depends on names only."""
    found: dict[int, SourceFunction] = {}

    def visit(function: SourceFunction) -> None:
        if id(function.fn) not in found:
            found[id(function.fn)] = function
            for callee in _called_functions(function):
                visit(callee)

    visit(fn)
    others = [function for function in found.values() if function is not fn]
    return [fn, *sorted(others, key=lambda function: (name_of(function.__module__), function.__qualname__))]


def is_kernel_class(value: Any) -> bool:
    """Whether it is a class whose methods kernels call."""
    return isinstance(value, type) and issubclass(value, KernelClass)


def _called_functions(fn: SourceFunction) -> Iterator[SourceFunction]:
    for reference in fn.references:
        function = source_function(reference.value)
        if function is not None:
            yield function
        elif is_kernel_class(reference.value):
            yield from reference.value.functions()
