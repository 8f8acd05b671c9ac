"""Runs a kernel, one program after the other, by walking its blocks and calling the rule of each op.

Programs that may wait for one another take turns (`turns.py`).

Each value of the kernel has a slot in one list. A block is prepared once: its ops with their rules and slots. Only
`Executor.run_block` looks at operands and results; it also gives every error the op and its location.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from deuteron.analysis.waiting_loops import waiting_loops
from deuteron.errors import DeuteronError, InternalError, UsageError
from deuteron.interpreter.allocation import Buffer, Memory
from deuteron.interpreter.arguments import bind_arguments
from deuteron.interpreter.needed import needed_ops
from deuteron.interpreter.provenance import source_argument
from deuteron.interpreter.rules import RULES
from deuteron.interpreter.turns import Pause, ProgramId, run_in_turns
from deuteron.ir.location import from_attribute
from deuteron.ir.rule_table import Rule
from deuteron.ir.tt.function import FuncOp, functions_in


class Step(NamedTuple):
    """One op, ready to run."""

    rule: Rule
    op: Operation
    operands: tuple[int, ...]
    results: tuple[int, ...]


class BlockCode(NamedTuple):
    """A block, ready to run: slots of its arguments, its steps, and slots of the operands of its terminator."""

    arguments: tuple[int, ...]
    steps: list[Step]
    outcome: tuple[int, ...]


class Executor:
    """The state of a launch; rules use `memory`, `program_id`, `grid`, `run_block`, `come_round`, `constants` and
    `translated`.

    `pause` lets other programs go on, wherever one of the `waiting` loops comes round.
    """

    def __init__(
        self,
        grid: ProgramId,
        memory: Memory,
        buffers: dict[SSAValue, Buffer],
        rules: Mapping[str, Rule] = RULES,
        waiting: Collection[Operation] = (),
        pause: Pause | None = None,
    ):
        self.grid = grid
        self._waiting, self._pause = waiting, pause
        self._num_writes = -1
        self.program_id, self.kernel_name = (0, 0, 0), ""
        self.memory = memory
        self.constants: dict[Operation, np.ndarray] = {}
        self.translated: dict[Operation, Block] = {}
        self._rules = rules
        self._buffers = buffers
        self._buffer_of_pointer: dict[SSAValue, Buffer | None] = {}
        self._slots: dict[SSAValue, int] = {}
        self._values: list = []
        self._codes: dict[Block, BlockCode] = {}

    def run(self, kernel: FuncOp, arguments: Sequence, program_id: ProgramId) -> None:
        """Run one program."""
        self.program_id, self.kernel_name = program_id, kernel.sym_name.data
        with np.errstate(all="ignore"):
            self.run_block(kernel.body.block, arguments)

    def come_round(self, loop: Operation) -> None:
        """To be called when a `while` loop is about to begin again."""
        if self._pause is None or loop not in self._waiting:
            return
        is_memory_the_same = self.memory.num_writes == self._num_writes
        self._num_writes = self.memory.num_writes
        self._pause(loop, [np.asarray(value).tobytes() for value in self._values] if is_memory_the_same else None)

    def run_block(self, block: Block, arguments: Sequence) -> list:
        """Run a block and return the values of the operands of its terminator."""
        code = self._codes.get(block) or self._prepare(block)
        values = self._values
        for slot, value in zip(code.arguments, arguments, strict=True):
            values[slot] = value
        op = None
        try:
            for rule, op, operands, results in code.steps:
                outcome = rule(self, op, *[values[slot] for slot in operands])
                if len(results) == 1 and type(outcome) is not tuple:
                    values[results[0]] = outcome
                    continue
                for slot, value in zip(results, outcome or (), strict=True):
                    values[slot] = value
        except DeuteronError as error:
            _attach_location(error, op)
            raise
        except Exception as error:
            message = f"the interpreter's rule for {op.name} failed: {error!r}"
            raise InternalError(message, *from_attribute(op.location)) from error
        return [values[slot] for slot in code.outcome]

    def value_of(self, value: SSAValue):
        """What a value is at the moment."""
        return self._values[self._slots[value]]

    def buffer_of(self, pointer: SSAValue) -> Buffer | None:
        """The buffer of the argument that a pointer is computed from, if there is exactly one."""
        if pointer not in self._buffer_of_pointer:
            argument = source_argument(pointer)
            self._buffer_of_pointer[pointer] = self._buffers.get(argument) if argument else None
        return self._buffer_of_pointer[pointer]

    def _prepare(self, block: Block) -> BlockCode:
        ops = needed_ops(block)
        steps = [
            Step(self._rule_of(op), op, self._slots_of(op.operands), self._slots_of(op.results)) for op in ops[:-1]
        ]
        code = BlockCode(self._slots_of(block.args), steps, self._slots_of(ops[-1].operands))
        self._codes[block] = code
        return code

    def _slots_of(self, values: Iterable[SSAValue]) -> tuple[int, ...]:
        slots = tuple(self._slots.setdefault(value, len(self._slots)) for value in values)
        self._values += [None] * (len(self._slots) - len(self._values))
        return slots

    def _rule_of(self, op: Operation) -> Rule:
        rule = self._rules.get(op.name)
        if rule is None:
            raise InternalError(f"the interpreter has no rule for {op.name}", *from_attribute(op.location))
        return rule


def _attach_location(error: DeuteronError, op: Operation) -> None:
    """Give an error the place of the op that raised it; the innermost place stays."""
    if error.location is None:
        error.location, error.call_chain = from_attribute(op.location)


def kernel_of(module: ModuleOp) -> FuncOp:
    """The public function of a module."""
    public = [func for func in functions_in(module) if not func.is_private]
    if len(public) != 1:
        names = ", ".join(f.sym_name.data for f in public) or "none"
        raise UsageError(f"Expected a module with one public tt.func, got {names}.")
    return public[0]


def run_module(module: ModuleOp, args: Sequence[object], grid: tuple[int, int, int]) -> None:
    """Run every program of the grid, x fastest.

    `args` go to the parameters in order: a NumPy array (or anything with `__array_interface__`), a Buffer, an address
    or None for a pointer; a number for a scalar. Raises MemoryAccessError where a program leaves its arrays.
    """
    kernel = kernel_of(module)
    values, buffers = bind_arguments(kernel, args)
    memory = Memory(list(buffers.values()))
    ids = ((x, y, z) for z, y, x in product(range(grid[2]), range(grid[1]), range(grid[0])))
    waiting = frozenset(waiting_loops(module))

    def run(id: ProgramId, pause: Pause) -> None:
        Executor(grid, memory, buffers, waiting=waiting, pause=pause).run(kernel, values, id)

    if waiting:
        run_in_turns(ids, run)
        return
    executor = Executor(grid, memory, buffers)
    for id in ids:
        executor.run(kernel, values, id)
