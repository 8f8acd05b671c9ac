"""What floats can hold: formats, and whether numbers, sums and products of them are exact.

    fits(tile, 10)                                  whether tf32 holds all elements
    sums_are_exact([x, y, sums], sizes, 24)         whether every partial sum, in any order, has at most 24 bits
    quantum(tile)                                   the largest power of two that all elements are multiples of

What is exact is the same in any order, and is not perturbed.
"""

from __future__ import annotations

import numpy as np

from deuteron.ir.tt.dot import DotOp, InputPrecision
from deuteron.ir.types import bf16, bit_width_of, element_type_of, f16, f32, f64

TF32_BITS = 10
MANTISSA = {f16: 10, bf16: 7, f32: 23, f64: 52}
LEAST = {f16: 2.0**-24, bf16: 2.0**-133, f32: 2.0**-149, f64: 2.0**-1074}
LARGEST = {f16: 65504.0, bf16: 2.0**127, f32: 2.0**127, f64: 2.0**1023}
LEAST_NORMAL = {f16: 2.0**-14, bf16: 2.0**-126, f32: 2.0**-126, f64: 2.0**-1022}


def wider(value: np.ndarray) -> np.ndarray:
    """In a format in which sums and products of two values are exact, or nearly so."""
    value = np.asarray(value)
    return value.astype(np.longdouble if value.dtype == np.float64 else np.float64)


def operand_bits(op: DotOp, element) -> int | None:
    """How many bits after the leading one of an fp32 operand count; None: all."""
    if element != f32:
        return None
    precision = InputPrecision(op.input_precision.value.data)
    return {
        InputPrecision.TF32: TF32_BITS,
        InputPrecision.TF32x3: 20,
        InputPrecision.BF16x3: 14,
        InputPrecision.BF16x6: 21,
    }.get(precision)


def sum_bits(element, type) -> int:
    """Of the significand of partial sums; tensor cores have about 14 for fp8."""
    if bit_width_of(element) == 8:
        return 13
    return MANTISSA[element_type_of(type)] + 1


def fits(tile: np.ndarray, bits: int) -> bool:
    """Whether no element needs more bits after the leading one."""
    finite = tile[np.isfinite(tile)]
    mantissa, _ = np.frexp(finite)
    scaled = mantissa * 2.0 ** (bits + 1)
    return bool(np.all(scaled == np.rint(scaled)))


def sums_are_exact(wide: list[np.ndarray], sizes: np.ndarray, bits: int) -> bool:
    """Whether every partial sum, in any order, is a multiple of one quantum and has at most so many bits."""
    step = min(quantum(wide[0]) * quantum(wide[1]), quantum(wide[2]))
    largest = np.max(sizes, initial=0.0)
    return bool(np.isfinite(largest) and step > 0 and largest / step < 2.0**bits)


def quantum(tile: np.ndarray) -> float:
    """The largest power of two that all elements are multiples of."""
    finite = tile[np.isfinite(tile) & (tile != 0)]
    if finite.size == 0:
        return 2.0**60
    mantissa, exponent = np.frexp(finite)
    whole = np.abs(mantissa * 2.0**53).astype(np.uint64)
    lowest = (whole & (~whole + np.uint64(1))).astype(np.float64)
    return float(np.min(np.ldexp(lowest, exponent - 53)))
