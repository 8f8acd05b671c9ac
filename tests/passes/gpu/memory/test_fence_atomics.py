"""Atomics on tiles are ordered by fences: one before to release, one after to acquire, where something comes after."""

import numpy as np
import pytest
from backend.cuda.launching import aligned, emulate, instructions_with

import deuteron
import deuteron.language as tl
from deuteron.passes.gpu.memory.fence_atomics import FenceAtomics

POINTERS = "tensor<4x!tt.ptr<i32>>"
ADD = (
    '"tt.atomic_rmw"(%p, %v) <{{atomic_rmw_op = 4 : i32, scope = {} : i32,'
    f" sem = {{}} : i32}}}}> : ({POINTERS}, tensor<4xi32>) -> tensor<4xi32>"
)
PARAMETERS = f"%p: {POINTERS}, %v: tensor<4xi32>, %s: !tt.ptr<i32>, %n: i32, %c: i1"
STORE = '"tt.store"(%s, %n) <{cache = 1 : i32, evict = 1 : i32}> : (!tt.ptr<i32>, i32) -> ()'


@pytest.mark.parametrize(
    ("sem", "before", "after"), [(1, "NOT", "NOT"), (2, "NOT", "NEXT"), (3, "NEXT", "NOT"), (4, "NEXT", "NEXT")]
)
def test_what_follows_is_acquired(check, sem, before, after):
    check(
        [FenceAtomics()],
        PARAMETERS,
        f"""
        // CHECK:        ^bb0
        // CHECK-{before}:  "ttg.fence"() <{{scope = 1 : i32}}>
        // CHECK:        "tt.atomic_rmw"(%p, %v)
        // CHECK-SAME:     sem = 1 : i32
        // CHECK-{after}:  "ttg.fence"() <{{scope = 1 : i32}}>
        // CHECK:        "tt.store"
        %r = {ADD.format(1, sem)}
        {STORE}""",
    )


@pytest.mark.parametrize(
    ("first_scope", "second_scope", "fences"),
    [(1, 1, 2), (2, 1, 2), (1, 3, 2), (3, 1, 3)],
    ids=["same", "narrow before", "wide after", "narrow after"],
)
def test_one_fence_is_enough_between_two(parse_kernel, first_scope, second_scope, fences):
    """If it is of no narrower scope; and none at the end of the program, nor of a branch at its end."""
    body = f"""
        "scf.if"(%c) ({{
          %q = {ADD.format(first_scope, 4)}
          %r = {ADD.format(second_scope, 4)}
          "scf.yield"() : () -> ()
        }}, {{}}) : (i1) -> ()"""
    module = parse_kernel(PARAMETERS, body)
    FenceAtomics().apply(None, module)
    assert str(module).count("ttg.fence") == fences


def test_the_next_iteration_follows(parse_kernel):
    body = f"""
        "scf.for"(%n, %n, %n) ({{
        ^bb1(%i: i32):
          %r = {ADD.format(1, 4)}
          "scf.yield"() : () -> ()
        }}) : (i32, i32, i32) -> ()"""
    module = parse_kernel(PARAMETERS, body)
    FenceAtomics().apply(None, module)
    assert str(module).count("ttg.fence") == 2


@deuteron.jit
def sum_rows(x, out, count, n, N: tl.constexpr):
    i = tl.arange(0, N)
    acc = tl.zeros((N,), tl.float32)
    for row in range(n):
        acc += tl.load(x + row * N + i)
    tl.atomic_add(out + i, acc)
    tl.atomic_add(count + i, 1)


@pytest.mark.parametrize(("target", "added"), [("cuda:80", ".f32"), ("cuda:90", ".v4.f32")])
def test_sums_are_added_in_the_background(rng, target, added):
    x = aligned(rng.integers(-8, 8, (3, 256)).astype(np.float32))
    out, count = aligned(np.zeros(256, np.float32)), aligned(np.zeros(256, np.int32))
    kernel = emulate(sum_rows, x, out, count, 3, N=256, num_warps=2, target=target, grid=(2,))
    np.testing.assert_array_equal(out, 2 * x.sum(0))
    np.testing.assert_array_equal(count, 2)
    assert instructions_with(kernel, f"red.relaxed.gpu.global.add{added}") and not instructions_with(kernel, "atom.")
    assert len(instructions_with(kernel, "fence.acq_rel.gpu")) == 2  # each releases; nothing follows
