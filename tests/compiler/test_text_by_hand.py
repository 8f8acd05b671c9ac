"""Text that the frontend would not write: right on every executor where it is tile IR, else refused, with its place."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron
from deuteron.compiler import IRSource
from deuteron.emulator import run_kernel
from deuteron.errors import CompilationError, IRError
from deuteron.interpreter.executor import run_module
from deuteron.ir.text import parse_module

SIZE = 64
KERNEL = """module {
tt.func public @k(%x: !tt.ptr<i32>, %o: !tt.ptr<i32>, %n: i32) {
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %xs = tt.splat %x : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
  %xp = tt.addptr %xs, %r : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
  %a = tt.load %xp : tensor<64x!tt.ptr<i32>>
  %os = tt.splat %o : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
  %op = tt.addptr %os, %r : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c7 = arith.constant 7 : i32
BODY
  tt.store %op, %v : tensor<64x!tt.ptr<i32>>
  tt.return
}
}
"""
NARROW = """
  %end = arith.constant dense<70> : tensor<64xi32>
  %by = arith.constant dense<16> : tensor<64xi32>
  %lo = arith.constant -100 : i8
  %hi = arith.constant 100 : i8
  %st = arith.constant 60 : i8
  %first = scf.for %i = %lo to %hi step %st iter_args(%acc = %a) -> (tensor<64xi32>) : i8 {
    %t = arith.extsi %i : i8 to i32
    %s = tt.splat %t : i32 -> tensor<64xi32>
    %z = arith.addi %acc, %s : tensor<64xi32>
    scf.yield %z : tensor<64xi32>
  }
  %w0 = arith.constant 0 : i16
  %wn = arith.trunci %n : i32 to i16
  %w16 = arith.constant 16 : i16
  %v, %last = scf.for %i = %w0 to %wn step %w16 iter_args(%acc = %first, %p = %xp)
      -> (tensor<64xi32>, tensor<64x!tt.ptr<i32>>) : i16 {
    %t = arith.extsi %i : i16 to i32
    %s = tt.splat %t : i32 -> tensor<64xi32>
    %k = arith.addi %s, %r : tensor<64xi32>
    %m = arith.cmpi slt, %k, %end : tensor<64xi32>
    %q = tt.addptr %xs, %k : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
    %y = tt.load %q, %m, %a : tensor<64x!tt.ptr<i32>>
    %y2 = tt.load %p : tensor<64x!tt.ptr<i32>>
    %y3 = arith.addi %y, %y2 : tensor<64xi32>
    %z = arith.addi %acc, %y3 : tensor<64xi32>
    %pn = tt.addptr %p, %by : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
    scf.yield %z, %pn : tensor<64xi32>, tensor<64x!tt.ptr<i32>>
  } {tt.loop_unroll_factor = 3 : i32}
"""
# A condition that passes on more than it gets, loops that exchange and drop what they carry, arithmetic of i1.
REGIONS = """
  %w:4 = scf.while (%p = %a, %q = %c0, %d = %n) : (tensor<64xi32>, i32, i32)
      -> (tensor<64xi32>, i32, i32, tensor<64xi32>) {
    %b = arith.cmpi slt, %q, %c7 : i32
    %e = arith.addi %p, %p : tensor<64xi32>
    %s = tt.splat %q : i32 -> tensor<64xi32>
    tt.store %op, %s : tensor<64x!tt.ptr<i32>>
    scf.condition(%b) %e, %q, %d, %p : tensor<64xi32>, i32, i32, tensor<64xi32>
  } do {
  ^bb0(%p2: tensor<64xi32>, %q2: i32, %d2: i32, %unused: tensor<64xi32>):
    %y = arith.addi %q2, %c1 : i32
    scf.yield %p2, %y, %q2 : tensor<64xi32>, i32, i32
  }
  %u:3 = scf.for %i = %c1 to %n step %c7 iter_args(%p = %w#3, %q = %r, %k = %w#2)
      -> (tensor<64xi32>, tensor<64xi32>, i32) : i32 {
    scf.yield %q, %p, %i : tensor<64xi32>, tensor<64xi32>, i32
  }
  %ks = tt.splat %u#2 : i32 -> tensor<64xi32>
  %sum = arith.addi %u#0, %ks : tensor<64xi32>
  %one = arith.cmpi slt, %sum, %r : tensor<64xi32>
  %two = arith.cmpi slt, %one, %one : tensor<64xi1>
  %three = arith.subi %two, %one : tensor<64xi1>
  %bits = arith.extsi %three : tensor<64xi1> to tensor<64xi32>
  %v = arith.subi %sum, %bits : tensor<64xi32>
"""


@pytest.mark.parametrize("body", [NARROW, REGIONS], ids=["narrow", "regions"])
def test_is_right_on_every_executor(body: str, rng: np.random.Generator):
    text = KERNEL.replace("BODY", body)
    x, n = rng.integers(-(2**31), 2**31, 4 * SIZE).astype(np.int32), np.int32(rng.integers(-40, 100))
    expected = np.full(SIZE, 7, np.int32)
    run_module(parse_module(text), (x, expected, n), (1, 1, 1))
    for target in ("cpu", "cuda:80", "cuda:90"):
        kernel, found = deuteron.compile(IRSource.from_text(text, "ttir"), target=target), np.full(SIZE, 8, np.int32)
        if target == "cpu":
            kernel[(1,)](x, found, n)
        else:
            run_kernel(kernel.asm["ptx"], kernel.metadata, (1,), (x, found, n))
        np.testing.assert_array_equal(found, expected, err_msg=target)


BEGIN = "tt.func public @k(%x: !tt.ptr<i32>, %n: i32) {\n%t = arith.constant true\n%c = arith.constant 1 : i32\n"
TILE = "%r = tt.splat %n : i32 -> tensor<4x2xi32>\n"
WHILE = '%v = "scf.while"(%n) ({{\n^bb0(%q: i32):\n scf.condition(%t) %q : i32\n}}, {{\n{}\n}}) : (i32) -> {}'
REFUSED = {
    "a region takes (i32), scf.if ()": '"scf.if"(%t) ({\n^bb0(%q: i32):\n scf.yield\n}, {\n}) : (i1) -> ()',
    "a region yields (i1), scf.if (i32)": (
        '%v = "scf.if"(%t) ({\n scf.yield %n : i32\n}, {\n scf.yield %t : i1\n}) : (i1) -> i32'
    ),
    "a region of scf.if has one block, got 0": '%v = "scf.if"(%t) ({\n scf.yield %n : i32\n}, {\n}) : (i1) -> i32',
    "the body takes (i64), scf.while (i32)": WHILE.format("^bb0(%p: i64):\n scf.yield %n : i32", "i32"),
    "scf.condition passes on (i32), scf.while (i64)": WHILE.format("^bb0(%p: i32):\n scf.yield %n : i32", "i64"),
    "the body yields (i1), scf.while (i32)": WHILE.format("^bb0(%p: i32):\n scf.yield %t : i1", "i32"),
    "tt.return gives (), @f (i32)": "tt.return\n}\ntt.func private @f() -> i32 {",
    "a kernel returns nothing, @g returns (i32)": (
        "tt.return\n}\ntt.func public @g(%h: i32) -> i32 {\n tt.return %h : i32\n}\ntt.func private @f() {"
    ),
    "a module has functions only, got builtin.module": "tt.return\n}\nmodule {\n}\ntt.func private @h() {",
    "index is no type of tile IR": "%i = arith.constant 1 : index",
    "i7 is no type of tile IR": "%i = arith.constant 1 : i7",
    "!tt.ptr<i128> is no type of tile IR": "tt.return\n}\ntt.func private @f(%q: !tt.ptr<i128>) {",
    "got tensor<i32>": "%i = arith.constant dense<1> : tensor<i32>",
    "index is no type of a tile's elements": "%i = arith.constant dense<1> : tensor<4xindex>",
    "a branch passes () to a block that takes (i32)": "cf.br ^bb1\n^bb1(%q: i32):",
    "cf.br or cf.cond_br, got nothing": "cf.br ^bb1\n^bb1:\n}\ntt.func private @f() {",
    "the step of scf.for is positive, got 0": "%s = arith.constant 0 : i32\nscf.for %i = %c to %n step %s : i32 {\n}",
    "tt.num_stages of scf.for is an integer": (
        'scf.for %i = %c to %n step %c : i32 {\n tt.store %x, %i : !tt.ptr<i32>\n} {tt.num_stages = "a"}'
    ),
    "tt.most_programs of tt.func is an integer": (
        'tt.return\n}\ntt.func private @f() attributes {tt.most_programs = "a"} {'
    ),
    "tt.divisibility is 1 positive integers": (
        "%z = arith.addi %n, %n {tt.divisibility = dense<[16, 3]> : tensor<2xi32>} : i32"
    ),
    "tt.divisibility is a positive integer": "tt.return\n}\ntt.func private @f(%q: i32 {tt.divisibility = 0 : i32}) {",
    "expected one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, got 77": (
        '%z = "arith.cmpi"(%n, %n) <{predicate = 77 : i64}> : (i32, i32) -> i1'
    ),
    "tt.atomic_rmw does not do FADD to i32": (
        "%z = tt.atomic_rmw fadd, acq_rel, gpu, %x, %n, %t : (!tt.ptr<i32>, i32, i1) -> i32"
    ),
    "tt.atomic_rmw does not do FMAX to i32": (
        "%z = tt.atomic_rmw fmax, acq_rel, gpu, %x, %n, %t : (!tt.ptr<i32>, i32, i1) -> i32"
    ),
    "the region gives other types than the operands have": (
        TILE + '%q = "tt.reduce"(%r) <{axis = 1 : i32}> ({\n^bb0(%a: i32, %b: i32):\n tt.reduce.return %t : i1\n})'
        " : (tensor<4x2xi32>) -> tensor<4xi32>"
    ),
    "the region ends with tt.reduce.return, got tt.scan.return": (
        TILE + '%q = "tt.reduce"(%r) <{axis = 1 : i32}> ({\n^bb0(%a: i32, %b: i32):\n tt.scan.return %a : i32\n})'
        " : (tensor<4x2xi32>) -> tensor<4xi32>"
    ),
    "tt.expand_dims: axis 3 of a tile of rank 2": (
        TILE + "%q = tt.expand_dims %r {axis = 3 : i32} : tensor<4x2xi32> -> tensor<4x2x1xi32>"
    ),
    "tt.reshape from tensor<4x2xi32> to tensor<8xf32>": TILE + "%q = tt.reshape %r : tensor<4x2xi32> -> tensor<8xf32>",
    "only floats of 8 bits may differ": (
        "%a = arith.constant dense<1.0> : tensor<16x16xf16>\n%b = arith.constant dense<1.0> : tensor<16x16xbf16>\n"
        "%d = arith.constant dense<0.0> : tensor<16x16xf32>\n"
        "%z = tt.dot %a, %b, %d : tensor<16x16xf16> * tensor<16x16xbf16> -> tensor<16x16xf32>"
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_is_refused(message: str):
    text = f"module {{\n{BEGIN}{REFUSED[message]}\ntt.return\n}}\n}}\n"
    with pytest.raises(IRError) as caught:
        deuteron.compile(IRSource.from_text(text, "ttir"), target="cpu")
    assert message in caught.value.message


@pytest.mark.parametrize("target", ["cpu", "cuda:90"])
@pytest.mark.parametrize("type", ["tensor<4xf32>", "!tt.tensordesc<8x8xf32>", "!tt.ptr<tensor<4xf32>>"])
def test_what_no_launch_passes_is_refused(type: str, target: str):
    text = f"module {{\ntt.func public @k(%x: {type}) {{\ntt.return\n}}\n}}\n"
    with pytest.raises(CompilationError, match="2:1: error: parameter 'x' of kernel 'k' is a .*: a kernel takes"):
        deuteron.compile(IRSource.from_text(text, "ttir"), target=target)
