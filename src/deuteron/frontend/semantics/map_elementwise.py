"""tl.map_elementwise: tt.map_elementwise, with the function inlined into its region.

tl.map_elementwise(f, x, y, pack=2)      ^bb0(%x0, %x1, %y0, %y1): f's body; returns %r0, %r1
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, Region

from deuteron import language as tl
from deuteron.errors import CompilationError
from deuteron.frontend.context import Context
from deuteron.frontend.semantics.broadcast import broadcast_operands
from deuteron.frontend.semantics.constant import as_tensor
from deuteron.frontend.semantics.shapes import is_integer
from deuteron.frontend.semantics.types import ir_type, type_of
from deuteron.frontend.values import Tensor, Value, describe, is_number
from deuteron.ir.effects import READ, effects_inside
from deuteron.ir.location import from_attribute
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.map_elementwise import MapElementwiseOp, MapElementwiseReturnOp
from deuteron.ir.types import is_tile
from deuteron.language.functions.function import Function
from deuteron.language.types import dtype


def map_elementwise(ctx: Context, scalar_fn: Value, *args: Value, pack: int = 1) -> Tensor | tuple[Tensor, ...]:
    if not isinstance(scalar_fn, Function):
        raise ctx.error(f"The function of tl.map_elementwise is a @jit function, got {describe(scalar_fn)}.")
    if not is_integer(pack) or pack < 1:
        raise ctx.error(f"pack of tl.map_elementwise is how many elements a call takes, got {describe(pack)}. Use 1.")
    tiles = broadcast_operands(ctx, *(as_tensor(ctx, arg, "What tl.map_elementwise is given") for arg in args or (0,)))
    if not tiles[0].shape:
        raise ctx.error("tl.map_elementwise takes at least one tile. Call the function itself on scalars.")
    block = Block(arg_types=[ir_type(tile.dtype) for tile in tiles for _ in range(pack)])
    scalars = [Tensor(argument, tile.dtype) for argument, tile in _paired(block, tiles, pack)]
    with ctx.builder.at(block):
        returned = ctx.call_function(scalar_fn, scalars)
        values = _returned(ctx, scalar_fn, returned)
        ctx.builder.insert(MapElementwiseReturnOp([value.handle for value in values]))
    types = _result_types(ctx, scalar_fn, values, pack)
    wide = [type_of(type, tiles[0].shape) for type in types]
    op = MapElementwiseOp([tile.handle for tile in tiles], [ir_type(type) for type in wide], pack, Region(block))
    _check_region(scalar_fn, op)
    ctx.builder.insert(op)
    results = tuple(Tensor(handle, type) for handle, type in zip(op.res, wide, strict=True))
    return results if isinstance(returned, tuple) else results[0]


def _paired(block: Block, tiles: list[Tensor], pack: int) -> list[tuple]:
    return list(zip(block.args, (tile for tile in tiles for _ in range(pack)), strict=True))


def _returned(ctx: Context, function: Function, returned: Value) -> list[Tensor]:
    values = returned if isinstance(returned, tuple) else (returned,)
    for value in values:
        is_scalar = isinstance(value, Tensor) and not value.shape
        if not is_scalar and not is_number(value):
            raise ctx.error(
                f"'{function.__name__}' returned {describe(returned)} for tl.map_elementwise, which takes scalars."
            )
    return [as_tensor(ctx, value, "A result of tl.map_elementwise") for value in values]


def _result_types(ctx: Context, function: Function, values: list[Tensor], pack: int) -> list[dtype]:
    """The type of each result, of which there are `pack` neighbours."""
    groups = [values[begin : begin + pack] for begin in range(0, len(values), pack)]
    if not values or any(len({value.dtype for value in group}) != 1 or len(group) != pack for group in groups):
        shown = describe(tuple(values))
        raise ctx.error(
            f"'{function.__name__}' returned {shown} for tl.map_elementwise with pack={pack}, which takes "
            f"{pack} scalar{'s' * (pack > 1)} of one type for each result."
        )
    return [group[0].dtype for group in groups]


def _check_region(function: Function, op: MapElementwiseOp) -> None:
    """Raise CompilationError, at its place, for what cannot be done for one element of many."""
    for inner in nested_ops(op):
        if inner is not op and any(is_tile(result.type) for result in inner.results):
            raise _refusal(inner, f"'{function.__name__}' makes a tile, and tl.map_elementwise gives it scalars")
    for inner, effect in effects_inside(op):
        if effect.kind is not READ and not isinstance(inner, scf.WhileOp):
            raise _refusal(inner, f"'{function.__name__}' does more than compute and load for tl.map_elementwise")


def _refusal(op: Operation, reason: str) -> CompilationError:
    return CompilationError(f"{reason}. Do it with whole tiles, outside of the function.", *from_attribute(op.location))


RULES = {tl.map_elementwise: map_elementwise}
