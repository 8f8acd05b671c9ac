"""Rules for memory: `tt.addptr`, `tt.load`, `tt.store`.

Every active lane is checked: bounds against the array that the pointer came from, alignment, read-only arrays.
Unspecified in the language, here: a lane that is masked off without `other` loads 0; of lanes that store to one
address the last one wins.
"""

from __future__ import annotations

import numpy as np
from xdsl.ir import Attribute, SSAValue

from deuteron.errors import MemoryAccessError
from deuteron.interpreter.allocation import BadAccess, Piece
from deuteron.interpreter.described import Described
from deuteron.interpreter.values import as_signed, from_storage, storage_dtype_of, to_storage
from deuteron.ir.rule_table import RuleTable
from deuteron.ir.tt.memory import AddPtrOp, LoadOp, StoreOp, checked_axes
from deuteron.ir.types import byte_width_of, pointee_of, shape_of

RULES = RuleTable()


@RULES.on(AddPtrOp)
def addptr(ctx, op, ptr, offset):
    """The offset is signed and counts elements."""
    size = byte_width_of(pointee_of(op.operands[0].type))
    return ptr + as_signed(offset).astype(np.int64) * np.int64(size)


@RULES.on(LoadOp)
def load(ctx, op, ptr, mask=None, other=None):
    type = op.results[0].type
    stored = padding(type, op.pads_with_nan) if other is None else to_storage(other, type)
    if isinstance(ptr, Described):
        ptr, mask = block_lanes(ptr, op, type)
    return load_lanes(ctx, op, ptr, mask, stored)


def load_lanes(ctx, op, ptr: np.ndarray, mask: np.ndarray | None, stored: np.ndarray) -> np.ndarray:
    """What the active lanes point to; `stored`, as it lies in memory, in the others."""
    type = op.results[0].type
    dtype = storage_dtype_of(type)
    active = active_lanes(ptr, mask)
    if len(active) == 0:
        return from_storage(stored, type)
    pieces = resolve(ctx, op, op.operands[0], active, dtype, mask)
    if len(active) == ptr.size:
        return from_storage(gather(pieces, dtype, active.shape).reshape(ptr.shape), type)
    stored = np.array(stored)
    stored[mask] = gather(pieces, dtype, active.shape)
    return from_storage(stored, type)


@RULES.on(StoreOp)
def store(ctx, op, ptr, value, mask=None):
    type = op.operands[1].type
    if isinstance(ptr, Described):
        ptr, mask = block_lanes(ptr, op, type)
    active = active_lanes(ptr, mask)
    if len(active) == 0:
        return
    stored = to_storage(value, type)
    pieces = resolve(ctx, op, op.operands[0], active, stored.dtype, mask, writes=True)
    scatter(ctx, pieces, stored.ravel() if len(active) == ptr.size else np.asarray(stored)[mask])


def block_lanes(pointer: Described, op: LoadOp | StoreOp, type: Attribute) -> tuple[np.ndarray, np.ndarray]:
    """The addresses of a block, and which of them are accessed."""
    return pointer.block(pointer.offsets, shape_of(type), byte_width_of(type), checked_axes(op))


def padding(type: Attribute, is_nan: bool) -> np.ndarray:
    """What is loaded from out of bounds, as it lies in memory."""
    if is_nan:
        return np.array(to_storage(np.full(shape_of(type), np.nan, np.float32), type))
    return np.zeros(shape_of(type), storage_dtype_of(type))


def active_lanes(ptr: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """The addresses of the lanes that are not masked off, one dimension, in row-major order."""
    return ptr.ravel() if mask is None else np.asarray(ptr)[mask].ravel()


def gather(pieces: list[Piece], dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    if len(pieces) == 1:
        return pieces[0].elements[pieces[0].index]
    values = np.empty(shape, dtype)
    for elements, index, lanes in pieces:
        values[lanes] = elements[index]
    return values


def scatter(ctx, pieces: list[Piece], values: np.ndarray) -> None:
    ctx.memory.num_writes += 1
    for elements, index, lanes in pieces:
        elements[index] = values[lanes]


def resolve(
    ctx,
    op,
    pointer: SSAValue,
    active: np.ndarray,
    dtype: np.dtype,
    mask: np.ndarray | None,
    writes: bool = False,
) -> list[Piece]:
    """Where the active lanes of an access lie; raises MemoryAccessError, naming the first bad lane."""
    try:
        return ctx.memory.resolve(active, dtype, ctx.buffer_of(pointer), writes)
    except BadAccess as bad:
        raise _error(ctx, op, pointer, bad, dtype.itemsize, mask) from bad


def _error(ctx, op, pointer: SSAValue, bad: BadAccess, size: int, mask: np.ndarray | None) -> MemoryAccessError:
    access = op.name.removeprefix("tt.").replace("_", " ")
    subject = f"program {ctx.program_id}"
    shape = np.shape(ctx.value_of(pointer)) if mask is None else np.shape(mask)
    if shape:
        lane = bad.lane if mask is None else int(np.flatnonzero(mask)[bad.lane])
        subject = f"lane {tuple(int(i) for i in np.unravel_index(lane, shape))} of {subject}"
    buffer = bad.buffer or ctx.memory.nearest(bad.address)
    array = buffer and (buffer.name, bad.address - buffer.address, buffer.nbytes)
    return MemoryAccessError.of(bad.problem, access, ctx.kernel_name, subject, size, bad.address, array)
