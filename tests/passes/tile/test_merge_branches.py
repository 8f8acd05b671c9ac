"""Accesses of both branches of an `if` through the same pointers become one, where that costs no width of vectors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from deuteron.interpreter import run_module
from deuteron.ir.nested import nested_ops
from deuteron.passes import run_passes
from deuteron.passes.tile import merge_branches, tile_passes
from deuteron.passes.tile.eliminate_dead_code import EliminateDeadCode
from deuteron.passes.tile.merge_branches import MergeBranches

PARAMETERS = (
    "%b: !tt.ptr<f32>, %p: tensor<4x!tt.ptr<f32>>, %m: tensor<4xi1>, %n: tensor<4xi1>, %x: tensor<4xf32>, %c: i1"
)


def load(name: str, *operands: str, volatile: bool = False) -> str:
    types = ["tensor<4x!tt.ptr<f32>>", "tensor<4xi1>", "tensor<4xf32>"][: len(operands)]
    segments = [int(index < len(operands)) for index in range(3)]
    return f"""%{name} = "tt.load"({", ".join(operands)}) <{{operandSegmentSizes = array<i32: {segments}>,
      boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32, isVolatile = {str(volatile).lower()}}}>
      : ({", ".join(types)}) -> tensor<4xf32>""".replace("[", "").replace("]", "")


def store(*operands: str) -> str:
    types = ["tensor<4x!tt.ptr<f32>>", "tensor<4xf32>", "tensor<4xi1>"][: len(operands)]
    return f""""tt.store"({", ".join(operands)}) <{{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}}>
      : ({", ".join(types)}) -> ()"""


def if_else(then: str, other: str) -> str:
    """An `if` that gives %u or %v."""
    return f"""
        %r = "scf.if"(%c) ({{
          {then}
          "scf.yield"(%u) : (tensor<4xf32>) -> ()
        }}, {{
          {other}
          "scf.yield"(%v) : (tensor<4xf32>) -> ()
        }}) : (i1) -> tensor<4xf32>
        use %r : tensor<4xf32>"""


def test_a_load_without_a_mask_and_one_with(check):
    checks = """
        // CHECK-NOT:  scf.if
        // CHECK:      %[[E:.*]] = "tt.splat"(%c)
        // CHECK-NEXT: %[[M:.*]] = "arith.ori"(%[[E]], %m)
        // CHECK-NEXT: %u = "tt.load"(%p, %[[M]], %x)
        // CHECK-NEXT: "tt.print"(%u)"""
    check([MergeBranches()], PARAMETERS, checks + if_else(load("u", "%p"), load("v", "%p", "%m", "%x")))


def test_the_branch_not_taken_is_without_a_mask(check):
    checks = """
        // CHECK:      %[[N:.*]] = "arith.xori"(%c, %{{.*}})
        // CHECK-NEXT: %[[E:.*]] = "tt.splat"(%[[N]])
        // CHECK-NEXT: "arith.ori"(%[[E]], %m)"""
    check([MergeBranches()], PARAMETERS, checks + if_else(load("u", "%p", "%m"), load("v", "%p")))


def test_two_masks_and_two_values_for_where_they_are_off(check):
    checks = """
        // CHECK:      %[[M:.*]] = "arith.select"(%c, %m, %n)
        // CHECK-NEXT: %y = "arith.addf"(%x, %x)
        // CHECK-NEXT: %[[O:.*]] = "arith.select"(%c, %x, %y)
        // CHECK-NEXT: "tt.load"(%p, %[[M]], %[[O]])
        // CHECK-NOT:  scf.if"""
    other = f"""%y = "arith.addf"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        {load("v", "%p", "%n", "%y")}"""
    check([MergeBranches()], PARAMETERS, checks + if_else(load("u", "%p", "%m", "%x"), other))


def pointers(name: str) -> str:
    return f"""%{name}s = "tt.splat"(%b) : (!tt.ptr<f32>) -> tensor<4x!tt.ptr<f32>>
        %{name}i = "tt.make_range"() <{{start = 0 : i32, end = 4 : i32}}> : () -> tensor<4xi32>
        %{name} = "tt.addptr"(%{name}s, %{name}i)
          : (tensor<4x!tt.ptr<f32>>, tensor<4xi32>) -> tensor<4x!tt.ptr<f32>>"""


def test_pointers_that_both_branches_compute(check):
    checks = """
        // CHECK:     %q = "tt.addptr"
        // CHECK:     "tt.load"(%q, %m)
        // CHECK-NOT: tt.addptr"""
    then, other = (f"{pointers(name)}\n{load(result, f'%{name}', '%m')}" for name, result in (("q", "u"), ("k", "v")))
    check([MergeBranches()], PARAMETERS, checks + if_else(then, other))


def test_what_is_computed_from_the_load_stays_in_its_branch(check):
    checks = """
        // CHECK:      %[[L:.*]] = "tt.load"
        // CHECK-NEXT: scf.if
        // CHECK-NEXT: %u = "arith.addf"(%[[L]], %x)"""
    then = f"""{load("l", "%p")}
        %u = "arith.addf"(%l, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"""
    check([MergeBranches()], PARAMETERS, checks + if_else(then, load("v", "%p")))


def chain(name: str, length: int) -> str:
    """Sums of sums; the last is called `name`."""
    names = ["x", *(f"{name}{index}" for index in range(1, length)), name]
    add = '%{1} = "arith.addf"(%{0}, %{0}) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>'
    return "\n".join(add.format(*pair) for pair in itertools.pairwise(names))


def test_what_is_computed_from_what_is_the_same_is_the_same_and_each_op_is_looked_at_twice(parse_kernel, monkeypatch):
    looked_at = []
    key_of = merge_branches._key
    monkeypatch.setattr(merge_branches, "_key", lambda op: looked_at.append(op) or key_of(op))
    module = parse_kernel(PARAMETERS, if_else(chain("u", 50), chain("v", 50)))
    run_passes(module, [MergeBranches()])
    names = [op.name for op in nested_ops(module)]
    assert names.count("arith.addf") == 50 and "scf.if" not in names
    assert len(looked_at) <= 4 * 51


def test_what_a_branch_computes_twice_is_found_twice(parse_kernel):
    twice = """%{0}1 = "arith.addf"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        %{0}2 = "arith.addf"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        %{0} = "arith.mulf"(%{0}1, %{0}2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"""
    module = parse_kernel(PARAMETERS, if_else(twice.format("u"), twice.format("v")))
    run_passes(module, [MergeBranches()])
    assert "scf.if" not in [op.name for op in nested_ops(module)]


def test_inner_branches_are_merged_first(check):
    checks = """
        // CHECK-NOT: scf.if
        // CHECK:     "arith.select"(%c
        // CHECK:     "tt.load"
        // CHECK-NOT: tt.load"""
    inner = f"""%u = "scf.if"(%c) ({{
          {load("i", "%p")}
          "scf.yield"(%i) : (tensor<4xf32>) -> ()
        }}, {{
          {load("j", "%p", "%m")}
          "scf.yield"(%j) : (tensor<4xf32>) -> ()
        }}) : (i1) -> tensor<4xf32>"""
    check([MergeBranches()], PARAMETERS, checks + if_else(inner, load("v", "%p", "%n")))


@pytest.mark.parametrize(
    ("then", "other"),
    [
        (load("u", "%p", volatile=True), load("v", "%p", volatile=True)),
        (load("u", "%p"), f"{pointers('q')}\n{load('v', '%q')}"),
        (f"{store('%p', '%x')}\n{load('u', '%p')}", load("v", "%p")),
        (load("u", "%p"), f"{load('w', '%p', volatile=True)}\n{load('v', '%p')}"),
    ],
    ids=["volatile", "other pointers", "after a store", "after a volatile load"],
)
def test_what_stays(check, then, other):
    checks = """
        // CHECK-NOT: tt.load
        // CHECK:     scf.if
        // CHECK:     tt.load
        // CHECK:     tt.load"""
    check([MergeBranches()], PARAMETERS, checks + if_else(then, other))


def test_vectors_of_one_branch_are_not_given_up(check):
    """Contiguous pointers, divisible by 16 bytes, and in one branch a mask that any element may differ in."""
    checks = """
        // CHECK:     scf.if
        // CHECK:     "tt.load"(%q)
        // CHECK:     "tt.load"(%q, %k)"""
    aligned = pointers("q").replace("(%qs, %qi)", "(%qs, %qi) {tt.divisibility = dense<16> : tensor<1xi32>}")
    mask = '%k = "arith.cmpi"(%qi, %qi) <{predicate = 0 : i64}> : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>'
    body = "\n".join((checks, aligned, mask, if_else(load("u", "%q"), load("v", "%q", "%k"))))
    check([MergeBranches()], PARAMETERS, body)


def branches(then: str, other: str) -> str:
    return f"""
        "scf.if"(%c) ({{
          {then}
          "scf.yield"() : () -> ()
        }}, {{
          {other}
          "scf.yield"() : () -> ()
        }}) : (i1) -> ()"""


def test_stores_in_their_order(check):
    checks = """
        // CHECK-NOT: scf.if
        // CHECK:     "tt.store"(%p, %x, %{{.*}})
        // CHECK:     "tt.store"(%p, %y)
        // CHECK-NEXT: tt.return"""
    y = '\n%y = "arith.addf"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>'
    two = f"{store('%p', '%x')}\n{store('%p', '%y')}"
    masked = f"{store('%p', '%x', '%m')}\n{store('%p', '%y')}"
    check([MergeBranches(), EliminateDeadCode()], PARAMETERS, checks + y + branches(two, masked))


def test_a_store_before_a_load_stays(check):
    checks = """
        // CHECK: scf.if
        // CHECK: tt.store
        // CHECK: tt.load
        // CHECK: tt.store"""
    then = f"{store('%p', '%x')}\n{load('u', '%p')}\nuse %u : tensor<4xf32>"
    check([MergeBranches()], PARAMETERS, checks + branches(then, store("%p", "%x")))


PROGRAM = """
    %i = "tt.make_range"() <{start = 0 : i32, end = 4 : i32}> : () -> tensor<4xi32>
    %s = "tt.splat"(%b) : (!tt.ptr<f32>) -> tensor<4x!tt.ptr<f32>>
    %p = "tt.addptr"(%s, %i) : (tensor<4x!tt.ptr<f32>>, tensor<4xi32>) -> tensor<4x!tt.ptr<f32>>
    %f = "tt.splat"(%o) : (!tt.ptr<f32>) -> tensor<4x!tt.ptr<f32>>
    %q = "tt.addptr"(%f, %i) : (tensor<4x!tt.ptr<f32>>, tensor<4xi32>) -> tensor<4x!tt.ptr<f32>>
    %one = "arith.constant"() <{value = dense<1> : tensor<4xi32>}> : () -> tensor<4xi32>
    %two = "arith.constant"() <{value = dense<2> : tensor<4xi32>}> : () -> tensor<4xi32>
    %x = "arith.constant"() <{value = dense<7.0> : tensor<4xf32>}> : () -> tensor<4xf32>
    %y = "arith.constant"() <{value = dense<9.0> : tensor<4xf32>}> : () -> tensor<4xf32>
    %m = "arith.cmpi"(%i, %one) <{predicate = 4 : i64}> : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %n = "arith.cmpi"(%i, %two) <{predicate = 2 : i64}> : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>"""
LOADS = [("%p",), ("%p", "%m", "%x"), ("%p", "%n", "%y")]
STORES = [("%q", "%r"), ("%q", "%r", "%m"), ("%q", "%r", "%n"), ("%q", "%x", "%n")]


@pytest.mark.share(3)
@pytest.mark.parametrize(("first", "second"), list(itertools.product(LOADS, LOADS)))
def test_the_same_results(parse_kernel, rng, first, second):
    values = rng.standard_normal(4).astype(np.float32)
    for (one, other), taken in itertools.product(itertools.product(STORES, STORES), (False, True)):
        program = PROGRAM + if_else(load("u", *first), load("v", *second)).rsplit("use", 1)[0]
        module = parse_kernel(
            "%b: !tt.ptr<f32>, %o: !tt.ptr<f32>, %c: i1", program + branches(store(*one), store(*other))
        )
        outputs = []
        for _ in range(2):
            outputs.append(np.full(4, 77, np.float32))
            run_module(module, [values, outputs[-1], taken], (1, 1, 1))
            run_passes(module, tile_passes())
        assert not any(op.name == "scf.if" for op in module.walk())
        np.testing.assert_array_equal(*outputs)
