"""Rings in loops of every form, from tile IR in which the frontend would not write them: what is made of them, and that
it runs right whenever copies and dots happen.

Each kernel adds up dots of 64x64 tiles: `a`, `b`, `c` have eight of them, `n` and `step` say which.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from io import StringIO

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_text, emulate_compiled
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts
from ir_text import generic_asm

I32, HALF, SINGLE = "tensor<64x64xi32>", "tensor<64x64xf16>", "tensor<64x64xf32>"
POINTERS = {"f16": "tensor<64x64x!tt.ptr<f16>>", "f32": "tensor<64x64x!tt.ptr<f32>>"}
CACHE = "boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32"
PARAMETERS = {"%a": "!tt.ptr<f16>", "%b": "!tt.ptr<f16>", "%c": "!tt.ptr<f16>", "%out": "!tt.ptr<f32>"}
PARAMETERS |= {"%n": "i32", "%step": "i32"}

FRONT = f"""
    %r = "tt.make_range"() <{{start = 0 : i32, end = 64 : i32}}> : () -> tensor<64xi32>
    %column = "tt.expand_dims"(%r) <{{axis = 1 : i32}}> : (tensor<64xi32>) -> tensor<64x1xi32>
    %row = "tt.expand_dims"(%r) <{{axis = 0 : i32}}> : (tensor<64xi32>) -> tensor<1x64xi32>
    %extent = "arith.constant"() <{{value = dense<64> : tensor<64x1xi32>}}> : () -> tensor<64x1xi32>
    %rows = "arith.muli"(%column, %extent) : (tensor<64x1xi32>, tensor<64x1xi32>) -> tensor<64x1xi32>
    %is = "tt.broadcast"(%rows) : (tensor<64x1xi32>) -> {I32}
    %js = "tt.broadcast"(%row) : (tensor<1x64xi32>) -> {I32}
    %square = "arith.addi"(%is, %js) : ({I32}, {I32}) -> {I32}
    %zero = "arith.constant"() <{{value = dense<0.0> : {SINGLE}}}> : () -> {SINGLE}
    %c0 = "arith.constant"() <{{value = 0 : i32}}> : () -> i32
    %c1 = "arith.constant"() <{{value = 1 : i32}}> : () -> i32
    %c2 = "arith.constant"() <{{value = 2 : i32}}> : () -> i32
    %size = "arith.constant"() <{{value = 4096 : i32}}> : () -> i32"""


def pointers(result: str, base: str, element: str = "f16") -> str:
    return f"""
    {result}s = "tt.splat"({base}) : (!tt.ptr<{element}>) -> {POINTERS[element]}
    {result} = "tt.addptr"({result}s, %square) : ({POINTERS[element]}, {I32}) -> {POINTERS[element]}"""


def load(result: str, base: str, number: str) -> str:
    return f"""
    {result}o = "arith.muli"({number}, %size) : (i32, i32) -> i32
    {result}b = "tt.addptr"({base}, {result}o) : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
    {pointers(result + "p", result + "b")}
    {result} = "tt.load"({result}p) <{{{CACHE}, isVolatile = false, operandSegmentSizes = array<i32: 1, 0, 0>}}>
      : ({POINTERS["f16"]}) -> {HALF}"""


def dot(result: str, a: str, b: str, c: str) -> str:
    return f"""
    {result} = "tt.dot"({a}, {b}, {c}) <{{inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32}}>
      : ({HALF}, {HALF}, {SINGLE}) -> {SINGLE}"""


def narrow(result: str, tile: str) -> str:
    return f'{result} = "arith.truncf"({tile}) : ({SINGLE}) -> {HALF}'


def loop(
    result: str, body: str, *, enters: str = "%zero", gives: str = "%y", carried: str = "%x", **bounds: str
) -> str:
    """`bounds`: k, the name of the index; begin, end, step."""
    given = {"k": "%k", "begin": "%c0", "end": "%n", "step": "%c1"} | bounds
    return f"""
    {result} = "scf.for"({given["begin"]}, {given["end"]}, {given["step"]}, {enters}) ({{
    ^bb1({given["k"]}: i32, {carried}: {SINGLE}):
      {body}
      "scf.yield"({gives}) : ({SINGLE}) -> ()
    }}) {{tt.num_stages = 3 : i32}} : (i32, i32, i32, {SINGLE}) -> {SINGLE}"""


def kernel(body: str) -> str:
    types = ", ".join(PARAMETERS.values())
    aligned_to = ", ".join("{tt.divisibility = 16 : i32}" if "ptr" in type else "{}" for type in PARAMETERS.values())
    return f"""
"builtin.module"() ({{
  "tt.func"() <{{sym_name = "k", function_type = ({types}) -> (), sym_visibility = "public",
                arg_attrs = [{aligned_to}]}}> ({{
  ^bb0({", ".join(f"{name}: {type}" for name, type in PARAMETERS.items())}):
    {FRONT}
    {body}
    {pointers("%to", "%out", "f32")}
    "tt.store"(%to, %result) <{{{CACHE}}}> : ({POINTERS["f32"]}, {SINGLE}) -> ()
    "tt.return"() : () -> ()
  }}) : () -> ()
}}) : () -> ()"""


PRODUCT = load("%u", "%a", "%k") + load("%v", "%b", "%k") + dot("%y", "%u", "%v", "%x")
CHAIN = (
    load("%u", "%a", "%k")
    + load("%v", "%b", "%k")
    + dot("%s", "%u", "%v", "%zero")
    + "\n"
    + narrow("%p", "%s")
    + load("%w", "%c", "%k")
    + dot("%y", "%p", "%w", "%x")
)
TWO_DOTS = PRODUCT.replace("%y", "%d") + load("%w", "%c", "%k") + dot("%y", "%w", "%v", "%d")
NO_DOT = (
    load("%u", "%a", "%k")
    + f"""
      %wide = "arith.extf"(%u) : ({HALF}) -> {SINGLE}
      %y = "arith.addf"(%x, %wide) <{{fastmath = #arith.fastmath<none>}}> : ({SINGLE}, {SINGLE}) -> {SINGLE}"""
)
IN_BRANCH = f"""
    %runs = "arith.cmpi"(%step, %c1) <{{predicate = 4 : i64}}> : (i32, i32) -> i1
    %result = "scf.if"(%runs) ({{
      {loop("%inner", PRODUCT)}
      "scf.yield"(%inner) : ({SINGLE}) -> ()
    }}, {{
      "scf.yield"(%zero) : ({SINGLE}) -> ()
    }}) : (i1) -> {SINGLE}"""
INNER = PRODUCT.replace("%x", "%z").replace("%y", "%d")
NESTED = loop("%result", loop("%y", INNER, enters="%x", gives="%d", carried="%z"), k="%j", end="%step")

KERNELS: dict[str, tuple[str, str, Callable[..., np.ndarray]]] = {
    "nested": (
        NESTED,
        'CHECK: "scf.for"\nCHECK: "ttg.local_alloc"() {{.*}}x64x64xf16\nCHECK: "scf.for"\nCHECK: "ttg.ring_next"\n',
        lambda a, b, c, n, step: step * sum(a[k] @ b[k] for k in range(n)),
    ),
    "two rings": (
        loop("%result", CHAIN),
        'CHECK-COUNT-3: "ttg.local_alloc"() {{.*}}x64x64xf16\nCHECK: "scf.for"\nCHECK: "ttg.ring_next"\n',
        lambda a, b, c, n, step: sum(a[k] @ b[k] @ c[k] for k in range(n)),
    ),
    "in a branch": (
        IN_BRANCH,
        'CHECK: "scf.if"\nCHECK: "ttg.local_alloc"() {{.*}}x64x64xf16\nCHECK: "scf.for"\nCHECK: "ttg.ring_next"\n',
        lambda a, b, c, n, step: sum(a[k] @ b[k] for k in range(n)) if step > 1 else np.zeros((64, 64)),
    ),
    "a step that is not known": (
        loop("%result", PRODUCT, step="%step"),
        'CHECK: "arith.muli"(%step\nCHECK: "scf.for"\nCHECK: "ttg.ring_next"\n',
        lambda a, b, c, n, step: sum(a[k] @ b[k] for k in range(0, n, step)),
    ),
    "a buffer for two dots": (
        loop("%result", TWO_DOTS),
        'CHECK-COUNT-3: "ttg.local_alloc"() {{.*}}x64x64xf16\nCHECK: "scf.for"\nCHECK: "ttg.ring_next"\n',
        lambda a, b, c, n, step: sum((a[k] + c[k]) @ b[k] for k in range(n)),
    ),
    "no dot": (
        loop("%result", NO_DOT),
        'CHECK: "scf.for"\nCHECK: "ttg.ring_next"\nCHECK: "ttg.local_load"\nCHECK-NOT: "tt.load"\nCHECK: "scf.yield"\n',
        lambda a, b, c, n, step: sum(a[k] for k in range(n)),
    ),
}


def filecheck(text: str, checks: str) -> None:
    options = Options("<checks>")
    parser = Parser(options, StringIO(re.sub("^", "// ", checks, flags=re.M)), *pattern_for_opts(options))
    assert Matcher(options, FInput("<ir>", text), parser).run() == 0, text


@pytest.mark.share(2)
@pytest.mark.parametrize("target", ["cuda:80", "cuda:90", "specialised"])
@pytest.mark.parametrize("name", KERNELS)
def test_rings(rng: np.random.Generator, name: str, target: str):
    """No iteration, fewer than are filled ahead, more; at each of the moments at which copies may happen."""
    body, checks, expected = KERNELS[name]
    if target == "specialised":
        body = body.replace("{tt.num_stages", "{tt.warp_specialize, tt.num_stages")
        checks = 'CHECK: "ttg.warp_specialize"\n' if name != "no dot" else ""
    compiled = compile_text(kernel(body), target.replace("specialised", "cuda:90"), num_warps=4, num_stages=3)
    filecheck(generic_asm(compiled, "ttgir"), checks or 'CHECK-NOT: "ttg.warp_specialize"\n')
    a, b, c = (aligned(rng.integers(-1, 2, (8, 64, 64)).astype(np.float16)) for _ in range(3))
    for n, step, asynchronous in ((0, 2, "random"), (1, 2, "late"), (2, 1, "early"), (7, 2, "random"), (5, 3, "early")):
        out = aligned(np.full((64, 64), np.nan, np.float32))
        emulate_compiled(compiled, a, b, c, out, n, step, asynchronous=asynchronous)
        wide = (tiles.astype(np.float64) for tiles in (a, b, c))
        np.testing.assert_array_equal(out, expected(*wide, n, step), err_msg=f"n={n} step={step} {asynchronous}")


def test_chained_dots_read_a_ring_of_their_own():
    """It goes a step further than the other one: its slots are read in the next iteration."""
    text = generic_asm(compile_text(kernel(KERNELS["two rings"][0]), "cuda:90", num_warps=4, num_stages=3), "ttgir")
    filecheck(text, 'CHECK: "scf.if"\nCHECK: "scf.for"\nCHECK-COUNT-3: "ttg.ring_next"\nCHECK: "scf.yield"\n')
