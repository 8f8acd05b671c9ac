"""Rules for atomics: `tt.atomic_rmw`, `tt.atomic_cas`, `tt.atomic_load`, `tt.atomic_store`.

The lanes of a tile act one after the other in row-major order, each giving what was there before it; lanes that are
masked off give 0 (unspecified in the language). Lanes of equal addresses run in rounds, without a conflict in a round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from xdsl.ir import SSAValue

from deuteron.interpreter.arithmetic import signed, unsigned
from deuteron.interpreter.memory import active_lanes, gather, load_lanes, resolve, scatter, store
from deuteron.interpreter.numerics.extrema import larger, smaller
from deuteron.interpreter.values import from_storage, round_float, storage_dtype_of, to_storage
from deuteron.ir.rule_table import RuleTable
from deuteron.ir.tt.atomic import AtomicCASOp, AtomicKind, AtomicLoadOp, AtomicRMWOp, AtomicStoreOp
from deuteron.ir.types import is_float

RULES = RuleTable()


def _number(extremum: Callable, is_zero_negative: bool) -> Callable:
    """The larger or smaller number of two, NaN where there is none; of two zeros that with the sign, or without."""

    def combine(old: np.ndarray, operand: np.ndarray) -> np.ndarray:
        is_old = np.signbit(old) == is_zero_negative
        return np.where(old == operand, np.where(is_old, old, operand), extremum(old, operand))

    return combine


_COMBINE: dict[AtomicKind, Callable] = {
    AtomicKind.AND: np.bitwise_and,
    AtomicKind.OR: np.bitwise_or,
    AtomicKind.XOR: np.bitwise_xor,
    AtomicKind.ADD: np.add,
    AtomicKind.FADD: np.add,
    AtomicKind.MAX: signed(np.maximum),
    AtomicKind.MIN: signed(np.minimum),
    AtomicKind.UMAX: unsigned(np.maximum),
    AtomicKind.UMIN: unsigned(np.minimum),
    AtomicKind.XCHG: lambda old, new: new,
    AtomicKind.FMAX: _number(larger, is_zero_negative=False),
    AtomicKind.FMIN: _number(smaller, is_zero_negative=True),
}


@RULES.on(AtomicRMWOp)
def atomic_rmw(ctx, op, ptr, value, mask=None):
    return combine_lanes(ctx, op, op.ptr, AtomicKind(op.kind.value.data), ptr, value, mask)


def combine_lanes(
    ctx, op, pointer: SSAValue, kind: AtomicKind, ptr: np.ndarray, value: np.ndarray, mask: np.ndarray | None
) -> np.ndarray:
    """Combine values of the type of op's value into memory; `pointer` says which array it is. Gives the old values."""
    type, combine = op.operands[1].type, _COMBINE[kind]

    def update(old: np.ndarray, operand: np.ndarray) -> np.ndarray:
        new = combine(old, operand)
        return round_float(new, type) if is_float(type) else new

    return _update_lanes(ctx, op, pointer, ptr, mask, update, value)


@RULES.on(AtomicCASOp)
def atomic_cas(ctx, op, ptr, compare, value):
    """Compares bits: NaN equals itself, and -0.0 is not 0.0."""
    type = op.results[0].type

    def update(old: np.ndarray, compare: np.ndarray, value: np.ndarray) -> np.ndarray:
        is_equal = _bits(to_storage(old, type)) == _bits(to_storage(compare, type))
        return np.where(is_equal, value, old)

    return _update_lanes(ctx, op, op.ptr, ptr, None, update, compare, value)


@RULES.on(AtomicLoadOp)
def atomic_load(ctx, op, ptr, mask=None):
    """One program runs at a time: every load is atomic."""
    return load_lanes(ctx, op, ptr, mask, np.zeros(ptr.shape, storage_dtype_of(op.results[0].type)))


@RULES.on(AtomicStoreOp)
def atomic_store(ctx, op, ptr, value, mask=None):
    store(ctx, op, ptr, value, mask)


def _bits(stored: np.ndarray) -> np.ndarray:
    return stored.view(f"uint{8 * stored.itemsize}")


def _update_lanes(ctx, op, pointer: SSAValue, ptr, mask, update: Callable, *operands: np.ndarray) -> np.ndarray:
    """Replace what each active lane points to by `update(old, *operands)`; gives the old values."""
    type = op.operands[1].type
    dtype = storage_dtype_of(type)
    addresses = active_lanes(ptr, mask)
    active = [active_lanes(operand, mask) for operand in operands]
    old = np.empty(addresses.shape, dtype)
    for lanes in _rounds(addresses):
        pieces = resolve(ctx, op, pointer, addresses[lanes], dtype, mask, writes=True)
        before = gather(pieces, dtype, addresses[lanes].shape)
        old[lanes] = before
        after = to_storage(update(from_storage(before, type), *[o[lanes] for o in active]), type)
        if after.tobytes() != before.tobytes():
            scatter(ctx, pieces, after)
    result = np.zeros(ptr.shape, dtype)
    result[... if mask is None else mask] = old.reshape(ptr.shape) if mask is None else old
    return from_storage(result, type)


def _rounds(addresses: np.ndarray) -> Iterator[np.ndarray]:
    """The lanes with the first occurrence of each address, then those with the second, and so on."""
    order = np.argsort(addresses, kind="stable")
    ordered = addresses[order]
    is_first = np.ones(len(ordered), bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    positions = np.arange(len(ordered))
    occurrence = positions - np.maximum.accumulate(np.where(is_first, positions, 0))
    for turn in range(occurrence.max(initial=-1) + 1):
        yield order[occurrence == turn]
