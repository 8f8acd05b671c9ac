"""Which loads of a loop without dots are done one iteration ahead, into registers (prefetch_loads.py).

    for row in range(first, end):                   x and mean of the next row are under way while this one is
        x = tl.load(x_ptr + row * n + i)            computed and summed up; where rows are tl.load(index + row), those
        mean = tl.load(mean_ptr + row)              of the iteration after the next (address_loads.py)
        ...

All of them or none: an iteration waits for the last. They have to fit, with what else a thread holds where threads
exchange anything (sums between warps, conversions of layouts): what is spilled costs more than waiting. Not where an
iteration has many loads of single words whose masks stay, or are several, as of the taps of a convolution, all under
way at once anyway: to each mask whether the next iteration comes would be added in each, and there are seven
predicates. Nor where single words are loaded at quotients, which would be computed for an iteration that never comes.
Nor in loops that begin at a loaded number, as over a row of a sparse matrix or a segment, where threads exchange
anything: these run a few times, and are not written out twice (alternate_registers.py), so that each iteration would
wait at its end. Without loads ahead ptxas unrolls them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from xdsl.dialects import scf
from xdsl.dialects.arith import DivSIOp, DivUIOp, RemSIOp, RemUIOp
from xdsl.ir import Operation, SSAValue

from deuteron.analysis.addresses.access_vectors import access_vectors
from deuteron.analysis.addresses.tile_polynomials import TilePolynomials
from deuteron.analysis.aliasing.next_iteration import Meeting, loads_back, meets_next
from deuteron.analysis.aliasing.program_order import writers_in
from deuteron.analysis.aliasing.written_arguments import (
    could_be_apart,
    has_order,
    read_by,
    rely_on_apart,
    written_before_barriers,
    written_by,
)
from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.analysis.loop_registers import ROOM, registers_held, registers_of
from deuteron.ir.arith import constant_value
from deuteron.ir.effects import is_speculatable
from deuteron.ir.reached import operands_of, reached
from deuteron.ir.remarks import Kind, remark
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.ttg.inference import is_flexible
from deuteron.ir.ttg.layout import layout_of
from deuteron.ir.types import byte_width_of, is_tile
from deuteron.layout.linear import REGISTER
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.gpu.pipelining.address_loads import AddressLoads

# Of an iteration, that do not change in the loop. A convolution of 3 by 3 taps, 4 pixels a thread, has 36:
# 379 instructions and 128 registers with loads ahead, 246 and 64 without. Wider accesses wait for memory.
MOST_MASKS, NARROW_BYTES = 16, 4
QUOTIENTS = (DivSIOp, DivUIOp, RemSIOp, RemUIOp)


def loads_into_registers(loop: scf.ForOp, func: FuncOp, config: GPUConfig) -> dict[LoadOp, int]:
    """By how many iterations: two and more where addresses of others depend on them. Nothing in the loop keeps its
    iterations in order. Tiles that stay get a remark.
    """
    order, chosen = _Order(loop), []
    addresses = AddressLoads(loop, order.obstacle)
    for load in (op for op in loop.body.block.ops if isinstance(op, LoadOp)):
        unread = None if list(load.result.uses) else "nothing reads it"
        obstacle = order.obstacle(load, 1) or unread or addresses.obstacle(load, 1)
        if obstacle is None:
            chosen.append(load)
        elif is_tile(load.result.type):
            remark(load, Kind.NOT_AHEAD, obstacle)
    info = AxisInfoAnalysis(func)
    obstacle = _of_all_together(chosen, loop, info)
    if obstacle is not None:
        for load in chosen:
            remark(load, Kind.NOT_AHEAD, obstacle)
        return {}
    distances = addresses.with_sources(dict.fromkeys(chosen, 1))
    held = registers_held(loop, order.known)
    loaded = sum(registers_of(load.result.type) for load in distances)
    room = int(ROOM * config.registers_per_thread)
    fits = held + loaded <= room
    for load in distances if loaded else ():
        kind = Kind.INTO_REGISTERS if fits else Kind.NOT_AHEAD
        reason = f"{loaded} registers for what is loaded ahead, besides {held} for other tiles, of {room}"
        remark(load, kind, reason, registers=loaded, held=held, room=room, iterations=distances[load])
    for load in distances if fits else ():
        order.rely(load, distances[load])
    return distances if fits else {}


def _of_all_together(loads: Sequence[LoadOp], loop: scf.ForOp, info: AxisInfoAnalysis) -> str | None:
    """What keeps loads from running ahead that could each do so, in words."""
    tiles = [load for load in loads if is_tile(load.result.type)]
    if _begins_at_loaded(loop) and not all(map(is_local, list(loop.body.block.ops)[:-1])):
        return "the loop begins at a loaded number, and its threads exchange something"
    if _has_more_masks(tiles, loop, info):
        return f"an iteration has more than {MOST_MASKS} of single words whose masks stay, or are several"
    if any(_is_at_quotients(load, loop) and num_narrow(load, info) > 1 for load in tiles):
        return "single words are loaded at quotients, which are computed in the loop"
    return None


def _begins_at_loaded(loop: scf.ForOp) -> bool:
    return any(isinstance(value.owner, LoadOp) for value in reached([loop.lb], operands_of))


def is_local(op: Operation) -> bool:
    """Whether a thread does an op without the others, and may do so in vain."""
    if isinstance(op, LoadOp | StoreOp):
        return True
    of_scalars = not op.regions and not any(is_tile(value.type) for value in op.operands)
    return is_speculatable(op) and (of_scalars or is_flexible(op))


def _has_more_masks(loads: Sequence[LoadOp], loop: scf.ForOp, info: AxisInfoAnalysis) -> bool:
    """Whether a thread has more than MOST_MASKS for accesses of a word or less, but for one that changes in the loop,
    as whether a row comes before its end does.
    """
    masked = [load for load in loads if load.mask is not None]
    changing = {load.mask for load in masked if loop.is_ancestor(load.mask.owner)}
    counted = [load for load in masked if load.mask not in changing or len(changing) > 1]
    if sum(layout_of(load.result.type).in_size(REGISTER) for load in counted) <= MOST_MASKS:
        return False
    return sum(num_narrow(load, info) for load in counted) > MOST_MASKS


def _is_at_quotients(load: LoadOp, loop: scf.ForOp) -> bool:
    """Whether a loop divides by what is not constant, element by element, to compute a load's addresses."""
    made_of = reached([load.ptr], lambda value: value.owner.operands if _is_made_in(value, loop) else ())
    return any(_is_made_in(value, loop) and _is_quotient(value.owner) for value in made_of)


def _is_made_in(value: SSAValue, loop: scf.ForOp) -> bool:
    op = value.owner
    return isinstance(op, Operation) and loop.is_ancestor(op) and is_flexible(op)


def _is_quotient(op: Operation) -> bool:
    return isinstance(op, QUOTIENTS) and constant_value(op.rhs) is None


def num_narrow(load: LoadOp, info: AxisInfoAnalysis, most_bytes: int = NARROW_BYTES) -> int:
    """Of a load's accesses by a thread, all of which have the same width."""
    return len(_accesses(load, info)) if bytes_of_accesses(load, info) <= most_bytes else 0


def bytes_of_accesses(load: LoadOp, info: AxisInfoAnalysis) -> int:
    """Of each access of a load by a thread."""
    return byte_width_of(load.result.type) * len(_accesses(load, info)[0])


def _accesses(load: LoadOp, info: AxisInfoAnalysis) -> Sequence[Sequence[int]]:
    size = byte_width_of(load.result.type)
    return access_vectors(layout_of(load.result.type), info.of(load.ptr), info.of_mask(load.mask), size)


class _Order:
    """Which loads may come before what the loop writes."""

    def __init__(self, loop: scf.ForOp):
        self.known = TilePolynomials()
        self._loop, self._ordered, self._writers = loop, written_before_barriers(loop), writers_in(loop)

    def obstacle(self, load: LoadOp, distance: int) -> str | None:
        """What keeps a load from running that many iterations ahead, in words."""
        if not could_be_apart(load, self._ordered):
            return "a barrier in the loop orders stores to the same argument before it"
        if not all(self._may_follow(writer, load, distance) for writer in self._writers):
            return "the loop stores to the same argument, or to what may be the same place"
        return None

    def rely(self, load: LoadOp, distance: int) -> None:
        """Write down what a load relies on that runs that many iterations ahead."""
        rely_on_apart(load, self._ordered)
        for writer in self._writers:
            if not read_by(load).shares(written_by(writer)):
                found = self._meets(writer, load, distance)
                rely_on_apart(load, written_by(writer), found.meets is False, found.equal)

    def _may_follow(self, writer: Operation, load: LoadOp, distance: int) -> bool:
        """Whether what one iteration writes need not be what a later one loads: not where it certainly is if all
        arguments are one array, for whoever passes one twice means that; but nobody means to load what was just stored.
        """
        found = self._meets(writer, load, distance)
        if read_by(load).shares(written_by(writer)):
            return found.meets is False and not found.equal and not has_order(load)
        is_meant = found.meets is True and not self._loads_back(writer, load)
        return not is_meant and could_be_apart(load, written_by(writer))

    def _loads_back(self, writer: Operation, load: LoadOp) -> bool:
        """Whether each iteration, if all arguments are one array, loads just what it stored."""
        is_before = writer.parent is load.parent and writer.is_before_in_block(load)
        return is_before and isinstance(writer, StoreOp) and loads_back(writer, load, self._loop, self.known)

    def _meets(self, writer: Operation, load: LoadOp, distance: int) -> Meeting:
        """Whether a writer writes what one of so many later iterations loads, or its own after it, if all arguments are
        one array.
        """
        nearest = 0 if load.parent.find_ancestor_op_in_block(writer).is_before_in_block(load) else 1
        found = [meets_next(writer, load, self._loop, self.known, steps) for steps in range(nearest, distance + 1)]
        answers = [one.meets for one in found]
        meets = True if True in answers else None if None in answers else False
        return Meeting(meets, frozenset(chain.from_iterable(one.equal for one in found)))
