"""The executor `claims`: what the analyses say of integers and pointers is compared with what the interpreter computes.

    difference_of_claims(case, module)      contiguity 2 of %u: tensor<64xi64> by arith.extui: [4294967295, 0, 1, ...]

Of each value of a program, whenever it is computed: contiguity, divisibility and constancy (`axis_analysis.py`), by how
much neighbours differ (`distances.py`), that it is not negative (`ranges.py`), the polynomial that it is
(`tile_polynomials.py`), the bits of its place (`index_bits.py`), and that no two elements have one address
(`steps.py`). Integers of 32 bits and more are taken not to overflow, so nothing is said of what is computed from one
that did. A claim that is wrong need not be a wrong result, but whoever relies on it makes one.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from deuteron.analysis.addresses.index_bits import IndexBitsAnalysis
from deuteron.analysis.addresses.load_accesses import MOST_NEIGHBOURS
from deuteron.analysis.addresses.polynomial import Monomial, Polynomial
from deuteron.analysis.addresses.steps import injective_where
from deuteron.analysis.addresses.tile_polynomials import TilePolynomials, sources_of
from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.analysis.axis.axis_info import MIN_BITS, AxisInfo
from deuteron.analysis.axis.ranges import most_programs
from deuteron.interpreter.allocation import Memory
from deuteron.interpreter.arguments import bind_arguments
from deuteron.interpreter.executor import Executor, kernel_of
from deuteron.interpreter.rules import RULES
from deuteron.ir.nested import nested_ops
from deuteron.ir.rule_table import Rule
from deuteron.ir.types import (
    bit_width_of,
    byte_width_of,
    element_type_of,
    is_block_pointer,
    is_integer,
    is_pointer,
    is_tile,
    pointee_of,
    shape_of,
)
from deuteron.machine.tile import TILES_OF_CPU, TILES_OF_GPU
from deuteron.passes import run_passes
from deuteron.passes.tile import tile_passes
from tests.fuzz.case import Case

_EXACT = {arith.AddiOp: np.add, arith.SubiOp: np.subtract, arith.MuliOp: np.multiply, arith.ShLIOp: np.ldexp}
_AROUND = (scf.ForOp, scf.WhileOp, scf.IfOp)


def difference_of_claims(case: Case, module: Any) -> str | None:
    """What is wrong with what is said of the values of a program, after the passes of a CPU and those of a GPU."""
    for config in (TILES_OF_CPU, TILES_OF_GPU):
        compiled = module.clone()
        run_passes(compiled, tile_passes(config), verifies_each=False)
        problem = _problem_of(case, compiled)
        if problem:
            return problem
    return None


def _problem_of(case: Case, module: Any) -> str | None:
    kernel, grid = kernel_of(module), (*case.grid, 1, 1)[:3]
    claims = _Claims(kernel)
    values, buffers = bind_arguments(kernel, case.values())
    rules = {name: claims.checked(rule) for name, rule in RULES.items()}
    executor = _Watched(grid, Memory(list(buffers.values())), buffers, rules=rules)
    for z, y, x in product(*map(range, reversed(grid))):
        executor.run(kernel, values, (x, y, z))
    return claims.problem


class _Watched(Executor):
    """Tells what values are."""

    def known_value(self, value: SSAValue) -> Any:
        """What it is at the moment; None where nobody has computed it."""
        slot = self._slots.get(value)
        return None if slot is None else self._values[slot]


class _Claims:
    """What is said of the values of a function, and the first of it that is wrong."""

    def __init__(self, kernel: Operation):
        self.problem: str | None = None
        self._axes, self._polynomials = AxisInfoAnalysis(kernel), TilePolynomials()
        self._bits = IndexBitsAnalysis()
        self._overflowed: set[SSAValue] = set()
        self._is_of_kernel = {op: _is_of_kernel(op) for op in nested_ops(kernel)}

    def checked(self, rule: Rule) -> Rule:
        """The rule of an op, whose operands that are carried by loops are looked at, and its results."""

        def run(executor: _Watched, op: Operation, *operands: Any) -> Any:
            is_known = self.problem is None and self._is_of_kernel.get(op, False)
            if is_known:
                for value, number in zip(op.operands, operands, strict=True):
                    if isinstance(value, BlockArgument):
                        self._check(executor, value, number)
            outcome = rule(executor, op, *operands)
            results = outcome if isinstance(outcome, tuple) else (outcome,)
            if is_known and op.results:
                self._note_overflow(op, operands, results[0])
                for value, number in zip(op.results, results, strict=True):
                    self._check(executor, value, number)
            return outcome

        return run

    def _note_overflow(self, op: Operation, operands: tuple, result: Any) -> None:
        exact, bits = _EXACT.get(type(op)), bit_width_of(element_type_of(op.results[0].type))
        if exact is None or bits < MIN_BITS:
            return
        wide, count = (np.asarray(operand, np.float64) for operand in operands)
        should_be = exact(wide, count.astype(np.int64) if exact is np.ldexp else count)
        if (np.abs(should_be - np.asarray(result, np.float64)) > 2.0 ** (bits - 2)).any():
            self._overflowed.add(op.results[0])

    def _check(self, executor: _Watched, value: SSAValue, number: Any) -> None:
        if not _is_number(value.type):
            return
        tile = np.asarray(number).astype(np.int64).reshape(shape_of(value.type) or (1,))
        wrong = (
            self._wrong_axes(value, tile) or self._wrong_place(value, tile) or self._wrong_sum(executor, value, tile)
        )
        if wrong and self._overflowed.isdisjoint(_made_of(value)):
            made = value.owner.name if isinstance(value.owner, Operation) else "a loop"
            self.problem = f"{wrong} of %{value.name_hint}: {value.type} by {made}: {tile.ravel()[:32].tolist()}"

    def _wrong_axes(self, value: SSAValue, tile: np.ndarray) -> str | None:
        info = self._axes.of(value)
        found = (_wrong_along(info, axis, tile) for axis in range(tile.ndim))
        apart = (self._wrong_distances(value, axis, tile) for axis in range(tile.ndim) if is_tile(value.type))
        return next(filter(None, (*found, *apart)), None)

    def _wrong_distances(self, value: SSAValue, axis: int, tile: np.ndarray) -> str | None:
        """Of as many neighbours as there are, up to those that one thread loads."""
        count = min(tile.shape[axis], MOST_NEIGHBOURS)
        known = self._axes.distances(value, axis, count) if count > 1 else None
        if known is None:
            return None
        multiples = np.moveaxis(tile, axis, -1).reshape(-1, count) - np.array(known.distances)
        rest = multiples % known.step if known.step else multiples
        return f"{known}" if rest.any() or (multiples != multiples[:, :1]).any() else None

    def _wrong_place(self, value: SSAValue, tile: np.ndarray) -> str | None:
        """What does not depend on anything but the elements' places, and what holds of all of them."""
        element = element_type_of(value.type)
        if is_pointer(element):
            is_apart = is_tile(value.type) and injective_where(self._polynomials, value) == ()
            return "all are different" if is_apart and len(np.unique(tile)) < tile.size else None
        if most_programs(value) is not None and (tile < 0).any():
            return "none is negative"
        bits, all_ones = self._bits.of(value), (1 << bit_width_of(element)) - 1
        numbers = [int(number) & all_ones for number in tile.ravel()]
        return f"{bits}" if bits is not None and numbers != [*map(bits.at, range(tile.size))] else None

    def _wrong_sum(self, executor: _Watched, value: SSAValue, tile: np.ndarray) -> str | None:
        """The polynomial, modulo what fits the type."""
        known, element = self._polynomials.of(value), element_type_of(value.type)
        if known is None or self._polynomials.wraps_in(value) or known == Polynomial.of(self._polynomials.atom(value)):
            return None
        size = byte_width_of(pointee_of(element)) if is_pointer(element) else 1
        terms = [_term(executor, atoms, factor, size, tile.shape) for atoms, factor in known]
        if any(term is None for term in terms):
            return None
        rest = (sum(terms, np.zeros(tile.shape, object)) - tile) % (1 << bit_width_of(value.type))
        return f"{known}" if rest.any() else None


def _is_of_kernel(op: Operation) -> bool:
    """Whether it is computed for tiles as they are, not in the function of a reduction or the like."""
    parent = op.parent_op()
    while isinstance(parent, _AROUND):
        parent = parent.parent_op()
    return parent is not None and parent.name == "tt.func"


def _is_number(type: Attribute) -> bool:
    element = element_type_of(type)
    return is_integer(element) or (is_pointer(element) and not is_block_pointer(element))


def _made_of(value: SSAValue) -> set[SSAValue]:
    """All that it is computed from, also by way of branches and `while` loops."""
    found, pending = set(), [value]
    while pending:
        for source in sources_of(pending.pop()):
            op = source.owner if isinstance(source.owner, Operation) else source.owner.parent_op()
            inside = [] if op.name == "tt.func" else [v for inner in nested_ops(op) for v in inner.operands]
            pending += [one for one in inside if one not in found]
            found.update(inside, [source])
    return found


def _wrong_along(info: AxisInfo, axis: int, tile: np.ndarray) -> str | None:
    rows = np.moveaxis(tile, axis, -1).reshape(-1, tile.shape[axis])
    runs = rows.reshape(-1, info.contiguity[axis])
    groups = rows.reshape(-1, info.constancy[axis])
    if not (np.diff(runs, axis=-1) == info.step).all():
        return f"contiguity {info.contiguity[axis]}"
    if (runs[:, 0] % info.divisibility[axis]).any():
        return f"divisibility {info.divisibility[axis]}"
    return None if (groups == groups[:, :1]).all() else f"constancy {info.constancy[axis]}"


def _term(executor: _Watched, atoms: Monomial, factor: int, size: int, shape: tuple[int, ...]) -> Any:
    """A term, in bytes of pointers; None where nobody has computed an atom of it."""
    term, is_base = factor, any(atom.value is not None and is_pointer(atom.value.type) for atom in atoms)
    for atom in atoms:
        if atom.axis is not None:
            ones = [shape[atom.axis] if axis == atom.axis else 1 for axis in range(len(shape))]
            term = term * np.arange(shape[atom.axis]).astype(object).reshape(ones)
            continue
        number = executor.known_value(atom.value)
        if number is None:
            return None
        term = term * int(number)
    return term if is_base else term * size
