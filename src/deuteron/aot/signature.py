"""The signature given to `deuteron compile -s`: one element for every parameter of the kernel, in order.

    parse_signature("*fp32:16, i32, i32:1, 128", kernel_params)

    *fp32:16   a pointer whose address is divisible by 16 bytes
    i32        a runtime value
    i32:1      a value that is always 1: compiled in, and not an argument of the compiled function
    tensordesc<fp16[128,64]>:16     a descriptor: in C its address, its sizes, and its strides but the last, which is 1;
               of a tensor whose rows have a multiple of 16 bytes
    128        anything that is no type is the value of a constexpr: -3, 0.5, True, None, 'relu', tl.float16

A parameter annotated `tl.constexpr` takes a value, also where the text is the name of a type (`fp16` is `tl.float16`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from deuteron.aot.option_text import OptionText
from deuteron.errors import UsageError
from deuteron.language import types
from deuteron.language.signature import ALIASES, SCALARS, parse_type, type_text
from deuteron.language.types import tensor_descriptor_type

HINTS = {"1": 1, "16": 16}
_NO_VALUE = object()
_CLOSING = {"'": "'", '"': '"', "<": ">"}


class KernelParameter(Protocol):
    """What is asked of a kernel's parameter; `language.function.Parameter` has it."""

    name: str
    is_constexpr: bool


@dataclass(frozen=True)
class Element:
    """The stripped text between two commas, and where it starts."""

    text: str
    offset: int


@dataclass(frozen=True)
class Argument:
    """A parameter with what the signature says of it. `type` is None for the value of a constexpr.

    `hint` is 16, 1 or None; the value of an argument hinted 1 is 1.
    """

    index: int
    name: str
    text: str
    type: str | None
    hint: int | None = None
    value: Any = None

    @property
    def is_constexpr(self) -> bool:
        """Whether the signature gives it as a value: it is no parameter of any C function."""
        return self.type is None

    @property
    def is_folded(self) -> bool:
        """Whether its value is compiled in."""
        return self.type is None or self.hint == 1


@dataclass(frozen=True)
class Signature:
    """A parsed signature: the arguments in the order of the kernel's parameters."""

    arguments: tuple[Argument, ...]

    @property
    def types(self) -> dict[str, str]:
        """As `compiler.ASTSource` takes it."""
        return {arg.name: "constexpr" if arg.is_folded else arg.type for arg in self.arguments}

    @property
    def constexprs(self) -> dict[str, Any]:
        return {arg.name: arg.value for arg in self.arguments if arg.is_folded}

    @property
    def attrs(self) -> dict[tuple[int], list[list[Any]]]:
        return {(arg.index,): [["tt.divisibility", 16]] for arg in self.arguments if arg.hint == 16}


def parse_signature(text: str, params: Sequence[KernelParameter], kernel_name: str) -> Signature:
    """The signature that a text gives for a kernel; raises UsageError that points into the text."""
    source = OptionText("--signature", text)
    elements = list(_elements(text))
    _check_count(source, elements, params, kernel_name)
    pairs = zip(elements, params, strict=True)
    return Signature(tuple(_argument(source, element, i, param) for i, (element, param) in enumerate(pairs)))


def _elements(text: str) -> Iterator[Element]:
    """The texts between top-level commas; a comma within quotes or angle brackets belongs to what they hold."""
    start, quote = 0, ""
    for i, char in enumerate(text + ","):
        if quote:
            quote = "" if char == quote else quote
        elif char in _CLOSING:
            quote = _CLOSING[char]
        if char == "," and (not quote or i == len(text)):
            part = text[start:i]
            yield Element(part.strip(), start + len(part) - len(part.lstrip()))
            start = i + 1


def _check_count(source: OptionText, elements: list[Element], params: Sequence[KernelParameter], kernel: str) -> None:
    names = [param.name for param in params]
    counts = f"the signature has {len(elements)} elements, kernel '{kernel}' has {len(names)} parameters"
    if len(elements) < len(names):
        missing = ", ".join(f"'{name}'" for name in names[len(elements) :])
        raise source.error(f"{counts}: nothing is given for {missing}", max(len(source.text) - 1, 0))
    if len(elements) > len(names):
        first = elements[len(names)]
        raise source.error(f"{counts} ({', '.join(names)}): this is one too many", first.offset, len(first.text))


def _argument(source: OptionText, element: Element, index: int, param: KernelParameter) -> Argument:
    text = element.text
    try:
        if not text:
            raise UsageError("expected a type or a value")
        value = _value(text, param.is_constexpr)
        if value is not _NO_VALUE:
            return Argument(index, param.name, text, None, value=value)
        if param.is_constexpr:
            raise UsageError(
                f"it is a tl.constexpr and takes a value (a number, True, False, None, a dtype or a quoted string), "
                f"got {text}"
            )
        type, hint = _type_and_hint(text)
        return Argument(index, param.name, text, type, hint, 1 if hint == 1 else None)
    except UsageError as error:
        raise source.error(f"parameter '{param.name}': {error.message}", element.offset, len(text)) from None


def _value(text: str, is_constexpr: bool) -> Any:
    """The constexpr value that a text means, or _NO_VALUE."""
    for convert in (int, float, ast.literal_eval):
        try:
            value = convert(text)
        except (ValueError, SyntaxError):
            continue
        if value is None or isinstance(value, int | float | str):
            return value
    prefix, _, name = text.rpartition(".")
    return _dtype(name) if is_constexpr or prefix in ("tl", "triton.language", "language") else _NO_VALUE


def _dtype(name: str) -> Any:
    if ALIASES.get(name, name) in SCALARS:
        return SCALARS[ALIASES.get(name, name)]
    found = getattr(types, name, None)
    return found if isinstance(found, types.dtype) else _NO_VALUE


def _type_and_hint(text: str) -> tuple[str, int | None]:
    name, colon, hint = (part.strip() for part in text.partition(":"))
    parsed = parse_type(name)
    type = type_text(parsed)
    if not colon:
        return type, None
    if hint not in HINTS:
        raise UsageError(f"the hint is {hint!r}, and only :16 (divisible by 16) and :1 (always 1) are known")
    if hint == "1" and not parsed.is_int():
        raise UsageError(f"only integers can be hinted :1, and {name} is none")
    can_be_divisible = (
        parsed.is_ptr() or (parsed.is_int() and type != "i1") or isinstance(parsed, tensor_descriptor_type)
    )
    if hint == "16" and not can_be_divisible:
        raise UsageError(f"only pointers, integers and descriptors can be hinted :16, and {name} is none of them")
    return type, HINTS[hint]
