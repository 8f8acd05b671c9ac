"""Conversions between floating formats; each rounds once.

    f32 -> f16, bf16           fptrunc, or cut off
    f64 -> bf16, fp8           by way of an f32 that is rounded to odd
    f32 -> fp8, fp8 -> f32     with integers

What is too large for fp8 becomes the greatest finite number. A target that has instructions for some of it overrides
`widen`, `narrow` and `truncate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute

from deuteron.backend.gpu.elements import register_type
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value
from deuteron.backend.math.conversions import (
    f32_to_bf16,
    narrow,
    round_to_odd,
    truncate_to_f32,
    widen,
)
from deuteron.dtypes import FP16
from deuteron.ir.types import FLOAT_TYPES, is_fp8
from deuteron.machine.gpu import GPU


@dataclass(frozen=True)
class FloatConversion:
    """From elements of one floating type to another, on a machine."""

    machine: GPU
    source: Attribute
    target: Attribute
    toward_zero: bool = False

    def __call__(self, b: Builder, *values: Value) -> list[Value]:
        """Convert one or two elements."""
        wide = self.widen(b, values) if is_fp8(self.source) else list(values)
        if is_fp8(self.target):
            return self.narrow(b, [self._to_f32(b, value) for value in wide])
        return [self._between(b, value, register_type(self.target)) for value in wide]

    def widen(self, b: Builder, values: Sequence[Value]) -> list[Value]:
        """fp8 as f16 or f32."""
        return [widen(b, value, FLOAT_TYPES[self.source]) for value in values]

    def narrow(self, b: Builder, values: Sequence[Value]) -> list[Value]:
        """f32 as fp8."""
        return [narrow(b, value, FLOAT_TYPES[self.target], self.toward_zero) for value in values]

    def truncate(self, b: Builder, value: Value, type: str) -> Value:
        """f32 as f16 or bf16, rounded towards zero."""
        bits = narrow(b, value, FP16, True) if type == "half" else f32_to_bf16(b, value, True)
        return b.bitcast(bits, type)

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
        return self.truncate(b, single, type) if self.toward_zero else b.fptrunc(single, type)
