"""Copies from global to shared memory that run on: cp.async of 4, 8 or 16 bytes, their groups and waits.

    cp.async.cg.shared.global [%buffer], [%pointer], 16, %ignored;      zeros where the mask is off
    cp.async.commit_group;
    cp.async.wait_group 1;

16 bytes pass by the L1 cache. Buffers lie one after the other; which one it is, is a register.
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir import Operation

from deuteron.analysis.addresses.access_vectors import copy_vectors
from deuteron.analysis.shared_memory.scratch import buffer_bytes
from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.gpu.fragment import Fragment
from deuteron.backend.gpu.shared_tile import SharedTile, register_addresses
from deuteron.backend.llvm.builder import Touches
from deuteron.backend.llvm.types import Value, const
from deuteron.errors import CompilationError
from deuteron.ir.tt.memory import CacheModifier
from deuteron.ir.types import byte_width_of, pointee_of

TOKEN = const("i32", 0)


def async_copy(ctx: Context, op: Operation, pointer: Fragment, shared: SharedTile, mask: Fragment | None = None):
    size, sizes = byte_width_of(pointee_of(op.src.type)), ctx.machine.async_copy_bytes
    mask_info = ctx.info.of_mask(op.mask)
    groups = copy_vectors(pointer.layout, shared.layout, ctx.info.of(op.src), mask_info, size, sizes)
    if groups is None:
        raise CompilationError(
            f"{op.name} copies {', '.join(map(str, sizes))} neighbouring bytes at once; {op.src.type} has none."
        )
    addresses, owner = register_addresses(ctx, shared, pointer.layout), ctx.threads.owner(pointer.layout)
    for group in groups:
        guard = mask.registers[group[0]] if mask is not None else None
        _copy(ctx, op, addresses(group[0]), pointer.registers[group[0]], size * len(group), guard, owner)
    return TOKEN


def _copy(
    ctx: Context,
    op: Operation,
    destination: Value,
    source: Value,
    size: int,
    guard: Value | None,
    owner: Value | None,
) -> None:
    """Zeros where the guard is off, nothing where the thread is not the one that copies. LLVM has no intrinsic with a
    condition, only one with a size, of which ptxas makes a condition again.
    """
    through_l1 = size < 16 or op.cache.value.data == CacheModifier.CA
    name = f"cp.async.{'ca' if through_l1 else 'cg'}.shared.global"
    if guard is None and owner is None:
        ctx.b.intrinsic(f"llvm.nvvm.{name}.{size}", "void", destination, source, overloads=())
    else:
        ignored = const("i1", 0) if guard is None else ctx.b.xor(guard, const("i1", 1))
        copy = f"{name} [$0], [$1], {size}, $2;"
        operands = destination, source, ignored
        if owner is None:
            ctx.b.assembly(Touches.MEMORY, "void", copy, "r,l,b", *operands)
        else:
            ctx.b.assembly(Touches.MEMORY, "void", f"@$3 {copy}", "r,l,b,b", *operands, owner)


def commit_group(ctx: Context, op: Operation, *tokens: Value) -> Value:
    ctx.b.intrinsic("llvm.nvvm.cp.async.commit.group", "void", overloads=())
    return TOKEN


def wait(ctx: Context, op: Operation, *tokens: Value) -> Value:
    ctx.b.intrinsic("llvm.nvvm.cp.async.wait.group", "void", const("i32", op.num.value.data), overloads=())
    return TOKEN


def memdesc_index(ctx: Context, op: Operation, shared: SharedTile, index: Value) -> SharedTile:
    offset = ctx.b.mul(index, const("i32", buffer_bytes(op.src.type)))
    return replace(shared, address=ctx.b.gep("i8", shared.address, offset))


RULES: dict[str, Rule] = {
    "ttg.async_copy_global_to_local": async_copy,
    "ttg.async_commit_group": commit_group,
    "ttg.async_wait": wait,
    "ttg.memdesc_index": memdesc_index,
}
