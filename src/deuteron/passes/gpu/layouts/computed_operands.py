"""Operands of dots that threads compute of what they load from shared memory, without storing it there again.

    %w = "ttg.local_load"(%words)                 8 bits an element
    %x = "arith.sitofp"(%w), then a product ...   elementwise, or of another shape
    %d = "tt.dot"(%a, %x, %c)

What mma.sync sums over K may come in any order, as long as that of both operands is the same. So a thread that has two
neighbours of 16 bits in a word may as well have four along K, which are one word of 8 bits where they were loaded:

    neighbours_along_k(%d)      4
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import Operation, OpResult, SSAValue

from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.tt.shape import JoinOp
from deuteron.ir.ttg.inference import is_elementwise, is_flexible, operand_layouts
from deuteron.ir.ttg.layout import layout_of
from deuteron.ir.ttg.shared import LocalLoadOp
from deuteron.ir.types import bit_width_of, byte_width_of, is_tile, num_bytes_of, num_elements_of, shape_of
from deuteron.layout.linear import OFFSET, REGISTER, LinearLayout, dim_names, log2
from deuteron.machine.gpu import REGISTER_BYTES

# A thread reads 16 bytes at once.
MOST_NEIGHBOURS = 8
# What is computed more than once where warps hold the same part of an operand.
_DEAR = ("math.", "tt.extern", "tt.precise", "arith.div")


@dataclass(frozen=True)
class ComputedOperand:
    """The loads of whole matrices that an operand is computed of, in the block of its dot, and what computes it."""

    loads: tuple[LoadOp | LocalLoadOp, ...]
    ops: frozenset[Operation]

    def is_narrower_than(self, operand: SSAValue) -> bool:
        """Whether fewer bytes are loaded than the operand has."""
        return sum(num_bytes_of(load.results[0].type) for load in self.loads) < num_bytes_of(operand.type)

    @staticmethod
    def of(dot: DotOp, index: int) -> ComputedOperand | None:
        """None where it is loaded as it is, or made of what is not loaded there."""
        ops, leaves = _chain(dot.operands[index])
        matrices = [leaf for leaf in dict.fromkeys(leaves) if _is_matrix(leaf)]
        loads = tuple(leaf.op for leaf in matrices if isinstance(leaf, OpResult) and _is_load(leaf.op))
        if not loads or not any(map(is_elementwise, ops)) or len(loads) < len(matrices):
            return None
        is_here = all(load.parent is dot.parent for load in loads)
        is_cheap = not any(op.name.startswith(_DEAR) for op in ops)
        is_own = all(use.operation in ops for load in loads for use in load.results[0].uses)
        return ComputedOperand(loads, frozenset(ops)) if is_here and is_cheap and is_own else None

    def is_only_for(self, dot: DotOp) -> bool:
        """Whether nothing else needs what is computed, so that it is not computed twice."""
        tiles = (op.results[0] for op in self.ops if is_elementwise(op) and _is_matrix(op.results[0]))
        return all(use.operation is dot or use.operation in self.ops for tile in tiles for use in tile.uses)


def _is_load(op: Operation) -> bool:
    return isinstance(op, LoadOp | LocalLoadOp)


def _is_matrix(value: SSAValue) -> bool:
    return len(shape_of(value.type)) >= 2 and all(extent > 1 for extent in shape_of(value.type)[-2:])


def _chain(value: SSAValue) -> tuple[set[Operation], list[SSAValue]]:
    """The flexible ops and joins that make a value, and what they start with."""
    ops: set[Operation] = set()
    leaves: list[SSAValue] = []
    pending = [value]
    while pending:
        value = pending.pop()
        op = value.op if isinstance(value, OpResult) else None
        if op is None or isinstance(op, LocalLoadOp) or not (is_flexible(op) or isinstance(op, JoinOp)):
            leaves.append(value)
        elif op not in ops:
            ops.add(op)
            pending += [operand for operand in op.operands if is_tile(operand.type)]
    return ops, leaves


def k_axis_of(dot: DotOp, index: int, load: LoadOp | LocalLoadOp) -> int | None:
    """The dimension of what is loaded in which neighbours along K are neighbours, or the same; None where all are."""
    value = dot.operands[index]
    shape = shape_of(value.type)
    axis = len(shape) - (1 if index == 0 else 2)
    along_k = [tuple(1 << bit if at == axis else 0 for at in range(len(shape))) for bit in range(log2(shape[axis]))]
    layout = LinearLayout.make({REGISTER: along_k}, dict(zip(dim_names(len(shape)), shape, strict=True)))
    while value is not load.results[0]:
        op = value.op
        source = next(at for at, operand in enumerate(op.operands) if _comes_from(operand, load))
        layout, value = operand_layouts(op, layout)[source], op.operands[source]
    moving = next((basis for basis in layout.of(REGISTER) if any(basis)), None)
    return None if moving is None else next(at for at, entry in enumerate(moving) if entry)


def _comes_from(value: SSAValue, load: Operation) -> bool:
    return load.results[0] in (value, *_chain(value)[1])


def neighbours_along_k(dot: DotOp) -> int:
    """How many neighbours along K each thread holds of both operands of a dot by mma.sync."""
    least = max(8 * REGISTER_BYTES // bit_width_of(dot.a.type), 1)
    wanted = [count for index in range(2) for count in _wanted(dot, index)]
    if not wanted or not all(_reads_along_k(dot, index) for index in range(2)):
        return least
    depth = shape_of(dot.a.type)[-1]
    return max(least, min(max(wanted), depth // 4))


def _wanted(dot: DotOp, index: int) -> Iterator[int]:
    """Of each load that an operand is computed of: the elements of the operand along K that one word becomes."""
    computed = ComputedOperand.of(dot, index)
    size = num_elements_of(dot.operands[index].type)
    for load in computed.loads if computed else ():
        loaded = load.results[0].type
        words = max(num_elements_of(loaded) * byte_width_of(loaded) // REGISTER_BYTES, 1)
        yield min(size // words // _expanded_across_k(dot, index, load), MOST_NEIGHBOURS)


def _expanded_across_k(dot: DotOp, index: int, load: LoadOp | LocalLoadOp) -> int:
    """How many rows or columns of an operand one of what is loaded becomes, as where words hold neighbours along N."""
    shape, axis = shape_of(load.results[0].type), k_axis_of(dot, index, load)
    across = num_elements_of(load.results[0].type) // (1 if axis is None else shape[axis])
    operand = num_elements_of(dot.operands[index].type) // shape_of(dot.a.type)[-1]
    return max(operand // across, 1)


def _reads_along_k(dot: DotOp, index: int) -> bool:
    """Whether what an operand is loaded from has neighbours along K, or is read in words anyway."""
    ops, leaves = _chain(dot.operands[index])
    loads = [leaf.op for leaf in leaves if _is_matrix(leaf) and isinstance(leaf, OpResult)]
    if not loads or len(loads) < sum(map(_is_matrix, leaves)):
        return False
    return all(isinstance(load, LocalLoadOp) and _is_read_along_k(dot, index, load) for load in loads)


def _is_read_along_k(dot: DotOp, index: int, load: LocalLoadOp) -> bool:
    if byte_width_of(load.results[0].type) >= REGISTER_BYTES:
        return True
    axis = k_axis_of(dot, index, load)
    return axis is not None and layout_of(load.operands[0].type).of(OFFSET)[0].index(1) == axis
