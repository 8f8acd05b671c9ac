"""What a `for` loop goes over.

    range(0, n, BLOCK)  tl.range(n, num_stages=3)      Range: a loop of the kernel
    tl.static_range(4)  a compile-time tuple           a tuple of compile-time items: the loop is unrolled

Bounds are integers: numbers or scalars.
"""

from __future__ import annotations

import ast
import builtins
import operator
import warnings
from dataclasses import dataclass, field

from xdsl.dialects.builtin import IntegerAttr, UnitAttr
from xdsl.ir import Attribute

from deuteron import language
from deuteron.frontend.calls import apply
from deuteron.frontend.context import Context
from deuteron.frontend.inline import misfit
from deuteron.frontend.rules import call_at_compile_time
from deuteron.frontend.semantics.constant import number
from deuteron.frontend.semantics.promote import operand_type
from deuteron.frontend.values import Tensor, Value, describe, is_number, is_runtime, known_items
from deuteron.ir.types import i32
from deuteron.language.types import int32, int64

_INTEGER_HINTS = ("num_stages", "loop_unroll_factor")
_MOST_HINTED = 1 << 16  # stages, iterations in one: there are a few
_STEP_0 = "The step of a range is 0. Use a step of 1 or more, or a negative one."
_HINTS = (*_INTEGER_HINTS, "disallow_acc_multi_buffer", "flatten", "warp_specialize", "disable_licm")


@dataclass(frozen=True)
class Range:
    """Start, end and step of a loop of the kernel, numbers or scalar Tensors, and the hints as attributes."""

    start: Value
    end: Value
    step: Value
    hints: dict[str, Attribute] = field(default_factory=dict)


def iterated(ctx: Context, node: ast.expr) -> Range | tuple[Value, ...]:
    """What the expression after `in` means."""
    if isinstance(node, ast.Call):
        callee = ctx.evaluate(node.func)
        if callee in (builtins.range, language.range, language.static_range):
            return _range(ctx, node, callee)
    value = ctx.evaluate(node)
    items = known_items(ctx, value)
    if items is None:
        is_tile = isinstance(value, Tensor) and value.shape
        way_out = "To go over a tile, work on the tile as a whole." if is_tile else "Use range(n) to count to a number."
        raise ctx.error(
            f"A loop goes over range, tl.range, tl.static_range or a tuple, got {describe(value)}. {way_out}"
        )
    return items


def _range(ctx: Context, node: ast.Call, callee: object) -> Range | tuple[int, ...]:
    args = [ctx.evaluate(arg) for arg in node.args]
    kwargs = {keyword.arg: ctx.evaluate(keyword.value) for keyword in node.keywords}
    with ctx.at(node):
        if callee is language.static_range:
            return _static(ctx, *_bounds(ctx, callee, args, kwargs)[:3])
        if callee is builtins.range:
            kwargs = _of_plain_range(ctx, args, kwargs)
        start, end, step, hints = _bounds(ctx, language.range, args, kwargs)
        return _checked(ctx, Range(start, end, step, _hint_attributes(ctx, hints)))


def _of_plain_range(ctx: Context, args: list[Value], kwargs: dict[str, Value]) -> dict[str, Value]:
    """No keywords: those of tl.range that are hints Triton ignores here, as it ignores `step`, which is an error."""
    if len(args) > 3:
        raise ctx.error(f"range() takes start, end and step, got {len(args)} arguments. tl.range has more.")
    for name in kwargs:
        if name not in _HINTS:
            raise ctx.error(f"range() has no '{name}'. Use tl.range.")
    if kwargs:
        given = ", ".join(f"'{name}'" for name in kwargs)
        warnings.warn(f"{ctx.frame.location()}: range() has no {given}, which is ignored. Use tl.range.", stacklevel=2)
    return {}


def _bounds(ctx: Context, stub: object, args: list[Value], kwargs: dict[str, Value]) -> tuple:
    """(start, end, step, other arguments) of a call of a stub of language.iterators."""
    try:
        bound = stub.signature.bind(*args, **kwargs)
    except TypeError as error:
        raise misfit(ctx, f"tl.{stub.__name__}", stub.signature.parameters, args, kwargs, error) from None
    given = dict(bound.arguments)
    first, second, step = given.pop("arg1"), given.pop("arg2", None), given.pop("step", None)
    start, end = (0, first) if second is None else (first, second)
    return start, end, 1 if step is None else step, given


def _static(ctx: Context, start: Value, end: Value, step: Value) -> tuple[int, ...]:
    if is_runtime((start, end, step)):
        shown = ", ".join(describe(value) for value in (start, end, step))
        ways_out = [way_out for value in (start, end, step) if (way_out := ctx.how_to_know(value))]
        raise ctx.error(f"tl.static_range needs compile-time bounds, got ({shown}). {[*ways_out, 'Use tl.range.'][0]}")
    for what, value in (("start", start), ("end", end), ("step", step)):
        if not hasattr(value, "__index__"):
            raise ctx.error(f"The {what} of tl.static_range is an integer, got {describe(value)}.{_whole(value)}")
    if step == 0:
        raise ctx.error(_STEP_0)
    return known_items(ctx, call_at_compile_time(ctx, range, (start, end, step)))


def _hint_attributes(ctx: Context, hints: dict[str, Value]) -> dict[str, Attribute]:
    attributes: dict[str, Attribute] = {}
    for name, value in hints.items():
        if is_runtime(value):
            raise ctx.error(f"'{name}' of tl.range is known at compile time only, got {describe(value)}.")
        if name in _INTEGER_HINTS and value is not None:
            if not hasattr(value, "__index__"):
                raise ctx.error(f"'{name}' of tl.range is an integer, got {describe(value)}.")
            if not 0 <= operator.index(value) <= _MOST_HINTED:
                raise ctx.error(f"'{name}' of tl.range is from 0 to {_MOST_HINTED}, got {value}.")
            attributes[f"tt.{name}"] = IntegerAttr(operator.index(value), i32)
        elif value:
            attributes[f"tt.{name}"] = UnitAttr()
    return attributes


def _checked(ctx: Context, bounds: Range) -> Range:
    """The range; raises CompilationError unless it is of integer scalars and its step, where it is known, is not 0."""
    for what, value in (("start", bounds.start), ("end", bounds.end), ("step", bounds.step)):
        is_integer = isinstance(value, int) or (isinstance(value, Tensor) and value.type.is_int())
        if not is_integer:
            raise ctx.error(f"The {what} of a range is an integer, got {describe(value)}.{_whole(value)}")
    if is_number(bounds.step) and bounds.step == 0:
        raise ctx.error(_STEP_0)
    return bounds


def _whole(value: Value) -> str:
    """What makes a bound of a range of a value."""
    if isinstance(value, Tensor) and not value.type.is_block():
        return " Convert it with .to(tl.int32)."
    if isinstance(value, float):
        return " Divide with // for a whole number."
    return " Loop over a tuple itself, as in `for item in items`." if isinstance(value, tuple) else ""


def common_integer(ctx: Context, *values: Value) -> list[Tensor]:
    """Integers as Tensors of one type: int32, or int64 where one does not fit into that."""
    types = [operand_type(ctx, value) for value in values]
    fits = all(type.int_bitwidth < 32 or type == int32 for type in types)
    return [_integer(ctx, value, int32 if fits else int64) for value in values]


def _integer(ctx: Context, value: Value, dtype: language.dtype) -> Tensor:
    if not isinstance(value, Tensor):
        return number(ctx, int(value), dtype)
    return value if value.type == dtype else apply(ctx, language.cast, (value, dtype))
