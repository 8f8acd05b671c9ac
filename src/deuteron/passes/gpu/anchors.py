"""The layouts of the ops that have one of their own: memory accesses, matrix products, reductions.

memory     lanes along the dimension in which the pointers are contiguous, each with as many neighbours as
           contiguity, alignment and 128 bits allow, but no more than keep all threads busy
dot        fp16, bf16, tf32, int8: mma.sync; fp64 and fp32 with `ieee` precision: a blocked layout, by FMA
reduction  that of its operand
"""

from __future__ import annotations

from xdsl.ir import Attribute, SSAValue

from deuteron.analysis.axis_info import AxisInfoAnalysis
from deuteron.ir.tt.dot import DotOp, InputPrecision
from deuteron.ir.types import bf16, bit_width_of, byte_width_of, element_type_of, f16, f32, i8, pointee_of, shape_of
from deuteron.layout.distributed import HARDWARE, blocked, default_blocked, mma_v2_accumulator, mma_v2_operand
from deuteron.layout.linear import REGISTER, LinearLayout

VECTOR_BYTES = 16


def default_layout(type: Attribute, num_warps: int) -> LinearLayout:
    """The layout of a tile that nothing else decides."""
    return default_blocked(shape_of(type), num_warps)


def memory_layout(pointer: SSAValue, info: AxisInfoAnalysis, num_warps: int) -> LinearLayout:
    """The coalesced layout of an access through a tile of pointers."""
    shape, axis_info = shape_of(pointer.type), info.of(pointer)
    axes = range(len(shape))
    order = sorted(axes, key=lambda axis: (-min(axis_info.contiguity[axis], shape[axis]), -axis))
    size = byte_width_of(pointee_of(pointer.type))
    fast = order[0]
    per_thread = max(_num_elements(shape) // (32 * num_warps), 1)
    aligned = max(axis_info.divisibility[fast] // size, 1)
    vector = min(axis_info.contiguity[fast], aligned, VECTOR_BYTES // size, per_thread, shape[fast])
    return default_blocked(shape, num_warps, order, vector)


def _num_elements(shape: tuple[int, ...]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


def uses_mma_v2(op: DotOp) -> bool:
    """Whether a product is one of those of mma.sync, and its tile large enough for it."""
    element = element_type_of(op.a.type)
    m, k, n = (*shape_of(op.a.type)[-2:], shape_of(op.b.type)[-1])
    if m < 16 or n < 8 or k * bit_width_of(element) < 256:
        return False
    if element == f32:
        return op.input_precision.value.data == InputPrecision.TF32
    return element in (f16, bf16, i8)


def dot_layouts(op: DotOp, num_warps: int) -> tuple[LinearLayout, LinearLayout, LinearLayout]:
    """The layouts of a, b and the accumulator."""
    shape = shape_of(op.result.type)
    if uses_mma_v2(op):
        along_m = is_chained(op) and shape[-2] >= 16 * num_warps
        warps = [*[1] * (len(shape) - 2), num_warps, 1] if along_m else _mma_warps(shape, num_warps)
        width = bit_width_of(op.a.type)
        return (
            mma_v2_operand(shape_of(op.a.type), warps, 0, width),
            mma_v2_operand(shape_of(op.b.type), warps, 1, width),
            mma_v2_accumulator(shape, warps),
        )
    accumulator = _square_blocked(shape, num_warps)
    return fma_operand(accumulator, op.a.type, 0), fma_operand(accumulator, op.b.type, 1), accumulator


def _square_blocked(shape: tuple[int, ...], num_warps: int) -> LinearLayout:
    """Blocks of up to 4x4 in each thread, so that each operand element is used several times."""
    outer = [1] * (len(shape) - 2)
    size = [*outer, min(4, shape[-2]), min(4, shape[-1])]
    lanes_n = min(8, max(shape[-1] // size[-1], 1))
    return blocked(
        shape, size, [*outer, 32 // lanes_n, lanes_n], [*outer, num_warps, 1], list(reversed(range(len(shape))))
    )


def fma_operand(accumulator: LinearLayout, operand: Attribute, index: int) -> LinearLayout:
    """Each thread holds the whole row of a, or column of b, of each element of its accumulator."""
    shape = shape_of(operand)
    along_k = len(shape) - 1 if index == 0 else len(shape) - 2
    outs = {name: 1 if axis == along_k else size for axis, (name, size) in enumerate(accumulator.outs)}
    kept = accumulator.map_columns(
        outs, lambda basis: tuple(0 if axis == along_k else entry for axis, entry in enumerate(basis))
    ).without_replicated_registers()
    whole = LinearLayout.identity(shape[along_k], REGISTER, f"dim{along_k}") * kept
    return whole.with_outs(accumulator.out_names).with_ins(HARDWARE)


def is_chained(op: DotOp) -> bool:
    """Whether the product becomes an operand of another one, or takes one: each warp then keeps whole rows to itself."""
    made_from = op.parent_region().walk() if op.parent_region() else ()
    return _reaches_operand(op.result) or any(
        isinstance(other, DotOp) and other is not op and _reaches_operand(other.result, op) for other in made_from
    )


def _reaches_operand(value: SSAValue, target: DotOp | None = None) -> bool:
    """Whether a value reaches operand a or b of a product (of `target`) through ops without regions."""
    seen, pending = {value}, [value]
    while pending:
        for use in pending.pop().uses:
            user = use.operation
            if isinstance(user, DotOp):
                if use.index < 2 and target in (None, user):
                    return True
                continue
            fresh = [result for result in user.results if result not in seen and not user.regions]
            seen.update(fresh)
            pending.extend(fresh)
    return False


def _mma_warps(shape: tuple[int, ...], num_warps: int) -> list[int]:
    """Warps along M and N, doubled where a warp's part is longer, so that it is as square as the tile allows."""
    warps = [1] * len(shape)
    while warps[-2] * warps[-1] < num_warps:
        rows, columns = shape[-2] // warps[-2], shape[-1] // warps[-1]
        along_m = (rows >= columns and rows > 16) or columns <= 8
        warps[-2 if along_m else -1] *= 2
    return warps
