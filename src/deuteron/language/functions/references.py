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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, NamedTuple

from deuteron.errors import VariableChanged
from deuteron.language.constant import constexpr
from deuteron.language.functions.stable_text import is_array, members_of, stable_repr, state_of

_MISSING = object()
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


class _Items:
    """A list or a tuple as a namespace."""

    def __init__(self, owner: Sequence[Any]):
        self.owner = owner

    def get(self, index: int, default: Any) -> Any:
        return self.owner[index] if index < len(self.owner) else default


class _Members:
    """What a class itself defines, as a namespace."""

    def __init__(self, owner: type):
        self.owner = owner

    def get(self, name: str, default: Any) -> Any:
        return vars(self.owner).get(name, default)


class _Elements:
    """A NumPy array as a namespace, of which the text of all elements is asked for."""

    def __init__(self, owner: Any):
        self.owner = owner

    def get(self, name: str, default: Any) -> Any:
        return stable_repr(self.owner)


class Reference(NamedTuple):
    """A name, or a dotted one, what it meant, and where that was found."""

    name: str
    value: Any
    namespace: Mapping[Any, Any] | _Cell | _Attributes | _Items | _Members | _Elements
    key: Any
    is_owner: bool = False  # only attributes of it are used, which are references of their own

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
    def place(self) -> tuple[int, Any]:
        """Equal for what is found in one place."""
        return id(getattr(self.namespace, "owner", self.namespace)), self.key


def namespace_of(fn: Callable[..., Any], name: str) -> Mapping[str, Any] | _Cell:
    """Where Python finds a name of a function that is not local: enclosing functions, globals, builtins."""
    if name in fn.__code__.co_freevars:
        return _Cell(fn.__closure__[fn.__code__.co_freevars.index(name)])
    return fn.__globals__ if name in fn.__globals__ else vars(builtins)


def is_local(fn: Callable[..., Any], name: str) -> bool:
    """Whether a function assigns a name, also where a comprehension in it reads that, which Python keeps apart."""
    return name in fn.__code__.co_varnames or name in fn.__code__.co_cellvars


class Name(NamedTuple):
    """A name, or a dotted one, in a source; `is_owner` where nothing but its attributes is asked for."""

    node: ast.expr
    is_owner: bool


def names_in(fn: Callable[..., Any], body: Sequence[ast.stmt]) -> tuple[Name, ...]:
    """The names in statements that are not local, and the dotted ones, each once, in order."""
    found: dict[str, Name] = {}
    nodes = list(_with_own_names(body))
    owners = {id(node.value) for node, _ in nodes if isinstance(node, ast.Attribute)}
    for node, own_names in nodes:
        first, members = node, ""
        while isinstance(first, ast.Attribute):
            first, members = first.value, f".{first.attr}{members}"
        if isinstance(first, ast.Name) and first.id not in own_names and not is_local(fn, first.id):
            text = first.id + members
            is_owner = id(node) in owners and (text not in found or found[text].is_owner)
            found[text] = Name(node, is_owner)
    return tuple(found[name] for name in sorted(found))


def _with_own_names(body: Sequence[ast.stmt]) -> Iterator[tuple[ast.AST, frozenset[str]]]:
    """All that is in statements, each with the variables of the comprehensions that it is in."""
    pending: list[tuple[ast.AST, frozenset[str]]] = [(statement, frozenset()) for statement in body]
    while pending:
        node, own_names = pending.pop()
        if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            pending.append((node.generators[0].iter, own_names))  # which Python evaluates outside
            targets = [part for generator in node.generators for part in ast.walk(generator.target)]
            own_names |= {part.id for part in targets if isinstance(part, ast.Name)}
        yield node, own_names
        pending += [(child, own_names) for child in ast.iter_child_nodes(node)]


def find_references(fn: Callable[..., Any], names: Iterable[Name]) -> Iterator[Reference]:
    """What names mean now; those that mean nothing are left out."""
    for name in names:
        reference = _find(fn, name.node)
        if reference is not None:
            yield reference._replace(is_owner=name.is_owner)


def references_to_defaults(fn: Callable[..., Any], name: str) -> Iterator[Reference]:
    """The defaults of a function that has some: a program may give it others."""
    for key in ("__defaults__", "__kwdefaults__"):
        reference = _reference(f"{name}.{key}", _Attributes(fn), key)
        if reference is not None and reference.value:
            yield reference


def _find(fn: Callable[..., Any], node: ast.expr) -> Reference | None:
    if isinstance(node, ast.Name):
        return _reference(node.id, namespace_of(fn, node.id), node.id)
    owner = _find(fn, node.value) if isinstance(node, ast.Attribute) else None
    if owner is None or not isinstance(owner.value, ModuleType | type):
        return None
    own = vars(owner.value)
    is_bound = isinstance(owner.value, type) and hasattr(type(own.get(node.attr)), "__get__")  # such as static methods
    is_plain = node.attr in own and not is_bound
    return _reference(f"{owner.name}.{node.attr}", own if is_plain else _Attributes(owner.value), node.attr)


def _reference(name: str, namespace: Mapping[str, Any] | _Cell | _Attributes, key: str) -> Reference | None:
    reference = Reference(name, _MISSING, namespace, key)
    value = reference.current()
    return None if value is _MISSING else reference._replace(value=value)


def is_value(value: Any) -> bool:
    """Whether it gets into a compiled kernel: data, and functions of Python that are marked; no module, no class."""
    if getattr(value, "__triton_builtin__", False):
        return True
    return not isinstance(value, ModuleType | type | FunctionType | BuiltinFunctionType)


def with_parts(reference: Reference) -> Iterator[Reference]:
    """A reference, and those to all in its value that may be changed: attributes, items, members of classes."""
    seen: dict[int, Any] = {}
    waiting = [reference]
    while waiting:
        each = waiting.pop()
        yield each
        if id(each.value) not in seen:
            seen[id(each.value)] = each.value
            waiting.extend(_parts(each.name, each.value))


def _parts(name: str, value: Any) -> Iterator[Reference]:
    if hasattr(value, "cache_key"):  # a function, whose attributes are not the kernel's
        return
    if isinstance(value, constexpr):
        yield Reference(name, value.value, vars(value), "value")
    elif is_array(value):
        yield Reference(f"{name}[...]", stable_repr(value), _Elements(value), "")
    elif isinstance(value, type):
        yield from _parts_of_class(name, value)
    else:
        yield from _items(name, value)
        yield from (Reference(f"{name}.{key}", item, _Attributes(value), key) for key, item in state_of(value).items())
        yield from _parts_of_class(name, type(value))


def _items(name: str, value: Any) -> Iterator[Reference]:
    if isinstance(value, dict):
        yield from (Reference(f"{name}[{key!r:.20}]", item, value, key) for key, item in value.items())
    elif isinstance(value, list | tuple):
        yield from (Reference(f"{name}[{index}]", item, _Items(value), index) for index, item in enumerate(value))


def _parts_of_class(name: str, cls: type) -> Iterator[Reference]:
    for base, key, member in members_of(cls):
        yield Reference(f"{name}.{key}", member, _Members(base), key)


def holder(reference: Reference) -> tuple[str | None, Any]:
    """How a reference is looked up, and in what: as "item" of a dictionary, "subscript", "attribute", in a "cell", or
    in no such way.
    """
    namespace = reference.namespace
    if isinstance(namespace, _Cell):
        return "cell", namespace.owner
    if isinstance(namespace, _Attributes):
        return "attribute", namespace.owner
    if isinstance(namespace, _Elements):
        return None, namespace.owner
    if isinstance(namespace, _Items | _Members):
        return "subscript", vars(namespace.owner) if isinstance(namespace, _Members) else namespace.owner
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
