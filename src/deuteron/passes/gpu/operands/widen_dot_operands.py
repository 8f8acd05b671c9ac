"""Converts fp8 operands of `tt.dot` to f16, in which mma.sync multiplies them exactly, where nothing takes fp8 itself.

    %d = "tt.dot"(%a, %b, %c) : (tensor<64x64xf8E4M3FN>, ...)
  ->
    %a1 = "tt.fp_to_fp"(%a) : (tensor<64x64xf8E4M3FN>) -> tensor<64x64xf16>
    %d = "tt.dot"(%a1, %b1, %c) : (tensor<64x64xf16>, ...)

A type with numbers that f16 does not have becomes bf16. Dots by wgmma stay, and those by mma.sync where it takes fp8
(sm_89, sm_120).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass

from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.convert import FpToFpOp
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.types import FLOAT_TYPES, bf16, element_type_of, f16, f32, is_fp8
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.gpu.dot_instructions import uses_mma, uses_wgmma


@dataclass(frozen=True)
class WidenDotOperands(ModulePass):
    """Makes dots of fp8 dots of f16 or bf16."""

    name = "widen-dot-operands"

    config: GPUConfig

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for dot in nested_ops(op):
            if isinstance(dot, DotOp) and not self._multiplies(dot):
                narrow = {index: dot.operands[index] for index in range(2) if _is_fp8(dot.operands[index])}
                wide = _type_with_all_of(narrow.values())
                for index, operand in narrow.items():
                    dot.operands[index] = Builder.before(dot).value(FpToFpOp(operand, wide))

    def _multiplies(self, dot: DotOp) -> bool:
        """Whether an instruction takes the operands as they are."""
        return uses_wgmma(dot, self.config) or uses_mma(dot, self.config.machine)


def _is_fp8(operand: SSAValue) -> bool:
    return is_fp8(operand.type)


def _type_with_all_of(operands: Iterable[SSAValue]) -> Attribute:
    """The first type that has every number of the operands."""
    declared = [FLOAT_TYPES[element_type_of(operand.type)] for operand in operands]
    return next(wide for wide in (f16, bf16, f32) if all(map(FLOAT_TYPES[wide].has_all_of, declared)))
