"""`@aggregate`: classes of values that kernels build, pass, return and carry through loops as one.

    @aggregate
    class Interval:
        low: tl.tensor
        high: tl.tensor
        STEP: tl.constexpr

        @constexpr_function
        def __init__(self, low, high, step):
            self.low, self.high, self.STEP = low, high, tl.constexpr(step)

        @jit
        def length(self):
            return (self.high - self.low) // self.STEP

A value is a tuple of its fields that has their names and the methods of the class: whatever handles tuples handles
aggregates. Fields annotated `tl.constexpr` stay known at compile time, as do numbers in a tuple that is a field.
`__init__` runs in Python, when a kernel is compiled or on the host; without one, the fields are the parameters. No
field can be set afterwards.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from deuteron.errors import UsageError, suggest
from deuteron.language.builtin import Builtin
from deuteron.language.constant import constexpr, rebuild, unwrap
from deuteron.language.functions.function import Function, annotation_text
from deuteron.language.functions.keys import KernelClass
from deuteron.language.functions.names import name_of
from deuteron.language.functions.source_functions import CompileTimeFunction
from deuteron.language.functions.stable_text import stable_repr

_OF_PYTHON = frozenset(
    (*vars(type("", (), {})), "__annotations__", "__annotate__", "__annotate_func__", "__qualname__")
)


class Aggregate(KernelClass, tuple):
    """A value of an `@aggregate` class. `_fields` are its names, `_fixed` says which of them are constexprs.

    `__init__` runs on an object of `_draft`, which has the members too; `_written` is what the class was written with.
    """

    __slots__ = ()
    _fields: tuple[str, ...] = ()
    _fixed: tuple[bool, ...] = ()
    _annotations: dict[str, Any] = {}
    _draft: type = object
    _written: dict[str, Any] = {}

    def __new__(cls, *args: Any, **kwargs: Any) -> Aggregate:
        """Raises TypeError unless `__init__` gives every field, and nothing else, a value that fits its annotation."""
        draft = object.__new__(cls._draft)
        cls._draft.__init__(draft, *args, **kwargs)
        given = vars(draft)
        for name in given:
            if name not in cls._fields:
                raise TypeError(f"{cls.__name__} has no field '{name}'.{suggest(name, cls._fields)}")
        for name in cls._fields:
            if name not in given:
                raise TypeError(f"the constructor of {cls.__name__} gives '{name}' no value")
            _check_field(cls, name, given[name])
        return cls._make(unwrap(given[name]) for name in cls._fields)

    @classmethod
    def _make(cls, items: Any) -> Aggregate:
        """The value of these fields, as of a named tuple."""
        return tuple.__new__(cls, items)

    def _replace(self, **changes: Any) -> Aggregate:
        """The value with other fields; raises TypeError for what is no field."""
        for name in changes:
            if name not in self._fields:
                raise TypeError(f"{type(self).__name__} has no field '{name}'.{suggest(name, self._fields)}")
        return self._make(unwrap(changes.get(name, item)) for name, item in zip(self._fields, self, strict=True))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"cannot assign to '{name}' of {self!r}: build a new value, as with _replace({name}=...)")

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={item!r}" for name, item in zip(self._fields, self, strict=True))
        return f"{type(self).__name__}({shown})"

    def __getnewargs__(self) -> Any:
        raise TypeError(f"a {type(self).__name__} cannot be copied or pickled")

    @classmethod
    def functions(cls) -> Iterator[Function | CompileTimeFunction]:
        """Its methods that are compiled, or called while compiling, in the order of their names."""
        for member in _members(cls).values():
            if isinstance(member, Function | CompileTimeFunction):
                yield member

    @classmethod
    def text(cls) -> str:
        """What a compiled kernel depends on besides these: fields, constants, the source of plain functions."""
        fields = ", ".join(f"{name}: {annotation_text(kind)}" for name, kind in cls._annotations.items())
        members = (f"{name} = {_member_text(member)}" for name, member in _members(cls).items())
        return "\n".join([f"{name_of(cls.__module__)}.{cls.__qualname__}({fields})", *members])


def aggregate(cls: type) -> type[Aggregate]:
    """Class decorator: its annotated names are the fields of values that kernels handle as one.

    Raises UsageError for what is no class, and an `__init__` that is a `@jit` function, TypeError for a base class that
    is no aggregate.
    """
    if not isinstance(cls, type):
        raise UsageError(f"@aggregate decorates classes, got {cls!r}")
    bases = [base for base in reversed(cls.__mro__) if base not in (object, tuple, KernelClass, Aggregate)]
    for base in bases[:-1]:
        if not issubclass(base, Aggregate):
            raise TypeError(f"the aggregate '{cls.__name__}' inherits from '{base.__name__}', which is no aggregate")
    members = {name: member for base in bases for name, member in _members_of(base).items()}
    annotations = {name: text for base in bases for name, text in _annotations_of(base).items()}
    init = members.pop("__init__", None)
    if isinstance(init, Function):
        raise UsageError(f"'__init__' of the aggregate '{cls.__name__}' is a @jit function: write it in plain Python")
    defaults = {name: members.pop(name) for name in annotations if name in members}
    draft = type(cls.__name__, (), {**members, "__init__": init or _init_by_fields(tuple(annotations), defaults)})
    fixed = tuple(annotation_text(kind).rpartition(".")[2] == "constexpr" for kind in annotations.values())
    made = {
        "_fields": tuple(annotations),
        "_fixed": fixed,
        "_annotations": annotations,
        "_draft": draft,
        "_written": {**members, **defaults, **({"__init__": init} if init else {})},
        **{name: _field(index, fixed[index]) for index, name in enumerate(annotations)},
    }
    made_class = type(cls.__name__, (Aggregate,), {**members, "__slots__": (), **made})
    draft.__module__ = made_class.__module__ = cls.__module__
    draft.__qualname__ = made_class.__qualname__ = cls.__qualname__
    return made_class


def _annotations_of(cls: type) -> dict[str, Any]:
    return cls._annotations if _is_made(cls) else inspect.get_annotations(cls)


def _is_made(cls: type) -> bool:
    """Whether it comes from `aggregate`, and is not a class of the user that only derives from such a one."""
    return "_written" in vars(cls)


def _members_of(cls: type) -> dict[str, Any]:
    """What the source of a class defines besides its annotations."""
    if _is_made(cls):
        return cls._written
    return {name: member for name, member in vars(cls).items() if name not in _OF_PYTHON}


def _init_by_fields(fields: tuple[str, ...], defaults: dict[str, Any]) -> Callable[..., None]:
    """The constructor of a class without one: its fields by position or by name; those with a default may be absent."""

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if len(args) > len(fields):
            raise TypeError(f"expected at most {len(fields)} arguments ({', '.join(fields)}), got {len(args)}")
        given = dict(zip(fields, args, strict=False))
        for name in kwargs.keys() & given.keys():
            raise TypeError(f"the argument '{name}' is given twice")
        vars(self).update({**defaults, **given, **kwargs})

    return init


def _field(index: int, is_fixed: bool) -> property:
    """A field; on the host a constexpr is one, as in Triton, and a number in a tuple too."""
    if is_fixed:
        return property(lambda self: constexpr(tuple.__getitem__(self, index)))
    return property(lambda self: _shown(tuple.__getitem__(self, index)))


def _shown(value: Any) -> Any:
    if not isinstance(value, tuple) or isinstance(value, Aggregate):
        return value
    return rebuild(value, [constexpr(item) if isinstance(item, int | float) else _shown(item) for item in value])


def _members(cls: type[Aggregate]) -> dict[str, Any]:
    """What the class itself defines, by sorted name."""
    return {name: _plain(member) for name, member in sorted(cls._written.items())}


def _plain(member: Any) -> Any:
    return member.__func__ if isinstance(member, staticmethod | classmethod) else member


def _member_text(member: Any) -> str:
    if isinstance(member, Function | CompileTimeFunction):
        return "a function"
    if not inspect.isfunction(member):
        return stable_repr(member)
    try:
        return inspect.getsource(member)
    except OSError:
        return stable_repr(member.__code__.co_code)


def _check_field(cls: type[Aggregate], name: str, value: Any) -> None:
    expected = cls._annotations[name]
    if isinstance(expected, type) and issubclass(expected, Aggregate) and not isinstance(value, expected):
        raise TypeError(f"'{name}' of {cls.__name__} is a {expected.__name__}, got {value!r:.60}")


class _HostBuiltin(Builtin):
    """A function of the language that does on the host what it does in a kernel."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__wrapped__(*args, **kwargs)


@_HostBuiltin
def aggregate_replace(instance: Any, **changes: Any) -> Any:
    """The value of an `@aggregate` class with other fields, as `_replace` of a named tuple gives it.

    Errors: a name that is no field, a run-time value for a constexpr field.
    """
    if not isinstance(instance, Aggregate):
        raise TypeError(f"aggregate_replace takes a value of an @aggregate class, got {instance!r:.60}")
    return instance._replace(**changes)
