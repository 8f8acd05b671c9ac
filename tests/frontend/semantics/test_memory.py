"""Loads, stores and atomics: operands brought to shape and type, kinds, errors."""

from __future__ import annotations

import pytest

from deuteron.ir.tt.atomic import AtomicKind, MemoryScope, MemorySemantic
from deuteron.ir.tt.memory import CacheModifier, EvictionPolicy


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("tl.load(p)", ["tt.load"]),
        ("tl.load(p, mask=True, other=1.5)", ["arith.constant", "tt.load"]),
        ("tl.load(p, mask=n > 0, other=n)", ["arith.constant", "arith.cmpi", "arith.sitofp", "tt.load"]),
        ("tl.load(p + t, n > 0)", ["tt.splat", "tt.addptr", "arith.constant", "arith.cmpi", "tt.splat", "tt.load"]),
        ("tl.load(b)", ["tt.bitcast", "tt.load", "arith.constant", "arith.cmpi"]),
        ("tl.store(p, n)", ["arith.sitofp", "tt.store"]),
        ("tl.store(p + t, n)", ["tt.splat", "tt.addptr", "arith.sitofp", "tt.splat", "tt.store"]),
        ("tl.store(p + t, x, mask=k)", ["tt.splat", "tt.addptr", "tt.store"]),
        ("tl.store(b + t, k)", ["tt.splat", "tt.addptr", "tt.bitcast", "arith.extui", "tt.store"]),
        ("(p + t).store(x)", ["tt.splat", "tt.addptr", "tt.store"]),
        ("tl.load(p + t, k, other=0.0)", ["tt.splat", "tt.addptr", "arith.constant", "arith.constant", "tt.load"]),
        (
            "tl.load(p + t, k, other=0)",
            ["tt.splat", "tt.addptr", "arith.constant", "arith.sitofp", "tt.splat", "tt.load"],
        ),
        ("tl.load(q, n > 0, other=1.5)", ["arith.constant", "arith.cmpi", "arith.constant", "arith.fptosi", "tt.load"]),
        ("tl.atomic_add(p, 1)", ["arith.constant", "arith.sitofp", "tt.atomic_rmw"]),
        ("tl.atomic_cas(q, 0, n)", ["arith.constant", "tt.atomic_cas"]),
        ("tl.atomic_load(p)", ["tt.atomic_load"]),
        ("tl.atomic_load(b)", ["tt.bitcast", "tt.atomic_load", "arith.constant", "arith.cmpi"]),
        ("tl.atomic_store(p, n)", ["arith.sitofp", "tt.atomic_store"]),
    ],
)
def test_memory_ops(op_names, statement: str, names: list[str]):
    assert op_names(statement) == names


def test_a_mask_of_more_dimensions_widens_a_load(result_type):
    assert result_type("tl.load((p + t)[:, None], k[None, :])") == "fp32[64, 64]"


def test_modifiers(ops):
    load = ops("tl.load(p, cache_modifier='.cg', eviction_policy='evict_last', volatile=True)")[-1]
    assert load.cache.value.data == CacheModifier.CG
    assert load.evict.value.data == EvictionPolicy.EVICT_LAST
    assert load.is_volatile.value.data != 0
    store = ops("tl.store(p, 1.0, cache_modifier='.wt', eviction_policy='evict_first')")[-1]
    assert store.cache.value.data == CacheModifier.WT
    assert store.evict.value.data == EvictionPolicy.EVICT_FIRST


@pytest.mark.parametrize(
    ("statement", "kinds"),
    [
        ("tl.atomic_add(p + t, x)", [AtomicKind.FADD]),
        ("tl.atomic_add(q + t, i)", [AtomicKind.ADD]),
        ("tl.atomic_max(q + t, i)", [AtomicKind.MAX]),
        ("tl.atomic_min((q + t).to(tl.pointer_type(tl.uint32)), i)", [AtomicKind.UMIN]),
        ("tl.atomic_max(p + t, x)", [AtomicKind.MAX, AtomicKind.UMIN]),
        ("tl.atomic_min(p + t, x, mask=k)", [AtomicKind.MIN, AtomicKind.UMAX]),
        ("tl.atomic_and(q, 1)", [AtomicKind.AND]),
        ("tl.atomic_or(q, 1)", [AtomicKind.OR]),
        ("tl.atomic_xor(q, 1)", [AtomicKind.XOR]),
        ("tl.atomic_xchg(p, f)", [AtomicKind.XCHG]),
    ],
)
def test_atomic_kind(ops, statement: str, kinds: list[AtomicKind]):
    found = [op.kind.value.data for op in ops(statement) if op.name == "tt.atomic_rmw"]
    assert found == kinds


def test_atomic_order_and_scope(ops):
    op = ops("tl.atomic_add(q, 1, sem='relaxed', scope='sys')")[-1]
    assert (op.sem.value.data, op.scope.value.data) == (MemorySemantic.RELAXED, MemoryScope.SYSTEM)
    op = ops("tl.atomic_cas(q, 0, 1)")[-1]
    assert (op.sem.value.data, op.scope.value.data) == (MemorySemantic.ACQUIRE_RELEASE, MemoryScope.GPU)


NO_TILE = "Add offsets such as tl.arange(0, BLOCK) to the pointer."


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("tl.load(x)", "tl.load needs a pointer, got fp32[64]. Add offsets to a pointer argument."),
        ("tl.load(n)", "tl.load needs a pointer, got int32. Add offsets to a pointer argument."),
        ("tl.load((n,))", "tl.load needs a pointer, got (int32,). A comma made it a tuple of one: leave it out."),
        (
            "tl.load(p, other=0.0)",
            "tl.load got `other` without a mask. Give the mask that says where `other` is taken.",
        ),
        ("tl.load(p, mask=k)", f"tl.load through one pointer is of one scalar, but the mask is int1[64]. {NO_TILE}"),
        ("tl.load(p, True, other='a')", "`other` of tl.load must be a tensor or a number, got 'a'."),
        (
            "tl.load(p, True, other=x)",
            f"tl.load through one pointer is of one scalar, but `other` is fp32[64]. {NO_TILE}",
        ),
        (
            "tl.load(p, n > 0, other=x)",
            f"tl.load through one pointer is of one scalar, but `other` is fp32[64]. {NO_TILE}",
        ),
        ("tl.load(p + t, mask=i)", "The mask of tl.load is int1, got int32[64]. Compare, as in `offsets < n`."),
        (
            "tl.load(p + t, mask=tl.arange(0, 32) < n)",
            "Shapes [64] and [32] do not go together: 32 and 64 at dimension 0. "
            "Extents must be equal or 1; insert dimensions with x[:, None] or x[None, :].",
        ),
        (
            "tl.load(p, cache_modifier='.wb')",
            "tl.load has no cache_modifier '.wb'. Use one of .ca, .cg, .cs, .cv, or ''.",
        ),
        (
            "tl.store(p, f, eviction_policy='last')",
            "No eviction_policy 'last'. Use one of evict_normal, evict_first, evict_last, or ''.",
        ),
        ("tl.store(p, x)", f"tl.store through one pointer is of one scalar, but the value is fp32[64]. {NO_TILE}"),
        (
            "tl.store(p + t, m)",
            "Shapes [64] and [16, 32] do not go together: 32 and 64 at dimension 1. "
            "Extents must be equal or 1; insert dimensions with x[:, None] or x[None, :].",
        ),
        (
            "tl.store(p + t, x[:, None])",
            "tl.store through pointers of shape [64] got a value or mask of [64, 64]. "
            "Broadcast the pointer, or reduce the value.",
        ),
        (
            "tl.store(c, 1.0)",
            "tl.store through const_pointer<fp32>: it points to constant data. Drop `const` from its parameter.",
        ),
        (
            "tl.store(p, p)",
            "Cannot convert pointer<fp32> to fp32. A pointer converts to tl.int64 and back; "
            "load through it for what it points to.",
        ),
        ("tl.store(p, None)", "The value of tl.store must be a tensor or a number, got None."),
        ("tl.atomic_add(x, 1)", "tl.atomic_add needs a pointer, got fp32[64]. Add offsets to a pointer argument."),
        ("tl.atomic_and(p, 1)", "tl.atomic_and does not work on fp32. Use memory of a type of 32 or 64 bits."),
        (
            "tl.atomic_max(p.to(tl.pointer_type(tl.float16)), 1)",
            "tl.atomic_max does not work on fp16. Use memory of a type of 32 or 64 bits.",
        ),
        (
            "tl.atomic_add(q, 1, sem='strong')",
            "An atomic has no sem 'strong'. Use one of acquire, release, acq_rel, relaxed.",
        ),
        ("tl.atomic_load(q, sem='release')", "An atomic has no sem 'release'. Use one of acquire, relaxed."),
        ("tl.atomic_store(q, 1, sem='acq_rel')", "An atomic has no sem 'acq_rel'. Use one of release, relaxed."),
        ("tl.atomic_poll(q, 1, sem='release')", "An atomic has no sem 'release'. Use one of acquire, relaxed."),
        (
            "tl.atomic_poll(p, 1)",
            "tl.atomic_poll takes pointers to integers of 16 to 64 bits, got a pointer to fp32.",
        ),
        (
            "tl.atomic_poll(q, 1, timeout_ns=-1)",
            "tl.atomic_poll waits a whole number of nanoseconds, got timeout_ns = -1.",
        ),
        ("tl.atomic_load(n)", "tl.atomic_load needs a pointer, got int32. Add offsets to a pointer argument."),
        (
            "tl.atomic_store(c, 1.0)",
            "tl.atomic_store through const_pointer<fp32>: it points to constant data. Drop `const` from its parameter.",
        ),
        (
            "tl.atomic_load(p.to(tl.pointer_type(tl.pointer_type(tl.int8))))",
            "tl.atomic_load takes pointers to integers and floats, got a pointer to pointer<int8>.",
        ),
        ("tl.atomic_add(q, 1, scope='all')", "An atomic has no scope 'all'. Use one of gpu, cta, sys."),
    ],
)
def test_memory_errors(error, statement: str, message: str):
    assert error(statement) == message
