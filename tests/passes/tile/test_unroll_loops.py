"""Loops with a factor do that many iterations in one, and exactly those that they did before."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from deuteron.errors import CompilationError
from deuteron.interpreter import run_module
from deuteron.passes import run_passes
from deuteron.passes.tile.fold import Fold
from deuteron.passes.tile.unroll_loops import UnrollLoops

PARAMETERS = "%lb: i32, %ub: i32, %st: i32, %x: i32"


def loop(bounds: str = "%lb, %ub, %st", factor: int = 3) -> str:
    """A polynomial in the iterations, of which their order matters."""
    return f"""
        %r = "scf.for"({bounds}, %x) ({{
        ^bb1(%i: i32, %a: i32):
          %m = "arith.muli"(%a, %a) : (i32, i32) -> i32
          %n = "arith.addi"(%m, %i) : (i32, i32) -> i32
          "scf.yield"(%n) : (i32) -> ()
        }}) {{tt.loop_unroll_factor = {factor} : i32, tt.num_stages = 4 : i32}} : (i32, i32, i32, i32) -> i32
        use %r : i32"""


def constants(**values: int) -> str:
    return "".join(
        f'\n%{name} = "arith.constant"() <{{value = {value} : i32}}> : () -> i32' for name, value in values.items()
    )


def test_groups_and_the_rest(check):
    checks = """
        // CHECK:      arith.remui
        // CHECK:      %[[MID:.*]] = "arith.select"
        // CHECK:      %[[G:.*]] = "scf.for"(%lb, %[[MID]],
        // CHECK-NEXT: ^bb0(%i: i32, %a: i32)
        // CHECK-NEXT: %[[M:.*]] = "arith.muli"(%a, %a)
        // CHECK-NEXT: %[[N:.*]] = "arith.addi"(%[[M]], %i)
        // CHECK:      %[[J:.*]] = "arith.addi"(%i,
        // CHECK-NEXT: %[[P:.*]] = "arith.muli"(%[[N]], %[[N]])
        // CHECK-NEXT: "arith.addi"(%[[P]], %[[J]])
        // CHECK:      {tt.loop_unroll_factor = 1 : i32, tt.num_stages = 4 : i32}
        // CHECK:      "scf.for"(%[[MID]], %ub, %st, %[[G]])
        // CHECK:      {tt.loop_unroll_factor = 1 : i32, tt.num_stages = 1 : i32}"""
    check([UnrollLoops(), Fold()], PARAMETERS, checks + loop())


@pytest.mark.parametrize(("end", "loops", "bodies"), [(24, 1, 3), (25, 1, 4), (26, 2, 4), (5, 0, 2), (6, 0, 3)])
def test_known_bounds(parse_kernel, end, loops, bodies):
    """Steps of 2: of 12 iterations no second loop is left; of 13 one iteration after it; of 3 or 2 no loop at all."""
    end = {24: 24, 25: 26, 26: 28, 5: 4, 6: 6}[end]
    module = parse_kernel("%x: i32", constants(lb=0, ub=end, st=2) + loop())
    run_passes(module, [UnrollLoops(), Fold()])
    ops = [op.name for op in module.walk()]
    assert (ops.count("scf.for"), ops.count("arith.muli")) == (loops, bodies)


def test_no_more_than_the_iterations_that_there_are(parse_kernel):
    module = parse_kernel("%x: i32", constants(lb=0, ub=10, st=2) + loop(factor=1_000_000))
    run_passes(module, [UnrollLoops(), Fold()])
    ops = [op.name for op in module.walk()]
    assert (ops.count("scf.for"), ops.count("arith.muli")) == (0, 5)


def test_more_ops_than_a_kernel_may_have_are_refused(parse_kernel):
    with pytest.raises(CompilationError, match=r"loop_unroll_factor=100000 makes 300000 ops .* Use 21333 or less"):
        run_passes(parse_kernel(PARAMETERS, loop(factor=100_000)), [UnrollLoops()])


@pytest.mark.parametrize("factor", [0, 1])
def test_no_factor(parse_kernel, factor):
    module = parse_kernel(PARAMETERS, loop(factor=factor))
    run_passes(module, [UnrollLoops(), Fold()])
    assert sum(op.name == "scf.for" for op in module.walk()) == 1


STORED = (
    '\n"tt.store"(%p, %r) <{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}> : (!tt.ptr<i32>, i32) -> ()'
)
MAX = 2**31 - 1
BOUNDS = [
    *itertools.product([-7, 0, 3], range(-9, 12), [1, 2, 5]),
    *[(MAX - d, MAX, s) for d, s in itertools.product(range(12), [1, 3])],
    *[(-MAX - 1, MAX, 2**29), (0, MAX, 2**30), (5, MAX, MAX), (-MAX, -MAX + 8, 3), (MAX, -MAX, 1), (-MAX, MAX, 2**28)],
]


@pytest.mark.parametrize("factor", [2, 3, 4])
def test_the_same_iterations(parse_kernel, factor):
    body = loop(factor=factor).partition("use")[0] + STORED
    plain, unrolled = (parse_kernel(f"{PARAMETERS}, %p: !tt.ptr<i32>", body) for _ in range(2))
    run_passes(unrolled, [UnrollLoops()])
    for start, end, step in BOUNDS:
        outputs = [np.full(1, 77, np.int32) for _ in range(2)]
        for module, out in zip((plain, unrolled), outputs, strict=True):
            run_module(module, [start, end, step, 3, out], (1, 1, 1))
        np.testing.assert_array_equal(*outputs, err_msg=f"range({start}, {end}, {step})")
