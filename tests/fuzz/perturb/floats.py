"""Floats: products that are fused with sums, the last bits of functions, either zero of two, conversions out of range.

x * y + z                     rounded once or twice
tl.exp(x)                     some units in the last place more or less
tl.maximum(0.0, -0.0)         either
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from deuteron.interpreter.libdevice import is_exact
from deuteron.interpreter.values import dtype_of
from deuteron.ir import casts
from deuteron.ir.rule_table import Rule
from deuteron.ir.tt.convert import BitcastOp, ClampFOp, FpToFpOp
from deuteron.ir.tt.extern import ExternElementwiseOp
from deuteron.ir.types import element_type_of, f32, f64, is_float
from tests.fuzz.exactness import LARGEST, LEAST_NORMAL, MANTISSA, wider
from tests.fuzz.perturb.noise import Noise, Wrappers

ULPS = 4
"""Of functions that are not rounded correctly; `exp` in fp32 has more, for the product with log2(e) is rounded."""


_FUNCTIONS: tuple[type, ...] = (
    math.ExpOp,
    math.Exp2Op,
    math.LogOp,
    math.Log2Op,
    math.SinOp,
    math.CosOp,
    math.ErfOp,
    math.SqrtOp,
    math.RsqrtOp,
)
_EXTREMES = (arith.MaxnumfOp, arith.MinnumfOp, arith.MaximumfOp, arith.MinimumfOp)


class Floats:
    """Arithmetic, functions and conversions."""

    def __init__(self, noise: Noise):
        self._noise = noise
        self._rounded_off: dict[SSAValue, np.ndarray] = {}
        """Of products that are used more than once."""

    def wrappers(self) -> Wrappers:
        return {
            arith.MulfOp: self._product,
            arith.AddfOp: self._sum,
            arith.SubfOp: self._fused,
            arith.DivfOp: self._quotient,
            math.FmaOp: self._fma,
            ClampFOp: self._clamp,
            casts.FPToSIOp: self._float_to_integer,
            casts.FPToUIOp: self._float_to_integer,
            FpToFpOp: self._to_float,
            BitcastOp: self._bitcast,
            arith.BitcastOp: self._bitcast,
            ExternElementwiseOp: self._extern,
            **dict.fromkeys(_EXTREMES, self._extreme),
            **dict.fromkeys(_FUNCTIONS, self._function),
        }

    def _product(self, rule: Rule) -> Rule:
        """It may be fused with the sum after it: then it is not rounded, to infinity either. Of many factors the order
        is free.
        """

        def perturbed(ctx, op, a, b):
            result = rule(ctx, op, a, b)
            if not (self._noise.licence.fuses or self._noise.is_combining):
                return result
            exact = np.multiply(wider(a), wider(b))
            moved = self._unless_too_large(op, self._noise.rounded(op, result, exact), exact)
            if not op.results[0].has_more_than_one_use():
                return moved
            some = np.where(self._noise.coins(result) < 1, result, moved)[()].astype(np.asarray(result).dtype)
            self._rounded_off[op.results[0]] = np.nan_to_num(exact - some, posinf=0, neginf=0)
            return some

        return perturbed

    def _unless_too_large(self, op, result: np.ndarray, exact: np.ndarray) -> np.ndarray:
        """The largest number for infinity, or about a half of it, by lot, where the exact one is finite."""
        is_too_large, element = np.isinf(result) & np.isfinite(exact), element_type_of(op.results[0].type)
        if element not in LARGEST or not np.any(is_too_large):
            return result
        self._noise.licence.taken += 1
        full = (2 - 2.0 ** -MANTISSA[element]) * 2.0 ** np.floor(np.log2(LARGEST[element]))
        largest = np.copysign(self._noise.rng.choice((LARGEST[element], full)), exact)
        return np.where(is_too_large & (self._noise.coins(result) < 1), largest, result)[()].astype(result.dtype)

    def _sum(self, rule: Rule) -> Rule:
        """Of many terms the order is free: each sum on the way may be rounded otherwise."""

        def perturbed(ctx, op, a, b):
            result = rule(ctx, op, a, b)
            return self._noise.rounded(op, result, np.add(wider(a), wider(b))) if self._noise.is_combining else result

        return self._fused(perturbed)

    def _fused(self, rule: Rule) -> Rule:
        """A product that is rounded for its other uses may be fused here: `s - max(s)` is not 0 then."""

        def perturbed(ctx, op, a, b):
            result = rule(ctx, op, a, b)
            lost = [self._rounded_off.get(operand) for operand in op.operands]
            is_fused = self._noise.licence.fuses and element_type_of(op.results[0].type) == f32
            if not is_fused or not any(np.any(off) for off in lost if off is not None):
                return result
            self._noise.licence.taken += 1
            exact = [wider(x) if off is None else wider(x) + off for x, off in zip((a, b), lost, strict=True)]
            whole = np.subtract(*exact) if op.name == arith.SubfOp.name else np.add(*exact)
            return np.where(self._noise.coins(result) < 1, whole, result)[()].astype(np.asarray(result).dtype)

        return perturbed

    def _fma(self, rule: Rule) -> Rule:
        """In fp64 the interpreter's is not rounded once."""

        def perturbed(ctx, op, *operands):
            result, type = rule(ctx, op, *operands), op.results[0].type
            return (
                self._noise.moved(result, self._noise.ulp(result, type), type)
                if element_type_of(type) == f64
                else result
            )

        return perturbed

    def _quotient(self, rule: Rule) -> Rule:
        """fp32 on a GPU: two units in the last place, and 0 where the divisor is above 2**126."""

        def perturbed(ctx, op, a, b):
            result, type = rule(ctx, op, a, b), op.results[0].type
            if element_type_of(type) != f32:
                return result
            is_huge = np.isfinite(b) & (np.abs(b) > 2.0**126)
            moved = self._noise.moved(result, 2 * self._noise.ulp(result, type), type)
            is_tiny = np.abs(result) < LEAST_NORMAL[f32]
            chosen = np.where(
                (is_huge | is_tiny) & (self._noise.coins(moved) < 1), np.copysign(np.float32(0), moved), moved
            )
            nothing = np.where(is_huge & np.isinf(a), np.float32(np.nan), chosen)
            return np.where(self._noise.coins(moved) < 1, nothing, chosen)[()].astype(np.float32)

        return perturbed

    def _function(self, rule: Rule) -> Rule:
        def perturbed(ctx, op, *operands):
            result, type = rule(ctx, op, *operands), op.results[0].type
            element = element_type_of(type)
            ulps = np.float64(ULPS)
            if op.name == "math.exp":
                ulps = ulps + np.abs(np.nan_to_num(np.asarray(operands[0], np.float64), posinf=0, neginf=0))
            size = ulps * self._noise.ulp(result, type)
            if op.name in ("math.log", "math.log2", "math.sin", "math.cos"):
                size = np.maximum(size, ULPS * 2.0 ** -MANTISSA[element])
            moved = self._noise.moved(result, size, type)
            is_tiny = (np.abs(result) < 2 * LEAST_NORMAL[element]) & (self._noise.coins(moved) < 1)
            moved = np.where(is_tiny, np.zeros_like(moved), moved)
            return np.where(np.isfinite(result) & (np.asarray(result) != 0), moved, result)[()].astype(dtype_of(type))

        return perturbed

    def _extern(self, rule: Rule) -> Rule:
        """A function of libdevice, as those of the language, unless it is exact."""
        approximate = self._function(rule)

        def perturbed(ctx, op, *operands):
            return (rule if is_exact(op.symbol.data) else approximate)(ctx, op, *operands)

        return perturbed

    def _extreme(self, rule: Rule) -> Rule:
        """Of two zeros either."""

        def perturbed(ctx, op, a, b):
            result = rule(ctx, op, a, b)
            differ = (np.asarray(a) == 0) & (np.asarray(b) == 0) & (np.signbit(a) != np.signbit(b))
            return self._noise.either_sign(result, differ)

        return perturbed

    def _clamp(self, rule: Rule) -> Rule:
        """Of two zeros either; what is outside of the definition (a limit that is NaN, min > max) is anything."""

        def perturbed(ctx, op, x, low, high):
            result = rule(ctx, op, x, low, high)
            zeros = (np.asarray(result) == 0) & (np.asarray(x) == 0)
            result = self._noise.either_sign(result, zeros & ((np.asarray(low) == 0) | (np.asarray(high) == 0)))
            return self._noise.anything(result, ~(np.asarray(low) <= np.asarray(high)))

        return perturbed

    def _float_to_integer(self, rule: Rule) -> Rule:
        def perturbed(ctx, op, src):
            element = element_type_of(op.results[0].type)
            bits, is_signed = element.width.data, op.name == casts.FPToSIOp.name
            wide = np.trunc(np.asarray(src, np.float64))
            low, end = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if is_signed else (0.0, 2.0**bits)
            return self._noise.anything(rule(ctx, op, src), ~((wide >= low) & (wide < end)))

        return perturbed

    def _to_float(self, rule: Rule) -> Rule:
        """A NaN has any sign, and so has what a type without one has in its place."""

        def perturbed(ctx, op, src):
            result = rule(ctx, op, src)
            return self._noise.either_sign(result, np.isnan(src) & ~np.isnan(result))

        return perturbed

    def _bitcast(self, rule: Rule) -> Rule:
        """Which NaN it is is not said."""

        def perturbed(ctx, op, src):
            result = rule(ctx, op, src)
            if is_float(op.operands[0].type):
                return self._noise.anything(result, np.isnan(src))
            return result

        return perturbed
