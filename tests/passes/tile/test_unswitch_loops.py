"""A condition on which loads depend is tested before the loop that does not change it."""

from __future__ import annotations

from ir_text import generic_asm

import deuteron
import deuteron.language as tl
from deuteron.compiler import ASTSource
from deuteron.compiler import compile as compile_kernel
from deuteron.passes.tile.fold import Fold
from deuteron.passes.tile.unswitch_loops import UnswitchLoops


def load(name: str, pointer: str) -> str:
    return f"""%{name} = "tt.load"({pointer}) <{{operandSegmentSizes = array<i32: 1, 0, 0>, boundaryCheck = array<i32>,
      cache = 1 : i32, evict = 1 : i32, isVolatile = false}}> : (tensor<4x!tt.ptr<f32>>) -> tensor<4xf32>"""


def loop(condition: str, then: str, other: str) -> str:
    """The sum of what one of two branches gives as %u or %v."""
    return f"""
        %s = "scf.for"(%n, %k, %n, %x) ({{
        ^bb1(%i: i32, %a: tensor<4xf32>):
          %d = "arith.cmpi"(%i, %n) <{{predicate = 2 : i64}}> : (i32, i32) -> i1
          %r = "scf.if"({condition}) ({{
            {then}
            "scf.yield"(%u) : (tensor<4xf32>) -> ()
          }}, {{
            {other}
            "scf.yield"(%v) : (tensor<4xf32>) -> ()
          }}) : (i1) -> tensor<4xf32>
          %b = "arith.addf"(%a, %r) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
          "scf.yield"(%b) : (tensor<4xf32>) -> ()
        }}) : (i32, i32, i32, tensor<4xf32>) -> tensor<4xf32>
        use %s : tensor<4xf32>"""


PARAMETERS = "%p: tensor<4x!tt.ptr<f32>>, %q: tensor<4x!tt.ptr<f32>>, %x: tensor<4xf32>, %n: i32, %k: i32, %c: i1"
STAYS = """
        // CHECK-NOT: scf.if
        // CHECK:     scf.for
        // CHECK:     scf.if
        // CHECK-NOT: scf.for"""


def test_loads_through_different_pointers(check):
    checks = """
        // CHECK:      scf.if"(%c)
        // CHECK:      scf.for
        // CHECK-NOT:  scf.if
        // CHECK:      "tt.load"(%p)
        // CHECK-NEXT: arith.addf
        // CHECK:      scf.for
        // CHECK-NOT:  scf.if
        // CHECK:      "tt.load"(%q)
        // CHECK-NEXT: arith.addf"""
    check([UnswitchLoops(), Fold()], PARAMETERS, checks + loop("%c", load("u", "%p"), load("v", "%q")))


def test_a_condition_that_is_known_stays(check):
    """Folding is what removes it."""
    known = '%t = "arith.constant"() <{value = true}> : () -> i1'
    checks = f"{STAYS}\n{known}\n" + loop("%t", load("u", "%p"), load("v", "%q"))
    check([UnswitchLoops()], PARAMETERS, checks)


def test_a_condition_that_changes_stays(check):
    check([UnswitchLoops(), Fold()], PARAMETERS, STAYS + loop("%d", load("u", "%p"), load("v", "%q")))


def test_branches_without_loads_stay(check):
    double = '%{0} = "arith.addf"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>'
    check([UnswitchLoops(), Fold()], PARAMETERS, STAYS + loop("%c", double.format("u"), double.format("v")))


def test_a_large_loop_stays(check):
    lines = ['%y0 = "arith.addf"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>']
    lines += [
        f'%y{i + 1} = "arith.addf"(%y{i}, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>' for i in range(400)
    ]
    body = load("u", "%p") + "\n" + "\n".join(lines)
    check([UnswitchLoops(), Fold()], PARAMETERS, STAYS + loop("%c", body, load("v", "%q")))


@deuteron.jit
def three_conditions(x, out, n, A, B, C, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(n):
        if A:
            total += tl.load(x + k * BLOCK + i)
        if B:
            total += tl.load(x + k * BLOCK + 2 * i)
        if C:
            total += tl.load(x + k * BLOCK + 3 * i)
    tl.store(out + i, total)


def test_no_more_than_four_loops_of_one():
    signature = {"x": "*fp32", "out": "*fp32", "n": "i32", "A": "i1", "B": "i1", "C": "i1"}
    kernel = compile_kernel(ASTSource(three_conditions, signature, {"BLOCK": 32}), "cuda:80")
    assert generic_asm(kernel, "ttir").count('"scf.for"') == 4


def test_a_cpu_keeps_its_branches():
    """It loads nothing ahead, and a branch costs less there than a mask."""
    signature = {"x": "*fp32", "out": "*fp32", "n": "i32", "A": "i1", "B": "i1", "C": "i1"}
    kernel = compile_kernel(ASTSource(three_conditions, signature, {"BLOCK": 32}), "cpu")
    assert generic_asm(kernel, "ttir").count('"scf.for"') == 1
