"""Which accesses through tensor descriptors TMA can do, so that nothing has to be known at run time but the arguments.

    base, shape, strides       expressions of the kernel's arguments: the launch encodes the map
    the innermost offset       a multiple of 16 bytes, as far as is known: what is not stops the GPU (error 715)
    the innermost size         of what is stored to, too: a store writes whole chunks of 16 bytes, also past the end
    padding with NaN           of all floats but fp8, which TMA takes for integers
    the array                  read or written by TMA alone, if anything is written: copies of TMA and ordinary accesses
                               do not see each other in order; nor do other programs, which an atomic or a barrier
                               of the kernel would wait for

A kernel's arguments are taken not to overlap.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from deuteron.analysis.argument_expressions import expression_of
from deuteron.analysis.axis_analysis import AxisInfoAnalysis
from deuteron.analysis.base_argument import base_argument
from deuteron.ir.tt.atomic import AtomicCASOp, AtomicRMWOp
from deuteron.ir.tt.descriptor import BlockAccess, DescriptorLoadOp, MakeTensorDescriptorOp
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.ttg.barrier import BarrierOp
from deuteron.ir.types import bit_width_of, byte_width_of, num_elements_of
from deuteron.layout.tensor_box import CHUNK_BYTES

MAX_BLOCK_BYTES = 128 * 1024  # of the shared memory that a block goes through

_ORDERING = (AtomicRMWOp, AtomicCASOp, BarrierOp)
_Sources = set[SSAValue | None]


def tma_accesses(func: FuncOp) -> set[Operation]:
    """The accesses of a function that TMA can do."""
    accesses = [op for op in func.walk() if isinstance(op, BlockAccess)]
    if not accesses:
        return set()
    info = AxisInfoAnalysis(func)
    possible = [op for op in accesses if _is_possible(op, info)]
    mixed = _mixed(func, possible, [op for op in accesses if op not in possible])
    return {op for op in possible if _source(op) not in mixed}


def _is_possible(op: BlockAccess, info: AxisInfoAnalysis) -> bool:
    made, tile = op.desc.owner, op.desc.type.tile
    if not isinstance(made, MakeTensorDescriptorOp) or any(expression_of(value) is None for value in made.operands):
        return False
    size = byte_width_of(tile)
    if made.pads_with_nan and bit_width_of(tile) == 8:
        return False
    if num_elements_of(tile) * size > MAX_BLOCK_BYTES:
        return False
    if not isinstance(op, DescriptorLoadOp) and not _are_chunks(made.shape[-1], size, info):
        return False
    return _are_chunks(op.indices[-1], size, info)


def _are_chunks(value: SSAValue, size: int, info: AxisInfoAnalysis) -> bool:
    """Whether so many elements are a multiple of 16 bytes."""
    return info.of(value).divisibility[0] * size % CHUNK_BYTES == 0


def _source(op: BlockAccess) -> SSAValue | None:
    made = op.desc.owner
    return base_argument(made.base) if isinstance(made, MakeTensorDescriptorOp) else None


def _mixed(func: FuncOp, by_tma: list[BlockAccess], others: list[BlockAccess]) -> _Sources:
    """The arguments that descriptors may not go to by TMA, where the others go through pointers; None is in it, of
    which nothing is known.
    """
    read, written = _sources(by_tma)
    pointed_read, pointed_written = (a | b for a, b in zip(_sources(others), _through_pointers(func), strict=True))
    mixed: _Sources = {None}
    for source in read | written:
        changes = source in written or bool(pointed_written & {source, None})
        if changes and (pointed_read | pointed_written) & {source, None}:
            mixed.add(source)
    if any(isinstance(op, _ORDERING) for op in func.walk()):
        mixed |= read & written
    return mixed


def _sources(accesses: list[BlockAccess]) -> tuple[_Sources, _Sources]:
    """The arguments that are read, and those that are written."""
    read = {_source(op) for op in accesses if isinstance(op, DescriptorLoadOp)}
    return read, {_source(op) for op in accesses if not isinstance(op, DescriptorLoadOp)}


def _through_pointers(func: FuncOp) -> tuple[_Sources, _Sources]:
    read, written = set(), set()
    for op in func.walk():
        if isinstance(op, LoadOp):
            read.add(base_argument(op.ptr))
        elif isinstance(op, StoreOp | AtomicRMWOp | AtomicCASOp):
            written.add(base_argument(op.ptr))
    return read, written
