"""The signature given to `deuteron compile -s`: one element for every parameter of the kernel, in order.

    parse_signature("*fp32:16, i32, i32:1, 128", kernel_params)

    *fp32:16   a pointer whose address is divisible by 16 bytes
    i32        a runtime value
    i32:1      a value that is always 1: compiled in, and not an argument of the compiled function
    tensordesc<fp16[128,64]>:16     a descriptor: in C its address, its sizes, and its strides but the last, which is 1;
               of a tensor whose rows have a multiple of 16 bytes
    128        anything that is no type is the value of a constexpr: -3, 0.5, True, None, 'relu', tl.float16
    (*fp32, i32, 16)     a tuple of such elements: in C parameters of their own, `args_0`, `args_1`
    (x=*fp32, n=i32)     a named tuple: in C `args_x`, `args_n`

A parameter annotated `tl.constexpr` takes a value, also where the text is the name of a type (`fp16` is `tl.float16`).
"""

from __future__ import annotations

import ast
import re
from collections import namedtuple
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from deuteron.aot.option_text import OptionText
from deuteron.errors import UsageError, counted
from deuteron.language import types
from deuteron.language.constant import rebuild
from deuteron.language.functions.lambda_source import syntax_tree
from deuteron.language.signature import ALIASES, SCALARS, leaves, parse_type, type_text
from deuteron.language.types import tensor_descriptor_type

HINTS = {"1": 1, "16": 16}
_NO_VALUE = object()
_CLOSING = {"'": "'", '"': '"', "<": ">"}
_FIELD = re.compile(r"\s*([A-Za-z]\w*)\s*=")


class KernelParameter(Protocol):
    """What is asked of a kernel's parameter; `language.functions.function.Parameter` has it."""

    name: str
    is_constexpr: bool


@dataclass(frozen=True)
class Element:
    """The stripped text between two commas, and where it starts."""

    text: str
    offset: int


@dataclass(frozen=True)
class Argument:
    """A parameter, or an item of one that is a tuple, with what the signature says of it. `type` is None for the value
    of a constexpr.

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
    """A parsed signature: the arguments in the order of the kernel's parameters, the items of tuples one by one.

    `params` has the argument of each parameter, or the tuple of them, `texts` the text of each.
    """

    arguments: tuple[Argument, ...]
    params: dict[str, Any]
    texts: tuple[str, ...]

    @property
    def types(self) -> dict[str, Any]:
        """As `compiler.ASTSource` takes it."""
        return {name: _types(found) for name, found in self.params.items()}

    @property
    def constexprs(self) -> dict[str, Any]:
        return {arg.name: arg.value for arg in self.arguments if arg.is_folded}

    @property
    def attrs(self) -> dict[str, list[list[Any]]]:
        return {arg.name: [["tt.divisibility", 16]] for arg in self.arguments if arg.hint == 16}


def _types(found: Any) -> Any:
    if isinstance(found, tuple):
        return rebuild(found, [_types(item) for item in found])
    return "constexpr" if found.is_folded else found.type


def parse_signature(text: str, params: Sequence[KernelParameter], kernel_name: str) -> Signature:
    """The signature that a text gives for a kernel; raises UsageError that points into the text."""
    source = OptionText("--signature", text)
    _check_closed(source)
    elements = list(_elements(text)) if text.strip() else []
    _check_none_is_empty(source, elements)
    _check_count(source, elements, params, kernel_name)
    pairs = zip(elements, params, strict=True)
    found = {param.name: _parameter(source, element, param.name, param) for element, param in pairs}
    named = [leaf for name, tree in found.items() for leaf in leaves(name, tree)]
    arguments = tuple(replace(argument, index=i, name=name) for i, (name, argument) in enumerate(named))
    return Signature(arguments, found, tuple(element.text for element in elements))


def _parameter(source: OptionText, element: Element, name: str, param: KernelParameter) -> Any:
    """What is said of a parameter: an Argument, or of a tuple the tuple of them."""
    if not element.text.startswith("(") or param.is_constexpr:
        return _argument(source, element, name, param)
    if not element.text.endswith(")"):
        message = f"parameter '{name}': expected a tuple such as (*fp32, i32), got {element.text}"
        raise source.error(message, element.offset, len(element.text))
    *parts, last = _elements(element.text[1:-1], element.offset + 1)
    if last.text and not parts and not _FIELD.match(last.text):
        message = f"parameter '{name}': a tuple of one is ({last.text},), and without one leave the parentheses out"
        raise source.error(message, element.offset, len(element.text))
    parts += [last] * bool(last.text)  # (*fp32,) is a tuple too
    _check_none_is_empty(source, parts)
    fields = [match.group(1) if (match := _FIELD.match(part.text)) else None for part in parts]
    if any(fields) and not all(fields):
        message = f"parameter '{name}': all items of a tuple have names, or none"
        raise source.error(message, element.offset, len(element.text))
    if not any(fields):
        return tuple(_parameter(source, part, f"{name}[{i}]", param) for i, part in enumerate(parts))
    items = [
        _parameter(source, _after_name(part), f"{name}.{field}", param)
        for part, field in zip(parts, fields, strict=True)
    ]
    return namedtuple("Arguments", fields)(*items)


def _after_name(element: Element) -> Element:
    text = element.text.partition("=")[2]
    return Element(text.strip(), element.offset + len(element.text) - len(text.lstrip()))


def _elements(text: str, offset: int = 0) -> Iterator[Element]:
    """The texts between top-level commas; a comma within quotes or brackets belongs to what they hold."""
    start, quote, depth = 0, "", 0
    for i, char in enumerate(text + ","):
        if quote:
            quote = "" if char == quote else quote
        elif char in _CLOSING:
            quote = _CLOSING[char]
        else:
            depth += (char == "(") - (char == ")")
        if char == "," and (not (quote or depth) or i == len(text)):
            part = text[start:i]
            yield Element(part.strip(), offset + start + len(part) - len(part.lstrip()))
            start = i + 1


def _check_closed(source: OptionText) -> None:
    """Raise UsageError for a quote or a bracket that has no end: all that follows would belong to it."""
    opened: list[int] = []
    for i, char in enumerate(source.text):
        last = source.text[opened[-1]] if opened else ""
        if last and char == _CLOSING.get(last, ")"):
            opened.pop()
        elif last not in _CLOSING and (char in _CLOSING or char == "("):
            opened.append(i)
    if opened:
        raise source.error(f"this {source.text[opened[-1]]} is not closed", opened[-1])


def _check_none_is_empty(source: OptionText, elements: Sequence[Element]) -> None:
    for element in elements:
        if not element.text:
            raise source.error("a type or a value is missing here, or there is a comma too many", element.offset)


def _check_count(source: OptionText, elements: list[Element], params: Sequence[KernelParameter], kernel: str) -> None:
    names = [param.name for param in params]
    given, wanted = counted(len(elements), "element"), counted(len(names), "parameter")
    counts = f"the signature has {given}, kernel '{kernel}' has {wanted}"
    if len(elements) < len(names):
        missing = ", ".join(f"'{name}'" for name in names[len(elements) :])
        way_out = ". Elements are separated by commas" if len(elements) == 1 else ""
        raise source.error(f"{counts}: nothing is given for {missing}{way_out}", max(len(source.text) - 1, 0))
    if len(elements) > len(names):
        first = elements[len(names)]
        raise source.error(f"{counts} ({', '.join(names)}): this is one too many", first.offset, len(first.text))


def _argument(source: OptionText, element: Element, name: str, param: KernelParameter) -> Argument:
    """The argument; its index and its own name are known once all have been read."""
    text = element.text
    try:
        value = _value(text, param.is_constexpr)
        if value is not _NO_VALUE:
            return Argument(0, name, text, None, value=value)
        if param.is_constexpr:
            raise UsageError(
                f"it is a tl.constexpr and takes a value (a number, True, False, None, a dtype or a quoted string), "
                f"got {text}"
            )
        type, hint = _type_and_hint(text)
        return Argument(0, name, text, type, hint, 1 if hint == 1 else None)
    except UsageError as error:
        raise source.error(f"parameter '{name}': {error.message}", element.offset, len(text)) from None


def _value(text: str, is_constexpr: bool) -> Any:
    """The constexpr value that a text means, or _NO_VALUE."""
    for convert in (int, float, ast.literal_eval):
        try:
            value = convert(text)
        except (ValueError, SyntaxError):
            continue
        if value is None or isinstance(value, int | float | str) or (is_constexpr and isinstance(value, tuple)):
            return value
    if is_constexpr and text.startswith("("):
        return _tuple(text)
    prefix, _, name = text.rpartition(".")
    return _dtype(name) if is_constexpr or prefix in ("tl", "triton.language", "language") else _NO_VALUE


def _tuple(text: str) -> Any:
    """The tuple of values, which dtypes and tuples may be among, or _NO_VALUE."""
    try:
        statements = syntax_tree(text.strip()).body
    except SyntaxError:
        return _NO_VALUE
    parsed = statements[0].value if len(statements) == 1 and isinstance(statements[0], ast.Expr) else None
    if not isinstance(parsed, ast.Tuple):
        return _NO_VALUE
    values = tuple(_value(ast.unparse(part), True) for part in parsed.elts)
    return _NO_VALUE if _NO_VALUE in values else values


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
