"""The interpreter with every licence that the language gives taken at random: stochastic arithmetic.

    rules = perturbed_rules(np.random.default_rng(1), Licence(fuses=True))

The interpreter defines one result. Others are as good: sums in another order, a product that is fused with a sum, the
last bits of `exp`, what a masked lane loads, which of two lanes' stores wins, the order of the programs. A run with
these rules gives one of the other results. What differs between some such runs is not determined, and by how much it
differs says how precisely a float is; what does not differ has to be exact.

A perturbation is as large as the licence, in a random direction, so that the spread of a few runs is of the size of the
error that is allowed. Where an operation is exact (no bit was rounded off) nothing is perturbed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith, math

from deuteron.interpreter.described import Described
from deuteron.interpreter.dot import scaled_operands
from deuteron.interpreter.libdevice import is_exact
from deuteron.interpreter.memory import block_lanes
from deuteron.interpreter.reduce import axis_first, combiner
from deuteron.interpreter.rule_table import Rule
from deuteron.interpreter.rules import RULES
from deuteron.interpreter.values import dtype_of, round_float
from deuteron.ir import casts
from deuteron.ir.tt.atomic import AtomicCASOp, AtomicRMWOp, AtomicStoreOp
from deuteron.ir.tt.convert import BitcastOp, ClampFOp
from deuteron.ir.tt.descriptor import DescriptorScatterOp, DescriptorStoreOp
from deuteron.ir.tt.dot import DotOp, DotScaledOp, ScaledFormat
from deuteron.ir.tt.extern import ExternElementwiseOp
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.tt.reduce import ReduceOp, ScanOp
from deuteron.ir.types import bf16, bit_width_of, element_type_of, f8e5m2, f32, f64, is_float
from tests.fuzz.exactness import (
    LARGEST,
    LEAST,
    LEAST_NORMAL,
    MANTISSA,
    TF32_BITS,
    fits,
    operand_bits,
    sum_bits,
    sums_are_exact,
    wider,
)

# Of the floats that hold values, by the unsigned integers of their size.
_MANTISSA_AND_SIGN = {
    np.dtype(f"uint{bits}"): bits_type((1 << bits - 1) | (1 << mantissa) - 1)
    for bits, mantissa, bits_type in ((16, 10, np.uint16), (32, 23, np.uint32), (64, 52, np.uint64))
}

ULPS = 4
"""Of functions that are not rounded correctly; `exp` in fp32 has more, for the product with log2(e) is rounded."""


@dataclass
class Licence:
    """What a run may do. `taken` counts the operations that were perturbed.

    fuses  a product and a sum may be rounded once
    has_undefined  what is defined here and not in MLIR is anything: a quotient by 0, that of the least integer by -1,
                   a shift by as many bits as there are, or more
    """

    fuses: bool
    has_undefined: bool = False
    taken: int = 0


class Perturbation:
    """The rules of one run."""

    def __init__(self, rng: np.random.Generator, licence: Licence):
        self._rng, self._licence = rng, licence
        self._is_combining = False

    def rules(self) -> dict[str, Rule]:
        table: dict[str, Rule] = dict(RULES)
        for op_class, wrap in {
            arith.DivfOp: self._quotient,
            math.FmaOp: self._fma,
            arith.MaxnumfOp: self._extreme,
            arith.MinnumfOp: self._extreme,
            arith.MaximumfOp: self._extreme,
            arith.MinimumfOp: self._extreme,
            ClampFOp: self._clamp,
            casts.FPToSIOp: self._float_to_integer,
            casts.FPToUIOp: self._float_to_integer,
            BitcastOp: self._bitcast,
            arith.BitcastOp: self._bitcast,
            LoadOp: self._load,
            StoreOp: self._store,
            AtomicRMWOp: self._atomic,
            AtomicCASOp: self._atomic,
            ReduceOp: self._reduce,
            ScanOp: self._scan,
            ExternElementwiseOp: self._extern,
            DotOp: self._dot,
            DotScaledOp: self._dot_scaled,
            **dict.fromkeys(_FUNCTIONS, self._function),
        }.items():
            table[op_class.name] = wrap(RULES[op_class.name])
        for op_class in (StoreOp, AtomicStoreOp, DescriptorStoreOp, DescriptorScatterOp):
            table[op_class.name] = self._any_nan(table[op_class.name])
        table[arith.MulfOp.name] = self._product(RULES[arith.MulfOp.name])
        table[arith.AddfOp.name] = self._sum(RULES[arith.AddfOp.name])
        if self._licence.has_undefined:
            table |= {op_class.name: self._quotient_of_integers(RULES[op_class.name]) for op_class in _QUOTIENTS}
            table |= {op_class.name: self._shift(RULES[op_class.name]) for op_class in _SHIFTS}
        return table

    # -- integers

    def _quotient_of_integers(self, rule: Rule) -> Rule:
        def perturbed(ctx, op, a, b):
            is_least = np.asarray(a) == -(1 << bit_width_of(op.results[0].type) - 1)
            return self._anything(rule(ctx, op, a, b), (np.asarray(b) == 0) | (is_least & (np.asarray(b) == -1)))

        return perturbed

    def _shift(self, rule: Rule) -> Rule:
        def perturbed(ctx, op, a, b):
            bits = bit_width_of(op.results[0].type)
            return self._anything(rule(ctx, op, a, b), (np.asarray(b) < 0) | (np.asarray(b) >= bits))

        return perturbed

    # -- floats

    def _noise(self, result: np.ndarray, size: np.ndarray, type) -> np.ndarray:
        """`result` and up to `size` more or less, rounded to the type; what is not finite stays."""
        self._licence.taken += 1
        wide = np.asarray(result, np.float64)
        sign = self._rng.choice((-1.0, 1.0), np.shape(wide))
        moved = np.where(np.isfinite(wide), wide + sign * size, wide)
        if element_type_of(type) == f64:
            return moved
        return np.asarray(round_float(np.asarray(moved), type), dtype_of(type))[()]

    def _ulp(self, result: np.ndarray, type) -> np.ndarray:
        """The unit in the last place of each element."""
        element = element_type_of(type)
        with np.errstate(all="ignore"):
            exponent = np.frexp(np.abs(np.asarray(result, np.float64)))[1] - 1
            return np.maximum(np.ldexp(1.0, exponent - MANTISSA[element]), LEAST[element])

    def _product(self, rule: Rule) -> Rule:
        """It may be fused with the sum after it: then it is not rounded. Of many factors the order is free."""

        def perturbed(ctx, op, a, b):
            result = rule(ctx, op, a, b)
            is_free = self._licence.fuses or self._is_combining
            return self._rounded(op, result, np.multiply(wider(a), wider(b))) if is_free else result

        return perturbed

    def _sum(self, rule: Rule) -> Rule:
        """Of many terms the order is free: each sum on the way may be rounded otherwise."""

        def perturbed(ctx, op, a, b):
            result = rule(ctx, op, a, b)
            return self._rounded(op, result, np.add(wider(a), wider(b))) if self._is_combining else result

        return perturbed

    def _rounded(self, op, result: np.ndarray, exact: np.ndarray) -> np.ndarray:
        """With noise where a result was rounded."""
        type = op.results[0].type
        is_exact = (exact == wider(result)) | ~np.isfinite(result)
        if element_type_of(type) not in MANTISSA or np.all(is_exact):
            return result
        return self._noise(result, np.where(is_exact, 0.0, self._ulp(result, type)), type)

    def _fma(self, rule: Rule) -> Rule:
        """In fp64 the interpreter's is not rounded once."""

        def perturbed(ctx, op, *operands):
            result, type = rule(ctx, op, *operands), op.results[0].type
            return self._noise(result, self._ulp(result, type), type) if element_type_of(type) == f64 else result

        return perturbed

    def _quotient(self, rule: Rule) -> Rule:
        """fp32 on a GPU: two units in the last place, and 0 where the divisor is above 2**126."""

        def perturbed(ctx, op, a, b):
            result, type = rule(ctx, op, a, b), op.results[0].type
            if element_type_of(type) != f32:
                return result
            is_huge = np.isfinite(b) & (np.abs(b) > 2.0**126)
            moved = self._noise(result, 2 * self._ulp(result, type), type)
            is_tiny = np.abs(result) < LEAST_NORMAL[f32]
            chosen = np.where((is_huge | is_tiny) & (self._coins(moved) < 1), np.copysign(np.float32(0), moved), moved)
            nothing = np.where(is_huge & np.isinf(a), np.float32(np.nan), chosen)
            return np.where(self._coins(moved) < 1, nothing, chosen)[()].astype(np.float32)

        return perturbed

    def _coins(self, like: np.ndarray) -> np.ndarray:
        return self._rng.integers(0, 2, np.shape(like))

    def _function(self, rule: Rule) -> Rule:
        def perturbed(ctx, op, *operands):
            result, type = rule(ctx, op, *operands), op.results[0].type
            element = element_type_of(type)
            ulps = np.float64(ULPS)
            if op.name == "math.exp":
                ulps = ulps + np.abs(np.nan_to_num(np.asarray(operands[0], np.float64), posinf=0, neginf=0))
            size = ulps * self._ulp(result, type)
            if op.name in ("math.log", "math.log2", "math.sin", "math.cos"):
                size = np.maximum(size, ULPS * 2.0 ** -MANTISSA[element])
            moved = self._noise(result, size, type)
            is_tiny = (np.abs(result) < 2 * LEAST_NORMAL[element]) & (self._coins(moved) < 1)
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
            return self._either_zero(result, differ)

        return perturbed

    def _either_zero(self, result: np.ndarray, where: np.ndarray) -> np.ndarray:
        if not np.any(where):
            return result
        self._licence.taken += 1
        return np.where(where & (self._coins(result) < 1), -result, result)[()].astype(result.dtype)

    def _clamp(self, rule: Rule) -> Rule:
        """Of two zeros either; what is outside of the definition (a limit that is NaN, min > max) is anything."""

        def perturbed(ctx, op, x, low, high):
            result = rule(ctx, op, x, low, high)
            zeros = (np.asarray(result) == 0) & (np.asarray(x) == 0)
            result = self._either_zero(result, zeros & ((np.asarray(low) == 0) | (np.asarray(high) == 0)))
            return self._anything(result, ~(np.asarray(low) <= np.asarray(high)))

        return perturbed

    # -- what is not specified

    def _anything(self, result: np.ndarray, where: np.ndarray) -> np.ndarray:
        """Random bits there."""
        if not np.any(where):
            return result
        self._licence.taken += 1
        result = np.asarray(result)
        if result.dtype.kind == "b":
            random = self._rng.integers(0, 2, result.shape).astype(bool)
        elif result.dtype.kind == "f":
            random = self._rng.standard_normal(result.shape).astype(result.dtype)
        else:
            random = self._rng.integers(0, 1 << 64, result.shape, np.uint64).astype(result.dtype)
        return np.where(where, random, result)[()]

    def _float_to_integer(self, rule: Rule) -> Rule:
        def perturbed(ctx, op, src):
            element = element_type_of(op.results[0].type)
            bits, is_signed = element.width.data, op.name == casts.FPToSIOp.name
            wide = np.trunc(np.asarray(src, np.float64))
            low, end = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if is_signed else (0.0, 2.0**bits)
            return self._anything(rule(ctx, op, src), ~((wide >= low) & (wide < end)))

        return perturbed

    def _bitcast(self, rule: Rule) -> Rule:
        """Which NaN it is is not said."""

        def perturbed(ctx, op, src):
            result = rule(ctx, op, src)
            if is_float(op.operands[0].type):
                return self._anything(result, np.isnan(src))
            return result

        return perturbed

    # -- memory

    def _load(self, rule: Rule) -> Rule:
        def perturbed(ctx, op, ptr, mask=None, other=None):
            result = rule(ctx, op, ptr, *(value for value in (mask, other) if value is not None))
            return result if mask is None or other is not None else self._anything(result, ~np.asarray(mask))

        return perturbed

    def _order(self, addresses: np.ndarray) -> np.ndarray | None:
        """A random order of the lanes, where several have one address."""
        flat = np.ravel(addresses)
        if len(np.unique(flat)) == flat.size:
            return None
        self._licence.taken += 1
        return self._rng.permutation(flat.size)

    def _store(self, rule: Rule) -> Rule:
        """Lanes that store different values to one address leave anything there."""

        def perturbed(ctx, op, ptr, value, mask=None):
            if isinstance(ptr, Described):
                ptr, mask = block_lanes(ptr, op, op.value.type)
            rest = () if mask is None else (mask,)
            if self._order(ptr) is None:
                return rule(ctx, op, ptr, value, *rest)
            active = np.ones(np.size(ptr), bool) if mask is None else np.ravel(mask)
            return rule(ctx, op, ptr, self._anything(value, _disagree(ptr, value, active)), *rest)

        return perturbed

    def _any_nan(self, rule: Rule) -> Rule:
        """Which NaN is stored is not said, as another type may see."""

        def perturbed(ctx, op, *operands):
            types = [operand.type for operand in op.operands[: len(operands)]]
            return rule(ctx, op, *(self._other_nan(*pair) for pair in zip(operands, types, strict=True)))

        return perturbed

    def _other_nan(self, value, type):
        """With random bits in each NaN, and either sign; fp8 has few, of which the interpreter knows one."""
        if element_type_of(type) not in MANTISSA or not np.isnan(value).any():
            return value
        self._licence.taken += 1
        bits = np.dtype(f"uint{8 * value.dtype.itemsize}")
        most = np.iinfo(bits).max
        quiet = np.asarray(np.nan, value.dtype).view(bits)
        random = self._rng.integers(0, most, np.shape(value), bits, endpoint=True) & (_MANTISSA_AND_SIGN[bits])
        return np.where(np.isnan(value), (random | quiet).view(value.dtype), value)[()]

    def _atomic(self, rule: Rule) -> Rule:
        def perturbed(ctx, op, ptr, *operands):
            order = self._order(ptr)
            mask = operands[1] if op.name == AtomicRMWOp.name and len(operands) > 1 else None
            if order is None:
                result = rule(ctx, op, ptr, *operands)
            else:
                shuffled = rule(ctx, op, *(np.ravel(value)[order] for value in (ptr, *operands)))
                result = np.empty_like(shuffled)
                result[order] = shuffled
                result = result.reshape(np.shape(ptr))
            return result if mask is None else self._anything(result, ~np.asarray(mask))

        return perturbed

    # -- along an axis

    @contextmanager
    def _combining(self, srcs: tuple[np.ndarray, ...], extent: int) -> Iterator[None]:
        if extent > 1 and (len(srcs) > 1 or any(np.asarray(src).dtype.kind == "f" for src in srcs)):
            self._licence.taken += 1
        self._is_combining = True
        yield
        self._is_combining = False

    def _reduce(self, rule: Rule) -> Rule:
        """The elements in another order, a random number at a time, and these in pairs at the end."""

        def perturbed(ctx, op, *srcs):
            combine, tiles = combiner(ctx, op), axis_first(srcs, op.axis.value.data)
            extent = len(tiles[0])
            order = self._rng.permutation(extent)
            width = 1 << int(self._rng.integers(0, extent.bit_length()))
            rows = [[tile[order[i : i + width]] for tile in tiles] for i in range(0, extent, width)]
            with self._combining(srcs, extent):
                total = functools.reduce(combine, rows)
                while (count := len(total[0])) > 1:
                    total = combine([t[: count // 2] for t in total], [t[count // 2 :] for t in total])
            return tuple(tile[0] for tile in total)

        return perturbed

    def _scan(self, rule: Rule) -> Rule:
        """In pieces of a random length: all scanned side by side, then their totals, in steps that double."""

        def perturbed(ctx, op, *srcs):
            combine, axis = combiner(ctx, op), op.axis.value.data
            step = -1 if op.reverse.value.data else 1
            tiles = [tile[::step] for tile in axis_first(srcs, axis)]
            extent, rest = len(tiles[0]), np.shape(tiles[0])[1:]
            length = 1 << int(self._rng.integers(0, extent.bit_length()))
            pieces = [tile.reshape(extent // length, length, *rest) for tile in tiles]
            with self._combining(srcs, extent):
                rows = [[piece[:, 0] for piece in pieces]]
                for index in range(1, length):
                    rows.append(combine(rows[-1], [piece[:, index] for piece in pieces]))
                totals = _scan_by_doubling(combine, rows[-1])
                before = [total[:-1] for total in totals]
                rows = [*(_later_combined(combine, before, row) for row in rows[:-1]), totals]
            scanned = [np.stack(column, 1).reshape(extent, *rest)[::step] for column in zip(*rows, strict=True)]
            return tuple(np.moveaxis(tile, 0, axis) for tile in scanned)

        return perturbed

    # -- products

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
            return self._summed(result, wide, type, bits, sum_bits(f8e5m2 if is_fp8 else f32, type))

        return perturbed

    def _flushed(self, result: np.ndarray, wide: list[np.ndarray], type) -> np.ndarray:
        """Products of bf16 may take subnormal operands, products and sums for zero (AVX512_BF16 does)."""
        a, b = (np.nan_to_num(np.abs(tile)) for tile in wide[:2])
        small = [np.where(tile < LEAST_NORMAL[bf16], tile, 0) for tile in (a, b)]
        lost = np.matmul(small[0], b) + np.matmul(a, small[1]) + 2 * np.shape(a)[-1] * LEAST_NORMAL[bf16]
        return self._noise(result, lost, type)

    def _summed(
        self, result: np.ndarray, wide: list[np.ndarray], type, operand_bits: int | None, sum_bits: int
    ) -> np.ndarray:
        """A product of operands of which so many bits count, in sums of so many bits."""
        sizes = np.matmul(np.abs(wide[0]), np.abs(wide[1])) + np.abs(wide[2])
        is_exact = sums_are_exact(wide, sizes, sum_bits)
        if operand_bits is not None and not all(fits(tile, operand_bits) for tile in wide[:2]):
            is_exact = False
            cut = np.matmul(np.abs(wide[0]), np.abs(wide[1])) * 2.0**-operand_bits * 2
            result = self._noise(result, cut, type)
        if is_exact:
            return result
        depth, unit = np.shape(wide[0])[-1], 2.0 ** -(sum_bits - 1)
        noisy = self._noise(result, unit * sizes * min(depth, 16), type)
        # A partial sum may be infinite where the whole is not.
        return self._anything(noisy, sizes > LARGEST[element_type_of(type)] / 2)


def _later_combined(combine: Callable, before: list[np.ndarray], row: list[np.ndarray]) -> list[np.ndarray]:
    """The elements of a row, all but the first combined with what is before them."""
    if not len(before[0]):
        return row
    later = combine(before, [tile[1:] for tile in row])
    return [np.concatenate([tile[:1], new]) for tile, new in zip(row, later, strict=True)]


def _scan_by_doubling(combine: Callable, tiles: list[np.ndarray]) -> list[np.ndarray]:
    distance = 1
    while distance < len(tiles[0]):
        later = combine([tile[:-distance] for tile in tiles], [tile[distance:] for tile in tiles])
        tiles = [np.concatenate([tile[:distance], new]) for tile, new in zip(tiles, later, strict=True)]
        distance *= 2
    return tiles


def _disagree(addresses: np.ndarray, value: np.ndarray, active: np.ndarray) -> np.ndarray:
    """The lanes whose address another active lane stores something else to."""
    flat, stored = np.ravel(addresses), np.ravel(value)
    _, first, group = np.unique(flat[active], return_index=True, return_inverse=True)
    differs = stored[active] != stored[active][first][group]
    is_bad = np.isin(flat, flat[active][differs])
    return is_bad.reshape(np.shape(addresses))


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

_QUOTIENTS = (arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp)
_SHIFTS = (arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp)


def perturbed_rules(rng: np.random.Generator, licence: Licence) -> dict[str, Callable]:
    return Perturbation(rng, licence).rules()
