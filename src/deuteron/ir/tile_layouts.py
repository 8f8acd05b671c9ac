"""What must hold of the layouts of an op's operands and results in ttgir.

    %s = "tt.scan"(%x) ...        one layout for both
    %r = "tt.reduce"(%x) ...      that of %x without the axis, or with registers shared out over lanes
    %j = "tt.join"(%x, %y)        each thread has, of %x and %y, what it has of %j
    %b = "ttg.local_alloc"()      each element has one place

Every tile has a layout, for as many warps as execute the op, that reaches each of its elements. What dots need is in
dot_layouts.py. Accesses to shared memory, and conversions, go from any layout to any.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.dot_layouts import check_dot, check_warp_group_dot
from deuteron.ir.slice_indices import check_slice_index
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.indexing import GatherOp, HistogramOp
from deuteron.ir.tt.reduce import ReduceOp
from deuteron.ir.tt.shape import CatOp, JoinOp, SplitOp
from deuteron.ir.ttg.inference import is_elementwise, is_flexible, operand_layouts
from deuteron.ir.ttg.layout import LinearEncodingAttr, MemDescType, layout_of
from deuteron.ir.ttg.memdesc_subslice import MemDescSliceOp
from deuteron.ir.ttg.private import PrivateLoadOp, PrivateStoreOp, PrivateViewOp
from deuteron.ir.ttg.reduced import scattered_lanes
from deuteron.ir.ttg.shared import LocalAllocOp
from deuteron.ir.ttg.views import is_view
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp
from deuteron.ir.types import is_tile, shape_of
from deuteron.layout import f2
from deuteron.layout.distributed import HARDWARE
from deuteron.layout.linear import BLOCK, LANE, REGISTER, WARP, Basis, LinearLayout, log2

ONE_LAYOUT = frozenset(
    {
        "tt.load",
        "tt.store",
        "tt.atomic_rmw",
        "tt.atomic_cas",
        "tt.atomic_load",
        "tt.atomic_store",
        "ttg.async_copy_global_to_local",
        "tt.scan",
        "tt.map_elementwise",
        "tt.elementwise_inline_asm",
    }
)


def check_layouts(op: Operation, lanes: int, num_warps: int) -> None:
    """Raise VerifyException where an op, which so many warps of so many lanes run, has other layouts than it needs."""
    _check_buffers(op)
    tiles = [value for value in (*op.operands, *op.results) if is_tile(value.type)]
    for value in tiles:
        _check_layout(value.type, lanes, num_warps)
    if is_flexible(op):
        _check_operands(op, operand_layouts(op, layout_of(op.results[0].type)))
    elif op.name in ONE_LAYOUT or is_elementwise(op):
        _check_same(op, tiles)
    elif type(op) in _CHECKS:
        _CHECKS[type(op)](op)


def _check_same(op: Operation, tiles: Sequence[SSAValue]) -> None:
    for value in tiles[1:]:
        _check_is(op, value, layout_of(tiles[0].type))


def _check_operands(op: Operation, needed: list[LinearLayout | None]) -> None:
    for operand, layout in zip(op.operands, needed, strict=True):
        if layout is not None and is_tile(operand.type):
            _check_is(op, operand, layout)


def _check_is(op: Operation, value: SSAValue, needed: LinearLayout) -> None:
    if layout_of(value.type) != needed:
        kind = "a result" if value in op.results else "an operand"
        raise VerifyException(f"{kind} of {op.name} is {value.type}, the op needs the layout {needed.bases}")


def _check_layout(type: Attribute, lanes: int, num_warps: int) -> None:
    if not isinstance(type, TensorType) or not isinstance(type.encoding, LinearEncodingAttr):
        raise VerifyException(f"{type} has no layout")
    layout = type.encoding.data
    if layout.in_names != HARDWARE or layout.shape != shape_of(type) or not layout.is_surjective:
        raise VerifyException(f"the layout of {type} does not reach every element")
    if layout.in_bits(WARP) != log2(num_warps):
        raise VerifyException(f"the layout of {type} is not for {num_warps} warps")
    if layout.in_bits(LANE) != log2(lanes):
        raise VerifyException(f"the layout of {type} is not for warps of {lanes} threads")


def _check_buffers(op: Operation) -> None:
    """Which buffer an op accesses is read off what made its operand: nothing may be one of several."""
    arguments = [argument for region in op.regions for block in region.blocks for argument in block.args]
    found = next((value for value in (*op.results, *arguments) if isinstance(value.type, MemDescType)), None)
    if found is None:
        return
    if op.regions or not (isinstance(op, LocalAllocOp) or is_view(op)):
        raise VerifyException(
            f"{op.name} gives {found.type}, which may be one of several buffers. Choose between the indices of "
            f"ttg.memdesc_index."
        )
    layout = layout_of(found.type)
    if isinstance(op, LocalAllocOp) and not (layout.is_surjective and layout.is_injective):
        raise VerifyException(f"the layout of {found.type} does not give each element one place")


def _check_reduce(op: ReduceOp) -> None:
    _check_same(op, op.srcs)
    if scattered_lanes(op) is None:
        raise VerifyException(
            "the result of tt.reduce has another layout than the slice of its operand's, whole or shared out"
        )


def _check_gather(op: GatherOp) -> None:
    _check_is(op, op.result, layout_of(op.indices.type))


def _check_histogram(op: HistogramOp) -> None:
    if op.mask is not None:
        _check_is(op, op.mask, layout_of(op.src.type))


def _check_join(op: JoinOp) -> None:
    for operand in (op.lhs, op.rhs):
        _check_picks(op, op.result, operand, lambda basis: basis[:-1])
    if any(basis[-1] for basis in _of_threads(layout_of(op.result.type))):
        raise VerifyException(f"{op.name}: threads of {op.result.type} have one half each, not both")


def _check_split(op: SplitOp) -> None:
    """Each thread has both halves, of what it has of the results."""
    source = layout_of(op.src.type)
    for result in (op.lhs, op.rhs):
        if is_tile(result.type):
            _check_picks(op, result, op.src, lambda basis: (*basis, 0))
    halves = f2.Span(source.columns(REGISTER)).reduce(1)[0]  # the last dimension is the lowest bit
    if halves or any(basis[-1] for basis in _of_threads(source)):
        raise VerifyException(f"{op.name}: threads of {op.src.type} have one half each, not both")


def _check_cat(op: CatOp) -> None:
    (extent,) = shape_of(op.lhs.type)
    for operand in (op.lhs, op.rhs):
        _check_picks(op, op.result, operand, lambda basis: (basis[0] % extent,))
    if any(basis[0] >= extent for basis in _of_threads(layout_of(op.result.type))):
        raise VerifyException(f"{op.name}: threads of {op.result.type} have one half each, not both")


def _check_picks(op: Operation, result: SSAValue, source: SSAValue, place: Callable[[Basis], Basis]) -> None:
    """Whether each thread has, of the source, what it needs for its elements of the result: at `place` of these."""
    made, held = layout_of(result.type), layout_of(source.type)
    registers = f2.Span(held.columns(REGISTER))
    is_there = not any(registers.reduce(held.flatten_basis(place(basis)))[0] for basis in made.of(REGISTER))
    if not is_there or list(map(place, _of_threads(made))) != list(_of_threads(held)):
        raise VerifyException(f"{op.name}: threads lack of {source.type} what they need for {result.type}")


def _of_threads(layout: LinearLayout) -> list[Basis]:
    return [basis for name in (LANE, WARP, BLOCK) for basis in layout.of(name)]


_CHECKS: dict[type[Operation], Callable] = {
    ReduceOp: _check_reduce,
    GatherOp: _check_gather,
    HistogramOp: _check_histogram,
    JoinOp: _check_join,
    SplitOp: _check_split,
    CatOp: _check_cat,
    DotOp: check_dot,
    WarpGroupDotOp: check_warp_group_dot,
    MemDescSliceOp: check_slice_index,
    PrivateLoadOp: check_slice_index,
    PrivateStoreOp: check_slice_index,
    PrivateViewOp: check_slice_index,
}
