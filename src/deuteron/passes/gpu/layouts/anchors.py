"""The layouts of the ops that have one of their own: memory accesses, dots, reductions.

blocks     of tensor descriptors: as memory that is contiguous in the last dimension
memory     lanes along the dimension in which the pointers are contiguous, or are likely to be where that is known
           of none (likely_neighbours.py), each with as many neighbours as contiguity, alignment and 128 bits allow,
           but no more than keep all threads busy; warps along what is not reduced, and for which loops do not load
           the same; blocks, where shared memory takes them transposed
dot        that of the instruction that multiplies (see `dot_instructions`); by FMA: a blocked layout
reduction  that of its operand; of what is computed of numbers alone, whole rows in each thread, if they are enough
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdsl.dialects import scf
from xdsl.ir import Attribute, Operation, SSAValue, Use

from deuteron.analysis.addresses.access_vectors import MAX_BYTES
from deuteron.analysis.addresses.load_accesses import num_accesses
from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.analysis.axis.axis_info import AxisInfo
from deuteron.ir.forwarding import forwarded_from, forwarded_to
from deuteron.ir.reached import reached
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.ttg.layout import MemDescType, layout_of
from deuteron.ir.ttg.sliced_dot import SlicedDotOp
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp
from deuteron.ir.types import bit_width_of, byte_width_of, is_tile, pointee_of, shape_of
from deuteron.layout.distributed import (
    default_blocked,
    in_columns,
    multiply_add_operand,
    square_blocked,
    transposing_blocked,
)
from deuteron.layout.linear import OFFSET, LinearLayout
from deuteron.layout.wgmma import mma_v3_accumulator, mma_v3_operand
from deuteron.machine.gpu import REGISTER_BYTES, GPUConfig
from deuteron.machine.matrix import RegisterMatrixUnit
from deuteron.passes.gpu.dot_instructions import uses_mma, warps_of
from deuteron.passes.gpu.layouts.computed_operands import neighbours_along_k

AnyDot = DotOp | SlicedDotOp | WarpGroupDotOp
# Of a tile that is transposed on its way to shared memory. Where each reads one element, and rows begin anywhere, all
# read on: what eight lanes read then begins and ends within a sector.
LANES_APART = 4


def default_layout(type: Attribute, config: GPUConfig) -> LinearLayout:
    """The layout of a tile that nothing else decides."""
    return default_blocked(shape_of(type), config.num_warps, warp_size=config.machine.warp_size)


def reduced_layout(type: Attribute, axis: int, config: GPUConfig) -> LinearLayout:
    """The layout of a tile that is computed of numbers alone, and reduced: each thread has whole rows, if there are as
    many.
    """
    shape = shape_of(type)
    if _num_elements(shape) // shape[axis] < config.num_threads:
        return default_layout(type, config)
    fast = max(one for one in range(len(shape)) if one != axis)
    return in_columns(shape, config.num_warps, axis, fast, vector=1, warp_size=config.machine.warp_size)


def memory_layout(
    pointer: SSAValue,
    info: AxisInfoAnalysis,
    config: GPUConfig,
    stored_along: int | None = None,
    least_bytes: int = 0,
    is_gathered: bool = False,
    avoided: Sequence[Collection[int]] = (),
) -> LinearLayout:
    """The coalesced layout of an access through a tile of pointers, which may go on into shared memory, where its
    elements are neighbours along a dimension: if that is the other one, threads hold blocks that they can transpose.
    An access has `least_bytes` even if not all threads are busy then. Where it `is_gathered`, a load, each address is
    loaded once for the elements of a thread. Warps go last along dimensions that are `avoided`, the later in the list
    the worse.
    """
    shape, order = shape_of(pointer.type), _access_order(pointer, info)
    size = byte_width_of(pointee_of(pointer.type))
    fast = order[0]
    per_thread = max(_num_elements(shape) // config.num_threads, 1)
    busy = max(per_thread, least_bytes // size)
    vector = min(num_neighbours(pointer, fast, info), busy, shape[fast])
    if len(shape) == 2 and stored_along not in (None, fast):
        vector = min(vector, max(per_thread * size // REGISTER_BYTES, 1))
        depth = min(MAX_BYTES // size, per_thread // vector, shape[stored_along])
        apart = LANES_APART if vector > 1 else 1
        return transposing_blocked(shape, config.num_warps, fast, vector, depth, apart, config.machine.warp_size)
    held = min(MAX_BYTES // size, busy, shape[fast]) if is_gathered else vector
    if held > vector and _is_gathered_in_half(pointer, fast, held, vector, info):
        vector = held
    return default_blocked(shape, config.num_warps, order, vector, config.machine.warp_size, avoided)


def _is_gathered_in_half(pointer: SSAValue, axis: int, held: int, vector: int, info: AxisInfoAnalysis) -> bool:
    """Whether for so many neighbours in a thread half of the accesses are enough, or fewer, since their addresses are
    the same or in another order, as at `i // 2` and `i ^ 1`.
    """
    known = info.distances(pointer, axis, held)
    return known is not None and 2 * num_accesses(known, byte_width_of(pointee_of(pointer.type))) * vector <= held


def _access_order(pointer: SSAValue, info: AxisInfoAnalysis) -> list[int]:
    """Along which dimensions lanes go first: where no neighbours are known, along that where they are likely."""
    shape, known = shape_of(pointer.type), info.of(pointer)
    is_known = len(shape) < 2 or any(min(both) > 1 for both in zip(known.contiguity, shape, strict=True))
    return contiguous_order(known if is_known else info.likely.of(pointer), shape)


def block_layout(type: Attribute, config: GPUConfig) -> LinearLayout:
    """The layout of a block of a tensor that comes through shared memory: the widest accesses, row by row."""
    shape = shape_of(type)
    per_thread = max(_num_elements(shape) // config.num_threads, 1)
    vector = min(MAX_BYTES // byte_width_of(type), per_thread, shape[-1])
    order = list(reversed(range(len(shape))))
    return default_blocked(shape, config.num_warps, order, vector, config.machine.warp_size)


def stored_layout(type: MemDescType, config: GPUConfig) -> LinearLayout:
    """Of a tile that nothing else decides and that goes into shared memory: neighbours there are in a thread."""
    shape, offsets = shape_of(type.tile), layout_of(type).of(OFFSET)
    fast = next((axis for axis, extent in enumerate(offsets[0]) if extent), len(shape) - 1)
    order = sorted(range(len(shape)), key=lambda axis: (axis != fast, -axis))
    vector = min(MAX_BYTES // byte_width_of(type.tile), max(_num_elements(shape) // config.num_threads, 1), shape[fast])
    return default_blocked(shape, config.num_warps, order, vector, config.machine.warp_size)


def num_neighbours(pointer: SSAValue, axis: int, info: AxisInfoAnalysis) -> int:
    """How many elements that are neighbours along an axis one access may take."""
    axis_info, size = info.of(pointer), byte_width_of(pointee_of(pointer.type))
    return min(axis_info.contiguity[axis], max(axis_info.divisibility[axis] // size, 1), MAX_BYTES // size)


def contiguous_order(axis_info: AxisInfo, shape: tuple[int, ...]) -> list[int]:
    """The dimensions, those in which neighbours in memory are the most first."""
    return sorted(range(len(shape)), key=lambda axis: (-min(axis_info.contiguity[axis], shape[axis]), -axis))


def _num_elements(shape: tuple[int, ...]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


def dot_layouts(op: AnyDot, config: GPUConfig) -> tuple[LinearLayout | None, LinearLayout | None, LinearLayout]:
    """The layouts of a, b and the accumulator; None for what is in shared memory."""
    if isinstance(op, WarpGroupDotOp):
        return _warp_group_layouts(op, config.num_warps)
    if isinstance(op, DotOp) and config.machine.mma is not None and uses_mma(op, config.machine):
        return _mma_layouts(op, config.machine.mma, config.num_warps)
    accumulator = square_blocked(shape_of(op.result.type), config.num_warps, config.machine.warp_size)
    if isinstance(op, SlicedDotOp):
        return None, None, accumulator
    a, b = (multiply_add_operand(accumulator, shape_of(value.type), index) for index, value in enumerate((op.a, op.b)))
    return a, b, accumulator


def _mma_layouts(
    op: DotOp, unit: RegisterMatrixUnit, num_warps: int
) -> tuple[LinearLayout, LinearLayout, LinearLayout]:
    shape, width = shape_of(op.result.type), bit_width_of(op.a.type)
    along_m = is_chained(op) and shape[-2] >= unit.rows * num_warps
    warps = [*[1] * (len(shape) - 2), num_warps, 1] if along_m else mma_warps(shape, unit, num_warps)
    held = neighbours_along_k(op)
    a, b = (unit.operand(shape_of(value.type), warps, index, width, held) for index, value in enumerate((op.a, op.b)))
    return a, b, unit.accumulator(shape, warps)


def _warp_group_layouts(
    op: WarpGroupDotOp, num_warps: int
) -> tuple[LinearLayout | None, LinearLayout | None, LinearLayout]:
    warps, a = warps_of(op, num_warps), op.a.type
    in_registers = mma_v3_operand(shape_of(a), warps, bit_width_of(a)) if is_tile(a) else None
    return in_registers, None, mma_v3_accumulator(shape_of(op.result.type), warps)


def is_chained(op: AnyDot) -> bool:
    """Whether the dot becomes an operand of another one, or takes one: each warp then keeps its own rows."""
    return reaches_operand(op.result) or _takes_dot(op)


def _takes_dot(op: AnyDot) -> bool:
    """Whether operand a or b is made of what a dot of the same region gives, in the way of `reaches_operand`."""
    region = op.parent_region()
    dots = (value.owner for value in reached(op.operands[:2], _made_from) if isinstance(value.owner, AnyDot))
    return region is not None and any(dot is not op and region.is_ancestor(dot) for dot in dots)


def _made_from(value: SSAValue) -> Sequence[SSAValue]:
    """What an op without regions, or the ends of both branches, make a value of; a dot is where that ends."""
    op = value.owner
    if isinstance(op, AnyDot):
        return ()
    if isinstance(op, scf.IfOp):
        return forwarded_from(value)
    return op.operands if isinstance(op, Operation) and not op.regions else ()


def reaches_operand(value: SSAValue) -> bool:
    """Whether a value reaches operand a or b of a dot through branches and ops without regions."""
    made = reached([value], lambda one: [result for use in one.uses for result in _results_from(use)])
    return any(isinstance(use.operation, AnyDot) and use.index < 2 for one in made for use in one.uses)


def _results_from(use: Use) -> Sequence[SSAValue]:
    """What an op without regions, or the end of a branch, makes of one of its operands; a dot is where that ends."""
    user = use.operation
    if isinstance(user, AnyDot):
        return []
    if isinstance(user, scf.YieldOp) and isinstance(user.parent_op(), scf.IfOp):
        return forwarded_to(use)
    return [] if user.regions else user.results


def mma_warps(shape: tuple[int, ...], unit: RegisterMatrixUnit, num_warps: int) -> list[int]:
    """Warps along M and N, doubled where a warp's part is longer, so that it is as square as the tile allows."""
    warps = [1] * len(shape)
    while warps[-2] * warps[-1] < num_warps:
        rows, columns = shape[-2] // warps[-2], shape[-1] // warps[-1]
        along_m = (rows >= columns and rows > unit.rows) or columns <= unit.columns
        warps[-2 if along_m else -1] *= 2
    return warps
