"""The largest numbers that integers can be, where they are certainly not negative: nothing is taken not to overflow.

    k in range(0, n, 64)                      2**31 - 64: below n, and a multiple of 64
    k + arange(0, 64)                         2**31 - 1, and so is that of iterations ahead, where these come
    pid * 128 + arange(0, 128)                2**31 - 1 in a grid of up to 2**24 programs; in larger ones not known

A launch can have 2**31 - 1 programs along the first axis of its grid, so that what is made of their ids is known only
of smaller grids, mostly: those are noted on the function, and a launch of a larger one takes a kernel that was compiled
with `tt.many_programs`, which relies on none. Along the other axes a GPU has 65,535; where nothing is noted, as for the
CPU, there may be as many as along the first.

    tt.func {tt.most_programs = 16777216 : i32}
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd
from operator import add

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, UnitAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from deuteron.analysis.axis.natural import counting_loop, is_empty_below_zero, minimum_of, unrounded
from deuteron.analysis.memo import evaluate
from deuteron.ir.arith import AHEAD, constant_value
from deuteron.ir.casts import ExtSIOp, TruncIOp
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.program import GetNumProgramsOp, GetProgramIdOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, MakeRangeOp, ReshapeOp, SplatOp, TransOp
from deuteron.ir.ttg.convert import ConvertLayoutOp
from deuteron.ir.ttng.cluster import ClusterCTARankOp
from deuteron.ir.types import bit_width_of, element_type_of, i32, is_tile

NOTED, MANY = "tt.most_programs", "tt.many_programs"
# The most programs along the first axis of a grid, and along the others of a GPU's; the most CTAs of a cluster.
MOST_PROGRAMS, MOST_BESIDE, MOST_CTAS = 2**31 - 1, 2**16 - 1, 16
# Grids of which one is noted. Where not even in the last one nothing overflows, that is left for no launch to find out.
_GRIDS = (MOST_PROGRAMS, *(1 << bits for bits in range(30, 15, -1)))


Most = Callable[[SSAValue], int | None]
"""The largest number that an integer can be; None where it may be negative."""


def most_programs(value: SSAValue) -> int | None:
    """The largest grid in which no element of a tile, or a scalar, of 32 bits or more is negative; None: not known."""
    if bit_width_of(element_type_of(value.type)) < bit_width_of(i32):
        return None
    return _largest_grid(lambda most: most(value) is not None)


def relies_on_natural(value: SSAValue, func: FuncOp) -> bool:
    """Whether no element of a tile, or a scalar, is negative in the grids that the function is launched with."""
    grid = most_programs(value)
    return grid is not None and _is_noted(grid, func)


def relies_on(holds: Callable[[Most], bool], func: FuncOp) -> bool:
    """Whether something holds in the grids that the function is launched with, whatever divides."""
    grid = _largest_grid(holds)
    if grid is None:
        return False
    ranges = _Ranges(grid)
    holds(ranges.most)
    return not ranges.divides_by_unknown and _is_noted(grid, func)


def largest_in_any_grid(value: SSAValue) -> int | None:
    """The largest number that an element of a tile, or a scalar, can be, if none is negative; None: not known."""
    ranges = _Ranges(MOST_PROGRAMS, MOST_PROGRAMS)
    most = ranges.most(value)
    return None if ranges.divides_by_unknown else most


def _largest_grid(holds: Callable[[Most], bool]) -> int | None:
    if not holds(_Ranges(_GRIDS[-1]).most):
        return None
    return next(grid for grid in _GRIDS if holds(_Ranges(grid).most))


def _is_noted(grid: int, func: FuncOp) -> bool:
    """Whether a function is launched with no larger grids; it is noted if it was not."""
    if grid < MOST_PROGRAMS and MANY in func.attributes:
        return False
    if grid < noted_programs(func):
        func.attributes[NOTED] = IntegerAttr(grid, i32)
    return True


def noted_programs(func: FuncOp) -> int:
    """The largest grid in which all holds that was relied on."""
    noted = func.attributes.get(NOTED)
    return MOST_PROGRAMS if noted is None else noted.value.data


def mark_many_programs(func: FuncOp) -> None:
    """Let nothing be relied on that does not hold in all grids."""
    func.attributes[MANY] = UnitAttr()


class _Ranges:
    """Of a grid of so many programs along the first axis, and `beside` along each of the others."""

    def __init__(self, num_programs: int, beside: int = MOST_BESIDE):
        self._num_programs, self._beside = num_programs, beside
        self._known: dict[SSAValue, int | None] = {}

    def most(self, value: SSAValue) -> int | None:
        """The largest that it can be; None where it may be negative."""
        return evaluate(value, self._known, _asked_of, self._find)

    @property
    def divides_by_unknown(self) -> bool:
        """Whether what divides is taken not to be negative, on the way to what it was asked for."""
        divisions = [one.owner for one, most in self._known.items() if isinstance(one.owner, arith.DivSIOp) and most]
        return any(self._known[op.rhs] is None for op in divisions)

    def _find(self, value: SSAValue) -> int | None:
        number = constant_value(value)
        found = self._compute(value) if number is None else int(number)
        return found if found is not None and 0 <= found <= _largest(value) else None

    def _compute(self, value: SSAValue) -> int | None:
        if isinstance(value, BlockArgument):
            return self._of_argument(value)
        op = value.owner
        if isinstance(op, GetProgramIdOp | GetNumProgramsOp):
            of_axis = self._beside if op.axis.value.data else self._num_programs
            return of_axis - isinstance(op, GetProgramIdOp)
        if isinstance(op, MakeRangeOp):
            return op.end.value.data - 1 if op.start.value.data >= 0 else None
        if isinstance(op, ClusterCTARankOp):
            return MOST_CTAS - 1
        if isinstance(op, arith.AddiOp) and AHEAD in op.attributes:
            return self._of_ahead(op)
        rule = _RULES.get(type(op))
        return rule(op, [self._known[operand] for operand in op.operands]) if rule is not None else None

    def _of_argument(self, value: BlockArgument) -> int | None:
        """Of the index of a loop: it is below the end, and as far from the beginning as some steps."""
        loop = counting_loop(value)
        if loop is None:
            return self._of_carried(value) if value.index else None  # by a step that is not known
        if self._known[loop.lb] is None and not is_empty_below_zero(loop, self._is_natural):
            return None
        return self._last_index(loop, constant_value(loop.step))

    def _last_index(self, loop: scf.ForOp, step: int) -> int:
        """The largest number below the end of a loop that is some steps from where it begins."""
        begin, last = constant_value(loop.lb), max(min(map(self._bound, minimum_of(loop.ub))) - 1, 0)
        return last if begin is None else max(last - (last - begin) % step, 0)

    def _of_ahead(self, op: arith.AddiOp) -> int | None:
        """Of an index of a loop some iterations ahead, which is below the end, or is not read. Two iterations may have
        become one since, whose indices are twice as far apart (alternate_registers.py).
        """
        index, leads = op.lhs, [op.rhs]
        while not isinstance(index, BlockArgument) and AHEAD in index.owner.attributes:
            index, leads = index.owner.lhs, [*leads, index.owner.rhs]
        loop = counting_loop(index) if isinstance(index, BlockArgument) else None
        if self._known[op.lhs] is None or loop is None:
            return None
        return self._last_index(loop, gcd(constant_value(loop.step), *(constant_value(lead) or 1 for lead in leads)))

    def _is_natural(self, value: SSAValue) -> bool:
        return self._known[value] is not None

    def _bound(self, value: SSAValue) -> int:
        """What it is no larger than, though it may be negative."""
        if self._known[value] is not None:
            return self._known[value]
        op = value.owner
        divisor = constant_value(op.rhs) if isinstance(op, arith.DivSIOp) else None
        return _largest(value) // max(divisor or 1, 1)

    def _of_carried(self, value: BlockArgument) -> int | None:
        """Of what a loop carries, where each iteration adds the same number or nothing."""
        loop = value.block.parent_op()
        if not isinstance(loop, scf.ForOp):
            return None
        start, added = self._known[loop.iter_args[value.index - 1]], _added(value, loop)
        if not added or start is None:
            return start if added == 0 else None
        index = self._known[loop.body.block.args[0]]
        return None if index is None else start + added * (index // constant_value(loop.step))


def _asked_of(value: SSAValue) -> Sequence[SSAValue]:
    if not isinstance(value, BlockArgument):
        return value.owner.operands if type(value.owner) in _RULES else ()
    loop = value.block.parent_op()
    if not isinstance(loop, scf.ForOp):
        return ()
    if value.index > 0:
        return (loop.iter_args[value.index - 1], loop.body.block.args[0])
    is_index = counting_loop(value) is not None
    return (loop.lb, *minimum_of(unrounded(loop.lb)), *minimum_of(loop.ub)) if is_index else ()


def _added(value: BlockArgument, loop: scf.ForOp) -> int | None:
    """What each iteration adds to a value that a loop carries."""
    following = loop.body.block.last_op.operands[value.index - 1]
    if following is value:
        return 0
    op = following.owner
    if not isinstance(op, arith.AddiOp) or value not in op.operands:
        return None
    number = constant_value(op.rhs if op.lhs is value else op.lhs)
    return number if number is not None and number >= 0 else None


def _largest(value: SSAValue) -> int:
    return (1 << bit_width_of(element_type_of(value.type)) - 1) - 1


_Rule = Callable[[Operation, list[int | None]], int | None]


def _of_all(combine: Callable[..., int]) -> _Rule:
    return lambda op, operands: None if None in operands else combine(*operands)


def _remainder(op: Operation, operands: list[int | None]) -> int | None:
    """It has the sign of the dividend; x % 0 is x. Of unsigned numbers -5 is a large one, below which all else is."""
    dividend, number = operands[0], constant_value(op.operands[1]) or 0
    divisor = number if isinstance(op, arith.RemUIOp) else abs(number)
    return dividend if dividend is None or divisor <= 0 else min(dividend, divisor - 1)


def _quotient(op: Operation, operands: list[int | None]) -> int | None:
    """A scalar is taken not to be divided by a negative one, a number of tiles (natural.py)."""
    dividend, divisor = operands
    number = constant_value(op.operands[1])
    is_trusted = number is None and not is_tile(op.results[0].type)
    if dividend is None or (divisor is None and not is_trusted):
        return None
    return dividend // (number or 1)


def _maximum(op: Operation, operands: list[int | None]) -> int | None:
    """Not negative where one of both is not."""
    known = [operand for operand in operands if operand is not None]
    return max(known, default=None) if len(known) != 1 else _largest(op.results[0])


def _common_bits(op: Operation, operands: list[int | None]) -> int | None:
    """Not negative, and no larger than one of both, where that is not negative."""
    return min((operand for operand in operands if operand is not None), default=None)


_same = _of_all(lambda source: source)
_RULES: dict[type[Operation], _Rule] = {
    arith.AddiOp: _of_all(add),
    arith.MuliOp: _of_all(lambda lhs, rhs: lhs * rhs),
    arith.AndIOp: _common_bits,
    arith.MinSIOp: _of_all(min),
    arith.MaxSIOp: _maximum,
    **dict.fromkeys((arith.RemSIOp, arith.RemUIOp), _remainder),
    **dict.fromkeys((arith.DivSIOp, arith.DivUIOp), _quotient),
    **dict.fromkeys(
        (ExtSIOp, TruncIOp, SplatOp, BroadcastOp, ExpandDimsOp, TransOp, ReshapeOp, ConvertLayoutOp), _same
    ),
}
