"""Rounds operands to tf32 where they are stored into shared memory, and not each time that a dot loads them.

    %m = ttg.local_alloc %x                   %y = tt.elementwise_inline_asm "cvt.rna.tf32.f32" %x
    %a = ttg.local_load %m             ->     %m = ttg.local_alloc %y
    %d = tt.dot %a, %b, %c                    %a = ttg.local_load %m
                                              %d = tt.dot %a, %b, %c    <{inputPrecision = tf32_rtz}>

That is once for each element, instead of once in each warp that multiplies with it and in each dot. Both operands have
to be computed for dots by mma.sync alone: what is copied into shared memory is never in registers before a dot has it.
Wherever a tile is stored into that memory it is rounded. Dots by wgmma take what is there, without rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.dot import DotOp, InputPrecision
from deuteron.ir.tt.function import functions_in
from deuteron.ir.tt.inline_asm import ElementwiseInlineAsmOp
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.ttg.shared import LocalAllocOp, LocalDeallocOp, LocalLoadOp, LocalStoreOp
from deuteron.ir.ttg.views import is_view, viewed
from deuteron.ir.types import element_type_of, f32, i32
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.gpu.dot_instructions import uses_mma
from deuteron.passes.optimisation import Optimisation

_ASSEMBLY, _CONSTRAINTS = "cvt.rna.tf32.f32 $0, $1;", "=r,r"

Writer = LocalAllocOp | LocalStoreOp


@dataclass(frozen=True)
class RoundDotOperands(Optimisation):
    """Rounds operands of dots in tf32 once."""

    name = "round-dot-operands"

    config: GPUConfig

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.config.machine.mma is not None:
            for func in functions_in(op):
                _round([dot for dot in nested_ops(func, DotOp) if self._rounds(dot)])

    def _rounds(self, dot: DotOp) -> bool:
        is_tf32 = element_type_of(dot.a.type) == f32 and dot.input_precision.value.data == InputPrecision.TF32
        return is_tf32 and uses_mma(dot, self.config.machine)


def _round(dots: list[DotOp]) -> None:
    """What these dots take, where all of it may be rounded before."""
    found = {dot: [_writers(operand, dots) for operand in _operands(dot)] for dot in dots}
    done = {dot: writers for dot, writers in found.items() if all(writers)}
    for writer in dict.fromkeys(writer for both in done.values() for writers in both for writer in writers):
        _round_before(writer)
    for dot in done:
        dot.properties["inputPrecision"] = IntegerAttr(InputPrecision.TF32_RTZ, i32)


def _operands(dot: DotOp) -> list[SSAValue]:
    """Those that are rounded."""
    return [dot.a, dot.b]


def _writers(operand: SSAValue, dots: list[DotOp]) -> list[Writer]:
    """What stores into the memory that an operand comes from; none where something else does, or needs it exact."""
    memory = viewed(operand.owner.src) if isinstance(operand.owner, LocalLoadOp) else None
    if memory is None or not isinstance(memory.owner, LocalAllocOp):
        return []
    users = list(_users(memory))
    writers = [op for op in (memory.owner, *users) if isinstance(op, Writer) and op.src is not None]
    others = [op for op in users if not isinstance(op, Writer | LocalDeallocOp)]
    is_for_dots = all(isinstance(op, LocalLoadOp) and _is_rounded(op.result, dots) for op in others)
    return writers if is_for_dots and all(map(_is_computed, writers)) else []


def _is_rounded(tile: SSAValue, dots: list[DotOp]) -> bool:
    """Whether only dots need it, which would round it."""
    users = [use.operation for use in tile.uses]
    return all(user in dots and user.c is not tile for user in users)


def _users(memory: SSAValue) -> Iterator[Operation]:
    """What uses it, or views of it."""
    for use in memory.uses:
        if is_view(use.operation):
            yield from _users(use.operation.results[0])
        else:
            yield use.operation


def _is_computed(writer: Writer) -> bool:
    """Whether a tile is computed for this memory alone: one that is loaded may go there as soon as it arrives."""
    return len(list(writer.src.uses)) == 1 and not isinstance(writer.src.owner, LoadOp)


def _round_before(writer: Writer) -> None:
    src = writer.src
    rounded = ElementwiseInlineAsmOp(_ASSEMBLY, _CONSTRAINTS, [src], [src.type], is_pure=True, pack=1)
    writer.operands[0] = Builder.before(writer).value(rounded)
