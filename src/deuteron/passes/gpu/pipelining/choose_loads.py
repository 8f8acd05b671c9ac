"""Which loads of a loop are done ahead of their iteration, and how.

    load -> (anything without a region) -> operand of a dot            copied
    load, in a loop with tl.range(num_stages=...) and no dot           copied
    load, in another loop of a kernel without dots                     into registers (loads_into_registers.py)
    fewer than 4 neighbouring bytes in a thread, a tile that is transposed on its way, `other` that is not 0
                                                                       into registers, if they are few
    an address that depends on a load, volatile; a store to the same argument, an atomic in the loop
                                                                       stays

A barrier orders what the program itself stores, so that it holds up no load from elsewhere. A load that is not copied
is left with a remark that says why.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from deuteron.analysis.axis_analysis import AxisInfoAnalysis
from deuteron.analysis.points_to import Targets
from deuteron.analysis.written_arguments import is_apart, written_arguments
from deuteron.ir.effects import GLOBAL, first_in_order
from deuteron.ir.nested import nested_ops
from deuteron.ir.remarks import Kind, remark
from deuteron.ir.tt.descriptor import MakeTensorDescriptorOp
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.ttg.layout import layout_of
from deuteron.ir.types import byte_width_of, is_tile
from deuteron.layout.linear import REGISTER
from deuteron.machine.gpu import GPU, GPUConfig
from deuteron.passes.carried_values import is_innermost
from deuteron.passes.gpu.pipelining.loads_into_registers import loads_into_registers
from deuteron.passes.gpu.pipelining.run_ahead import Ahead
from deuteron.passes.gpu.rings.buffered_loads import (
    DOTS,
    BufferedLoad,
    Load,
    feeds_dot,
    obstacle_to_copies,
)

# Of a thread, for what is under way to it in one iteration: 32 registers. Not measured.
MAX_PREFETCHED_BYTES = 128
IN_BRANCH = "it is in a branch"
NO_DOT = "no dot reads it; tl.range(num_stages=...) pipelines loops without one"


@dataclass
class ChosenLoads:
    """The loads of a loop that are done ahead: copied into shared memory, or loaded into registers."""

    copied: list[BufferedLoad] = field(default_factory=list)
    prefetched: list[LoadOp] = field(default_factory=list)


def choose_loads(loop: scf.ForOp, info: AxisInfoAnalysis, also_without_dot: bool, machine: GPU) -> ChosenLoads:
    chosen, room = ChosenLoads(), MAX_PREFETCHED_BYTES
    for load in _candidates(loop, also_without_dot):
        one = BufferedLoad.of(load, info)
        obstacle = obstacle_to_copies(one, info, machine)
        if obstacle is None:
            chosen.copied.append(one)
        elif _bytes_per_thread(load) <= room:
            remark(load, Kind.INTO_REGISTERS, obstacle, bytes_per_thread=_bytes_per_thread(load))
            chosen.prefetched.append(load)
            room -= _bytes_per_thread(load)
        else:
            size = _bytes_per_thread(load)
            too_many = f"{obstacle}, and {size} bytes a thread are too many to load ahead"
            remark(load, Kind.NOT_AHEAD, too_many, bytes_per_thread=size)
    return chosen


def choose_without_dots(loop: scf.ForOp, config: GPUConfig) -> list[LoadOp]:
    """The loads of a loop without dots that go into registers ahead."""
    of_loop = _obstacle_in_loop(loop)
    for load in loads_of(loop):
        place = IN_BRANCH if load.parent is not loop.body.block else None
        obstacle = of_loop or place or (None if isinstance(load, LoadOp) else NO_DOT)
        if obstacle is not None:
            remark(load, Kind.NOT_AHEAD, obstacle)
    return [] if of_loop else loads_into_registers(loop, config)


def is_among_dots(loop: scf.ForOp) -> bool:
    """Whether the kernel has dots: what they hold in registers is not known here."""
    func = loop.parent_op()
    while not isinstance(func, FuncOp):
        func = func.parent_op()
    return any(op.name in DOTS for op in nested_ops(func))


def _candidates(loop: scf.ForOp, also_without_dot: bool) -> Iterator[Load]:
    """The loads that may run ahead; the others get a remark."""
    without_dot = also_without_dot and not any(op.name in DOTS for op in loop.body.block.ops)
    written = written_arguments(loop)
    of_loop = _obstacle_in_loop(loop)
    for op in loads_of(loop):
        obstacle = of_loop or _obstacle_of(op, loop, written, without_dot)
        if obstacle is None:
            yield op
        else:
            remark(op, Kind.NOT_AHEAD, obstacle)


def loads_of(loop: scf.ForOp | scf.WhileOp) -> list[Load]:
    """The loads of tiles in a loop, but those in a loop within it."""
    loads = (op for op in nested_ops(loop, Load) if is_tile(op.result.type))
    return [load for load in loads if _loop_of(load) is loop]


def _loop_of(op: Operation) -> Operation:
    """The innermost loop around an op."""
    parent = op.parent_op()
    while not isinstance(parent, scf.ForOp | scf.WhileOp):
        parent = parent.parent_op()
    return parent


def _obstacle_in_loop(loop: scf.ForOp) -> str | None:
    if not is_innermost(loop):
        return "the loop is not an innermost one"
    ordering = first_in_order(loop, GLOBAL)
    return f"{ordering.name} keeps the iterations in order" if ordering is not None else None


def _obstacle_of(load: Load, loop: scf.ForOp, written: Targets, without_dot: bool) -> str | None:
    """What keeps a load from running ahead, in words."""
    if load.parent is not loop.body.block:
        return IN_BRANCH
    if not is_apart(load, written):
        return "the loop stores to the same argument"
    if without_dot and not list(load.result.uses):
        return "nothing reads it"
    if not without_dot and not feeds_dot(load.result):
        return NO_DOT
    return Ahead(loop, _needs(load)).obstacle


def _needs(load: Load) -> list[SSAValue]:
    """What a load needs to know in advance; the map of a descriptor is the kernel's."""
    if isinstance(load, LoadOp):
        return list(load.operands)
    made = load.desc.owner
    return [*load.indices, *(made.operands if isinstance(made, MakeTensorDescriptorOp) else ())]


def _bytes_per_thread(load: LoadOp) -> int:
    """An element narrower than a register takes one all the same."""
    return max(byte_width_of(load.result.type), 4) * layout_of(load.result.type).in_size(REGISTER)
