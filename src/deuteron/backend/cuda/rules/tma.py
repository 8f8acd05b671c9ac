"""TMA copies of blocks, by one thread: one instruction for each box of the block.

    @P cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%m], [%map, {%j, %i}], [%bar];
    @P cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map, {%j, %i}], [%src];

Coordinates go from the innermost dimension outwards. The first warp elects the thread. The stores of an op are a group
of that.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from deuteron.backend.cuda.context import Context, Rule
from deuteron.backend.cuda.shared_tile import SharedTile
from deuteron.backend.llvm.types import Value, const
from deuteron.ir.tt.descriptor import DescriptorReduceKind
from deuteron.ir.ttng.tma import box_of
from deuteron.ir.types import byte_width_of
from deuteron.layout.tensor_box import box_places

_LOAD = (
    "cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$1], [$2, {{{at}}}], [$3];"
)
_STORE = "cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group [$2, {{{at}}}], [$1];"
_REDUCE = "cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{kind}.tile.bulk_group [$2, {{{at}}}], [$1];"


def make_tensor_descriptor(ctx: Context, op: Operation, *operands: Value) -> Value:
    """The map is a parameter of the kernel, which the launch makes."""
    return const("i32", 0)


def load(ctx: Context, op: Operation, descriptor: Value, *operands: Value | SharedTile) -> None:
    *coordinates, barrier, buffer, pred = operands
    _copy(ctx, op, buffer, coordinates, _LOAD, pred, barrier.address)


def store(ctx: Context, op: Operation, descriptor: Value, *operands: Value | SharedTile) -> None:
    *coordinates, buffer = operands
    _copy(ctx, op, buffer, coordinates, _STORE, None)
    _commit(ctx)


def reduce(ctx: Context, op: Operation, descriptor: Value, *operands: Value | SharedTile) -> None:
    *coordinates, buffer = operands
    kind = DescriptorReduceKind(op.kind.value.data).name.lower()
    _copy(ctx, op, buffer, coordinates, _REDUCE.replace("{kind}", kind), None)
    _commit(ctx)


def store_wait(ctx: Context, op: Operation) -> None:
    name = "llvm.nvvm.cp.async.bulk.wait.group" + (".read" if op.read_only is not None else "")
    ctx.b.intrinsic(name, "void", const("i32", op.pendings.value.data), overloads=())


def _commit(ctx: Context) -> None:
    ctx.b.intrinsic("llvm.nvvm.cp.async.bulk.commit.group", "void", overloads=())


def _copy(
    ctx: Context,
    op: Operation,
    buffer: SharedTile,
    coordinates: Sequence[Value],
    text: str,
    pred: Value | None,
    *barrier: Value,
) -> None:
    b, size = ctx.b, byte_width_of(op.buffer.type.tile)
    first = 3 + len(barrier)
    at = ", ".join(f"${first + axis}" for axis in range(len(coordinates)))
    instruction = "@$0 " + text.format(rank=len(coordinates), at=at)
    constraints = ",".join(["b", "r", "l", *["r"] * len(barrier), *["r"] * len(coordinates), "~{memory}"])
    with ctx.in_first_warp(pred) as elected:
        for place, offset in box_places(buffer.layout, box_of(op.buffer.type)):
            address = b.gep("i8", buffer.address, const("i32", offset * size)) if offset else buffer.address
            steps = (*[0] * (len(coordinates) - len(place)), *place)
            moved = [b.add(c, const("i32", step)) if step else c for c, step in zip(coordinates, steps, strict=True)]
            operands = (elected, address, ctx.tensor_maps[op], *barrier, *reversed(moved))
            b.inline_asm("void", instruction, constraints, *operands, attributes="convergent nounwind")


RULES: dict[str, Rule] = {
    "tt.make_tensor_descriptor": make_tensor_descriptor,
    "ttng.async_tma_copy_global_to_local": load,
    "ttng.async_tma_copy_local_to_global": store,
    "ttng.async_tma_reduce": reduce,
    "ttng.async_tma_store_wait": store_wait,
}
