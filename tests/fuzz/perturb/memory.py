"""Memory: what a masked lane loads, which of two lanes comes first or last at one address, which NaN is stored."""

from __future__ import annotations

import numpy as np

from deuteron.interpreter import tensor_descriptor
from deuteron.interpreter.atomic import combine_lanes
from deuteron.interpreter.described import Described
from deuteron.interpreter.memory import block_lanes
from deuteron.interpreter.values import dtype_of, round_float
from deuteron.ir.rule_table import Rule
from deuteron.ir.tt.atomic import AtomicCASOp, AtomicKind, AtomicRMWOp, AtomicStoreOp
from deuteron.ir.tt.descriptor import (
    DescriptorReduceKind,
    DescriptorReduceOp,
    DescriptorScatterOp,
    DescriptorStoreOp,
    atomic_kind,
)
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.types import element_type_of, f32
from tests.fuzz.exactness import MANTISSA, wider
from tests.fuzz.perturb.noise import Noise, Wrappers

# Of the floats that hold values, by the unsigned integers of their size.
_MANTISSA_AND_SIGN = {
    np.dtype(f"uint{bits}"): bits_type((1 << bits - 1) | (1 << mantissa) - 1)
    for bits, mantissa, bits_type in ((16, 10, np.uint16), (32, 23, np.uint32), (64, 52, np.uint64))
}

Sum = AtomicRMWOp | DescriptorReduceOp


class Memory:
    """Loads, stores, atomics."""

    def __init__(self, noise: Noise):
        self._noise = noise
        self._was_rounded: dict[int, bool] = {}
        """By the addresses that atomics added to: whether any of the sums was rounded."""

    def wrappers(self) -> Wrappers:
        stores = (AtomicStoreOp, DescriptorStoreOp, DescriptorScatterOp)
        return {
            LoadOp: self._load,
            StoreOp: lambda rule: self._any_nan(self._store(rule)),
            AtomicRMWOp: self._atomic,
            AtomicCASOp: self._atomic,
            DescriptorReduceOp: self._reduce,
            **dict.fromkeys(stores, self._any_nan),
        }

    def _load(self, rule: Rule) -> Rule:
        def perturbed(ctx, op, ptr, mask=None, other=None):
            result = rule(ctx, op, ptr, *(value for value in (mask, other) if value is not None))
            return result if mask is None or other is not None else self._noise.anything(result, ~np.asarray(mask))

        return perturbed

    def _order(self, addresses: np.ndarray) -> np.ndarray | None:
        """A random order of the lanes, where several have one address."""
        flat = np.ravel(addresses)
        if len(np.unique(flat)) == flat.size:
            return None
        self._noise.licence.taken += 1
        return self._noise.rng.permutation(flat.size)

    def _store(self, rule: Rule) -> Rule:
        """Lanes that store different values to one address leave anything there."""

        def perturbed(ctx, op, ptr, value, mask=None):
            if isinstance(ptr, Described):
                ptr, mask = block_lanes(ptr, op, op.value.type)
            rest = () if mask is None else (mask,)
            if self._order(ptr) is None:
                return rule(ctx, op, ptr, value, *rest)
            active = np.ones(np.size(ptr), bool) if mask is None else np.ravel(mask)
            return rule(ctx, op, ptr, self._noise.anything(value, disagree(ptr, value, active)), *rest)

        return perturbed

    def _any_nan(self, rule: Rule) -> Rule:
        """Which NaN is stored is not said, as another type may see."""

        def perturbed(ctx, op, *operands):
            types = [operand.type for operand in op.operands[: len(operands)]]
            return rule(ctx, op, *(self._other_nan(*pair) for pair in zip(operands, types, strict=True)))

        return perturbed

    def _other_nan(self, value, type):
        """With random bits in each NaN, and either sign; fp8 has few, of which the interpreter knows one."""
        if element_type_of(type) not in MANTISSA or not np.isnan(value).any():
            return value
        self._noise.licence.taken += 1
        bits = np.dtype(f"uint{8 * value.dtype.itemsize}")
        most = np.iinfo(bits).max
        quiet = np.asarray(np.nan, value.dtype).view(bits)
        random = self._noise.rng.integers(0, most, np.shape(value), bits, endpoint=True) & (_MANTISSA_AND_SIGN[bits])
        return np.where(np.isnan(value), (random | quiet).view(value.dtype), value)[()]

    def _atomic(self, rule: Rule) -> Rule:
        def perturbed(ctx, op, ptr, *operands):
            order = self._order(ptr)
            mask = operands[1] if op.name == AtomicRMWOp.name and len(operands) > 1 else None
            if order is None:
                result = rule(ctx, op, ptr, *operands)
            else:
                shuffled = rule(ctx, op, *(np.ravel(value)[order] for value in (ptr, *operands)))
                result = np.empty_like(shuffled)
                result[order] = shuffled
                result = result.reshape(np.shape(ptr))
            if op.name == AtomicRMWOp.name and AtomicKind(op.kind.value.data) == AtomicKind.FADD:
                self._reorder_sums(ctx, op, ptr, wider(result) + wider(operands[0]), mask)
                self._flush_sums(ctx, op, ptr, mask)
            return result if mask is None else self._noise.anything(result, ~np.asarray(mask))

        return perturbed

    def _reduce(self, rule: Rule) -> Rule:
        def perturbed(ctx, op, described, value, *offsets):
            kind = atomic_kind(DescriptorReduceKind(op.kind.value.data), op.desc.type)
            if kind != AtomicKind.FADD:
                rule(ctx, op, described, value, *offsets)
                return
            addresses, inside = tensor_descriptor.accessed_lanes(op, op.src.type, described, offsets)
            exact = wider(_sums(ctx, op, addresses, inside)) + wider(value)
            rule(ctx, op, described, value, *offsets)
            self._reorder_sums(ctx, op, addresses, exact, inside)
            self._flush_sums(ctx, op, addresses, inside)

        return perturbed

    def _reorder_sums(self, ctx, op: Sum, ptr: np.ndarray, exact: np.ndarray, mask: np.ndarray | None) -> None:
        """A unit in the last place more or less where something was added before, and the order matters: of some random
        orders all may be alike.
        """
        type = op.operands[1].type
        moves = np.zeros(np.shape(ptr), bool)
        was_rounded = round_float(np.asarray(exact), type) != exact
        active = np.ones(np.shape(ptr), bool) if mask is None else np.asarray(mask)
        for lane in zip(*np.nonzero(active), strict=True) if np.ndim(ptr) else [()] * bool(active):
            address = int(np.asarray(ptr)[lane])
            is_repeated = address in self._was_rounded
            self._was_rounded[address] = self._was_rounded.get(address, False) | bool(was_rounded[lane])
            moves[lane] = is_repeated and self._was_rounded[address]
        if moves.any():
            sums = _sums(ctx, op, ptr, mask)
            _put(ctx, op, ptr, self._noise.moved(sums, self._noise.ulp(sums, type), type), moves)

    def _flush_sums(self, ctx, op: Sum, ptr: np.ndarray, mask: np.ndarray | None) -> None:
        """GPUs add subnormal numbers of fp32 as zeros of their sign."""
        if element_type_of(op.operands[1].type) != f32:
            return
        sums = _sums(ctx, op, ptr, mask)
        is_subnormal = (sums != 0) & (np.abs(sums) < np.finfo(np.float32).tiny)
        if is_subnormal.any() and self._noise.rng.integers(2):
            self._noise.licence.taken += 1
            _put(ctx, op, ptr, np.copysign(np.float32(0), sums), is_subnormal)


def _sums(ctx, op: Sum, ptr: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """What is there: -0.0 more changes nothing."""
    nothing = np.full(np.shape(ptr), -0.0, dtype_of(op.operands[1].type))
    return combine_lanes(ctx, op, op.operands[0], AtomicKind.FADD, ptr, nothing, mask)


def _put(ctx, op: Sum, ptr: np.ndarray, sums: np.ndarray, where: np.ndarray) -> None:
    combine_lanes(ctx, op, op.operands[0], AtomicKind.XCHG, ptr, sums, where)


def disagree(addresses: np.ndarray, value: np.ndarray, active: np.ndarray) -> np.ndarray:
    """The lanes whose address another active lane stores something else to, if only another zero."""
    flat, stored = np.ravel(addresses), np.ravel(np.ascontiguousarray(value))
    stored = stored.view(f"uint{8 * stored.itemsize}")
    _, first, group = np.unique(flat[active], return_index=True, return_inverse=True)
    differs = stored[active] != stored[active][first][group]
    is_bad = np.isin(flat, flat[active][differs])
    return is_bad.reshape(np.shape(addresses))
