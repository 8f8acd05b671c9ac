"""Which accesses through tensor descriptors TMA can do, so that nothing has to be known at run time but the arguments.

    base, shape, strides       expressions of the kernel's arguments: the launch encodes the map
    the innermost offset       a multiple of 16 bytes, as far as is known: what is not stops the GPU (error 715)
    the innermost size         of what is stored to, too: a store writes whole chunks of 16 bytes, also past the end
    rows at offsets            need compute capability 10.0
    padding with NaN           of all floats but fp8, which TMA takes for integers
    the array                  read or written by TMA alone, if anything is written: copies of TMA and ordinary accesses
                               do not see each other in order; nor do other programs, which an atomic or a barrier
                               of the kernel would wait for

Arrays of different arguments have to be apart where one of two accesses is by TMA and writes, or is a load by TMA that
may come after a write, or that the write does not wait for: the kernel relies on that (apart.py).
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation, SSAValue

from deuteron.analysis.addresses.argument_expressions import expression_of
from deuteron.analysis.aliasing.apart import take_apart
from deuteron.analysis.aliasing.points_to import Targets, points_to
from deuteron.analysis.aliasing.program_order import ProgramOrder, needs
from deuteron.analysis.aliasing.written_arguments import read_by, touched_arguments, written_by
from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.ir.effects import GLOBAL, ORDER, ORDER_OWN, READ, WRITE, Kind, effects_inside, first_in_order
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.descriptor import BlockAccess, DescriptorLoadOp, MakeTensorDescriptorOp, RowAccess
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.types import bit_width_of, byte_width_of, num_elements_of
from deuteron.layout.tensor_box import CHUNK_BYTES

OVERLAPS = "the kernel is compiled for arguments that overlap"


def tma_obstacles(func: FuncOp, max_bytes: int) -> dict[Operation, str | None]:
    """Of each access through a descriptor why TMA cannot do it; None where it can."""
    accesses = nested_ops(func, BlockAccess | RowAccess)
    if not accesses:
        return {}
    info = AxisInfoAnalysis(func)
    found = {op: _obstacle(op, info, max_bytes) for op in accesses}
    possible = [op for op, obstacle in found.items() if obstacle is None]
    mixed, order = _mixed(func, set(possible)), ProgramOrder(func, _accesses(func))
    for op in possible:
        targets = points_to(op.desc)
        if not targets.is_known or targets.shares(mixed):
            found[op] = "the array is written, and accessed through pointers or across a barrier as well"
        elif not _is_apart_from_others(op, order):
            found[op] = OVERLAPS
    if OVERLAPS in found.values():  # those are accesses through pointers, with which nothing is mixed
        return {op: obstacle or OVERLAPS for op, obstacle in found.items()}
    return found


def _is_apart_from_others(op: BlockAccess, order: ProgramOrder) -> bool:
    """Whether what is read and written through other arguments is elsewhere, unless it is in order by itself."""
    own = points_to(op.desc)
    is_load = isinstance(op, DescriptorLoadOp)
    before, after = order.before(op), order.after(op)
    for other in dict.fromkeys((*before, *after)):
        written = written_by(other)
        touched = read_by(other) | written
        if other is op or touched.shares(own):  # of one argument `_mixed` knows
            continue
        if is_load and (not written or other not in before and needs(other, op)):
            continue
        if not is_load and not written and other not in after:
            continue
        if not take_apart(own, touched):
            return False
    return True


def _accesses(func: FuncOp) -> list[Operation]:
    """The ops that read or write global memory."""
    kinds = (READ, WRITE)
    found = (op for op, effect in effects_inside(func) if effect.resource is GLOBAL and effect.kind in kinds)
    return list(dict.fromkeys(found))


def _obstacle(op: BlockAccess | RowAccess, info: AxisInfoAnalysis, max_bytes: int) -> str | None:
    if isinstance(op, RowAccess):
        return "rows at offsets of their own need compute capability 10.0"
    made, tile = op.desc.owner, op.desc.type.tile
    if not isinstance(made, MakeTensorDescriptorOp) or any(expression_of(value) is None for value in made.operands):
        return "base, shape or strides are no expressions of the kernel's arguments"
    size = byte_width_of(tile)
    if made.pads_with_nan and bit_width_of(tile) == 8:
        return "fp8 is padded with NaN"
    if num_elements_of(tile) * size > max_bytes:
        return f"a block has more than {max_bytes} bytes"
    if not isinstance(op, DescriptorLoadOp) and not _are_chunks(made.shape[-1], size, info):
        return "the last size is not known to be a multiple of 16 bytes"
    return (
        None if _are_chunks(op.indices[-1], size, info) else "the last offset is not known to be a multiple of 16 bytes"
    )


def _are_chunks(value: SSAValue, size: int, info: AxisInfoAnalysis) -> bool:
    """Whether so many elements are a multiple of 16 bytes."""
    return info.of(value).divisibility[0] * size % CHUNK_BYTES == 0


def _mixed(func: FuncOp, by_tma: set[Operation]) -> Targets:
    """The arguments that descriptors may not go to by TMA, where the others go to them through pointers."""
    read, written = (_touched(func, kind, lambda op: op in by_tma) for kind in (READ, WRITE))
    pointed_read, pointed_written = (_touched(func, kind, lambda op: op not in by_tma) for kind in (READ, WRITE))
    mixed = read.arguments & written.arguments if first_in_order(func, GLOBAL, (ORDER, ORDER_OWN)) else frozenset()
    for argument in read.arguments | written.arguments:
        source = Targets(frozenset({argument}))
        changes = source.shares(written | pointed_written)
        if changes and source.shares(pointed_read | pointed_written):
            mixed |= {argument}
    return Targets(mixed)


def _touched(func: FuncOp, kind: Kind, is_meant: Callable[[Operation], bool]) -> Targets:
    """The arguments that these ops of a function read or write."""
    effects = [effect for op, effect in effects_inside(func) if is_meant(op)]
    return touched_arguments(effects, kind)
