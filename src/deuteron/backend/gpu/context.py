"""The state of lowering one kernel: what each value is, where code goes, what it is compiled for.

    ctx.lower(op)               looks up the rule of an op, applies it to its operands, binds its results
    ctx.run(block, [a, b])      a region of scalar ops with these arguments; gives the operands of its terminator

Only here are rules looked up, the debug location set, and op and location added to an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce

from xdsl.ir import Block, Operation, SSAValue

from deuteron.analysis.axis_analysis import AxisInfoAnalysis
from deuteron.backend.cuda.target import WARP_SIZE
from deuteron.backend.gpu.elements import SHARED
from deuteron.backend.gpu.fragment import Operand
from deuteron.backend.gpu.threads import Threads
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import Value, const
from deuteron.errors import CompilationError, DeuteronError, InternalError
from deuteron.ir.location import from_attribute, user_location
from deuteron.machine.gpu import GPU
from deuteron.options import CUDAOptions
from deuteron.passes.gpu.memory.allocate_shared import offset_of

Rule = Callable[..., Operand | Sequence[Operand] | None]


@dataclass(eq=False)
class Context:
    """What the rules see. `invariant` are loads of what the kernel does not change, `tensor_maps` says where the map of
    each TMA copy is, `functions` names those that rules
    have added to the module.
    """

    module: Module
    b: Builder
    machine: GPU
    options: CUDAOptions
    rules: Mapping[str, Rule]
    info: AxisInfoAnalysis
    invariant: frozenset[Operation]
    threads: Threads
    values: dict[SSAValue, Operand] = field(default_factory=dict)
    tensor_maps: dict[Operation, Value] = field(default_factory=dict)
    functions: set[str] = field(default_factory=set)
    _debug: dict = field(default_factory=dict)

    @property
    def num_warps(self) -> int:
        return self.threads.num_warps

    def bind(self, values: Sequence[SSAValue], operands: Sequence[Operand]) -> None:
        self.values.update(zip(values, operands, strict=True))

    def lower_block(self, block: Block) -> list[Operand]:
        """Lower the ops of a block; gives the operands of its terminator."""
        for op in block.ops:
            if op is block.last_op:
                return [self.values[operand] for operand in op.operands]
            self.lower(op)
        raise AssertionError("a block ends with a terminator")

    def run(self, block: Block, arguments: Sequence[Operand]) -> list[Operand]:
        self.bind(block.args, arguments)
        return self.lower_block(block)

    def lower(self, op: Operation) -> None:
        rule = self.rules.get(op.name)
        if rule is None:
            raise _unsupported(op)
        self._locate(op)
        results = _guarded(op, rule, self, op, *(self.values[operand] for operand in op.operands))
        if op.results:
            self.bind(op.results, results if isinstance(results, list) else [results])

    def shared_pointer(self, op: Operation, byte_offset: int = 0) -> Value:
        """The address of the shared memory that was given to an op."""
        base = self.module.external_global("shared", "[0 x i8]", 3, 1024)
        offset = offset_of(op) + byte_offset
        return self.b.gep("i8", base, const("i32", offset), "inbounds") if offset else Value(SHARED, base.text)

    @property
    def cluster_rank(self) -> Value:
        """The number of the block in its cluster."""
        return self.b.call("i32", "llvm.nvvm.read.ptx.sreg.cluster.ctarank")

    def barrier(self) -> None:
        """All threads that execute the op wait for each other, and see what they wrote to memory."""
        if self.num_warps == 1:
            self.warp_barrier()
        elif self.threads.barrier is not None:
            number, count = const("i32", self.threads.barrier), const("i32", WARP_SIZE * self.num_warps)
            self.b.intrinsic("llvm.nvvm.barrier.cta.sync.aligned.count", "void", number, count, overloads=())
        else:
            self.b.intrinsic("llvm.nvvm.barrier.cta.sync.aligned.all", "void", const("i32", 0), overloads=())

    def warp_barrier(self) -> None:
        """The threads of a warp wait for each other, and see what they wrote to memory."""
        self.b.intrinsic("llvm.nvvm.bar.warp.sync", "void", const("i32", -1), overloads=())

    @contextmanager
    def on(self, threads: Threads) -> Iterator[None]:
        """Within, these threads execute the code."""
        outer, self.threads = self.threads, threads
        yield
        self.threads = outer

    @contextmanager
    def in_first_warp(self, pred: Value | None = None) -> Iterator[Value]:
        """Within, the first warp executes the code, where `pred` is on; gives whether a lane is the one that it elects.

        A branch that is uniform and a predicate that elect.sync gives: ptxas then knows that one thread issues an
        instruction of TMA, and leaves away the loop over threads.
        """
        is_first = self.b.icmp("eq", self.threads.uniform_warp, const("i32", 0)) if self.num_warps > 1 else None
        conditions = [condition for condition in (is_first, pred) if condition is not None]
        with self.b.if_(reduce(self.b.and_, conditions, const("i1", True))):
            elected = self.b.call("{ i32, i1 }", "llvm.nvvm.elect.sync", const("i32", -1))
            yield self.b.extractvalue(elected, 1, "i1")

    def _locate(self, op: Operation) -> None:
        attribute = op.location
        key = id(attribute)  # to hash a location takes longer than to lower most ops
        if key not in self._debug:
            place = user_location(attribute)
            self._debug[key] = place and self.module.debug_location(self.b, place.file, place.line, place.column)
        self.b.set_debug_location(self._debug[key])


def _unsupported(op: Operation) -> CompilationError:
    message = (
        f"the CUDA backend cannot compile '{op.name}' yet. Express it with other operations, "
        "or run the kernel with DEUTERON_INTERPRET=1, which knows every operation."
    )
    return CompilationError(message, *from_attribute(op.location))


def _guarded(op: Operation, function: Callable, *args):
    """Call a rule; what goes wrong in it is reported with the op and its location."""
    try:
        return function(*args)
    except DeuteronError as error:
        if error.location is None:
            error.location, error.call_chain = from_attribute(op.location)
        raise
    except Exception as error:
        location, chain = from_attribute(op.location)
        raise InternalError(f"lowering {op.name} for CUDA failed: {error!r}", location, chain) from error
