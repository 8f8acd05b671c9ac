"""Splits loops of dots where a mask of their scores begins, or ceases, to hold for whole tiles.

    for k in range(0, first + 128, 64):                      for k in range(0, first, 64):
        s = dot(q, ...)                                          s = dot(q, ...)
        s = where(rows >= k + columns, s, -inf)        ->        ...
        ...                                                  for k in range(first, first + 128, 64):
                                                                 s = where(rows >= k + columns, dot(q, ...), -inf)
                                                                 ...

`rows` begin at `first`, `columns` are 64: before it all scores count. A condition is a conjunction of comparisons, each
of which holds for all elements of a tile from some index on, or up to one; of a window there are both, and three loops.
In the middle the comparisons are constants, wherever they are used: masks of loads go as well. The loops share what
they carry. Left alone is a loop that goes on where another has ended: who wrote it has split it.
Where what is compared overflows, or a bound of the loop does, no index is in the middle: which launches these are is
found before the loop, unless a bound on the numbers says that there are none (`exact_comparisons`). A last loop that
has a few iterations says so by its end, min(first + 128, end), for passes that do something for iterations to come.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from deuteron.analysis.addresses.exact_comparisons import fits_in_32_bits, fits_in_64_bits, least_in_tile, needed
from deuteron.analysis.addresses.polynomial import Polynomial
from deuteron.analysis.addresses.strided_tile import ONE, positive
from deuteron.analysis.addresses.tile_polynomials import TilePolynomials, changes_in
from deuteron.analysis.axis.natural import MOST_ADDED, has_small_factors, is_natural, minimum_of
from deuteron.ir.arith import CmpIOp, SelectOp, constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.casts import ExtSIOp, TruncIOp
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.function import FuncOp, function_of, functions_in
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, SplatOp, TransOp
from deuteron.ir.types import bit_width_of, element_type_of, i32, i64, is_tile, shape_of
from deuteron.passes.carried_values import is_innermost
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.polynomial_values import emit
from deuteron.passes.rewrite import replace

# Of a loop, which is there two or three times afterwards: a bound on the time to compile, not measured.
MAX_OPS = 250
_SHAPES = (BroadcastOp, ExpandDimsOp, SplatOp, TransOp)


@dataclass
class _Middle:
    """The indices of a loop for which comparisons hold everywhere: at least `lower`, less than `upper`, all of them.

    None does if any of `naturals` is negative.
    """

    lower: list[Polynomial] = field(default_factory=list)
    upper: list[Polynomial] = field(default_factory=list)
    naturals: list[Polynomial] = field(default_factory=list)
    comparisons: list[CmpIOp] = field(default_factory=list)

    def add(self, other: _Middle) -> None:
        self.lower += [bound for bound in other.lower if bound not in self.lower]
        self.upper += [bound for bound in other.upper if bound not in self.upper]
        self.naturals += [one for one in other.naturals if one not in self.naturals]
        self.comparisons += [one for one in other.comparisons if one not in self.comparisons]


@dataclass(frozen=True)
class SplitLoops(Optimisation):
    """Splits each innermost loop of dots whose scores are masked."""

    name = "split-loops"

    rows: int = 1  # that its dots have at least: where there are fewer, memory is what takes the time

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            _split_loops(func, self.rows)


def _split_loops(func: FuncOp, rows: int) -> None:
    loops, known = nested_ops(func, scf.ForOp), TilePolynomials()
    ends = [known.of(loop.ub) for loop in loops]
    for loop in loops:
        middle = _middle_of(known, loop) if _may_be_split(loop, rows) and known.of(loop.lb) not in ends else None
        if middle is not None:
            _Split(known, loop, middle).rewrite()


def _may_be_split(loop: scf.ForOp, rows: int) -> bool:
    dots = [op for op in loop.body.block.ops if isinstance(op, DotOp)]
    multiplies = any(shape_of(dot.result.type)[-2] >= rows for dot in dots)
    counts = loop.lb.type == i32 and (constant_value(loop.step) or 0) > 0
    return multiplies and counts and is_innermost(loop) and len(nested_ops(loop)) <= MAX_OPS


def _middle_of(known: TilePolynomials, loop: scf.ForOp) -> _Middle | None:
    """Where all conditions on tiles hold that can be told; None where there is none."""
    middle = _Middle()
    for op in loop.body.block.ops:
        if isinstance(op, SelectOp) and is_tile(op.condition.type) and len(shape_of(op.condition.type)) == 2:
            found = _holds(known, loop, op.condition)
            if found is not None:
                middle.add(found)
    return middle if middle.comparisons else None


def _holds(known: TilePolynomials, loop: scf.ForOp, condition: SSAValue) -> _Middle | None:
    """Where a condition holds for all elements; None where that is not told by the index."""
    op = condition.owner
    if isinstance(op, arith.AndIOp):
        both = [_holds(known, loop, operand) for operand in op.operands]
        if None in both:
            return None
        both[0].add(both[1])
        return both[0]
    if isinstance(op, _SHAPES):
        return _holds(known, loop, op.operands[0])
    return _compared(known, loop, op) if isinstance(op, CmpIOp) and loop.is_ancestor(op) else None


def _compared(known: TilePolynomials, loop: scf.ForOp, op: CmpIOp) -> _Middle | None:
    conditions, middle = positive(known, op.result), _Middle(comparisons=[op])
    is_wide = bit_width_of(element_type_of(op.lhs.type)) > bit_width_of(i32)
    if is_wide or conditions is None or any(known.wraps_in(operand) for operand in op.operands):
        return None
    naturals = needed(known, op, loop)
    if naturals is None or not all(_is_free(one, loop) for one in naturals):
        return None
    middle.naturals += naturals
    extents = shape_of(op.result.type) if is_tile(op.result.type) else ()
    index = Polynomial.of(known.atom(loop.body.block.args[0]))
    for condition in conditions:
        least = least_in_tile(condition, extents)
        rest = least - index if least is not None and _is_free(least - index, loop) else None
        if rest is not None:  # index + rest > 0
            middle.lower.append(ONE - rest)
            continue
        rest = least + index if least is not None and _is_free(least + index, loop) else None
        if rest is None:
            return None
        middle.upper.append(rest)  # rest - index > 0
    return middle


def _is_free(polynomial: Polynomial, loop: scf.ForOp) -> bool:
    """Whether a polynomial can be computed before a loop, in 64 bits."""
    is_narrow = all(bit_width_of(atom.value.type) <= 32 for atom in polynomial.atoms)
    is_small = has_small_factors(polynomial) and fits_in_64_bits(polynomial)
    return is_narrow and is_small and not changes_in(polynomial, loop)


class _Split:
    """The rewrite of one loop."""

    def __init__(self, known: TilePolynomials, loop: scf.ForOp, middle: _Middle):
        self._known, self._loop, self._middle = known, loop, middle
        self._begin, self._step = known.of(loop.lb), constant_value(loop.step)
        self._b = Builder.before(loop)

    def rewrite(self) -> None:
        loop, b, middle = self._loop, self._b, self._middle
        if not _is_free(self._begin, loop) or any(self._is_at_begin(bound) for bound in middle.upper):
            return
        begin = self._extremum(arith.MaxSIOp, middle.lower) if middle.lower else loop.lb
        end = self._extremum(arith.MinSIOp, middle.upper) if middle.upper else loop.ub
        if middle.naturals and middle.lower:
            begin = self._unless_negative(begin, loop.ub)
        elif middle.naturals:
            end = self._unless_negative(end, loop.lb)
        carried: Sequence[SSAValue] = loop.iter_args
        if middle.lower:
            carried = self._part(loop.lb, b.value(arith.MinSIOp(begin, loop.ub)), carried).results
        limit = end if self._is_within(end) else b.value(arith.MinSIOp(end, loop.ub))
        part = self._part(begin, limit, carried)
        self._hold_in(part)
        carried = part.results
        if middle.upper:
            rest = b.value(arith.MaxSIOp(begin, end)) if middle.lower else end
            carried = self._part(rest, self._end_of_rest(rest), carried).results
        replace(loop, carried)

    def _end_of_rest(self, rest: SSAValue) -> SSAValue:
        """The end of the loop; where it is certainly a few iterations after the middle, the least of both. That of an
        exact index is a number that the kernel computes itself, also if it overflows; others are summed in 64 bits.
        """
        middle, b = self._middle, self._b
        numbers = [self._most_after(bound) for bound in middle.upper]
        if middle.lower or middle.naturals or None in numbers:
            return self._loop.ub
        if len(numbers) == 1 and self._exact_index(middle.upper[0]) is not None:
            return b.value(arith.MinSIOp(b.value(arith.AddiOp(rest, b.constant(numbers[0], i32))), self._loop.ub))
        wide, end = (b.value(ExtSIOp(value, i64)) for value in (rest, self._loop.ub))
        last = b.value(arith.AddiOp(wide, b.constant(max(numbers), i64)))
        return b.value(TruncIOp(b.value(arith.MinSIOp(last, end)), i32))

    def _most_after(self, bound: Polynomial) -> int | None:
        """How far the loop goes on at most from the first index that is not below a bound; None: that is not known."""
        first, ends = self._exact_index(bound), minimum_of(self._loop.ub)
        if first is None:
            first, ends = bound, [end for end in ends if self._is_no_more_than_its_sum(end)]
        numbers = [(self._known.of(end) - first).number for end in ends if not self._known.loops_counted_in(end)]
        return min((one for one in numbers if one is not None and 0 < one <= MOST_ADDED), default=None)

    def _is_no_more_than_its_sum(self, end: SSAValue) -> bool:
        """Whether it is less where it overflows, which a sum that is negative is not."""
        polynomial = self._known.of(end)
        return polynomial == Polynomial.of(self._known.atom(end)) or is_natural(polynomial)

    def _unless_negative(self, index: SSAValue, otherwise: SSAValue) -> SSAValue:
        """An index, or another one if not all is in range that has to be."""
        b, zero = self._b, self._b.constant(0, i64)
        for one in self._middle.naturals:
            is_natural = b.value(CmpIOp(emit(b, one, i64), zero, "sge"))
            index = b.value(SelectOp(is_natural, index, otherwise))
        return index

    def _is_at_begin(self, bound: Polynomial) -> bool:
        """Whether no index is certainly below a bound."""
        distance = (bound - self._begin).number
        return distance is not None and distance <= 0

    def _is_within(self, end: SSAValue) -> bool:
        """Whether it is no further than the end of the loop, whatever overflows."""
        distance = self._known.of(self._loop.ub) - self._known.of(end)
        return end is self._loop.ub or (not self._middle.naturals and is_natural(distance))

    def _extremum(self, kind: type[Operation], bounds: Iterable[Polynomial]) -> SSAValue:
        values = [self._first_index(bound) for bound in bounds]
        while len(values) > 1:
            values = [self._b.value(kind(*values[:2])), *values[2:]]
        return values[0]

    def _first_index(self, bound: Polynomial) -> SSAValue:
        """The first index of the loop that is not below a bound, were the loop endless."""
        index = self._exact_index(bound)
        return self._computed_index(bound) if index is None else emit(self._b, index, i32)

    def _exact_index(self, bound: Polynomial) -> Polynomial | None:
        """The same, where it is a polynomial that is certainly none of the loop's past, and does not overflow."""
        count = _quotient(bound - self._begin + Polynomial.constant(self._step - 1), self._step)
        if count is None or not is_natural(count):
            return None
        index = self._begin + count * Polynomial.constant(self._step)
        return index if fits_in_32_bits(index, function_of(self._loop)) else None

    def _computed_index(self, bound: Polynomial) -> SSAValue:
        """The same, but no further than the end; in 64 bits, for a bound may be anything."""
        b, step = self._b, self._b.constant(self._step, i64)
        distance = emit(b, bound - self._begin + Polynomial.constant(self._step - 1), i64)
        count = b.value(arith.MaxSIOp(b.value(arith.DivSIOp(distance, step)), b.constant(0, i64)))
        begin, end = (b.value(ExtSIOp(value, i64)) for value in (self._loop.lb, self._loop.ub))
        index = b.value(arith.AddiOp(begin, b.value(arith.MuliOp(count, step))))
        index = b.value(TruncIOp(b.value(arith.MinSIOp(index, end)), i32))
        return b.value(arith.MaxSIOp(index, self._loop.lb))  # so that it is known not to be negative where that is not

    def _part(self, begin: SSAValue, end: SSAValue, carried: Sequence[SSAValue]) -> scf.ForOp:
        part = self._b.insert(self._loop.clone())
        part.operands = [begin, end, self._loop.step, *carried]
        for result, like in zip(part.results, self._loop.results, strict=True):
            result.name_hint = like.name_hint
        return part

    def _hold_in(self, part: scf.ForOp) -> None:
        """Make constants of the comparisons in a part."""
        pairs = zip(nested_ops(self._loop), nested_ops(part), strict=True)
        for op in [clone for op, clone in pairs if op in self._middle.comparisons]:
            replace(op, [Builder.before(op).constant(True, op.result.type)])


def _quotient(polynomial: Polynomial, divisor: int) -> Polynomial | None:
    """Rounded down, where all but the number in it is a multiple of the divisor."""
    number = _number_in(polynomial)
    quotient = (polynomial - Polynomial.constant(number)).over(Polynomial.constant(divisor))
    return None if quotient is None else quotient + Polynomial.constant(number // divisor)


def _number_in(polynomial: Polynomial) -> int:
    """The term without atoms."""
    number, _ = polynomial.split(lambda monomial: not monomial)
    return number.number or 0
