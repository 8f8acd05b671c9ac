"""Arithmetic of float32 and float64 in each rounding, exactly: in fractions of whole numbers, element by element.

    add_rd(x, y)        the largest number that is at most x + y
    ROUNDED["ll2float_ru"](n)

Where an operand is not finite, or the divisor 0, all roundings give what NumPy gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from deuteron.interpreter.numerics.fused import fused_multiply_add
from deuteron.interpreter.values import as_unsigned

MODES = ("rn", "rz", "rd", "ru")
_INTEGERS = {"int": (32, True), "uint": (32, False), "ll": (64, True), "ull": (64, False)}
_TO_WHOLE = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}


def round_exactly(value: Fraction, dtype: np.dtype, mode: str) -> float:
    """A number other than 0 in a float type; what is too large becomes infinite, or the largest number."""
    format = np.finfo(dtype)
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    unit = Fraction(2) ** (max(exponent, int(format.minexp)) - int(format.nmant))
    whole, rest = divmod(size / unit, 1)
    is_negative = value < 0
    if mode == "rn":
        whole += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1)
    elif mode == ("rd" if is_negative else "ru"):
        whole += rest > 0
    result = whole * unit
    if result > Fraction(float(format.max)):
        is_outward = mode == "rn" or mode == ("rd" if is_negative else "ru")
        return (-1) ** is_negative * (math.inf if is_outward else float(format.max))
    return math.copysign(float(result), -1.0 if is_negative else 1.0)


def float_to_integer(x: np.ndarray, bits: int, signed: bool) -> np.ndarray:
    """A whole number as the bits of an integer, limited; NaN gives 0, or the highest bit where 64 bits are involved."""
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    of_nan = (low if signed else 1 << (bits - 1)) if bits == 64 or x.dtype == np.float64 else 0

    def element(value: float) -> int:
        if math.isnan(value):
            return of_nan
        return min(max(int(value), low), high) if math.isfinite(value) else (high if value > 0 else low)

    return np.frompyfunc(element, 1, 1)(x).astype(f"{'' if signed else 'u'}int{bits}").astype(f"int{bits}")


def _operation(near: Callable, exact: Callable, mode: str) -> Callable:
    """`near`: NumPy's. `exact`: of fractions, None where only NumPy's will do."""

    def rule(*operands: np.ndarray) -> np.ndarray:
        dtype = operands[0].dtype
        nearest = np.asarray(near(*operands))
        if mode == "rn" and near is not fused_multiply_add:
            return nearest

        def element(plain: float, *values: float) -> float:
            if not all(map(math.isfinite, values)):
                return plain
            value = exact(*map(Fraction, values))
            if value is None:
                return plain
            return round_exactly(value, dtype, mode) if value else _zero(plain, mode, values, exact)

        made = np.frompyfunc(element, 1 + len(operands), 1)
        return made(nearest, *operands).astype(dtype)

    return rule


def _zero(plain: float, mode: str, values: tuple[float, ...], exact: Callable) -> float:
    """An exact 0: of a sum of numbers of both signs it is negative where rounding is downwards."""
    if mode != "rd" or exact in (_product, _quotient):
        return plain
    terms = values if exact is not _fused else (values[0] * values[1], values[2])
    if exact is _difference:
        terms = (values[0], -values[1])
    return plain if all(math.copysign(1.0, t) == math.copysign(1.0, terms[0]) for t in terms) else -0.0


def _sum(x, y):
    return x + y


def _difference(x, y):
    return x - y


def _product(x, y):
    return x * y


def _quotient(x, y):
    return x / y if y else None


def _fused(x, y, z):
    return x * y + z


def _root(mode: str) -> Callable:
    def rule(x: np.ndarray) -> np.ndarray:
        nearest = np.sqrt(x)
        if mode == "rn":
            return nearest

        def element(root: float, value: float) -> float:
            if not (math.isfinite(value) and value > 0):
                return root
            error = Fraction(root) ** 2 - Fraction(value)
            if error > 0 and mode in ("rd", "rz"):
                return float(np.nextafter(x.dtype.type(root), x.dtype.type(0)))
            return (
                float(np.nextafter(x.dtype.type(root), x.dtype.type(math.inf))) if error < 0 and mode == "ru" else root
            )

        return np.frompyfunc(element, 2, 1)(nearest, x).astype(x.dtype)

    return rule


def _from_integer(dtype: type, signed: bool, mode: str) -> Callable:
    def element(value: int) -> float:
        return round_exactly(Fraction(value), np.dtype(dtype), mode) if value else 0.0

    def rule(x: np.ndarray) -> np.ndarray:
        exact = (x if signed else as_unsigned(x)).astype(object)
        return np.frompyfunc(element, 1, 1)(exact).astype(dtype)

    return rule


def _to_integer(bits: int, signed: bool, mode: str) -> Callable:
    return lambda x: float_to_integer(_TO_WHOLE[mode](x), bits, signed)


def _narrowed(mode: str) -> Callable:
    def element(value: float) -> float:
        if not math.isfinite(value) or value == 0:
            return value
        return round_exactly(Fraction(value), np.dtype(np.float32), mode)

    return lambda x: np.frompyfunc(element, 1, 1)(x).astype(np.float32)


def _all() -> dict[str, Callable]:
    table: dict[str, Callable] = {}
    for mode in MODES:
        table[f"add_{mode}"] = _operation(np.add, _sum, mode)
        table[f"sub_{mode}"] = _operation(np.subtract, _difference, mode)
        table[f"mul_{mode}"] = _operation(np.multiply, _product, mode)
        table[f"div_{mode}"] = _operation(np.divide, _quotient, mode)
        table[f"fma_{mode}"] = _operation(fused_multiply_add, _fused, mode)
        table[f"rcp_{mode}"] = _reciprocal(mode)
        table[f"sqrt_{mode}"] = _root(mode)
        table[f"double2float_{mode}"] = _narrowed(mode)
        for name, (bits, signed) in {
            "int": (32, True),
            "uint": (32, False),
            "ll": (64, True),
            "ull": (64, False),
        }.items():
            for source, dtype in {"float": np.float32, "double": np.float64}.items():
                table[f"{source}2{name}_{mode}"] = _to_integer(bits, signed, mode)
                table[f"{name}2{source}_{mode}"] = _from_integer(dtype, signed, mode)
    return table


def _reciprocal(mode: str) -> Callable:
    divide = _operation(np.divide, _quotient, mode)
    return lambda x: divide(np.ones_like(x), x)


ROUNDED = _all()
