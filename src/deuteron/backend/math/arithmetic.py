"""Division and square root that are rounded once, whatever a target has that is faster."""

from __future__ import annotations

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value


def precise_divide(b: Builder, x: Value, y: Value) -> Value:
    return b.fdiv(x, y, flags="")


def precise_sqrt(b: Builder, x: Value) -> Value:
    return b.intrinsic("llvm.sqrt", x.type, x)
