"""From the arguments of a launch to what a kernel is compiled for: one token for each argument.

    x (float32, aligned)   "*fp32:16"      n = 1000    "i32"           flag = True     "i1"
    n = 4096               "i32:16"        n = 1       "i32:1"         scale = 0.5     "fp32"
    None, @jit function    ("constexpr", ...)                          BLOCK = 128     ("constexpr", "int", 128)
    TensorDescriptor(x, ...)     "tensordesc<fp32[128,64]>"
    (n, 1)                 ("tuple", tuple, "i32", "i32:1")            Point(n, 1)     ("tuple", Point, "i32", "i32:1")

A token is a type with the hint `:16` (divisible by 16) or `:1` (equal to 1, folded), or it holds a constexpr. The
tokens are the key of the compiled kernel, so they are made by one look-up of the argument's class and little more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from itertools import repeat
from types import BuiltinFunctionType, FunctionType
from typing import Any

from deuteron.backend.arguments import SCALAR_TYPES
from deuteron.backend.arrays import ELEMENT_TYPES, ForeignDevice, array_specialiser, is_subclass_of, split_token
from deuteron.backend.tensor_descriptor import TensorDescriptor
from deuteron.backend.tensor_descriptor import specialise as specialise_descriptor
from deuteron.errors import IntegerTooLarge, LaunchError
from deuteron.language.constant import constexpr, rebuild
from deuteron.language.functions.function import Function, Parameter
from deuteron.language.functions.stable_text import stable_repr
from deuteron.language.signature import part_names
from deuteron.language.types import dtype

Token = str | tuple
Specialiser = Callable[[Any], tuple[Token, Any]]


def constexpr_token(value: Any) -> tuple[Token, Any]:
    """The token of a constexpr argument: equal tokens mean equal constants, so 1, True and 1.0 differ."""
    if isinstance(value, constexpr):
        value = value.value
    return ("constexpr", *_hashable(value)), value


def _hashable(value: Any) -> tuple:
    kind = value.__class__
    if kind is float:
        return (kind, value.hex())
    if isinstance(value, tuple | list):
        return (kind, *map(_hashable, value))
    if isinstance(value, constexpr):
        return _hashable(value.value)
    if kind is dict:
        return (kind, *((_hashable(key), _hashable(item)) for key, item in value.items()))
    if kind is set:
        return (kind, frozenset(map(_hashable, value)))
    if kind.__hash__ is None:
        way_out = ": drop tl.constexpr from an array" if hasattr(value, "__array_interface__") else f", got {value!r}"
        raise LaunchError(f"a constexpr must be hashable, got a value of type '{kind.__name__}'{way_out}")
    return (kind, value) if is_its_own_token(kind) else (kind, value, stable_repr(value))


def is_its_own_token(kind: type) -> bool:
    """Whether objects of a class are equal only where they mean the same to a kernel, and stay what they are. Others
    are told apart by what they hold: a float of NumPy equals one of the other sign, an object may have been changed.
    """
    return kind in _EXACT or issubclass(kind, Function | dtype | Enum)


_EXACT = frozenset((int, bool, str, bytes, type(None), FunctionType, BuiltinFunctionType))


def _integer(value: int) -> tuple[Token, int]:
    if -0x80000000 <= value <= 0x7FFFFFFF:
        if _is_hinted(value):
            return "i32:16", value
        return ("i32:1" if value == 1 else "i32"), value
    if -(1 << 63) <= value < (1 << 64):
        type = "i64" if value < (1 << 63) else "u64"
        return (f"{type}:16" if _is_hinted(value) else type), value
    raise IntegerTooLarge(f"an integer argument has at most 64 bits, got {value}")


def _is_hinted(value: int) -> bool:
    """Whether a kernel is told that a number is divisible by 16. Negative ones are not: with the hint loads go by TMA,
    which takes no negative strides.
    """
    return value & 15 == 0 and value >= 0


def _float(value: float) -> tuple[Token, float]:
    return "fp32", value


def _bool(value: bool) -> tuple[Token, bool]:
    return "i1", value


def _numpy_scalar(value: Any) -> tuple[Token, Any]:
    type = ELEMENT_TYPES.get(value.dtype.name)
    if type is None:
        raise LaunchError(f"a scalar of {value.dtype} cannot be given to a kernel")
    return typed_scalar(type, value.item())


def typed_scalar(type: str, value: Any) -> tuple[Token, Any]:
    """The token of a number whose type is given and not found from its value."""
    if type[0] not in "iu" or type == "i1":
        return type, value
    hint = ":1" if value == 1 else ":16" if _is_hinted(value) else ""
    return type + hint, value


def _annotated(type: str) -> Specialiser:
    def specialise(value: Any) -> tuple[Token, Any]:
        if type not in SCALAR_TYPES:
            raise LaunchError(f"a number of type {type} cannot be passed: pass it through a pointer, or as fp32")
        number = _number(value)
        if number is None:
            raise LaunchError(f"a number is expected for a parameter annotated '{type}', got {_shown(value)}")
        return typed_scalar(type, number if type[0] not in "iu" else _whole(number, type))

    return specialise


def _number(value: Any) -> int | float | None:
    """The number that an argument is, or that an array of one element has."""
    if hasattr(value, "item") and getattr(value, "size", 1) != 0:
        try:
            value = value.item()
        except (ValueError, TypeError, RuntimeError):  # of several elements, in the words of its library
            return None
    return value if isinstance(value, int | float) else None


def _whole(number: int | float, type: str) -> int:
    if isinstance(number, float) and not number.is_integer():
        raise LaunchError(
            f"an integer is expected for a parameter annotated '{type}', got {number}: round it, or annotate 'fp32'"
        )
    return _as_bits(int(number), type)


def _as_bits(number: int, type: str) -> int:
    """The integer of a type that has a number's bits, as C converts -1 to 255; one that has more bits is an error."""
    bits = int(type[1:])
    if bits == 1:
        return int(bool(number))
    if not -(1 << bits - 1) <= number < 1 << bits:
        raise IntegerTooLarge(f"an integer of {bits} bits is expected for a parameter annotated '{type}', got {number}")
    if type[0] == "u":
        return number % (1 << bits)
    return number - (1 << bits) if number >= 1 << bits - 1 else number


def _shown(value: Any) -> str:
    return f"an array of shape {tuple(value.shape)}" if hasattr(value, "shape") else repr(value)


def _tuple(value: tuple, item_specialiser: Specialiser) -> tuple[Token, tuple]:
    """The token of a tuple, of its class and the tokens of its items, and what is passed for them, one by one."""
    tokens: list[Token] = ["tuple", value.__class__ if hasattr(value, "_fields") else tuple]
    passed: list[Any] = []
    specialisers = _of_fields(value, item_specialiser) if _is_aggregate(value) else repeat(item_specialiser)
    try:
        for item, specialiser in zip(value, specialisers, strict=False):
            token, what = specialiser(item)
            tokens.append(token)
            if is_passed(token):
                passed += what if isinstance(what, tuple) else (what,)
    except LaunchError as error:
        raise type(error)(f"item {len(tokens) - 2}: {error.message}") from None
    return tuple(tokens), tuple(passed)


def _of_fields(value: tuple, item_specialiser: Specialiser) -> Iterator[Specialiser]:
    """The specialisers of an aggregate's fields: those that stay known at compile time are constexprs."""
    of_tuples = _with_known_numbers(item_specialiser)
    for item, is_fixed in zip(value, value._fixed or repeat(False), strict=False):
        yield constexpr_token if is_fixed else of_tuples if isinstance(item, tuple) else item_specialiser


def _with_known_numbers(item_specialiser: Specialiser) -> Specialiser:
    """Of what is in a tuple that an aggregate holds: its numbers are constexprs, as in a kernel."""

    def specialise(value: Any) -> tuple[Token, Any]:
        if isinstance(value, tuple):
            return _tuple(value, item_specialiser if _is_aggregate(value) else specialise)
        return (constexpr_token if isinstance(value, int | float) else item_specialiser)(value)

    return specialise


def _is_aggregate(value: tuple) -> bool:
    return hasattr(value, "_fixed")


def is_tuple(token: Token) -> bool:
    """Whether it is the token of a tuple, whose items have the tokens `token[2:]`."""
    return token[0] == "tuple"


def is_passed(token: Token) -> bool:
    """Whether the compiled kernel takes an argument, or several, for it: it is neither constexpr nor folded to 1."""
    if isinstance(token, str):
        return not token.endswith(":1")
    return is_tuple(token) and any(map(is_passed, token[2:]))


def passed_values(value: Any, token: Token) -> list[Any]:
    """What the user gave for the arguments that the compiled kernel takes, the parts of descriptors one by one."""
    if is_tuple(token):
        return [part for item, its in zip(value, token[2:], strict=True) for part in passed_values(item, its)]
    if not is_passed(token):
        return []
    return value.arguments if isinstance(value, TensorDescriptor) else [value]


def named_tokens(name: str, value: Any, token: Token) -> Iterator[tuple[str, Token]]:
    """The token of an argument by its name, or those of the items of a tuple by theirs."""
    if not is_tuple(token):
        yield name, token
        return
    for part, item, its in zip(part_names(name, value), value, token[2:], strict=True):
        yield from named_tokens(part, item, its)


_SPECIALISERS: dict[type, Specialiser] = {
    int: _integer,
    float: _float,
    bool: _bool,
    type(None): constexpr_token,
    constexpr: constexpr_token,
    TensorDescriptor: specialise_descriptor,
}


def _specialiser_of(type: type) -> Specialiser:
    """The specialiser of a class of arguments, found once for each class."""
    if is_subclass_of(type, "numpy", "generic"):
        return _numpy_scalar
    if issubclass(type, Function):
        return constexpr_token
    if issubclass(type, TensorDescriptor):
        return specialise_descriptor
    if issubclass(type, tuple):
        return _any_tuple
    if issubclass(type, dtype):
        return constexpr_token
    for base, specialise in ((bool, _bool), (int, _integer), (float, _float)):
        if issubclass(type, base):
            return specialise
    found = array_specialiser(type)
    if found is None and issubclass(type, list):
        raise LaunchError("expected an array, a number or a tuple, got a list: pass tuple(...) of it")
    if found is None:
        way_out = "; other values are for parameters annotated tl.constexpr"
        if _is_buffer(type):
            way_out = ": pass numpy.asarray(...) of it"
        if hasattr(type, "__dataclass_fields__"):
            way_out = ": pass its fields, or make it a NamedTuple or an @aggregate, whose fields may be arrays"
        named = f"'{type.__module__}.{type.__qualname__}'"
        raise LaunchError(f"expected an array or a number, got an object of type {named}{way_out}")
    return found


def _is_buffer(type: type) -> bool:
    """Whether its objects have memory that NumPy makes an array of, without a copy."""
    others = (("array", "array"), ("_ctypes", "Array"))
    return issubclass(type, bytearray | memoryview) or any(is_subclass_of(type, *other) for other in others)


def specialise(value: Any) -> tuple[Token, Any]:
    """The token of an argument, and what is passed to the compiled kernel: an address or a number."""
    found = _SPECIALISERS.get(value.__class__)
    if found is None:
        found = _SPECIALISERS[value.__class__] = _specialiser_of(value.__class__)
    return found(value)


def _any_tuple(value: tuple) -> tuple[Token, tuple]:
    return _tuple(value, specialise)


def parameter_specialiser(param: Parameter) -> Specialiser:
    """The specialiser of a parameter's arguments."""
    if param.is_constexpr:
        return constexpr_token
    type = _annotated_type(param)
    base = _annotated(type) if type else specialise
    if with_alignment(param):
        return base
    unwanted = (":1", ":16") if param.do_not_specialize else (":16",)

    def specialise_less(value: Any) -> tuple[Token, Any]:
        if isinstance(value, tuple):
            return _tuple(value, specialise_less)
        token, passed = base(value)
        if isinstance(token, str) and token.endswith(unwanted):
            return token[: token.rindex(":") + ("@" in token)], passed
        return token, passed

    return specialise_less


def takes_arrays(param: Parameter) -> bool:
    """Whether an argument may be an array, of which the address is passed."""
    return not param.is_constexpr and _annotated_type(param) is None


def with_alignment(param: Parameter) -> bool:
    """Whether the kernel depends on its arguments' divisibility by 16."""
    return not (param.do_not_specialize or param.do_not_specialize_on_alignment)


def _annotated_type(param: Parameter) -> str | None:
    """The scalar type that a parameter is annotated with (`tl.int64`, `"i64"`), if any."""
    name = param.annotation.strip("'\"").rpartition(".")[2]
    text = ELEMENT_TYPES.get(name, name)
    return text if text in ELEMENT_TYPES.values() else None


def name_argument(error: LaunchError, kernel: str, name: str, target: Any) -> LaunchError:
    """The error about an argument, with the argument's and the kernel's name."""
    where = f"argument '{name}' of kernel '{kernel}'"
    if isinstance(error, ForeignDevice) and target is not None:
        return LaunchError(f"{where}: {error.message}, and the kernel runs on {target}. Move it there first.")
    kind = IntegerTooLarge if isinstance(error, IntegerTooLarge) else LaunchError
    return kind(f"{where}: {error.message}")


def decode(
    params: tuple[Parameter, ...], tokens: tuple[Token, ...], values: list[Any]
) -> tuple[dict[str, Any], dict[str, Any], dict[str, list[list[Any]]]]:
    """What tokens mean to a compile: signature, constexprs and attributes, each by parameter name."""
    signature: dict[str, Any] = {}
    constexprs: dict[str, Any] = {}
    attrs: dict[str, list[list[Any]]] = {}
    for param, token, value in zip(params, tokens, values, strict=True):
        is_const = param.annotation.rpartition(".")[2] == "const"
        signature[param.name] = _decoded(param.name, value, token, is_const, constexprs, attrs)
    return signature, constexprs, attrs


def _decoded(
    name: str, value: Any, token: Token, is_const: bool, constexprs: dict[str, Any], attrs: dict[str, list[list[Any]]]
) -> Any:
    """The type that a token means, of a tuple those of its items; what else it says goes into the dictionaries."""
    if is_tuple(token):
        parts = zip(part_names(name, value), value, token[2:], strict=True)
        items = [_decoded(part, item, its, is_const, constexprs, attrs) for part, item, its in parts]
        return rebuild(value, items)
    type, hint, _ = split_token(token) if isinstance(token, str) else ("constexpr", "", None)
    if type == "constexpr" or hint == "1":
        constexprs[name] = value if type == "constexpr" else 1  # which True is as well, for a parameter of integers
        return "constexpr"
    if hint:
        attrs[name] = [["tt.divisibility", int(hint)]]
    return type.replace("*", "*k") if is_const else type
