"""TMA copies of tiles, by one thread: one instruction for each box of the tile.

    @P cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%m], [%map, {%j, %i}], [%bar];
    @P cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map, {%j, %i}], [%src];

Coordinates go from the innermost dimension outwards. The first warp elects the thread. The stores of an op are a group
of that. Of a load with multicast every CTA of the cluster issues an equal share of the copies, `.multicast::cluster`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Operation

from deuteron.backend.cuda.context import CUDAContext
from deuteron.backend.gpu.context import Rule
from deuteron.backend.gpu.shared_tile import SharedTile
from deuteron.backend.gpu.threads import apply_columns
from deuteron.backend.llvm.builder import Touches
from deuteron.backend.llvm.types import Value, const
from deuteron.ir.tt.descriptor import DescriptorReduceKind
from deuteron.ir.types import byte_width_of
from deuteron.layout.linear import log2
from deuteron.layout.tensor_box import box_places

_LOAD = (
    "cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$1], [$2, {{{at}}}], [$3];"
)
_MULTICAST = (
    "cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
    "[$1], [$2, {{{at}}}], [$3], $4;"
)
_STORE = "cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group [$2, {{{at}}}], [$1];"
_REDUCE = "cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{kind}.tile.bulk_group [$2, {{{at}}}], [$1];"
_CONSTRAINTS = {"i16": "h", "ptr addrspace(3)": "r"}
_ZERO = const("i32", 0)


def make_tensor_descriptor(ctx: CUDAContext, op: Operation, *operands: Value) -> Value:
    """The map is a parameter of the kernel, which the launch makes."""
    return const("i32", 0)


def load(ctx: CUDAContext, op: Operation, descriptor: Value, *operands: Value | SharedTile) -> None:
    *coordinates, barrier, buffer, pred = operands
    if op.num_ctas == 1:
        _copy(ctx, op, buffer, coordinates, _LOAD, pred, barrier.address)
    else:
        all_blocks = const("i16", (1 << op.num_ctas) - 1)
        _copy(ctx, op, buffer, coordinates, _MULTICAST, pred, barrier.address, all_blocks)


def store(ctx: CUDAContext, op: Operation, descriptor: Value, *operands: Value | SharedTile) -> None:
    *coordinates, buffer = operands
    _copy(ctx, op, buffer, coordinates, _STORE, None)
    _commit(ctx)


def reduce(ctx: CUDAContext, op: Operation, descriptor: Value, *operands: Value | SharedTile) -> None:
    *coordinates, buffer = operands
    kind = DescriptorReduceKind(op.kind.value.data).name.lower()
    _copy(ctx, op, buffer, coordinates, _REDUCE.replace("{kind}", kind), None)
    _commit(ctx)


def store_wait(ctx: CUDAContext, op: Operation) -> None:
    name = "llvm.nvvm.cp.async.bulk.wait.group" + (".read" if op.read_only is not None else "")
    ctx.b.intrinsic(name, "void", const("i32", op.pendings.value.data), overloads=())


def _commit(ctx: CUDAContext) -> None:
    ctx.b.intrinsic("llvm.nvvm.cp.async.bulk.commit.group", "void", overloads=())


def _copy(
    ctx: CUDAContext,
    op: Operation,
    buffer: SharedTile,
    coordinates: Sequence[Value],
    text: str,
    pred: Value | None,
    *others: Value,
) -> None:
    b, first = ctx.b, 3 + len(others)
    at = ", ".join(f"${first + axis}" for axis in range(len(coordinates)))
    instruction = "@$0 " + text.format(rank=len(coordinates), at=at)
    constraints = ",".join(["b", "r", "l", *(_CONSTRAINTS[other.type] for other in others), *["r"] * len(coordinates)])
    with ctx.in_first_warp(pred) as elected:
        for address, steps in _copies(ctx, op, buffer):
            whole = [_ZERO] * (len(coordinates) - len(steps)) + steps
            moved = [c if step == _ZERO else b.add(c, step) for c, step in zip(coordinates, whole, strict=True)]
            operands = (elected, address, ctx.tensor_maps[op], *others, *reversed(moved))
            b.assembly(Touches.MEMORY, "void", instruction, constraints, *operands, attributes="convergent nounwind")


def _copies(ctx: CUDAContext, op: Operation, buffer: SharedTile) -> Iterator[tuple[Value, list[Value]]]:
    """Where this CTA's copies begin: in shared memory, and in the tile of the tensor. The rank of the CTA in its
    cluster is the highest part of a copy's number.
    """
    b, size = ctx.b, byte_width_of(op.buffer.type.tile)
    places = [(place, offset * size) for place, offset in box_places(buffer.layout, op.box)]
    share = len(places) // op.num_ctas
    of_rank = [places[share << bit] for bit in range(log2(op.num_ctas))]
    rank = ctx.cluster_rank if of_rank else _ZERO
    begin = apply_columns(b, rank, [offset for _, offset in of_rank])
    steps = [apply_columns(b, rank, [place[axis] for place, _ in of_rank]) for axis in range(len(op.box.shape))]
    for place, offset in places[:share]:
        start = begin.at(b, offset)
        address = buffer.address if start == _ZERO else b.gep("i8", buffer.address, start)
        yield address, [step.at(b, at) for step, at in zip(steps, place, strict=True)]


RULES: dict[str, Rule] = {
    "tt.make_tensor_descriptor": make_tensor_descriptor,
    "ttng.async_tma_copy_global_to_local": load,
    "ttng.async_tma_copy_local_to_global": store,
    "ttng.async_tma_reduce": reduce,
    "ttng.async_tma_store_wait": store_wait,
}
