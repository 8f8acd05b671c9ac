"""Conversions between floating formats on a GPU; each rounds once.

    f32 -> f16, bf16           cvt.rn, or cvt.rz
    f64 -> bf16, fp8           by way of an f32 that is rounded to odd
    f32 -> fp8, fp8 -> f32     cvt.rn.satfinite from sm_89 on, two elements at once; before, with integers

What is too large for fp8 becomes the greatest finite number.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Attribute

from deuteron.backend.gpu.elements import FP8, register_type
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const
from deuteron.backend.math.conversions import FP8E4NV, FP8E5, narrow, round_to_odd, truncate_to_f32, widen
from deuteron.ir.types import f8e4m3

_TOWARD_ZERO = {"half": ("cvt.rz.f16.f32 $0, $1;", "=h,f"), "bfloat": ("cvt.rz.bf16.f32 $0, $1;", "=h,f")}


@dataclass(frozen=True)
class FloatConversion:
    """From elements of one floating type to another; `has_fp8`: by instructions for fp8."""

    source: Attribute
    target: Attribute
    toward_zero: bool
    has_fp8: bool

    def __call__(self, b: Builder, *values: Value) -> list[Value]:
        """Convert one or two elements."""
        wide = self._widened(b, values) if self.source in FP8 else list(values)
        if self.target in FP8:
            return self._to_fp8(b, [self._to_f32(b, value) for value in wide])
        return [self._between(b, value, register_type(self.target)) for value in wide]

    def _widened(self, b: Builder, values: tuple[Value, ...]) -> list[Value]:
        """fp8 as f16 or f32."""
        if not self.has_fp8:
            return [widen(b, value, FP8E4NV if self.source == f8e4m3 else FP8E5) for value in values]
        pair = b.zext(values[0], "i16")
        if len(values) == 2:
            pair = b.or_(pair, b.shl(b.zext(values[1], "i16"), const("i16", 8)))
        halves = b.call("<2 x half>", f"llvm.nvvm.{_fp8_name(self.source)}x2.to.f16x2.rn", pair)
        return [b.extractelement(halves, index) for index in range(len(values))]

    def _to_fp8(self, b: Builder, values: list[Value]) -> list[Value]:
        if self.toward_zero or not self.has_fp8:
            format = FP8E4NV if self.target == f8e4m3 else FP8E5
            return [narrow(b, value, format, self.toward_zero) for value in values]
        high = values[1] if len(values) == 2 else const("float", 0.0)
        pair = b.call("i16", f"llvm.nvvm.ff.to.{_fp8_name(self.target)}x2.rn", high, values[0])
        bytes = [b.trunc(pair, "i8"), b.trunc(b.lshr(pair, const("i16", 8)), "i8")]
        return bytes[: len(values)]

    def _to_f32(self, b: Builder, value: Value) -> Value:
        """f32 from which rounding once more gives what rounding the value would."""
        if value.type != "double":
            return b.fpext(value, "float")
        return truncate_to_f32(b, value) if self.toward_zero else round_to_odd(b, value)

    def _between(self, b: Builder, value: Value, type: str) -> Value:
        if value.type == type:
            return value
        if type == "double" or (type == "float" and value.type != "double"):
            return b.fpext(value, type)
        if type == "float":
            return truncate_to_f32(b, value) if self.toward_zero else b.fptrunc(value, type)
        single = self._to_f32(b, value)
        if not self.toward_zero:
            return b.fptrunc(single, type)
        text, constraints = _TOWARD_ZERO[type]
        return b.bitcast(b.pure_asm("i16", text, constraints, single), type)


def _fp8_name(type: Attribute) -> str:
    return "e4m3" if type == f8e4m3 else "e5m2"
