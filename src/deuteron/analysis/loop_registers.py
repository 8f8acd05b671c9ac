"""How many registers of a thread the tiles of a loop fill.

    held        at once, where threads exchange anything and at the end of an iteration: sums, operands
    under way   of a load, before its elements are packed
    addresses   of a tile of pointers, but those at known distances from others

Indices are computed when they are needed, masks are in registers of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from xdsl.dialects import scf
from xdsl.dialects.arith import ConstantOp
from xdsl.ir import Attribute, Operation, SSAValue

from deuteron.analysis.addresses.access_vectors import leaders
from deuteron.analysis.addresses.tile_polynomials import TilePolynomials
from deuteron.analysis.axis.axis_info import AxisInfo
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, SplatOp, TransOp
from deuteron.ir.ttg.inference import is_flexible
from deuteron.ir.ttg.layout import layout_of
from deuteron.ir.types import byte_width_of, element_type_of, i1, is_pointer, is_tile
from deuteron.layout.linear import REGISTER

# Of the registers that a thread may have. Addresses, masks and what is computed take the rest: kernels of layer norm
# backward have 1.1 times what their tiles fill, and 16.
ROOM = 3 / 4
# Their results are in the registers of their operands.
VIEWS = (BroadcastOp, ExpandDimsOp, SplatOp, TransOp)


def registers_held(loop: scf.ForOp, known: TilePolynomials, without: Collection[SSAValue] = ()) -> int:
    """The most that tiles fill at once, where threads exchange anything and at the end of an iteration."""
    block = loop.body.block
    places = {op: place for place, op in enumerate(block.ops)}
    exchanges = [place for op, place in places.items() if op.results and not is_flexible(op)]
    counted = [value for value in _tiles_in(loop) if value not in without and known.of(value) is None]
    spans = [_span(value, loop, places) for value in counted]
    return max(
        sum(registers for registers, first, last in spans if first < place <= last)
        for place in [*exchanges, len(places)]
    )


def registers_of(type: Attribute) -> int:
    """Of a thread: halves go in pairs, bytes do not."""
    if not is_tile(type):
        return 1
    count, size = layout_of(type).in_size(REGISTER), byte_width_of(type)
    return -(-count // 2) if size == 2 else count * max(size // 4, 1)


def registers_under_way(type: Attribute) -> int:
    """Of what is loaded: an element narrower than a register takes one all the same."""
    count = layout_of(type).in_size(REGISTER) if is_tile(type) else 1
    return max(byte_width_of(type) // 4, 1) * count


def distinct_addresses(pointers: SSAValue, info: AxisInfo) -> list[int]:
    """The registers of a tile of pointers that are at no known distance from an earlier one."""
    return [
        register for register, (leader, _) in enumerate(leaders(layout_of(pointers.type), info)) if register == leader
    ]


def _tiles_in(loop: scf.ForOp) -> list[SSAValue]:
    """The tiles that a loop's body holds, computes or takes from before the loop; indices are computed when needed."""
    block = loop.body.block
    made = [result for op in block.ops for result in op.results]
    taken = [operand for op in loop.body.walk() for operand in op.operands]
    values = dict.fromkeys([*block.args, *made, *taken])
    return [value for value in values if is_tile(value.type) and not _is_cheap(value)]


def _is_cheap(value: SSAValue) -> bool:
    """Addresses, with common bases; masks, in registers of their own; constants; views of others."""
    is_address = is_pointer(element_type_of(value.type)) or element_type_of(value.type) == i1
    return is_address or isinstance(value.owner, (ConstantOp, *VIEWS))


def _span(value: SSAValue, loop: scf.ForOp, places: dict[Operation, int]) -> tuple[int, int, int]:
    """The registers of a tile, and the places after which it is there and to which it is needed."""
    owner = value.owner
    first = places.get(owner, -1) if isinstance(owner, Operation) else -1
    if first < 0 and owner is not loop.body.block:
        return registers_of(value.type), -1, len(places)
    uses = [places.get(loop.body.block.find_ancestor_op_in_block(reader), len(places)) for reader in _readers(value)]
    return registers_of(value.type), first, max(uses, default=first)


def _readers(value: SSAValue) -> Iterator[Operation]:
    """What reads a tile, or a view of it."""
    for use in value.uses:
        if isinstance(use.operation, VIEWS):
            yield from _readers(use.operation.results[0])
        else:
            yield use.operation
