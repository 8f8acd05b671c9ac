"""Matrix products: operands as exact as the precision says, partial sums in any order, each rounded or cut off."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.arith import AddfOp
from xdsl.ir import SSAValue

from deuteron.interpreter.dot import scaled_operands
from deuteron.ir.rule_table import Rule
from deuteron.ir.tt.dot import DotOp, DotScaledOp, ScaledFormat
from deuteron.ir.types import bf16, element_type_of, f8e5m2, f32, is_float
from tests.fuzz.exactness import (
    LARGEST,
    LEAST_NORMAL,
    TF32_BITS,
    fits,
    operand_bits,
    sum_bits,
    sums_are_exact,
)
from tests.fuzz.perturb.noise import Noise, Wrappers

LEAST_INFINITE = (2 - 2.0 ** -(TF32_BITS + 1)) * LARGEST[f32]
"""As tf32, where it is rounded; where it is cut off it is finite, as are the parts that other precisions make of it."""


class Dots:
    """Of `tl.dot` and `tl.dot_scaled`, and of what these are added to."""

    def __init__(self, noise: Noise):
        self._noise = noise
        self._products: dict[SSAValue, tuple[list[np.ndarray], int]] = {}
        """Of sums that began with 0 the operands, and the bits of partial sums."""

    def wrappers(self) -> Wrappers:
        return {DotOp: self._dot, DotScaledOp: self._dot_scaled, AddfOp: self._added}

    def _dot(self, rule: Rule) -> Rule:
        """Operands as exact as the precision says, partial sums in any order, each rounded or cut off."""

        def perturbed(ctx, op, a, b, c):
            type = op.results[0].type
            if not is_float(type):
                return rule(ctx, op, a, b, c)
            element = element_type_of(op.operands[0].type)
            wide = [np.asarray(tile, np.float64) for tile in (a, b, c)]
            result = rule(ctx, op, a, b, c)
            if element == bf16:
                result = self._flushed(result, wide, type)
            self._keep(op, wide, sum_bits(element, type))
            return self._summed(result, wide, type, operand_bits(op, element), sum_bits(element, type))

        return perturbed

    def _dot_scaled(self, rule: Rule) -> Rule:
        """Of what operands times their scales are; as tf32 where one is fp16."""

        def perturbed(ctx, op, a, b, c, *scales):
            type, formats = op.results[0].type, (op.lhs.format, op.rhs.format)
            wide = [*scaled_operands(op, a, b, *scales), np.asarray(c, np.float64)]
            is_fp8 = not scales and set(formats) <= {ScaledFormat.E4M3, ScaledFormat.E5M2}
            result = self._flushed(rule(ctx, op, a, b, c, *scales), wide, type)
            bits = TF32_BITS if ScaledFormat.FP16 in formats else None
            self._keep(op, wide, sum_bits(f8e5m2 if is_fp8 else f32, type))
            return self._summed(result, wide, type, bits, sum_bits(f8e5m2 if is_fp8 else f32, type))

        return perturbed

    def _keep(self, op: DotOp | DotScaledOp, wide: list[np.ndarray], bits: int) -> None:
        if not np.any(wide[2]):
            self._products[op.results[0]] = wide[:2], bits

    def _added(self, rule: Rule) -> Rule:
        """A product that is added to something may begin with that."""

        def perturbed(ctx, op, a, b):
            result = rule(ctx, op, a, b)
            for operand, other in zip(op.operands, (b, a), strict=True):
                if operand in self._products and operand.has_one_use():
                    operands, bits = self._products[operand]
                    wide = [*operands, np.asarray(other, np.float64)]
                    result = self._summed(result, wide, op.results[0].type, None, bits)
            return result

        return perturbed

    def _flushed(self, result: np.ndarray, wide: list[np.ndarray], type) -> np.ndarray:
        """Products of bf16 may take subnormal operands, products and sums for zero (AVX512_BF16 does)."""
        a, b = (np.nan_to_num(np.abs(tile)) for tile in wide[:2])
        small = [np.where(tile < LEAST_NORMAL[bf16], tile, 0) for tile in (a, b)]
        lost = np.matmul(small[0], b) + np.matmul(a, small[1]) + 2 * np.shape(a)[-1] * LEAST_NORMAL[bf16]
        return self._noise.moved(result, lost, type)

    def _summed(
        self, result: np.ndarray, wide: list[np.ndarray], type, operand_bits: int | None, sum_bits: int
    ) -> np.ndarray:
        """A product of operands of which so many bits count, in sums of so many bits. To -0.0 products are added that
        may all be -0.0, or their sum, which begins with 0.0.
        """
        sizes = np.matmul(np.abs(wide[0]), np.abs(wide[1])) + np.abs(wide[2])
        result = self._noise.either_sign(result, (result == 0) & (wide[2] == 0) & np.signbit(wide[2]))
        is_exact = sums_are_exact(wide, sizes, sum_bits)
        if operand_bits is not None and not all(fits(tile, operand_bits) for tile in wide[:2]):
            is_exact = False
            cut = np.matmul(np.abs(wide[0]), np.abs(wide[1])) * 2.0**-operand_bits * 2
            result = self._noise.moved(result, cut, type)
            if operand_bits == TF32_BITS:
                result = self._noise.anything(result, _have_infinite_operands(*wide[:2]), is_finite=False)
        if is_exact:
            return result
        depth, unit = np.shape(wide[0])[-1], 2.0 ** -(sum_bits - 1)
        noisy = self._noise.moved(result, unit * sizes * min(depth, 16), type)
        # A partial sum may be infinite where the whole is not.
        return self._noise.anything(noisy, sizes > LARGEST[element_type_of(type)] / 2, is_finite=False)


def _have_infinite_operands(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where the largest numbers become infinite as they are rounded to tf32."""
    rounded = (np.isfinite(tile) & (np.abs(tile) >= LEAST_INFINITE) for tile in (a, b))
    in_rows, in_columns = (is_rounded.any(axis) for is_rounded, axis in zip(rounded, (-1, -2), strict=True))
    return in_rows[..., :, None] | in_columns[..., None, :]
