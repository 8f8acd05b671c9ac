"""Which loads of a loop are done ahead of their iteration, and how.

    load -> (anything without a region) -> operand of a dot            copied
    load, in a loop with tl.range(num_stages=...) and no dot           copied
    load, in another loop of a kernel without dots                     into registers (loads_into_registers.py)
    few elements that no dot reads, in a loop of dots by mma.sync, or
    that go through shared memory beside wgmma anyway                  copied
    ... that threads load beside wgmma where they need them            into registers, if these have room
    fewer than 4 neighbouring bytes in a thread, a tile that is transposed on its way, `other` that is not 0
                                                                       into registers, if these have room for all
    load -> address or mask of one of these                            into registers, further ahead (address_loads.py)
    volatile; a store to the same argument, an atomic in the loop      stays, and so do those that depend on it

A barrier orders what the program itself stores, so that it holds up no load from elsewhere. A load that is not copied
is left with a remark that says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from deuteron.analysis.addresses.tile_polynomials import TilePolynomials
from deuteron.analysis.aliasing.points_to import Targets
from deuteron.analysis.aliasing.written_arguments import (
    could_be_apart,
    rely_on_apart,
    written_arguments,
    written_before_barriers,
)
from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.analysis.loop_registers import ROOM, distinct_addresses, registers_held, registers_under_way
from deuteron.ir.around import loops_around
from deuteron.ir.effects import GLOBAL, first_in_order
from deuteron.ir.nested import nested_ops
from deuteron.ir.reached import reached
from deuteron.ir.remarks import Kind, remark
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.ttg.convert import ConvertLayoutOp
from deuteron.ir.types import is_tile
from deuteron.machine.gpu import REGISTER_BYTES, GPUConfig
from deuteron.passes.carried_values import is_innermost
from deuteron.passes.gpu.pipelining.address_loads import AddressLoads
from deuteron.passes.gpu.pipelining.loads_into_registers import loads_into_registers
from deuteron.passes.gpu.rings.buffered_loads import (
    DOTS,
    BufferedLoad,
    Load,
    fed_to_dots,
    obstacle_to_copies,
)

# Registers of a thread that are always there for what is under way to it in one iteration. Not measured.
FEW = 8
# Of an address, as much as ptxas does not compute again. With 0.8 of the registers filled so, products of odd sizes
# had 0.7 to 0.9 of the speed without loads ahead, with 0.72 they had 1.05 to 1.4.
REGISTERS_PER_ADDRESS = 1 / 2
# Of an address that the loop does not carry, but computes of the iteration's number. With loads ahead products and
# attention that fill more than the room so took 1.24 to 1.55 of the time, with less than 0.98 of it mostly 0.7 to 1.0.
REGISTERS_PER_COMPUTED = 5 / 4
# What the addresses of loads depend on: 32 registers. Not measured.
MAX_BYTES_OF_ADDRESSES = 128
# Registers of a thread, of what no dot reads: scales of rows or columns. Not measured.
MAX_REGISTERS_BESIDE_DOTS = 8
IN_BRANCH = "it is in a branch"
STORED = "the loop stores to the same argument, or to what may be the same place"
OF_ADDRESS = "addresses of others depend on it"
IN_PLACE = "each thread loads what it needs of it"
NO_DOT = "no dot reads it; tl.range(num_stages=...) pipelines loops without one"


@dataclass
class ChosenLoads:
    """The loads of a loop that are done ahead: copied into shared memory, or loaded into registers."""

    addresses: AddressLoads
    copied: list[BufferedLoad] = field(default_factory=list)
    prefetched: list[LoadOp] = field(default_factory=list)

    def into_registers(self, distance: int) -> dict[LoadOp, int]:
        """How many iterations ahead which loads go into registers, where copies are `distance` iterations ahead."""
        copied = [one.load for one in self.copied]  # in order, which decides that of the code
        wanted = {**dict.fromkeys(self.prefetched, 1), **dict.fromkeys(copied, distance)}
        found = {load: far for load, far in self.addresses.with_sources(wanted).items() if load not in copied}
        for load in found.keys() - set(self.prefetched):
            remark(load, Kind.INTO_REGISTERS, OF_ADDRESS, iterations=found[load])
        return found


def choose_loads(loop: scf.ForOp, info: AxisInfoAnalysis, also_without_dot: bool, config: GPUConfig) -> ChosenLoads:
    written = written_arguments(loop) | written_before_barriers(loop)
    addresses = AddressLoads(loop, lambda load, _: None if could_be_apart(load, written) else STORED)
    chosen, room = ChosenLoads(addresses), _RoomOfAddresses(addresses)
    candidates = list(_candidates(loop, addresses, written, also_without_dot))
    sources = set().union(*map(addresses.sources, candidates))
    buffered = [BufferedLoad.of(load, info) for load in candidates]
    in_place = {load: IN_PLACE for load in candidates if _is_in_place_beside_wgmma(load, loop)}
    known = in_place | dict.fromkeys(sources, OF_ADDRESS)
    obstacles = {one.load: known.get(one.load) or obstacle_to_copies(one, info, config.machine) for one in buffered}
    crowd = _crowd_of(loop, obstacles, info, config)
    for one in buffered:
        load, obstacle = one.load, obstacles[one.load]
        too_many = (crowd if obstacle is not None else None) or room.take(load)
        if too_many is not None:
            reason = f"{obstacle}, and {too_many}" if obstacle is not None else too_many
            remark(load, Kind.NOT_AHEAD, reason, bytes_per_thread=_bytes_per_thread(load))
        elif obstacle is None:
            chosen.copied.append(one)
        else:
            remark(load, Kind.INTO_REGISTERS, obstacle, bytes_per_thread=_bytes_per_thread(load))
            chosen.prefetched.append(load)
    for load in addresses.with_sources(dict.fromkeys([*(one.load for one in chosen.copied), *chosen.prefetched], 1)):
        rely_on_apart(load, written)
    return chosen


def _crowd_of(
    loop: scf.ForOp, obstacles: Mapping[Load, str | None], info: AxisInfoAnalysis, config: GPUConfig
) -> str | None:
    """Why registers have no room for all that is not copied, in words. A part of it would be waited for, and the rest
    as well.
    """
    loads = [load for load, obstacle in obstacles.items() if obstacle is not None]
    loaded = sum(registers_under_way(load.result.type) for load in loads)
    if loaded <= FEW:
        return None
    held = registers_held(loop, TilePolynomials(), {load.result for load in obstacles})
    addresses = {load: len(distinct_addresses(load.ptr, info.of(load.ptr))) for load in loads}
    filled = sum(count * _registers_per_address(load, loop) for load, count in addresses.items())
    room = int(ROOM * config.registers_per_thread)
    if held + loaded + filled <= room:
        return None
    total = sum(addresses.values())
    return f"{loaded} registers for what is loaded ahead, from {total} addresses, have no room besides {held}"


def _registers_per_address(load: Load, loop: scf.ForOp) -> float:
    made_of = reached([load.ptr], lambda value: value.owner.operands if _is_computed_in(value, loop) else ())
    is_carried = any(value.owner is loop.body.block and is_tile(value.type) for value in made_of)
    return REGISTERS_PER_ADDRESS if is_carried else REGISTERS_PER_COMPUTED


def _is_computed_in(value: SSAValue, loop: scf.ForOp) -> bool:
    return isinstance(value.owner, Operation) and loop.is_ancestor(value.owner)


class _RoomOfAddresses:
    """The bytes of a thread that are left for what the addresses of loads ahead depend on."""

    def __init__(self, addresses: AddressLoads):
        self._addresses, self._known, self._left = addresses, set(), MAX_BYTES_OF_ADDRESSES

    def take(self, load: Load) -> str | None:
        """Take the room for a load; else what is too much, in words."""
        sources = self._addresses.sources(load) - self._known
        size = sum(map(_bytes_per_thread, sources))
        if size > self._left:
            return f"the loads that its address depends on give {size} bytes a thread, too many to load ahead"
        self._known |= sources
        self._left -= size
        return None


def choose_without_dots(loop: scf.ForOp, func: FuncOp, config: GPUConfig) -> dict[LoadOp, int]:
    """The loads of a loop without dots that go into registers, and by how many iterations ahead."""
    of_loop = _obstacle_in_loop(loop)
    for load in loads_of(loop):
        place = IN_BRANCH if load.parent is not loop.body.block else None
        obstacle = of_loop or place or (None if isinstance(load, LoadOp) else NO_DOT)
        if obstacle is not None:
            remark(load, Kind.NOT_AHEAD, obstacle)
    return {} if of_loop else loads_into_registers(loop, func, config)


def _candidates(loop: scf.ForOp, addresses: AddressLoads, written: Targets, also_without_dot: bool) -> Iterator[Load]:
    """The loads that may run ahead; the others get a remark."""
    without_dot = also_without_dot and not any(op.name in DOTS for op in loop.body.block.ops)
    of_loop, fed = _obstacle_in_loop(loop), fed_to_dots(loop)
    for op in loads_of(loop):
        of_load = of_loop or _obstacle_of(op, loop, written, without_dot, op.result in fed)
        obstacle = of_load or addresses.obstacle(op, 1)
        if obstacle is None:
            yield op
        else:
            remark(op, Kind.NOT_AHEAD, obstacle)


def loads_of(loop: scf.ForOp | scf.WhileOp) -> list[Load]:
    """The loads of tiles in a loop, but those in a loop within it."""
    loads = (op for op in nested_ops(loop, Load) if is_tile(op.result.type))
    return [load for load in loads if next(loops_around(load)) is loop]


def _obstacle_in_loop(loop: scf.ForOp) -> str | None:
    if not is_innermost(loop):
        return "the loop is not an innermost one"
    ordering = first_in_order(loop, GLOBAL)
    return f"{ordering.name} keeps the iterations in order" if ordering is not None else None


def _obstacle_of(load: Load, loop: scf.ForOp, written: Targets, without_dot: bool, is_fed: bool) -> str | None:
    """What keeps a load from running ahead, in words."""
    if load.parent is not loop.body.block:
        return IN_BRANCH
    if not could_be_apart(load, written):
        return STORED
    if without_dot and not list(load.result.uses):
        return "nothing reads it"
    if not without_dot and not is_fed and not _is_beside_dots(load, loop):
        return NO_DOT
    return None


def _is_beside_dots(load: Load, loop: scf.ForOp) -> bool:
    """Whether no dot reads a load, such as scales of what one gives, and it is a few registers."""
    if not isinstance(load, LoadOp) or not any(op.name in DOTS for op in loop.body.block.ops):
        return False
    return _bytes_per_thread(load) <= MAX_REGISTERS_BESIDE_DOTS * REGISTER_BYTES


def _is_in_place_beside_wgmma(load: Load, loop: scf.ForOp) -> bool:
    """Whether it is one of these that nobody exchanges, while a dot by wgmma goes on: through shared memory threads
    would wait for each other.
    """
    by_wgmma = any(op.name == "ttng.warp_group_dot" for op in loop.body.block.ops)
    return by_wgmma and load.result not in fed_to_dots(loop) and not _is_exchanged(load)


def _is_exchanged(load: Load) -> bool:
    """Whether all that is done with a load is to give it to other threads, through shared memory."""
    return all(isinstance(use.operation, ConvertLayoutOp) for use in load.result.uses)


def _bytes_per_thread(load: LoadOp) -> int:
    return REGISTER_BYTES * registers_under_way(load.result.type)
