"""The form in which Triton prints its IR is read, and means what the generic form means."""

from __future__ import annotations

import re

import pytest
from ir.test_round_trip import PARAMETERS, POINTERS, TILE
from ir_text import generic_text

from deuteron.errors import IRError
from deuteron.ir.pretty.forms import FORMS
from deuteron.ir.pretty.regions import PARSERS
from deuteron.ir.text import parse_module, print_module
from deuteron.ir.tt import TT

# An op in both forms, of the parameters of test_round_trip.
PAIRS = {
    "%r = tt.get_program_id z : i32": '%r = "tt.get_program_id"() <{axis = 2 : i32}> : () -> i32',
    "%r = tt.make_range {end = 8 : i32, start = 4 : i32} : tensor<4xi32>": (
        '%r = "tt.make_range"() <{start = 4 : i32, end = 8 : i32}> : () -> tensor<4xi32>'
    ),
    f"%r = tt.splat %f : f32 -> {TILE}": f'%r = "tt.splat"(%f) : (f32) -> {TILE}',
    f"%r = tt.load %ps : {POINTERS}": f"""%r = "tt.load"(%ps) <{{boundaryCheck = array<i32>, cache = 1 : i32,
        evict = 1 : i32, isVolatile = false, operandSegmentSizes = array<i32: 1, 0, 0>}}> : ({POINTERS}) -> {TILE}""",
    # Triton 3.4 to 3.8, and 3.9.
    f"%r = tt.load %ps, %m, %t cacheModifier = cg evictionPolicy = evict_last {{isVolatile = true}} : {POINTERS}": (
        f"""%r = "tt.load"(%ps, %m, %t) <{{boundaryCheck = array<i32>, cache = 3 : i32, evict = 3 : i32,
        isVolatile = true, operandSegmentSizes = array<i32: 1, 1, 1>}}>
        : ({POINTERS}, tensor<4xi1>, {TILE}) -> {TILE}"""
    ),
    f"""tt.store %ps, %t, %m {{cachePolicy = #tt.cache_policy<cache_modifier = wb,
        eviction_policy = evict_first>}} : {POINTERS}""": (
        f""""tt.store"(%ps, %t, %m) <{{boundaryCheck = array<i32>, cache = 4 : i32, evict = 2 : i32}}>
        : ({POINTERS}, {TILE}, tensor<4xi1>) -> ()"""
    ),
    "%r = tt.reshape %t allow_reorder efficient_layout : tensor<4xf32> -> tensor<2x2xf32>": (
        f'%r = "tt.reshape"(%t) <{{allow_reorder, efficient_layout}}> : ({TILE}) -> tensor<2x2xf32>'
    ),
    "%l, %r = tt.split %s : tensor<2x2x2xf32> -> tensor<2x2xf32>": (
        '%l, %r = "tt.split"(%s) : (tensor<2x2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>)'
    ),
    "%r = tt.dot %s, %s, %s : tensor<2x2x2xf32> * tensor<2x2x2xf32> -> tensor<2x2x2xf32>": (
        """%r = "tt.dot"(%s, %s, %s) <{inputPrecision = 2 : i32, maxNumImpreciseAcc = 0 : i32}>
        : (tensor<2x2x2xf32>, tensor<2x2x2xf32>, tensor<2x2x2xf32>) -> tensor<2x2x2xf32>"""
    ),
    """%r = tt.dot %s, %s, %s, inputPrecision = tf32x3 {maxNumImpreciseAcc = 64 : i32}
        : tensor<2x2x2xf32> * tensor<2x2x2xf32> -> tensor<2x2x2xf32>""": (
        """%r = "tt.dot"(%s, %s, %s) <{inputPrecision = 1 : i32, maxNumImpreciseAcc = 64 : i32}>
        : (tensor<2x2x2xf32>, tensor<2x2x2xf32>, tensor<2x2x2xf32>) -> tensor<2x2x2xf32>"""
    ),
    f"%r = tt.atomic_rmw exch, acq_rel, sys, %ps, %t : ({POINTERS}, {TILE}) -> {TILE}": (
        f"""%r = "tt.atomic_rmw"(%ps, %t) <{{atomic_rmw_op = 10 : i32, sem = 4 : i32, scope = 3 : i32}}>
        : ({POINTERS}, {TILE}) -> {TILE}"""
    ),
    '%r = tt.elementwise_inline_asm "ex2.approx.f32 $0, $1;" '
    '{constraints = "=f,f", packed_element = 1 : i32, pure = true} %t : tensor<4xf32> -> tensor<4xf32>': (
        f"""%r = "tt.elementwise_inline_asm"(%t) <{{asm_string = "ex2.approx.f32 $0, $1;", constraints = "=f,f",
        pure = true, packed_element = 1 : i32}}> : ({TILE}) -> {TILE}"""
    ),
    'tt.print " n: " {hex = false, isSigned = array<i32: 1>} : %n : i32': (
        '"tt.print"(%n) <{prefix = " n: ", hex = false, isSigned = array<i32: 1>}> : (i32) -> ()'
    ),
    """%w = arith.extsi %n : i32 to i64
        %r = tt.make_tensor_ptr %p, [%w], [%w], [%n] {order = array<i32: 0>} : <tensor<4xf32>>
        %q = tt.advance %r, [%n] : <tensor<4xf32>>
        tt.store %q, %t cacheModifier = cs {boundaryCheck = array<i32: 0>} : !tt.ptr<tensor<4xf32>>""": (
        f"""%w = "arith.extsi"(%n) : (i32) -> i64
        %r = "tt.make_tensor_ptr"(%p, %w, %w, %n) <{{order = array<i32: 0>}}>
            : (!tt.ptr<f32>, i64, i64, i32) -> !tt.ptr<tensor<4xf32>>
        %q = "tt.advance"(%r, %n) : (!tt.ptr<tensor<4xf32>>, i32) -> !tt.ptr<tensor<4xf32>>
        "tt.store"(%q, %t) <{{boundaryCheck = array<i32: 0>, cache = 5 : i32, evict = 1 : i32}}>
            : (!tt.ptr<tensor<4xf32>>, {TILE}) -> ()"""
    ),
    "%r = arith.cmpi ult, %i, %i : tensor<4xi32>": (
        '%r = "arith.cmpi"(%i, %i) <{predicate = 6 : i64}> : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>'
    ),
    "%r = arith.select %m, %t, %u : tensor<4xi1>, tensor<4xf32>": (
        f'%r = "arith.select"(%m, %t, %u) : (tensor<4xi1>, {TILE}, {TILE}) -> {TILE}'
    ),
    "%r = arith.extui %i nneg : tensor<4xi32> to tensor<4xi64>": (
        '%r = "arith.extui"(%i) : (tensor<4xi32>) -> tensor<4xi64>'
    ),
    "%r = arith.addi %n, %n overflow<nsw> : i32": (
        '%r = "arith.addi"(%n, %n) <{overflowFlags = #arith.overflow<nsw>}> : (i32, i32) -> i32'
    ),
    "%r = math.fma %t, %u, %t : tensor<4xf32>": (
        f"""%r = "math.fma"(%t, %u, %t) <{{fastmath = #arith.fastmath<none>}}>
        : ({TILE}, {TILE}, {TILE}) -> {TILE}"""
    ),
    "%r = arith.constant dense<0xFF800000> : tensor<4xf32>": (
        f'%r = "arith.constant"() <{{value = dense<0xFF800000> : {TILE}}}> : () -> {TILE}'
    ),
    "%r = ub.poison : i32": '%r = "arith.constant"() <{value = 0 : i32}> : () -> i32',
    "gpu.barrier": '"ttg.barrier"() <{addrSpace = 31 : i32}> : () -> ()',
}


WITH_REGIONS = {"tt.reduce", "tt.scan", "tt.map_elementwise"}  # Triton prints these in the generic form, too


def test_every_op_has_a_form():
    assert {op.name for op in TT.operations} - WITH_REGIONS <= FORMS.keys() | PARSERS.keys()


def in_kernel(body: str, parameters: str = PARAMETERS.replace(";", ",")) -> str:
    return f"module {{\n  tt.func public @k({parameters}) {{\n    {body}\n    tt.return\n  }}\n}}\n"


@pytest.mark.parametrize("pretty", PAIRS, ids=lambda text: re.search(r"(\w+\.\w+)", text)[1])
def test_both_forms_are_the_same(parse_body, pretty):
    generic = generic_text(parse_body(PARAMETERS, PAIRS[pretty]), locations=False)
    assert generic_text(parse_module(in_kernel(pretty)), locations=False) == generic


def test_locations_are_defined_below_their_uses():
    text = """
    #loc = loc("k.py":1:1)
    module {
      tt.func public @k(%x: i32 {tt.divisibility = 16 : i32} loc("x"(#loc))) attributes {noinline = false} {
        %y = arith.addi %x, %x : i32 loc(#loc3)
        tt.print " y: " {hex = false, isSigned = array<i32: 1>} : %y : i32 loc(#loc2)
        tt.return loc(#loc)
      } loc(#loc)
    } loc(#loc)
    #loc1 = loc("k.py":4:9)
    #loc2 = loc("k.py":5:5)
    #loc3 = loc(callsite("y"(#loc1) at #loc2))
    """
    module = parse_module("\n".join(line.strip() for line in text.split("\n")))
    printed = generic_text(module)
    assert 'loc(callsite("y"("k.py":4:9) at "k.py":5:5))' in printed
    assert '%x: i32 loc("x"("k.py":1:1))' in printed
    assert module.body.block.first_op.arg_divisibility(0) == 16


LOOPS = """
    %a = arith.constant 0 : i32
    %b = arith.constant 1 : i32
    %x, %y = scf.for %j = %a to %n step %b iter_args(%p1 = %f, %q1 = %a) -> (f32, i32)  : i32 {
      %z = scf.if %c -> (f32) {
        scf.yield %p1 : f32
      } else {
        scf.yield %f : f32
      }
      scf.if %c {
        tt.store %p, %z : !tt.ptr<f32>
      }
      scf.yield %z, %j : f32, i32
    } {tt.num_stages = 3 : i32}
    %w = scf.while (%k1 = %y) : (i32) -> i32 {
      %d = arith.cmpi slt, %k1, %n : i32
      scf.condition(%d) %k1 : i32
    } do {
    ^bb0(%k1: i32):
      %e = arith.addi %k1, %b : i32
      scf.yield %e : i32
    }
    scf.while : () -> () {
      scf.condition(%c)
    } do {
      scf.yield
    }
    %s1 = "tt.reduce"(%t) <{axis = 0 : i32}> ({
    ^bb0(%l: f32, %r: f32):
      %m1 = arith.maxnumf %l, %r : f32
      tt.reduce.return %m1 : f32
    }) : (tensor<4xf32>) -> f32"""


def test_loops_and_branches():
    module = parse_module(in_kernel(LOOPS))
    text = print_module(module, locations=False)
    assert print_module(parse_module(text), locations=False) == text
    assert '}) {"tt.num_stages" = 3 : i32}' in text or "tt.num_stages = 3 : i32" in text
    assert all(op.location is not None for op in module.walk())


ERRORS = {
    "%r = tt.frobnicate %n : i32": "Operation tt.frobnicate is not registered",
    "%r = tt.get_program_id w : i32": "expected one of x, y, z",
    "%r = arith.cmpi below, %n, %n : i32": "expected one of eq, ne, slt",
    "%r = arith.addi %n : i32": "expected 2 operands, got 1",
    "%r = tt.load %n : i32": "tt.load needs a pointer, got i32",
    '%r = tt.extern_elementwise %t {libname = "", libpath = "", pure = true, symbol = "f"} : () -> tensor<4xf32>': (
        "1 operands have another number of types"
    ),
    "ttg.barrier local": "expected one of all",
    "%r = ub.poison : !tt.ptr<f32>": "no value stands for one of",
}


@pytest.mark.parametrize("body", ERRORS)
def test_errors_have_a_place(body):
    with pytest.raises(IRError, match=re.escape(ERRORS[body])) as caught:
        parse_module(in_kernel(body), "k.ttir")
    assert (caught.value.location.file, caught.value.location.line) == ("k.ttir", 3)
