"""What values mean to a compiled kernel, as text, and what they consist of.

    stable_repr((1, True))           "tuple(int:1, bool:True)"
    stable_repr(Shape(3))            "<Shape: {str:'rows': int:3} of <class m.Shape ...>>", whatever its __repr__ says
    parts_of(Shape(3))               [Shape, 3]: where functions may be that a kernel calls

An object of a class that a program defines is its class and what it holds; such a class is what its members are. Of
what cannot be looked into a number stands there, which no other object and no other process has.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from functools import partial
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any

from deuteron.language.constant import constexpr
from deuteron.language.functions.names import name_of

# Whose classes have nothing that users write; where `triton` is Deuteron, its classes say that they are of that.
_NOT_OF_USERS = {*sys.stdlib_module_names, __name__.partition(".")[0], "triton", "numpy", "torch", "ml_dtypes"}
_CONTAINERS = (tuple, list, set, frozenset)
_PROCESS = os.urandom(16).hex()
_numbered: dict[int, tuple[int, Any]] = {}  # those of which not all is said
_open: ContextVar[tuple[int, ...]] = ContextVar("_open", default=())  # of which the text is being made


def stable_repr(value: Any) -> str:
    """A text that is equal for equal values, in any process, and not for others: 1, True and 1.0 differ."""
    outer = _open.get()
    if id(value) in outer:  # it holds itself
        return f"<{type(value).__name__} {len(outer) - outer.index(id(value))} out>"
    token = _open.set((*outer, id(value)))
    try:
        return _text_of(value)
    finally:
        _open.reset(token)


def _text_of(value: Any) -> str:
    if isinstance(value, type):
        return _class_text(value)
    if isinstance(value, constexpr):
        return stable_repr(value.value)
    if hasattr(value, "cache_key"):
        return f"<function {value.cache_key}>"
    if isinstance(value, FunctionType):
        return f"<function {name_of(value.__module__)}.{value.__qualname__} {_code_repr(value)}>"
    if isinstance(value, partial):
        return f"<partial {stable_repr((value.func, value.args, value.keywords))}>"
    if isinstance(value, MethodType):
        return f"<method {stable_repr((value.__func__, value.__self__))}>"
    if isinstance(value, BuiltinFunctionType):
        owner = value.__self__
        return f"<{value.__qualname__} {owner.__name__ if isinstance(owner, ModuleType) else stable_repr(owner)}>"
    if wrapped := _function_in(value):
        return f"<{type(value).__name__} {stable_repr(wrapped)}>"
    if isinstance(value, ModuleType):
        return f"<module {value.__name__}>" if not _is_named_by_users(value.__name__) else _numbered_text(value)
    return _object_text(value)


def _object_text(value: Any) -> str:
    kind = type(value)
    if is_of_users(kind):
        return f"<{_content_text(value)} {_text_of_dict(state_of(value))} of {stable_repr(kind)}>"
    if is_array(value):
        return f"<{value.dtype!r} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}>"
    if isinstance(value, SimpleNamespace):
        return f"SimpleNamespace{_text_of_dict(vars(value))}"
    return _content_text(value)


def _content_text(value: Any) -> str:
    """What a value holds that is no attribute of it."""
    kind = type(value)
    if isinstance(value, tuple | list):
        names = getattr(value, "_fields", "")
        return f"{kind.__name__}{names}({', '.join(map(stable_repr, value))})"
    if isinstance(value, set | frozenset):
        return f"{kind.__name__}({', '.join(sorted(map(stable_repr, value)))})"
    if isinstance(value, dict):
        return f"{'' if kind is dict else kind.__name__}{_text_of_dict(value)}"
    if is_of_users(kind):
        return f"{kind.__name__}:{_base_text(value)}"
    if hasattr(value, "cache_key_part"):
        return f"{kind.__name__}:{value.cache_key_part}"
    text = f"{kind.__name__}:{value!r}"
    leaves_out_elements = hasattr(value, "__array__") and value.shape != ()
    return _numbered_text(value) if " at 0x" in text or leaves_out_elements else text


def _base_text(value: Any) -> str:
    """What an object of a user's class is by a class in C that it derives from."""
    for base in (bool, int, float, complex, str, bytes):
        if isinstance(value, base):
            return base.__repr__(value)
    hidden = (base for base in type(value).__mro__[:-1] if not is_of_users(base) and _makes_objects(base))
    return _numbered_text(value) if any(hidden) else ""


def _makes_objects(cls: type) -> bool:
    """Whether it is a class in C of which objects are made, so that they may hold what is no attribute."""
    return isinstance(vars(cls).get("__new__"), BuiltinFunctionType)


def _text_of_dict(items: dict[Any, Any]) -> str:
    return f"{{{', '.join(f'{stable_repr(key)}: {stable_repr(item)}' for key, item in items.items())}}}"


def state_of(value: Any) -> dict[str, Any]:
    """The attributes that an object of a user's class itself has."""
    if not (is_of_users(type(value)) or isinstance(value, SimpleNamespace)) or isinstance(value, FunctionType | type):
        return {}
    slots = {name: getattr(value, name) for name in _slots_of(type(value)) if hasattr(value, name)}
    return {**slots, **getattr(value, "__dict__", {})}


def _slots_of(cls: type) -> Iterator[str]:
    """The attributes that objects keep beside `__dict__`, private ones by the names that they really have."""
    for base in cls.__mro__:
        if "__slots__" in vars(base):
            yield from (name for name, member in vars(base).items() if isinstance(member, MemberDescriptorType))


def is_array(value: Any) -> bool:
    """Whether it is an array of NumPy whose bytes say all."""
    return type(value).__name__ == "ndarray" and not value.dtype.hasobject


def _class_text(cls: type) -> str:
    named = f"{name_of(cls.__module__)}.{cls.__qualname__}"
    if hasattr(cls, "class_key"):
        return f"<class {named} {cls.class_key()}>"
    if not is_of_users(cls):
        return f"<class {named}>"
    return f"<class {named} {_text_of_dict(dict(_data_of_class(cls)))} {', '.join(_functions_of_class(cls))}>"


def is_of_users(cls: type) -> bool:
    """Whether a program defines it, as far as is known."""
    return _is_named_by_users(cls.__module__)


def _is_named_by_users(module: str) -> bool:
    return str(module).partition(".")[0] not in _NOT_OF_USERS


def parts_of(value: Any) -> Iterator[Any]:
    """What a value holds, and the members of its class, one step deep: where else functions may be."""
    if isinstance(value, constexpr):
        yield value.value
    elif isinstance(value, partial):
        yield from (value.func, value.args, value.keywords)
    elif isinstance(value, MethodType):
        yield from (value.__func__, value.__self__)
    elif wrapped := _function_in(value):
        yield wrapped
    elif isinstance(value, type):
        if is_of_users(value):
            yield from (*_functions_of_class(value).values(), *(item for _, item in _data_of_class(value)))
    else:
        if isinstance(value, dict):
            yield from (*value.keys(), *value.values())
        elif isinstance(value, _CONTAINERS):
            yield from value
        if is_of_users(type(value)):
            yield type(value)
        yield from state_of(value).values()


def _data_of_class(cls: type) -> Iterator[tuple[str, Any]]:
    for name, member in _members(cls).items():
        is_of_python = name.startswith("__") or name == "_abc_impl" or hasattr(type(member), "__set__")
        if not is_of_python and _function_in(member) is None:
            yield name, member
    for field in getattr(cls, "__dataclass_fields__", {}).values():
        if callable(field.default_factory):
            yield f"{field.name}()", field.default_factory


def _functions_of_class(cls: type) -> dict[str, Any]:
    found = {name: _function_in(member) for name, member in _members(cls).items()}
    return {name: function for name, function in found.items() if function is not None}


def _members(cls: type) -> dict[str, Any]:
    """What a class, and those that it derives from, define, by sorted name."""
    bases = (base for base in reversed(cls.__mro__) if is_of_users(base))
    return dict(sorted({name: member for base in bases for name, member in vars(base).items()}.items()))


def members_of(cls: type) -> Iterator[tuple[type, str, Any]]:
    """What of a user's class a kernel depends on: the data and the functions, with the class that defines each."""
    counting = {*_functions_of_class(cls), *(name for name, _ in _data_of_class(cls))}
    for base in filter(is_of_users, cls.__mro__):
        yield from ((base, name, member) for name, member in vars(base).items() if name in counting)


def _function_in(member: Any) -> Any:
    """The function that a member is, or wraps: methods of all kinds, properties; None for what is data."""
    if is_of_users(type(member)) or isinstance(member, partial | type):
        return None
    held = (member, *(getattr(member, name, None) for name in ("__func__", "fget", "func", "__wrapped__")))
    return next((each for each in held if isinstance(each, FunctionType) or hasattr(each, "cache_key")), None)


def _numbered_text(value: Any) -> str:
    return f"{type(value).__name__} {_number_of(value)} of {_PROCESS} {os.getpid()}"


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
