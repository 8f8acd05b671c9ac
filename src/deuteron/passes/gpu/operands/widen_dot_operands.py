"""Converts fp8 operands of `tt.dot` to f16, in which mma.sync multiplies them exactly, where nothing takes fp8 itself.

    %d = "tt.dot"(%a, %b, %c) : (tensor<64x64xf8E4M3FN>, ...)
  ->
    %a1 = "tt.fp_to_fp"(%a) : (tensor<64x64xf8E4M3FN>) -> tensor<64x64xf16>
    %d = "tt.dot"(%a1, %b1, %c) : (tensor<64x64xf16>, ...)

Dots by wgmma stay, and those by mma.sync where it takes fp8 (sm_89, sm_120).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from deuteron.ir.builder import Builder
from deuteron.ir.tt.convert import FpToFpOp
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.types import element_type_of, f16
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.gpu.dot_instructions import FP8, uses_mma, uses_wgmma


@dataclass(frozen=True)
class WidenDotOperands(ModulePass):
    """Makes dots of fp8 dots of f16."""

    name = "widen-dot-operands"

    config: GPUConfig

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for dot in list(op.walk()):
            if isinstance(dot, DotOp) and not self._multiplies(dot):
                for index in range(2):
                    operand = dot.operands[index]
                    if element_type_of(operand.type) in FP8:
                        dot.operands[index] = Builder.before(dot).value(FpToFpOp(operand, f16))

    def _multiplies(self, dot: DotOp) -> bool:
        """Whether an instruction takes the operands as they are."""
        return uses_wgmma(dot, self.config) or uses_mma(dot, self.config.machine)
