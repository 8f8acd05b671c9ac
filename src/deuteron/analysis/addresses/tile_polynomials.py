"""Integers and pointers as polynomials over the scalars of a kernel and the coordinates of a tile.

    rows = pid * 128 + arange(0, 128)                       128 * pid + i0
    a + rows[:, None] * stride + arange(0, 64)[None, :]     a + 128 * pid * stride + i0 * stride + i1
    a loop that adds 64 to it, from 0 in steps of 1         ... + 64 * k
    after that loop, which goes to n                        ... + 64 * n, if n is not negative

Pointers count in elements. A tile that a loop carries and advances by what does not change is what it starts with, plus
that times the number of the iteration; what the loop leaves is plus that times how many there are, where this is known
without rounding. What is no polynomial is an atom, if it is a scalar; tiles are unknown then.
Integers of 32 bits and more are taken not to overflow; narrower ones are no polynomials. What numbers of the kernel
make overflow on the way does not count: (i0 * 3 + 7) * 0xAAAAAAAB is i0 + 0xAAAAAAAD, of 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from deuteron.analysis.addresses.polynomial import Atom, Polynomial, coordinate
from deuteron.analysis.axis.axis_info import MIN_BITS
from deuteron.analysis.axis.natural import is_natural, minimum_of
from deuteron.analysis.memo import evaluate
from deuteron.ir.arith import constant_value
from deuteron.ir.casts import ExtSIOp, TruncIOp
from deuteron.ir.reached import reached
from deuteron.ir.tt.memory import AddPtrOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, MakeRangeOp, SplatOp, TransOp
from deuteron.ir.types import bit_width_of, element_type_of, i32, is_integer, is_pointer, is_tile, shape_of

# Of a product, and of one of its terms: addresses have a tenth of that; what is squared 14 times would have 16,384.
MOST_TERMS, MOST_FACTORS = 1024, 32


@dataclass(frozen=True)
class Wrap:
    """A tile that wraps around: `dividend` modulo `divisor`. It is the dividend where that is less."""

    dividend: Polynomial
    divisor: Polynomial


class TilePolynomials:
    """The polynomials of a function's values, made when they are asked for.

    Tiles modulo a scalar count as their dividends, which holds where these are less than the divisors: `wraps_in` says
    which are in a value. A loop has as many iterations as its bounds say where they do not overflow:
    `loops_counted_in`. `naturals` are known not to be negative.
    """

    def __init__(self, naturals: Set[SSAValue] = frozenset()) -> None:
        self._naturals = naturals
        self._known: dict[SSAValue, Polynomial | None] = {}
        self._atoms: dict[Hashable, Atom] = {}
        self._wraps: dict[SSAValue, Wrap] = {}
        self._counted: dict[SSAValue, scf.ForOp] = {}
        self._begun: dict[SSAValue, Polynomial] = {}  # what iterations begin with whose advance is being computed

    def of(self, value: SSAValue) -> Polynomial | None:
        """None of a tile that is no polynomial, and of what is no integer or pointer."""
        return evaluate(value, self._known, self._asked_of, self._find)

    def _find(self, value: SSAValue) -> Polynomial | None:
        made = self._make(value)
        if made is not None:
            return made.wrapped(bit_width_of(value.type))
        scalar = not is_tile(value.type) and _is_number(value)
        return Polynomial.of(self.atom(value)) if scalar else None

    def range_of(self, loop: scf.ForOp) -> Polynomial | None:
        """How far a loop goes; None of one over narrow integers."""
        begin, end = self.of(loop.lb), self.of(loop.ub)
        return end - begin if begin is not None and end is not None else None

    def most_iterations(self, loop: scf.ForOp) -> int | None:
        """How many a loop over i32 has at most, if it ends so far from its begin or before: 2 of
        range(n, min(n + 8, m), 4).

        Where the sum overflows it has fewer. The least of both may be computed in 64 bits, in which it does not.
        """
        if loop.lb.type != i32 or _step(loop) <= 0:
            return None
        ends = [*minimum_of(loop.ub), *_wide_minimum_of(loop.ub)]
        distances = [self._distance(loop.lb, end) for end in ends]
        return min((-(-distance // _step(loop)) for distance in distances if distance is not None), default=None)

    def _distance(self, begin: SSAValue, end: SSAValue) -> int | None:
        """From one number to another, which is not below it; None: it is not known, or not of these numbers alone."""
        if end.type != i32:
            return _added_to(begin, end)
        distance = (self.of(end) - self.of(begin)).number if self.of(begin) is not None else None
        if distance is None or not 0 <= distance < 1 << 31:
            return None
        return None if any(self.loops_counted_in(value) for value in (begin, end)) else distance

    def atom(self, value: SSAValue) -> Atom:
        return self._atom_of(value, value)

    def _atom_of(self, key: Hashable, value: SSAValue) -> Atom:
        return self._atoms.setdefault(key, Atom(len(self._atoms), value))

    def with_axes(self, op: ExpandDimsOp | TransOp, source: Polynomial) -> Polynomial:
        """What is said of the source of an op, with the axes of its result."""
        return source.renamed(lambda atom: atom if atom.axis is None else coordinate(op.result_axis(atom.axis)))

    @property
    def _rules(self) -> Mapping[type[Operation], Rule]:
        return RULES

    def _asked_of(self, value: SSAValue) -> Sequence[SSAValue]:
        """What the rule of an op asks for; loops ask for themselves."""
        op = value.owner
        return op.operands if isinstance(op, Operation) and type(op) in self._rules and _is_number(value) else ()

    def add_wrap(self, value: SSAValue, wrap: Wrap) -> None:
        self._wraps[value] = wrap

    def wraps_in(self, value: SSAValue) -> list[Wrap]:
        """The tiles that wrap around which a value is made of."""
        return [self._wraps[source] for source in self._known_sources(value) if source in self._wraps]

    def loops_counted_in(self, value: SSAValue) -> list[scf.ForOp]:
        """The loops that a value comes after whose number of iterations it is made of."""
        return [self._counted[source] for source in self._known_sources(value) if source in self._counted]

    def _known_sources(self, value: SSAValue) -> list[SSAValue]:
        """Polynomials tell, whether or not they were asked for."""
        sources = list(sources_of(value))
        for source in sources:
            self.of(source)
        return sources

    def _make(self, value: SSAValue) -> Polynomial | None:
        if not _is_number(value):
            return None
        number = constant_value(value)
        if number is not None:
            return Polynomial.constant(int(number))
        if isinstance(value, BlockArgument):
            return self._of_argument(value)
        if isinstance(value.owner, scf.ForOp):
            return self._of_result(value.owner, value.index)
        rule = self._rules.get(type(value.owner))
        return rule(self, value.owner) if rule is not None else None

    def _of_argument(self, argument: BlockArgument) -> Polynomial | None:
        loop = argument.block.parent_op()
        if not isinstance(loop, scf.ForOp) or argument.index == 0:
            return None
        start, advance = self.of(loop.iter_args[argument.index - 1]), self._advance(argument, loop)
        if start is None or advance is None:
            return None
        if advance.number == 0:
            return start
        if self.of(loop.lb) is None:
            return None
        distance = self._progress(loop) * advance
        steps = distance.over(Polynomial.constant(_step(loop))) if _step(loop) else None
        return start + steps if steps is not None else None

    def _of_result(self, loop: scf.ForOp, index: int) -> Polynomial | None:
        """What a loop leaves of a value that it advances, where its range is a multiple of its step."""
        start, advance = self.of(loop.iter_args[index]), self._advance(loop.body.block.args[1 + index], loop)
        if start is None or advance is None:
            return None
        if advance.number == 0:
            return start
        distance = self.range_of(loop)
        is_known = distance is not None and _step(loop) > 0
        count = distance.over(Polynomial.constant(_step(loop))) if is_known else None
        if count is None or not is_natural(count, self._naturals):
            return None
        self._counted[loop.results[index]] = loop
        return start + count * advance

    def _advance(self, argument: BlockArgument, loop: scf.ForOp) -> Polynomial | None:
        """By how much an iteration advances what it carries, where that does not change.

        What is known of values in the loop says what they are by the index, and not by what the iteration begins with.
        """
        itself, outer, begun = Polynomial.of(self.atom(argument)), self._known, self._begun
        self._begun = {**begun, argument: itself}
        self._known = {value: known for value, known in outer.items() if not is_in(value, loop)} | self._begun
        following = self.of(loop.body.block.last_op.operands[argument.index - 1])
        self._known, self._begun = outer, begun
        advance = following - itself if following is not None else None
        if advance is None or any(atom.value is None for atom in advance.atoms) or changes_in(advance, loop):
            return None
        return advance

    def _progress(self, loop: scf.ForOp) -> Polynomial:
        """How far the induction variable is from where it began."""
        return Polynomial.of(self.atom(loop.body.block.args[0])) - self.of(loop.lb)


def sources_of(value: SSAValue) -> Iterator[SSAValue]:
    """What a value is made of, itself first, also in earlier iterations of loops."""
    return reached([value], _sources)


def _sources(value: SSAValue) -> Sequence[SSAValue]:
    if not isinstance(value, BlockArgument):
        op = value.owner
        return _carried(op, value.index) if isinstance(op, scf.ForOp) else op.operands
    loop = value.block.parent_op()
    if not isinstance(loop, scf.ForOp) or value.index == 0:
        return ()
    return _carried(loop, value.index - 1)


def _carried(loop: scf.ForOp, index: int) -> Sequence[SSAValue]:
    """What a value that a loop carries begins with, and what its iterations make of it."""
    return loop.iter_args[index], loop.body.block.last_op.operands[index]


def changes_in(polynomial: Polynomial, loop: scf.ForOp) -> bool:
    """Whether it depends on what is computed in a loop."""
    return any(atom.value is not None and is_in(atom.value, loop) for atom in polynomial.atoms)


def is_in(value: SSAValue, loop: scf.ForOp) -> bool:
    return loop.is_ancestor(value.owner)


def _step(loop: scf.ForOp) -> int:
    """The step of a loop; 0 where it is no constant."""
    return constant_value(loop.step) or 0


def _is_number(value: SSAValue) -> bool:
    """Narrow integers wrap around where a kernel means them to: no polynomial says so."""
    if is_integer(value.type):
        return bit_width_of(value.type) >= MIN_BITS
    return is_pointer(element_type_of(value.type))


def _binary(combine: Callable[[Polynomial, Polynomial], Polynomial | None]) -> Rule:
    def rule(known: TilePolynomials, op: Operation) -> Polynomial | None:
        lhs, rhs = (known.of(operand) for operand in op.operands)
        return None if lhs is None or rhs is None else combine(lhs, rhs)

    return rule


def _product(lhs: Polynomial, rhs: Polynomial) -> Polynomial | None:
    """Of what is multiplied by itself again and again no polynomial is made."""
    is_large = lhs.num_terms * rhs.num_terms > MOST_TERMS or lhs.degree + rhs.degree > MOST_FACTORS
    return None if is_large else lhs * rhs


def _same(known: TilePolynomials, op: Operation) -> Polynomial | None:
    return known.of(op.operands[0])


def _make_range(known: TilePolynomials, op: MakeRangeOp) -> Polynomial:
    start = Polynomial.constant(op.start.value.data)
    return start if shape_of(op.result.type) == (1,) else start + Polynomial.of(coordinate(0))


def _with_axes(known: TilePolynomials, op: ExpandDimsOp | TransOp) -> Polynomial | None:
    source = known.of(op.src)
    return None if source is None else known.with_axes(op, source)


def _remainder(known: TilePolynomials, op: arith.RemSIOp) -> Polynomial | None:
    dividend, divisor = known.of(op.lhs), known.of(op.rhs)
    if not is_tile(op.result.type) or dividend is None or divisor is None:
        return None
    known.add_wrap(op.result, Wrap(dividend, divisor))
    return dividend


Rule = Callable[[TilePolynomials, Operation], Polynomial | None]


def _wide_minimum_of(end: SSAValue) -> list[SSAValue]:
    """The i64 of which an i32 is the least, if that is none below all i32, which is another number when it is cut."""
    wide = minimum_of(end.owner.operands[0]) if isinstance(end.owner, TruncIOp) else []
    return wide if all(_i32_of(one) is not None for one in wide) else []


def _i32_of(wide: SSAValue) -> tuple[SSAValue, int] | None:
    """The i32 and the natural number whose sum in 64 bits a value is."""
    op, number = wide.owner, 0
    if isinstance(op, arith.AddiOp) and constant_value(op.rhs) is not None:
        op, number = op.lhs.owner, int(constant_value(op.rhs))
    return (op.input, number) if number >= 0 and isinstance(op, ExtSIOp) and op.input.type == i32 else None


def _added_to(begin: SSAValue, end: SSAValue) -> int | None:
    """What is added in 64 bits to one number to have another; None where that is not all."""
    found = _i32_of(end)
    return found[1] if found is not None and found[0] is begin else None


RULES: Mapping[type[Operation], Rule] = {
    arith.AddiOp: _binary(Polynomial.__add__),
    arith.SubiOp: _binary(Polynomial.__sub__),
    arith.MuliOp: _binary(_product),
    AddPtrOp: _binary(Polynomial.__add__),
    ExtSIOp: _same,
    SplatOp: _same,
    BroadcastOp: _same,
    MakeRangeOp: _make_range,
    ExpandDimsOp: _with_axes,
    TransOp: _with_axes,
    arith.RemSIOp: _remainder,
}
