"""The state of lowering one kernel: what each value is, where code goes, what it is compiled for.

    ctx.lower(op)               looks up the rule of an op, applies it to its operands, binds its results
    ctx.run(block, [a, b])      a region of scalar ops with these arguments; gives the operands of its terminator

Only here are rules looked up, the debug location set, and op and location added to an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType

from xdsl.ir import Block, Operation, SSAValue

from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.backend.gpu.elements import SHARED
from deuteron.backend.gpu.fragment import Operand
from deuteron.backend.gpu.isa import ISA
from deuteron.backend.gpu.threads import Threads
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import Value, const
from deuteron.backend.rule_errors import guarded, unsupported
from deuteron.ir.location import user_location
from deuteron.machine.gpu import GPU, GPUConfig
from deuteron.passes.gpu.memory.allocate_shared import offset_of

Rule = Callable[..., Operand | Sequence[Operand] | None]
Known = Mapping[Operation, Value]
NOTHING: Known = MappingProxyType({})


@dataclass(eq=False)
class Context:
    """What the rules see. `functions` names those that rules have added to the module."""

    module: Module
    b: Builder
    isa: ISA
    config: GPUConfig
    rules: Mapping[str, Rule]
    info: AxisInfoAnalysis
    threads: Threads
    values: dict[SSAValue, Operand] = field(default_factory=dict)
    functions: set[str] = field(default_factory=set)
    _debug: dict = field(default_factory=dict)

    @property
    def machine(self) -> GPU:
        return self.config.machine

    @property
    def num_warps(self) -> int:
        return self.threads.num_warps

    def bind(self, values: Sequence[SSAValue], operands: Sequence[Operand]) -> None:
        self.values.update(zip(values, operands, strict=True))

    def lower_block(self, block: Block, known: Known = NOTHING) -> list[Operand]:
        """Lower the ops of a block; gives the operands of its terminator."""
        for op in block.ops:
            if op is block.last_op:
                return [self.values[operand] for operand in op.operands]
            if op in known:
                self.bind(op.results, [known[op]])
            else:
                self.lower(op)
        raise AssertionError("a block ends with a terminator")

    def run(self, block: Block, arguments: Sequence[Operand], known: Known = NOTHING) -> list[Operand]:
        """Lower a block with these arguments, without the ops whose results are known."""
        self.bind(block.args, arguments)
        return self.lower_block(block, known)

    def lower(self, op: Operation) -> None:
        rule = self.rules.get(op.name)
        if rule is None:
            raise unsupported(op, self.isa.name)
        self._locate(op)
        results = guarded(op, rule, self, op, *(self.values[operand] for operand in op.operands))
        if op.results:
            self.bind(op.results, results if isinstance(results, list) else [results])

    def shared_pointer(self, op: Operation, byte_offset: int = 0) -> Value:
        """The address of the shared memory that was given to an op."""
        base = self.module.external_global("shared", "[0 x i8]", 3, 1024)
        offset = offset_of(op) + byte_offset
        return self.b.gep("i8", base, const("i32", offset), "inbounds") if offset else Value(SHARED, base.text)

    def barrier(self) -> None:
        """All threads that execute the op wait for each other, and see what they wrote to memory."""
        if self.num_warps == 1:
            self.warp_barrier()
        else:
            self.isa.barrier(self.b, self.threads.count, self.threads.barrier)

    def warp_barrier(self) -> None:
        """The threads of a warp wait for each other, and see what they wrote to memory."""
        self.isa.warp_barrier(self.b)

    @contextmanager
    def on(self, threads: Threads) -> Iterator[None]:
        """Within, these threads execute the code."""
        outer, self.threads = self.threads, threads
        yield
        self.threads = outer

    def _locate(self, op: Operation) -> None:
        attribute = op.location
        key = id(attribute)  # to hash a location takes longer than to lower most ops
        if key not in self._debug:
            place = user_location(attribute)
            self._debug[key] = place and self.module.debug_location(self.b, place.file, place.line, place.column)
        self.b.set_debug_location(self._debug[key])
