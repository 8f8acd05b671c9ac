"""Quotients and roots within an ulp, of normal numbers, which other functions are made of (`backend/math/number.py`).

    x / y       rcp.approx.ftz, of double two steps of Newton's;  q = x r,  q + (x - q y) r
    sqrt(x)     sqrt.approx.ftz, of double rsqrt.approx.ftz, a step of the third order, g = x r,  g + (x - g**2) r / 2

Division and roots of double that are exactly rounded have branches, which cost more than what they compute.
"""

from __future__ import annotations

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const


def near_quotient(b: Builder, x: Value, y: Value) -> Value:
    """x times the reciprocal of y, and what that lacks once more times the reciprocal."""
    inverse = _double_reciprocal(b, y) if y.type == "double" else b.call("float", "llvm.nvvm.rcp.approx.ftz.f", y)
    first = b.fmul(x, inverse, flags="")
    return b.fma(b.fma(b.fneg(first), y, x), inverse, first)


def near_root(b: Builder, x: Value) -> Value:
    """Of a double x times its inverse root, and what the square of that lacks, times half the inverse root."""
    if x.type == "float":
        return b.call("float", "llvm.nvvm.sqrt.approx.ftz.f", x)
    inverse = _double_inverse_root(b, x)
    first = b.fmul(x, inverse, flags="")
    half = b.fmul(inverse, const("double", 0.5), flags="")
    root = b.fma(b.fma(b.fneg(first), first, x), half, first)
    return b.select(b.fcmp("oeq", x, const("double", 0.0)), x, root)


def _double_reciprocal(b: Builder, y: Value) -> Value:
    """From 20 bits on, which each step doubles."""
    inverse = b.call("double", "llvm.nvvm.rcp.approx.ftz.d", y)
    for _ in range(2):
        lacking = b.fma(b.fneg(y), inverse, const("double", 1.0))
        inverse = b.fma(inverse, lacking, inverse)
    return inverse


def _double_inverse_root(b: Builder, x: Value) -> Value:
    """From 20 bits on, which a step of the third order triples."""
    inverse = b.call("double", "llvm.nvvm.rsqrt.approx.ftz.d", x)
    lacking = b.fma(b.fneg(b.fmul(x, inverse, flags="")), inverse, const("double", 1.0))
    series = b.fma(lacking, const("double", 0.375), const("double", 0.5))
    return b.fma(b.fmul(inverse, lacking, flags=""), series, inverse)
