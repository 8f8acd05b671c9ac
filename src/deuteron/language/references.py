"""What the names in a function's source mean outside of it, and whether they still mean that.

    SCALE = tl.constexpr(2)
    @deuteron.jit
    def kernel(x_ptr, BLOCK: tl.constexpr): ... tl.load(x_ptr) * SCALE + config.SHIFT ...

    Reference("SCALE", constexpr[2], globals of the module, "SCALE")
    Reference("config.SHIFT", 4, vars(config), "SHIFT")

A compiled kernel has the values that were there when it was compiled. They are part of its key, and `check_unchanged`
refuses to go on with others.
"""

from __future__ import annotations

import ast
import builtins
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from deuteron.errors import VariableChanged
from deuteron.language.constant import constexpr
from deuteron.language.modules import name_of

_MISSING = object()
_PROCESS = os.urandom(16).hex()
_numbered: dict[int, tuple[int, Any]] = {}  # those of which an address is all that is said
_PACKAGE = __name__.partition(".")[0]


class _Cell:
    """A variable of an enclosing function, as a namespace."""

    def __init__(self, cell: Any):
        self.owner = cell

    def get(self, name: str, default: Any) -> Any:
        try:
            return self.owner.cell_contents
        except ValueError:  # the enclosing function has not assigned it yet
            return default


class _Attributes:
    """What `getattr` gives, as a namespace."""

    def __init__(self, owner: Any):
        self.owner = owner

    def get(self, name: str, default: Any) -> Any:
        return getattr(self.owner, name, default)


class Reference(NamedTuple):
    """A name, or a dotted one, what it meant, and where that was found."""

    name: str
    value: Any
    namespace: Mapping[str, Any] | _Cell | _Attributes
    key: str

    def current(self) -> Any:
        return self.namespace.get(self.key, _MISSING)

    @property
    def is_own(self) -> bool:
        """Whether it was found in a module of Deuteron, where nothing changes."""
        if not isinstance(self.namespace, dict):
            return False
        return "__deuteron__" in self.namespace or self.namespace.get("__name__", "").partition(".")[0] == _PACKAGE

    @property
    def kind(self) -> str:
        """What holds it, for messages."""
        return "closure variable" if isinstance(self.namespace, _Cell) else "global variable"

    @property
    def place(self) -> tuple[int, str]:
        """Equal for what is found in one place."""
        return id(getattr(self.namespace, "owner", self.namespace)), self.key


def namespace_of(fn: Callable[..., Any], name: str) -> Mapping[str, Any] | _Cell:
    """Where Python finds a name of a function that is not local: enclosing functions, globals, builtins."""
    if name in fn.__code__.co_freevars:
        return _Cell(fn.__closure__[fn.__code__.co_freevars.index(name)])
    return fn.__globals__ if name in fn.__globals__ else vars(builtins)


def names_in(fn: Callable[..., Any], body: Sequence[ast.stmt]) -> tuple[ast.expr, ...]:
    """The names in statements that are not local, and the dotted ones, each once, in order."""
    found: dict[str, ast.expr] = {}
    for node in (node for statement in body for node in ast.walk(statement)):
        first = node
        while isinstance(first, ast.Attribute):
            first = first.value
        if isinstance(first, ast.Name) and first.id not in fn.__code__.co_varnames:
            found[ast.unparse(node)] = node
    return tuple(found[name] for name in sorted(found))


def find_references(fn: Callable[..., Any], names: Iterable[ast.expr]) -> Iterator[Reference]:
    """What names mean now; those that mean nothing are left out."""
    for node in names:
        reference = _find(fn, node)
        if reference is not None:
            yield reference


def _find(fn: Callable[..., Any], node: ast.expr) -> Reference | None:
    if isinstance(node, ast.Name):
        return _reference(node.id, namespace_of(fn, node.id), node.id)
    owner = _find(fn, node.value) if isinstance(node, ast.Attribute) else None
    if owner is None or not isinstance(owner.value, ModuleType | type):
        return None
    own = vars(owner.value)
    return _reference(f"{owner.name}.{node.attr}", own if node.attr in own else _Attributes(owner.value), node.attr)


def _reference(name: str, namespace: Mapping[str, Any] | _Cell | _Attributes, key: str) -> Reference | None:
    reference = Reference(name, _MISSING, namespace, key)
    value = reference.current()
    return None if value is _MISSING else reference._replace(value=value)


def is_value(value: Any) -> bool:
    """Whether it gets into a compiled kernel: data, and functions of Python that are marked; no module, no class."""
    if getattr(value, "__triton_builtin__", False):
        return True
    return not isinstance(value, ModuleType | type | FunctionType | BuiltinFunctionType)


def watched(references: Iterable[Reference]) -> Iterator[Reference]:
    """The references to data and functions of the language, and what constexprs hold; not those to Deuteron's own."""
    for reference in references:
        if reference.is_own:
            continue
        if is_value(reference.value) or hasattr(reference.value, "class_key"):
            yield reference
        if isinstance(reference.value, constexpr):
            held = vars(reference.value)
            yield Reference(reference.name, held["value"], held, "value")


def holder(reference: Reference) -> tuple[str, Any]:
    """How a reference is looked up, and in what: as "item" of a dictionary, "subscript", "attribute" or in a "cell"."""
    namespace = reference.namespace
    if isinstance(namespace, _Cell):
        return "cell", namespace.owner
    if isinstance(namespace, _Attributes):
        return "attribute", namespace.owner
    return ("item" if type(namespace) is dict else "subscript"), namespace


def check_unchanged(kernel: str, references: Iterable[Reference]) -> None:
    """Raises VariableChanged where a name means something else by now."""
    for reference in references:
        found = reference.current()
        if found is not reference.value and not _is_same(found, reference.value):
            old, new = (repr(value) if value is not _MISSING else "nothing" for value in (reference.value, found))
            change = f"it was {old:.60}, and is {new:.60}" if old != new else f"it is another {new:.60}"
            raise VariableChanged(
                f"{reference.kind} '{reference.name}', which kernel '{kernel}' uses, has changed since it was "
                f"compiled: {change}. Pass it as a tl.constexpr argument, for which the kernel is compiled anew, or "
                "define the kernel anew."
            )


def _is_same(value: Any, other: Any) -> bool:
    return type(value) is type(other) and stable_repr(value) == stable_repr(other)


def stable_repr(value: Any) -> str:
    """A text that is equal for equal values, in any process, and not for others: 1, True and 1.0 differ."""
    if isinstance(value, tuple | list):
        names = getattr(value, "_fields", "")
        return f"{type(value).__name__}{names}({', '.join(map(stable_repr, value))})"
    if isinstance(value, type):
        key = f" {value.class_key()}" if hasattr(value, "class_key") else ""
        return f"<class {name_of(value.__module__)}.{value.__qualname__}{key}>"
    if isinstance(value, constexpr):
        return stable_repr(value.value)
    if hasattr(value, "cache_key"):
        return f"<function {value.cache_key}>"
    if isinstance(value, FunctionType):
        return f"<function {name_of(value.__module__)}.{value.__qualname__} {_code_repr(value)}>"
    if type(value) is dict:
        return f"{{{', '.join(f'{stable_repr(key)}: {stable_repr(item)}' for key, item in value.items())}}}"
    if isinstance(value, partial):
        return f"<partial {stable_repr((value.func, value.args, value.keywords))}>"
    text = f"{type(value).__name__}:{value!r}"
    return f"{text} {_number_of(value)} of {_PROCESS} {os.getpid()}" if " at 0x" in text else text


def _number_of(value: Any) -> int:
    """A number that no other object of this process gets: it is kept, so that none takes its address."""
    return _numbered.setdefault(id(value), (len(_numbered), value))[0]


def _code_repr(function: FunctionType) -> str:
    """The code of a function of Python, and what it encloses."""
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return f"{_constant_repr(function.__code__)} {stable_repr([cells, function.__defaults__, function.__kwdefaults__])}"


def _constant_repr(constant: Any) -> str:
    if isinstance(constant, CodeType):
        return f"{constant.co_code.hex()} {constant.co_names} {list(map(_constant_repr, constant.co_consts))}"
    return stable_repr(constant)
