"""Rules for descriptors of tensors: `tt.make_tensor_descriptor` and the accesses of blocks.

A block is a tile of addresses and a mask of what lies in the tensor. Accesses are checked against the array that the
base came from, so that a shape or stride that leaves it is found.
"""

from __future__ import annotations

import numpy as np

from deuteron.errors import MemoryAccessError
from deuteron.interpreter.atomic import combine_lanes
from deuteron.interpreter.described import Described
from deuteron.interpreter.memory import active_lanes, gather, padding, resolve, scatter
from deuteron.interpreter.values import from_storage, storage_dtype_of, to_storage
from deuteron.ir.rule_table import RuleTable
from deuteron.ir.tt.atomic import AtomicKind
from deuteron.ir.tt.descriptor import (
    DescriptorGatherOp,
    DescriptorLoadOp,
    DescriptorReduceKind,
    DescriptorReduceOp,
    DescriptorScatterOp,
    DescriptorStoreOp,
    MakeTensorDescriptorOp,
    atomic_kind,
)
from deuteron.ir.types import byte_width_of, shape_of

RULES = RuleTable()


@RULES.on(MakeTensorDescriptorOp)
def make_tensor_descriptor(ctx, op, base, *sizes):
    _check_alignment(op, int(base), [int(stride) for stride in sizes[len(op.shape) : -1]])
    numbers = [int(size) for size in sizes]
    shape, strides = tuple(numbers[: len(op.shape)]), tuple(numbers[len(op.shape) :])
    return Described(int(base), shape, strides, pads_with_nan=op.pads_with_nan)


def _check_alignment(op, base: int, strides: list[int]) -> None:
    """What TMA asks for is asked for everywhere, so that a kernel that runs here runs there."""
    size = byte_width_of(op.result.type.tile)
    if base % 16:
        raise MemoryAccessError(f"A tensor descriptor's base is a multiple of 16 bytes, got address {base:#x}.")
    for stride in strides:
        if stride * size % 16:
            raise MemoryAccessError(
                f"A tensor descriptor's strides but the last are multiples of 16 bytes, got {stride} elements of "
                f"{size} bytes. Pad the rows, or use pointers."
            )


def _check_offsets(offsets) -> None:
    """A store by TMA at a negative offset stops a GPU."""
    if any(int(offset) < 0 for offset in offsets):
        raise MemoryAccessError(
            f"A block is stored through a tensor descriptor at {[int(offset) for offset in offsets]}. Offsets of what "
            "is stored are not negative; only loads may begin before the tensor."
        )


@RULES.on(DescriptorLoadOp)
def descriptor_load(ctx, op, described, *offsets):
    return _load(ctx, op, described, *accessed_lanes(op, op.result.type, described, offsets))


@RULES.on(DescriptorGatherOp)
def descriptor_gather(ctx, op, described, rows, column):
    return _load(ctx, op, described, *_rows(op, described, rows, column))


def _load(ctx, op, described: Described, addresses: np.ndarray, inside: np.ndarray) -> np.ndarray:
    type = op.result.type
    stored, dtype = padding(type, described.pads_with_nan), storage_dtype_of(type)
    active = active_lanes(addresses, inside)
    if len(active):
        pieces = resolve(ctx, op, op.desc, active, dtype, inside)
        stored[inside] = gather(pieces, dtype, active.shape)
    return from_storage(stored, type)


@RULES.on(DescriptorStoreOp)
def descriptor_store(ctx, op, described, value, *offsets):
    _check_offsets(offsets)
    _store(ctx, op, value, *accessed_lanes(op, op.src.type, described, offsets))


@RULES.on(DescriptorScatterOp)
def descriptor_scatter(ctx, op, described, rows, column, value):
    _store(ctx, op, value, *_rows(op, described, rows, column))


def _store(ctx, op, value: np.ndarray, addresses: np.ndarray, inside: np.ndarray) -> None:
    stored = to_storage(value, op.src.type)
    active = active_lanes(addresses, inside)
    if len(active):
        pieces = resolve(ctx, op, op.desc, active, stored.dtype, inside, writes=True)
        scatter(ctx, pieces, stored[inside])


@RULES.on(DescriptorReduceOp)
def descriptor_reduce(ctx, op, described, value, *offsets):
    _check_offsets(offsets)
    addresses, inside = accessed_lanes(op, op.src.type, described, offsets)
    kind = atomic_kind(DescriptorReduceKind(op.kind.value.data), op.desc.type)
    combine_lanes(ctx, op, op.desc, AtomicKind(kind), addresses, value, inside)


def accessed_lanes(op, tile, described: Described, offsets) -> tuple[np.ndarray, np.ndarray]:
    """The addresses of a block, and which of them lie in the tensor. The tile may lack dimensions of extent 1."""
    block = op.desc.type.tile
    addresses, inside = described.block(tuple(map(int, offsets)), shape_of(block), byte_width_of(block))
    return addresses.reshape(shape_of(tile)), inside.reshape(shape_of(tile))


def _rows(op, described: Described, rows: np.ndarray, column) -> tuple[np.ndarray, np.ndarray]:
    tile = op.desc.type.tile
    return described.rows(rows, int(column), shape_of(tile)[-1], byte_width_of(tile))
