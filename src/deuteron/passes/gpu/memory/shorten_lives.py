"""Shortens the lives of tiles where they fill more registers than a thread has: what it spills costs more.

    %x = tt.load %p                                     %x = tt.load %p
    %y = "ttg.convert_layout"(%x)                       %m = "ttg.local_alloc"(%x)
    ...                                          ->     ...
    %m = "ttg.local_alloc"(%x)                          %b = "ttg.local_load"(%m)
    %b = "ttg.local_load"(%m)                           %d = tt.dot %a, %b, %c
    %d = tt.dot %a, %b, %c                              %y = "ttg.local_load"(%m)
    %s = arith.mulf %d, %y                              %s = arith.mulf %d, %y

What is loaded for a dot goes to shared memory at once, and what is needed of it in another layout comes from there, as
long as all that is there leaves room for as many CTAs as the registers do. Conversions go to their first use, if
what they convert lives on until then in any case. Nothing moves into a loop or out of it.

In any kernel conversions through shared memory go to their first use, where dots are done with their operands, if less
shared memory makes room for more CTAs: four dots of 64x64, two of them for each of two results, need 64 KiB, not 80.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from deuteron.analysis.shared_memory.scratch import scratch_bytes
from deuteron.analysis.shared_memory.shared_liveness import shared_buffers
from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import FuncOp, functions_in
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.ttg.convert import ConvertLayoutOp
from deuteron.ir.ttg.layout import layout_of
from deuteron.ir.ttg.shared import LocalAllocOp, LocalLoadOp
from deuteron.ir.ttg.views import MemDescTransOp
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp
from deuteron.layout.linear import REGISTER
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.gpu.memory.allocate_shared import bytes_of
from deuteron.passes.gpu.slices.live_tiles import live_registers
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import erase


@dataclass(frozen=True)
class ShortenLives(Optimisation):
    """Stores early, converts late, where tiles fill more registers than there are, or keep CTAs from shared memory."""

    name = "shorten-lives"

    config: GPUConfig

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            if live_registers(func) > self.config.registers_per_thread:
                self._shorten(func)
            self._convert_when_memory_is_free(func)

    def _shorten(self, func: FuncOp) -> None:
        most = max(self._room(), bytes_of(shared_buffers(func)))
        _store_early(func, most)
        for convert in nested_ops(func, ConvertLayoutOp):
            _load_instead(func, convert, most)
        for convert in reversed(nested_ops(func, ConvertLayoutOp)):
            _convert_late(convert)

    def _convert_when_memory_is_free(self, func: FuncOp) -> None:
        """Before their first uses, if so much less shared memory is needed that more CTAs have room in it."""
        moves = [(convert, user) for convert in nested_ops(func, ConvertLayoutOp) if (user := _later_user(convert))]
        if not moves:
            return
        before, places = bytes_of(shared_buffers(func)), [(convert, convert.next_op) for convert, _ in moves]
        for convert, user in moves:
            _move_before(convert, user)
        after = bytes_of(shared_buffers(func))
        if self.config.resident_ctas(after) <= self.config.resident_ctas(before):
            for convert, was_before in reversed(places):
                _move_before(convert, was_before)

    def _room(self) -> int:
        """The shared memory of a multiprocessor that belongs to the registers that a CTA takes."""
        machine, config = self.config.machine, self.config
        ctas = machine.registers.count // (config.registers_per_thread * config.num_threads)
        return machine.shared.max_bytes // max(ctas, 1)


def _store_early(func: FuncOp, most: int) -> None:
    for alloc in nested_ops(func, LocalAllocOp):
        load = alloc.src.owner if alloc.src is not None else None
        if isinstance(load, LoadOp) and load.parent is alloc.parent:
            was_after = alloc.prev_op
            _move_after(alloc, load)
            if bytes_of(shared_buffers(func)) > most:
                _move_after(alloc, was_after)


def _move_after(op: Operation, place: Operation) -> None:
    op.detach()
    place.parent.insert_op_after(op, place)


def _move_before(op: Operation, place: Operation) -> None:
    op.detach()
    place.parent.insert_op_before(op, place)


def _later_user(convert: ConvertLayoutOp) -> Operation | None:
    """The first op that needs the result of a conversion through shared memory, if it may wait for it: nothing but the
    conversion needs what it converts, and that fills no more registers.
    """
    users, (src, result) = _users(convert.result), (layout_of(value.type) for value in (convert.src, convert.result))
    is_free = src.in_size(REGISTER) <= result.in_size(REGISTER) and len(list(convert.src.uses)) == 1
    return users[0] if users and scratch_bytes(convert) and is_free and users[0] is not convert.next_op else None


def _load_instead(func: FuncOp, convert: ConvertLayoutOp, most: int) -> None:
    """What is in shared memory comes from there in any layout, for each use anew, if no more than `most` is there."""
    users = _users(convert.result)
    for alloc in [use.operation for use in convert.src.uses if isinstance(use.operation, LocalAllocOp)]:
        if users and alloc.parent is convert.parent and alloc.is_before_in_block(users[0]) and _is_kept(alloc.result):
            loads = [_load_for(user, convert, alloc) for user in users]
            if bytes_of(shared_buffers(func)) <= most:
                erase(convert)
                return
            for load in loads:
                load.result.replace_all_uses_with(convert.result)
                erase(load)
            return


def _load_for(user: Operation, convert: ConvertLayoutOp, alloc: LocalAllocOp) -> LocalLoadOp:
    load = Builder.before(user).insert(LocalLoadOp(alloc.result, convert.result.type))
    load.result.name_hint = convert.result.name_hint
    convert.result.replace_uses_with_if(load.result, lambda use: _is_in(use.operation, user))
    return load


def _is_kept(buffer: SSAValue) -> bool:
    """Whether nobody writes into it again."""
    return all(
        isinstance(use.operation, LocalLoadOp | WarpGroupDotOp)
        or (isinstance(use.operation, MemDescTransOp) and _is_kept(use.operation.result))
        for use in buffer.uses
    )


def _convert_late(convert: ConvertLayoutOp) -> None:
    """Before its first use, or after the last other one of what it converts."""
    users = _users(convert.result)
    others = [user for user in _users(convert.src) if convert.is_before_in_block(user)]
    if not users or not others:
        return
    if users[0].is_before_in_block(others[-1]):
        _move_before(convert, users[0])
    elif users[0] is not others[-1]:
        _move_after(convert, others[-1])


def _users(value: SSAValue) -> list[Operation]:
    """The ops of its block that use a value, themselves or inside of them, in their order."""
    block = value.owner.parent if isinstance(value.owner, Operation) else value.owner
    users = {block.find_ancestor_op_in_block(use.operation) for use in value.uses}
    return [op for op in block.ops if op in users]


def _is_in(op: Operation, outer: Operation) -> bool:
    return outer.is_ancestor(op)
