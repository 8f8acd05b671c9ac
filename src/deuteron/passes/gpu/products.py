"""Which instruction multiplies, and how the warps share its result.

wgmma      sm_90, warps in fours, at least 64 rows: fp16, bf16, tf32, fp8, int8
mma.sync   at least 16 rows: fp16, bf16, tf32, int8; fp8 on those GPUs that have it and no wgmma
else       multiply-adds in each thread, along K in slices of which the operands do not fill the registers
"""

from __future__ import annotations

from xdsl.ir import Attribute

from deuteron.ir.tt.dot import DotOp, InputPrecision
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp, tile_of
from deuteron.ir.types import bf16, bit_width_of, element_type_of, f8e4m3, f8e5m2, f16, f32, i8, i32, shape_of
from deuteron.layout.multiprocessor import WARPGROUP
from deuteron.layout.wgmma import M

HOPPER = "cuda:90"
FP8 = (f8e4m3, f8e5m2)
FP8_MMA_TARGETS = ("cuda:89", "cuda:120")  # Hopper takes fp8 in mma.sync, too, but multiplies it as f16
STEP_BITS = 256  # along K, of every instruction


def uses_wgmma(op: DotOp, num_warps: int, target: str) -> bool:
    """Whether warpgroups multiply: the types are theirs, and the tile large enough for all of them."""
    return target == HOPPER and obstacle_to_wgmma(op, num_warps, target) is None


def obstacle_to_wgmma(op: DotOp, num_warps: int, target: str) -> str | None:
    """What keeps a product from wgmma, in words; None where nothing does, or the target does not have it."""
    if target != HOPPER:
        return None
    if num_warps % WARPGROUP:
        return f"it takes warps in fours, there are {num_warps}"
    if len(shape_of(op.result.type)) != 2:
        return "it takes tiles of two dimensions"
    m, n = shape_of(op.result.type)
    if m < M:
        return f"it takes {M} rows, there are {m}"
    return _type_obstacle(op, _has_wgmma_types(op)) or _column_obstacle(n, warp_group_warps((m, n), num_warps)[1])


def _type_obstacle(op: DotOp, has_types: bool) -> str | None:
    element, depth = element_type_of(op.a.type), shape_of(op.a.type)[-1]
    if not has_types and element == f32:
        precision = InputPrecision(op.input_precision.value.data).name.lower()
        return f"it does not multiply f32 with input_precision '{precision}'"
    if not has_types:
        return f"it does not multiply {element} into {element_type_of(op.c.type)}"
    if depth * bit_width_of(op.a.type) < STEP_BITS:
        return f"it takes a K of {STEP_BITS // bit_width_of(op.a.type)}, it is {depth}"
    return None


def _column_obstacle(n: int, warps: int) -> str | None:
    return f"it takes {8 * warps} columns, there are {n}" if n < 8 * warps else None


def _has_wgmma_types(op: DotOp) -> bool:
    a, b, c = (element_type_of(value.type) for value in (op.a, op.b, op.c))
    if a in FP8 and b in FP8:
        return c in (f32, f16)
    if a == f32:
        return op.input_precision.value.data == InputPrecision.TF32
    return a == b and (a, c) in ((f16, f32), (f16, f16), (bf16, f32), (bf16, bf16), (i8, i32))


def warp_group_warps(shape: tuple[int, ...], num_warps: int) -> list[int]:
    """Warps along M and N: along M as long as each warpgroup has 64 rows, so that chained products keep their rows."""
    rows = min(num_warps, WARPGROUP * (shape[0] // M))
    return [rows, num_warps // rows]


def warps_of(op: WarpGroupDotOp, num_warps: int) -> list[int]:
    return warp_group_warps(shape_of(op.result.type), num_warps)


def uses_mma_v2(op: DotOp) -> bool:
    """Whether a product is one of those of mma.sync, and its tile large enough for it."""
    return obstacle_to_mma_v2(op) is None


def obstacle_to_mma_v2(op: DotOp) -> str | None:
    """What keeps a product from mma.sync, in words; None where nothing does."""
    m, n = shape_of(op.result.type)[-2:]
    if m < 16 or n < 8:
        return f"it takes 16 rows and 8 columns, there are {m} and {n}"
    return _type_obstacle(op, _has_mma_v2_types(op))


def _has_mma_v2_types(op: DotOp) -> bool:
    element = element_type_of(op.a.type)
    if element == f32:
        return op.input_precision.value.data == InputPrecision.TF32
    return element in (f16, bf16, i8, *FP8)


def must_be_k_major(operand: Attribute) -> bool:
    """Whether wgmma takes an operand only with its elements along K as neighbours: all but 16-bit ones."""
    return bit_width_of(element_type_of(tile_of(operand))) != 16
