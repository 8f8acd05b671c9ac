"""Conversions between floating formats by instructions of PTX.

f32 -> f16, bf16           cvt.rz
f32 -> fp8, fp8 -> f32     cvt.rn.satfinite from sm_89 on, two elements at once
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute

from deuteron.backend.gpu.formats import FloatConversion
from deuteron.backend.llvm.builder import Builder, Touches
from deuteron.backend.llvm.types import Value, const
from deuteron.ir.types import f8e4m3, f8e5m2

_FP8_NAMES = {f8e4m3: "e4m3", f8e5m2: "e5m2"}
_TOWARD_ZERO = {"half": ("cvt.rz.f16.f32 $0, $1;", "=h,f"), "bfloat": ("cvt.rz.bf16.f32 $0, $1;", "=h,f")}


class PTXFloatConversion(FloatConversion):
    """By an instruction, where the machine has it."""

    def widen(self, b: Builder, values: Sequence[Value]) -> list[Value]:
        if not self._is_instruction(self.source):
            return super().widen(b, values)
        pair = b.zext(values[0], "i16")
        if len(values) == 2:
            pair = b.or_(pair, b.shl(b.zext(values[1], "i16"), const("i16", 8)))
        halves = b.call("<2 x half>", f"llvm.nvvm.{_FP8_NAMES[self.source]}x2.to.f16x2.rn", pair)
        return [b.extractelement(halves, index) for index in range(len(values))]

    def narrow(self, b: Builder, values: Sequence[Value]) -> list[Value]:
        if self.toward_zero or not self._is_instruction(self.target):
            return super().narrow(b, values)
        high = values[1] if len(values) == 2 else const("float", 0.0)
        pair = b.call("i16", f"llvm.nvvm.ff.to.{_FP8_NAMES[self.target]}x2.rn", high, values[0])
        bytes = [b.trunc(pair, "i8"), b.trunc(b.lshr(pair, const("i16", 8)), "i8")]
        return bytes[: len(values)]

    def truncate(self, b: Builder, value: Value, type: str) -> Value:
        text, constraints = _TOWARD_ZERO[type]
        return b.bitcast(b.assembly(Touches.NOTHING, "i16", text, constraints, value), type)

    def _is_instruction(self, fp8: Attribute) -> bool:
        return self.machine.converts_fp8 and fp8 in _FP8_NAMES
