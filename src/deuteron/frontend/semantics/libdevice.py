"""Functions of libdevice: one of a function's overloads is chosen, and becomes an op that names its symbol.

    libdevice.tanh(x: fp32[64])             "tt.extern_elementwise"(%x) <{symbol = "__nv_tanhf", pure = true, ...}>
    libdevice.pow(x: fp32[64], 2)           the overload (fp32, int32)
    libdevice.atan2(x: fp32[64], y: fp64)   no overload has these types; that of their common type fp64 is taken

A number of Python takes the type that the overload asks for, where it has that value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from deuteron.frontend.context import Context
from deuteron.frontend.semantics.broadcast import common_shape
from deuteron.frontend.semantics.compare import ne
from deuteron.frontend.semantics.constant import dtype_of_number
from deuteron.frontend.semantics.operands import check_operand, common_type, in_type
from deuteron.frontend.semantics.types import ir_type, tensor, type_of
from deuteron.frontend.values import Tensor, Value
from deuteron.ir.tt.extern import ExternElementwiseOp
from deuteron.language.extern import Extern, Overload
from deuteron.language.extra import libdevice
from deuteron.language.types import dtype, float32


def call(ctx: Context, function: Extern, *operands: Value) -> Tensor:
    """The function on operands that are broadcast."""
    for operand in operands:
        check_operand(ctx, f"libdevice.{function.__name__}", operand)
    overload = _exact(ctx, function, operands) or _promoted(ctx, function, operands)
    if overload is None:
        raise ctx.error(_refusal(ctx, function, operands))
    shape = common_shape(ctx, (), *(operand.shape for operand in operands if isinstance(operand, Tensor)))
    typed = [in_type(ctx, o, type, shape) for o, type in zip(operands, overload.parameters, strict=True)]
    type = type_of(overload.result, shape)
    op = ExternElementwiseOp([operand.handle for operand in typed], ir_type(overload.result), overload.symbol)
    result = tensor(ctx, op, type)
    return ne(ctx, result, 0) if function.result is not None else result


def _exact(ctx: Context, function: Extern, operands: Sequence[Value]) -> Overload | None:
    """The first overload that has the types of the tensors, and can hold the numbers."""
    for overload in function.overloads:
        if all(_fits(ctx, o, type) for o, type in zip(operands, overload.parameters, strict=True)):
            return overload
    return None


def _fits(ctx: Context, operand: Value, type: dtype) -> bool:
    if isinstance(operand, Tensor):
        return operand.dtype == type
    if type.is_int():
        return isinstance(operand, int) and type.get_int_min_value() <= operand <= type.get_int_max_value()
    return not (type == float32 and dtype_of_number(ctx, operand).name == "fp64")


def _promoted(ctx: Context, function: Extern, operands: Sequence[Value]) -> Overload | None:
    """The overload for the common type of all operands."""
    if len(operands) == 1:
        return None
    wanted = (common_type(ctx, *operands),) * len(operands)
    return next((overload for overload in function.overloads if overload.parameters == wanted), None)


def _refusal(ctx: Context, function: Extern, operands: Sequence[Value]) -> str:
    types = [o.dtype if isinstance(o, Tensor) else dtype_of_number(ctx, o) for o in operands]
    takes = " or ".join(f"({', '.join(map(str, overload.parameters))})" for overload in function.overloads)
    got = ", ".join(map(str, types))
    return f"libdevice.{function.__name__} takes {takes}, got ({got}).{_way_out(function, types)}"


def _way_out(function: Extern, types: Sequence[dtype]) -> str:
    wanted = function.overloads[0].parameters
    for type, parameter in zip(types, wanted, strict=True):
        if type == parameter:
            continue
        if type.is_int() and parameter.is_int() and type.primitive_bitwidth == parameter.primitive_bitwidth:
            return f" Take the same bits as the other type with .to(tl.{parameter.codegen_name()}, bitcast=True)."
        if not type.is_ptr():
            return f" Convert it with .to(tl.{parameter.codegen_name()})."
    return ""


def _rule(function: Extern) -> Callable[..., Tensor]:
    """The semantic function of one of them: it takes what its stub says."""

    def rule(ctx: Context, *args: Value, **kwargs: Value) -> Tensor:
        try:
            bound = function.signature.bind(*args, **kwargs)
        except TypeError as error:
            names = ", ".join(function.signature.parameters)
            raise ctx.error(f"libdevice.{function.__name__}: {error}. Its parameters are ({names}).") from None
        return call(ctx, function, *bound.args)

    return rule


RULES = {function: _rule(function) for function in vars(libdevice).values() if isinstance(function, Extern)}
