"""What memory has to hold after a launch, element by element: by the interpreter, and by runs with its licences taken.

    expected = expect(case)
    problem = expected.difference(arrays)          None, or what is wrong

An element that is the same in all runs has to be that, floats bit for bit (but for which NaN it is). One that differs
may differ from the definition by SLACK times the spread of the runs. An integer that differs, a float that is finite in
some runs only or of which no more than a few bits are left, is not determined, and is not compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from deuteron.interpreter.allocation import Memory
from deuteron.interpreter.arguments import bind_arguments
from deuteron.interpreter.executor import Executor, kernel_of
from deuteron.interpreter.rules import RULES
from tests.fuzz.case import GUARD, MANTISSA, POISON, Argument, Case, decode
from tests.fuzz.perturb import Licence, perturbed_rules

RUNS = 5
SLACK = 4.0
SCRATCH = "scratch"
"""What arrays begin with whose contents are nobody's: between their guards they may be anything."""
WORST = {"float64": 2.0**-16, "float32": 2.0**-6}
"""The largest spread of what is compared, relative to it; of narrower floats 1/8."""


@dataclass
class Bounds:
    """Of one array: the definition's elements, the least and the largest of any run, and which are compared."""

    argument: Argument
    stored: np.ndarray
    low: np.ndarray
    high: np.ndarray
    is_determined: np.ndarray

    def difference(self, array: np.ndarray) -> str | None:
        guard = _guards(array)
        if guard:
            return f"{self.argument.name}: {guard}"
        same = _bits(array) == _bits(self.stored)
        if same.all():
            return None
        wrong = ~same & self.is_determined
        if self.argument.dtype in MANTISSA and wrong.any():
            wrong &= ~self._is_close(decode(array, self.argument.dtype))
        if not wrong.any():
            return None
        index = int(np.argmax(wrong))
        got, expected = (decode(x, self.argument.dtype)[index] for x in (array, self.stored))
        spread = "" if self.low[index] == self.high[index] else f" within {self.high[index] - self.low[index]:.3g}"
        return (
            f"{self.argument.name} ({self.argument.dtype}): {wrong.sum()} of {wrong.size} wrong, the first at {index}: "
            f"got {got!r}, expected {expected!r}{spread}"
        )

    def _is_close(self, got: np.ndarray) -> np.ndarray:
        wanted = decode(self.stored, self.argument.dtype)
        both_nan = np.isnan(got) & np.isnan(wanted)
        with np.errstate(all="ignore"):
            spread = self.high - self.low
            near = (spread > 0) & np.isfinite(got) & (np.abs(got - wanted) <= SLACK * spread)
        either_sign = (self.low == 0) & (self.high == 0) & (got == 0) & (np.signbit(self.low) != np.signbit(self.high))
        return both_nan | near | either_sign


@dataclass
class Expected:
    bounds: list[Bounds]
    runs: int

    def difference(self, arrays: list[np.ndarray]) -> str | None:
        found = (bounds.difference(array) for bounds, array in zip(self.bounds, arrays, strict=True))
        return next((problem for problem in found if problem), None)

    @property
    def share(self) -> float:
        """Of the elements of outputs those that are compared."""
        flags = [b.is_determined for b in self.bounds if b.argument.name.startswith(("out", "io"))]
        return float(np.mean(np.concatenate(flags))) if flags else 1.0


def _bits(array: np.ndarray) -> np.ndarray:
    """Of floats the bits, by which zeros of both signs differ."""
    return array.view(f"uint{8 * array.itemsize}") if array.dtype.kind == "f" else array


def _guards(array: np.ndarray) -> str | None:
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    begin = array.ctypes.data - owner.ctypes.data
    before, after = owner[:begin], owner[begin + array.nbytes :]
    for name, guard in (("before", before), ("after", after)):
        if (guard != POISON).any():
            where = int(np.argmax(guard != POISON)) - (len(before) if name == "before" else 0)
            return (
                f"memory {name} the array was written, {where} bytes from its {'end' if name == 'after' else 'begin'}"
            )
    return None


assert GUARD


def expect(case: Case, module, runs: int = RUNS, has_undefined: bool = False, rules=RULES) -> Expected:
    """Runs the definition, by its rules, then perturbed ones, if there is anything to perturb."""
    arrays = interpret(case, module, rules)
    licence = Licence(fuses=case.options.get("enable_fp_fusion", True), has_undefined=has_undefined)
    others: list[list[np.ndarray]] = []
    for run in range(runs):
        rng = np.random.default_rng([case.seed, run])
        others.append(interpret(case, module, perturbed_rules(rng, licence), rng))
        if not licence.taken and case.grid == (1,):
            break
    return Expected([_bounds(a, i, arrays, others) for i, a in enumerate(_arrays(case))], len(others))


def _arrays(case: Case) -> list[Argument]:
    return [argument for argument in case.arguments if argument.size is not None]


def _bounds(argument: Argument, index: int, arrays: list[np.ndarray], others: list[list[np.ndarray]]) -> Bounds:
    stored = arrays[index]
    if argument.name.startswith(SCRATCH):
        return Bounds(argument, stored, np.zeros(stored.shape), np.zeros(stored.shape), np.zeros(stored.shape, bool))
    all_runs = np.stack([stored, *(run[index] for run in others)])
    is_equal = (_bits(all_runs) == _bits(stored)).all(0)
    if argument.dtype not in MANTISSA:
        return Bounds(argument, stored, np.zeros(stored.shape), np.zeros(stored.shape), is_equal)
    with np.errstate(all="ignore"):
        return _float_bounds(argument, stored, is_equal, decode(all_runs, argument.dtype))


def _float_bounds(argument: Argument, stored: np.ndarray, is_equal: np.ndarray, wide: np.ndarray) -> Bounds:
    is_nan = np.isnan(wide)
    low, high = (np.where(is_nan.any(0), 0, extreme) for extreme in (wide.min(0), wide.max(0)))
    is_precise = high - low <= WORST.get(argument.dtype, 0.125) * np.maximum(np.abs(low), np.abs(high))
    is_determined = is_equal | is_nan.all(0) | (np.isfinite(wide).all(0) & is_precise)
    # Of two zeros the one with a sign is the lower.
    any_negative, any_positive = ((wide == 0) & (np.signbit(wide) == sign) for sign in (True, False))
    low = np.where((low == 0) & any_negative.any(0), -0.0, np.where(low == 0, 0.0, low))
    high = np.where((high == 0) & any_positive.any(0), 0.0, high)
    return Bounds(argument, stored, low, high, is_determined)


def interpret(case: Case, module, rules, rng: np.random.Generator | None = None) -> list[np.ndarray]:
    """The arrays after a launch; the programs in a random order if there is an `rng`."""
    values = case.values()
    bound, buffers = bind_arguments(kernel_of(module), values)
    grid = (*case.grid, 1, 1)[:3]
    executor = Executor(grid, Memory(list(buffers.values())), buffers, rules=rules)
    programs = [(x, y, z) for z, y, x in product(range(grid[2]), range(grid[1]), range(grid[0]))]
    if rng is not None:
        rng.shuffle(programs)
    with np.errstate(all="ignore"):
        for program in programs:
            executor.program_id = tuple(map(int, program))
            executor.run_block(kernel_of(module).body.block, bound)
    return [value for value in values if isinstance(value, np.ndarray)]
