"""Which programs mean one thing: programs that the frontend takes, whose accesses are in bounds and do not race.

    module = lowered(case)          None where the frontend refuses it; what it fails at otherwise is raised: a finding
    valid(case, module)             the case, of one program if its programs race; None if it has no meaning, or no end
    is_valid(case)                  whether it is as it stands; what the frontend fails at is
    written(case, module)           the arrays that it writes to

Programs race where one of them writes what another one reads or writes, not both by atomics. Within a program memory
is accessed in the order of the text, so that a single program has one meaning, unless one store puts several values to
one place.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from deuteron.errors import DeuteronError, InternalError, UsageError
from deuteron.frontend import lower_function
from deuteron.interpreter.allocation import Buffer, Memory, Piece
from deuteron.interpreter.arguments import bind_arguments
from deuteron.interpreter.described import Described
from deuteron.interpreter.executor import Executor, kernel_of
from deuteron.interpreter.memory import block_lanes
from deuteron.interpreter.rules import RULES
from deuteron.ir.rule_table import Rule
from deuteron.ir.tt.atomic import AtomicCASOp, AtomicLoadOp, AtomicRMWOp, AtomicStoreOp
from deuteron.ir.tt.memory import StoreOp
from deuteron.ir.types import is_float
from tests.fuzz.case import Case
from tests.fuzz.executors import REFUSALS, source_of
from tests.fuzz.perturb.memory import disagree

MOST_OPS = 30_000
MOST_ELEMENTS = 3_000_000
"""That the ops of all programs give: what the emulator runs in some seconds."""

ATOMIC = frozenset(op.name for op in (AtomicCASOp, AtomicLoadOp, AtomicRMWOp, AtomicStoreOp))


class Meaningless(UsageError):
    """A program that does not end soon, or that stores several values to one place at once."""


class Failed(Exception):
    """The frontend, or the interpreter, fails at a case in another way than by a refusal: a finding."""

    def __init__(self, case: Case):
        super().__init__(case)
        self.case = case


def lowered(case: Case) -> Any:
    """The module; None where the frontend refuses it."""
    try:
        source = source_of(case)
    except SyntaxError:
        return None
    try:
        return lower_function(source.fn, source.signature, source.constexprs, source.attrs)
    except REFUSALS as error:
        if isinstance(error, InternalError):
            raise Failed(case) from error
        return None
    except Exception as error:
        raise Failed(case) from error


def valid(case: Case, module: Any) -> Case | None:
    for grid in dict.fromkeys((case.grid, (1,))):
        candidate = case.with_(grid=grid)
        accesses = _accesses(candidate, module)
        if accesses is None:
            return None
        if not accesses.race():
            return candidate
    return None


def is_valid(case: Case) -> bool:
    try:
        module = lowered(case)
        return module is not None and valid(case, module) == case
    except Failed:
        return True


def written(case: Case, module: Any) -> set[str]:
    """The names of the arrays that a valid program writes to."""
    accesses = _accesses(case, module)
    names = [argument.name for argument in case.arguments if argument.size is not None]
    return {name for name, seen in zip(names, accesses.seen, strict=True) if (seen & WRITTEN).any()}


def _accesses(case: Case, module: Any) -> _Accesses | None:
    """Of a run; None where it fails."""
    kernel, grid, values = kernel_of(module), (*case.grid, 1, 1)[:3], case.values()
    bound, buffers = bind_arguments(kernel, values)
    memory = _Accesses(list(buffers.values()))
    executor = Executor(grid, memory, buffers, rules=_watched(memory))
    try:
        for number, (z, y, x) in enumerate(product(*map(range, reversed(grid)))):
            memory.program = number
            executor.run(kernel, bound, (x, y, z))
    except DeuteronError as error:  # an access out of bounds, a step of a loop that is not positive, ...
        if isinstance(error, InternalError):
            raise Failed(case) from error
        return None
    return memory


def _disagrees(op: StoreOp, ptr: Any, value: np.ndarray, mask: np.ndarray | None = None) -> bool:
    """Whether lanes of one store have one place and not one value: which of them stays is not said. Floats that are
    the same here may be rounded otherwise, or have another sign of zero."""
    if isinstance(ptr, Described):
        ptr, mask = block_lanes(ptr, op, op.value.type)
    active = np.ones(np.size(ptr), bool) if mask is None else np.ravel(mask)
    told_apart = np.arange(np.size(ptr)) if is_float(op.value.type) else value
    return bool(active.any() and disagree(ptr, told_apart, active).any())


PLAIN, WRITTEN, SHARED = 1, 2, 4


class _Accesses(Memory):
    """Memory that knows of each byte whether it was accessed by no atomic, written, and by several programs."""

    def __init__(self, buffers: list[Buffer]):
        super().__init__(buffers)
        self.op_name, self.program = "", 0
        self.seen = [np.zeros(buffer.nbytes, np.uint8) for buffer in buffers]
        self._last = [np.full(buffer.nbytes, -1) for buffer in buffers]

    def resolve(self, addresses: np.ndarray, dtype: np.dtype, buffer=None, writes: bool = False) -> list[Piece]:
        pieces = super().resolve(addresses, dtype, buffer, writes)
        flags = (0 if self.op_name in ATOMIC else PLAIN) | (WRITTEN if writes else 0)
        places = np.unique(addresses)[:, None] + np.arange(dtype.itemsize)
        for one, seen, last in zip(self.buffers, self.seen, self._last, strict=True):
            inside = places[(places >= one.address) & (places < one.end)] - one.address
            others = (last[inside] != -1) & (last[inside] != self.program)
            seen[inside] |= np.where(others, flags | SHARED, flags).astype(np.uint8)
            last[inside] = self.program
        return pieces

    def race(self) -> bool:
        races = PLAIN | WRITTEN | SHARED
        return any(((seen & races) == races).any() for seen in self.seen)


def _watched(memory: _Accesses) -> dict[str, Rule]:
    """The rules of the interpreter, for a run that has to end soon."""
    left = [MOST_OPS, MOST_ELEMENTS]

    def watched(name: str, rule: Rule) -> Callable:
        def run(ctx: Any, op: Any, *operands: Any) -> Any:
            memory.op_name = name
            if name == StoreOp.name and _disagrees(op, *operands):
                raise Meaningless("a store of several values to one place")
            outcome = rule(ctx, op, *operands)
            left[0] -= 1
            left[1] -= np.size(outcome) if isinstance(outcome, np.ndarray) else 1
            if min(left) < 0:
                raise Meaningless("the program does not end soon")
            return outcome

        return run

    return {name: watched(name, rule) for name, rule in RULES.items()}
