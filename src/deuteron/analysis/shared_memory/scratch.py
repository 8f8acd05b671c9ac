"""How much shared memory an op needs for itself while it runs, and how its threads wait for each other then.

    convert_layout    the tile or a part of it, where the route goes through shared memory
    reduce, scan      one partial result for each warp along the axis (reduce), the totals of warps (scan)
    gather            the source, where warps do not find all they take in their own registers: its registers as they
                      are, where elements are exchanged in pairs between warps, or a pass says so (`exchange_in_shared`)
    histogram         the bins
    atomics, timer    the result, where one thread acts for several and they all want it
    descriptor_store  the block, until it is lowered to an allocation

The lowering rules of these ops call the same functions, so that what is reserved and what is used are one thing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import get_args

from xdsl.ir import Attribute, Operation

from deuteron.analysis.addresses.index_bits import exchange_mask
from deuteron.analysis.addresses.known_elements import known_elements
from deuteron.analysis.along_axis import num_exchanged
from deuteron.analysis.shared_memory.descriptor_buffers import block_buffer, block_bytes
from deuteron.analysis.shared_memory.shared_conversion import SharedConversion, plan_conversion
from deuteron.analysis.shared_memory.warp_parts import WarpParts, Way, num_parts
from deuteron.ir.tt.atomic import AtomicOp
from deuteron.ir.tt.descriptor import DescriptorReduceOp, DescriptorStoreOp
from deuteron.ir.tt.indexing import GatherOp, HistogramOp
from deuteron.ir.tt.program import GlobalTimerOp
from deuteron.ir.tt.reduce import ReduceOp, ScanOp
from deuteron.ir.ttg.convert import ConvertLayoutOp
from deuteron.ir.ttg.layout import MemDescType, layout_of
from deuteron.ir.ttg.memdesc_index import num_buffers
from deuteron.ir.ttg.shared import LocalAllocOp
from deuteron.ir.types import byte_width_of, is_tile, num_elements_of
from deuteron.layout import conversion, f2
from deuteron.layout.conversion import Route, SharedRoute
from deuteron.layout.gather import ExchangeRoute, GatherRoute, plan_exchange, plan_gather
from deuteron.layout.linear import LANE, REGISTER, WARP, LinearLayout

ALIGNMENT = 16
IN_SHARED = "ttg.in_shared"  # of a gather: lanes exchange elements through shared memory


@lru_cache(maxsize=4096)
def _plan(src: LinearLayout, dst: LinearLayout, element_bits: int) -> Route:
    return conversion.plan(src, dst, element_bits)


def route_of(op: ConvertLayoutOp) -> Route:
    """The way that a conversion takes."""
    return _plan(layout_of(op.src.type), layout_of(op.result.type), 8 * byte_width_of(op.src.type))


def shared_conversion_of(op: ConvertLayoutOp) -> SharedConversion:
    """How a conversion goes through shared memory."""
    return plan_conversion(layout_of(op.src.type), layout_of(op.result.type), 8 * byte_width_of(op.src.type))


def reduce_offsets(op: ReduceOp) -> list[int]:
    """Where the parts of each operand begin, before its results where they are shared out; the last is the end."""
    offsets, parts = [0], WarpParts.of(op)
    count = parts.results * (parts.parts + (parts.way is Way.SHARED_OUT))
    for src in op.srcs:
        offsets.append(offsets[-1] + _aligned(count * byte_width_of(src.type)))
    return offsets


def scan_offsets(op: ScanOp) -> list[int]:
    """Where the totals of each operand that warps exchange begin; the last entry is the end."""
    offsets, count = [0], num_exchanged(layout_of(op.srcs[0].type), op.axis.value.data)
    for src in op.srcs:
        offsets.append(offsets[-1] + _aligned(count * byte_width_of(src.type)))
    return offsets


def gather_route_of(op: GatherOp) -> GatherRoute | None:
    """How warps find what they take among their own registers; None: through shared memory."""
    known = known_elements(op.indices)
    return plan_gather(layout_of(op.src.type), layout_of(op.indices.type), op.axis.value.data, known)


def exchange_route_of(op: GatherOp) -> ExchangeRoute | None:
    """How each element gets to its partner, where a gather exchanges the elements of pairs."""
    layout = layout_of(op.src.type)
    mask = exchange_mask(op) if layout == layout_of(op.result.type) else None
    return None if mask is None else plan_exchange(layout, mask)


def exchanges_in_shared(op: GatherOp, route: ExchangeRoute) -> bool:
    """Whether elements go through shared memory to their partners."""
    return bool(route.warp) or (bool(route.lane) and IN_SHARED in op.attributes)


def exchanged_bytes(type: Attribute) -> int:
    """The registers of all threads, replicas among them."""
    layout = layout_of(type)
    return byte_width_of(type) << sum(layout.in_bits(name) for name in (REGISTER, LANE, WARP))


def _gathered_bytes(op: GatherOp) -> int:
    exchange = exchange_route_of(op)
    if exchange is not None:
        return exchanged_bytes(op.src.type) if exchanges_in_shared(op, exchange) else 0
    return 0 if gather_route_of(op) else num_elements_of(op.src.type) * byte_width_of(op.src.type)


def shares_result(op: AtomicOp | GlobalTimerOp) -> bool:
    """Whether threads want the result of an op that another thread did for them."""
    if not any(result.uses for result in op.results):
        return False
    if not is_tile(op.result.type):
        return True
    free = layout_of(op.result.type).free_bits()
    return bool(free[LANE] | free[WARP])


def buffer_bytes(type: MemDescType) -> int:
    """From the beginning of a buffer to that of the next: each is aligned."""
    size = byte_width_of(type.tile) << layout_of(type).total_out_bits
    alignment = type.tile.encoding.alignment.data
    return -(-size // alignment) * alignment if num_buffers(type) > 1 else size


def scratch_bytes(op: Operation) -> int:
    """Shared memory that an op needs while it runs; of an allocation, what it allocates."""
    of_class = _BYTES.get(op.__class__)
    return of_class(op) if of_class is not None else 0


def _converted_bytes(op: ConvertLayoutOp) -> int:
    if not isinstance(route_of(op), SharedRoute):
        return 0
    return shared_conversion_of(op).num_elements * byte_width_of(op.src.type)


def _result_bytes(op: HistogramOp | AtomicOp | GlobalTimerOp) -> int:
    return num_elements_of(op.result.type) * byte_width_of(op.result.type)


def _shared_result_bytes(op: AtomicOp | GlobalTimerOp) -> int:
    return _result_bytes(op) if shares_result(op) else 0


# By class: most ops need none, and are asked in every compile.
_BYTES: dict[type[Operation], Callable[..., int]] = {
    LocalAllocOp: lambda op: num_buffers(op.result.type) * buffer_bytes(op.result.type),
    **dict.fromkeys((DescriptorStoreOp, DescriptorReduceOp), lambda op: block_bytes(block_buffer(op.src.type))),
    ConvertLayoutOp: _converted_bytes,
    ReduceOp: lambda op: reduce_offsets(op)[-1] if num_parts(op) > 1 else 0,
    ScanOp: lambda op: scan_offsets(op)[-1],
    GatherOp: _gathered_bytes,
    HistogramOp: _result_bytes,
    **dict.fromkeys((*get_args(AtomicOp), GlobalTimerOp), _shared_result_bytes),
}


def stays_in_warp(op: Operation) -> bool:
    """Whether each warp reads only what it wrote itself: of what is exchanged, if the partner is another lane.

    Where a layout is converted, the warps have the same offset on both sides, and what registers and lanes of the
    result add to it, registers and lanes of the source reach as well.
    """
    if isinstance(op, GatherOp):
        exchange = exchange_route_of(op)
        return exchange is not None and not exchange.warp
    if not isinstance(op, ConvertLayoutOp):
        return False
    source, result = layout_of(op.src.type), layout_of(op.result.type)
    if source.of(WARP) != result.of(WARP) or source.free_bits()[WARP]:
        return False
    reached = f2.Span(source.columns(REGISTER, LANE))
    return all(column in reached for column in result.columns(REGISTER, LANE))


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
