"""Constants are added last, in sums that nothing else needs, and equal sums are one then."""

from __future__ import annotations

import numpy as np
from backend.cuda.launching import aligned, compile_for, emulate

import deuteron
import deuteron.language as tl
from deuteron.passes.tile.add_constants_last import AddConstantsLast
from deuteron.passes.tile.eliminate_dead_code import EliminateDeadCode
from deuteron.passes.tile.merge_common_subexpressions import MergeCommonSubexpressions

PASSES = [AddConstantsLast(), MergeCommonSubexpressions(), EliminateDeadCode()]
NUMBERS = """
        %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
        %two = "arith.constant"() <{value = 2 : i32}> : () -> i32"""


def test_a_neighbour_is_a_sum_and_a_constant(check):
    check(
        PASSES,
        "%row: i32, %i: i32",
        f"""
        // CHECK:      [[B:%.*]] = "arith.addi"(%row, %i)
        // CHECK-NEXT: [[C:%.*]] = "arith.addi"([[B]], %one)
        // CHECK-NEXT: "tt.print"([[C]])
        // CHECK-NEXT: "tt.print"([[B]])
        {NUMBERS}
        %a = "arith.addi"(%one, %row) : (i32, i32) -> i32
        %b = "arith.addi"(%a, %i) : (i32, i32) -> i32
        %c = "arith.addi"(%row, %i) : (i32, i32) -> i32
        use %b : i32
        use %c : i32""",
    )


def test_constants_of_both_sides_are_last(check):
    check(
        PASSES,
        "%row: i32, %i: i32",
        f"""
        // CHECK:      [[B:%.*]] = "arith.addi"(%row, %i)
        // CHECK-NEXT: [[C:%.*]] = "arith.addi"([[B]], %two)
        // CHECK-NEXT: [[D:%.*]] = "arith.addi"([[C]], %one)
        // CHECK-NEXT: "tt.print"([[D]])
        {NUMBERS}
        %a = "arith.addi"(%one, %row) : (i32, i32) -> i32
        %b = "arith.addi"(%two, %i) : (i32, i32) -> i32
        %c = "arith.addi"(%a, %b) : (i32, i32) -> i32
        use %c : i32""",
    )


def test_a_sum_with_another_use_stays(check):
    check(
        PASSES,
        "%row: i32, %i: i32",
        f"""
        // CHECK:      %a = "arith.addi"(%one, %row)
        // CHECK-NEXT: %b = "arith.addi"(%a, %i)
        {NUMBERS}
        %a = "arith.addi"(%one, %row) : (i32, i32) -> i32
        %b = "arith.addi"(%a, %i) : (i32, i32) -> i32
        use %a : i32
        use %b : i32""",
    )


def test_a_sum_before_the_loop_stays(check):
    check(
        PASSES,
        "%row: i32, %n: i32",
        f"""
        // CHECK: %a = "arith.addi"(%one, %row)
        // CHECK: scf.for
        // CHECK: "arith.addi"(%a, %i)
        {NUMBERS}
        %a = "arith.addi"(%one, %row) : (i32, i32) -> i32
        "scf.for"(%one, %n, %two) ({{
        ^bb1(%i: i32):
          %b = "arith.addi"(%a, %i) : (i32, i32) -> i32
          use %b : i32
          "scf.yield"() : () -> ()
        }}) : (i32, i32, i32) -> ()""",
    )


@deuteron.jit
def differences(x, out, n, BLOCK: tl.constexpr):
    """Of neighbours in rows of 12, of which the last has none."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    right = tl.load(x + (1 + 12 * (i // 11) + i % 11), mask=i < n)
    left = tl.load(x + (12 * (i // 11) + i % 11), mask=i < n)
    tl.store(out + i, right - left, mask=i < n)


def test_neighbours_of_rows_share_their_address(rng):
    x, out = aligned(rng.random(12 * 48, np.float32)), aligned(np.zeros(11 * 48, np.float32))
    emulate(differences, x, out, 11 * 48, BLOCK=128, grid=(5,))
    np.testing.assert_array_equal(out, np.diff(x.reshape(48, 12)).reshape(-1))
    kernel = compile_for("cuda:90", differences, x, out, 11 * 48, BLOCK=128)
    assert kernel.asm["ttir"].count("arith.addi") == 3  # of the program's elements, of their addresses, and 1
