"""Which instruction multiplies, and how the warps share its result.

wgmma      where the machine has it: warps in fours, at least 64 rows: fp16, bf16, tf32, fp8, int8
mma.sync   where it has that: at least 16 rows, and 2 columns (8 of tf32): fp16, bf16, tf32, int8, and fp8 if it
           multiplies it faster than fp16
else       multiply-adds in each thread, along K in slices of which the operands do not fill the registers

Operands of wgmma have to have room in shared memory, both of a dot.
"""

from __future__ import annotations

from xdsl.ir import Attribute

from deuteron.ir.nested import nested_ops
from deuteron.ir.remarks import Kind, remark
from deuteron.ir.tt.dot import DotOp, InputPrecision
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.ttg.sliced_dot import SlicedDotOp
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp, tile_of
from deuteron.ir.types import bit_width_of, byte_width_of, element_type_of, f32, num_elements_of, shape_of
from deuteron.layout.wgmma import WARPGROUP, M
from deuteron.machine.gpu import GPU, GPUConfig
from deuteron.machine.matrix import DotTypes, MatrixUnit, RegisterMatrixUnit
from deuteron.passes.gpu.layouts.computed_operands import ComputedOperand

AnyThreadDot = DotOp | SlicedDotOp
AnyDot = AnyThreadDot | WarpGroupDotOp
# With so many, to compute an operand takes longer than to multiply it; mma.sync takes K in the order in which threads
# read words of what it is computed of, wgmma two neighbours of 16 bits. Not measured.
FEW_COLUMNS = 16
# Of the shared memory of a CTA, for both operands of a dot; larger ones are converted in parts. Latent attention of 64
# queries of 512 and 64 keys has room: by mma.sync, with all in registers, it took four times as long as Triton's.
MAX_SHARE = 3 / 5


def uses_wgmma(op: DotOp, config: GPUConfig) -> bool:
    """Whether warpgroups multiply: the types are theirs, and the tile large enough for all of them."""
    return config.machine.wgmma is not None and obstacle_to_wgmma(op, config) is None


def obstacle_to_wgmma(op: AnyThreadDot, config: GPUConfig) -> str | None:
    """What keeps a dot from wgmma, in words; None where nothing does, or the machine does not have it."""
    unit, num_warps = config.machine.wgmma, config.num_warps
    if unit is None:
        return None
    if num_warps % unit.warps:
        return f"it takes {unit.warps} warps or a multiple, there are {num_warps}"
    if len(shape_of(op.result.type)) != 2:
        return "it takes tiles of two dimensions"
    m, n = shape_of(op.result.type)
    if m < unit.rows:
        return f"it takes {unit.rows} rows, there are {m}"
    columns = unit.columns * warp_group_warps((m, n), num_warps)[1]
    if n < columns:
        return f"it takes {columns} columns, there are {n}"
    return type_obstacle(op, unit) or _room_obstacle(op, config.machine) or _computing_obstacle(op, config)


def _room_obstacle(op: AnyThreadDot, machine: GPU) -> str | None:
    if has_room(op, machine):
        return None
    return f"its operands take {_operand_bytes(op)} bytes, more than {MAX_SHARE:.0%} of shared memory"


def has_room(op: AnyThreadDot, machine: GPU) -> bool:
    """Whether both operands may be in shared memory."""
    shared = machine.shared
    return shared.for_operands and _operand_bytes(op) <= MAX_SHARE * shared.max_bytes


def _operand_bytes(op: AnyThreadDot) -> int:
    tiles = [tile_of(value.type) for value in (op.a, op.b)]
    return sum(num_elements_of(tile) * byte_width_of(tile) for tile in tiles)


def _computing_obstacle(op: AnyThreadDot, config: GPUConfig) -> str | None:
    columns = shape_of(op.result.type)[-1]
    if not isinstance(op, DotOp) or config.machine.mma is None or columns > FEW_COLUMNS:
        return None
    computed = ComputedOperand.of(op, 0)
    if computed is None or not computed.is_narrower_than(op.a):
        return None
    return f"its first operand is computed of fewer bits, which takes longer than to multiply {columns} columns"


def type_obstacle(op: AnyDot, unit: MatrixUnit) -> str | None:
    """Why the unit does not multiply these types, to that precision, in words."""
    a, has_types = tile_of(op.a.type), unit.takes(*_types(op))
    element, depth = element_type_of(a), shape_of(a)[-1]
    if not has_types and element == f32:
        precision = InputPrecision(op.input_precision.value.data).name.lower()
        return f"it does not multiply f32 with input_precision '{precision}'"
    if not has_types:
        return f"it does not multiply {element} into {element_type_of(op.c.type)}"
    if depth * bit_width_of(a) < unit.depth_bits:
        return f"it takes a K of {unit.depth_bits // bit_width_of(a)}, it is {depth}"
    return None


def _types(op: AnyDot) -> DotTypes:
    """As `MatrixUnit` names them."""
    a, b, c = (element_type_of(tile_of(value.type)) for value in (op.a, op.b, op.c))
    if a == b == f32 and op.input_precision.value.data in (InputPrecision.TF32, InputPrecision.TF32_RTZ):
        return "tf32", "tf32", str(c)
    return str(a), str(b), str(c)


def warp_group_warps(shape: tuple[int, ...], num_warps: int) -> list[int]:
    """Warps along M and N: along M as long as each warpgroup has 64 rows, so that chained dots keep their rows."""
    rows = min(num_warps, WARPGROUP * (shape[0] // M))
    return [rows, num_warps // rows]


def warps_of(op: WarpGroupDotOp, num_warps: int) -> list[int]:
    return warp_group_warps(shape_of(op.result.type), num_warps)


def uses_mma(op: DotOp, machine: GPU) -> bool:
    """Whether a warp's instructions multiply: the types are theirs, and the tile large enough."""
    return machine.mma is not None and obstacle_to_mma(op, machine) is None


def obstacle_to_mma(op: AnyThreadDot, machine: GPU) -> str | None:
    """What keeps a dot from mma.sync, in words; None where nothing does, or the machine does not have it."""
    unit = machine.mma
    if unit is None:
        return None
    m, n = shape_of(op.result.type)[-2:]
    columns = fewest_columns(op, unit)
    if m < unit.rows or n < columns:
        return f"it takes {unit.rows} rows and {columns} columns, there are {m} and {n}"
    return type_obstacle(op, unit)


def fewest_columns(op: AnyThreadDot, unit: RegisterMatrixUnit) -> int:
    """Two, multiplied several times over by the lanes of eight, are faster than by threads one by one; but f32 is not
    rounded to tf32 for it.
    """
    return unit.fewest_columns if bit_width_of(tile_of(op.a.type)) <= 16 else unit.columns


def remark_dots(func: FuncOp, config: GPUConfig) -> None:
    """Say of the dots that are left to single warps, or threads, why."""
    for op in nested_ops(func):
        if isinstance(op, AnyThreadDot):
            obstacles = {Kind.NO_MMA: obstacle_to_mma(op, config.machine), Kind.NO_WGMMA: obstacle_to_wgmma(op, config)}
            for kind, obstacle in obstacles.items():
                if obstacle is not None:
                    remark(op, kind, obstacle)


def must_be_k_major(operand: Attribute) -> bool:
    """Whether wgmma takes an operand only with its elements along K as neighbours: all but 16-bit ones."""
    return bit_width_of(element_type_of(tile_of(operand))) != 16
