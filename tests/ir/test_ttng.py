"""Dots by wgmma, dots of slices and views of shared memory in IR: text, and what the verifiers object to."""

from __future__ import annotations

import pytest
from ir_text import generic_text

from deuteron.errors import InternalError, IRError
from deuteron.ir.text import parse_module
from deuteron.ir.verifier import verify_ttgir
from deuteron.layout.distributed import mma_v2_accumulator
from deuteron.layout.linear import LinearLayout
from deuteron.layout.shared import mma_shared, row_major
from deuteron.layout.wgmma import mma_v3_accumulator


def bases(layout: LinearLayout) -> str:
    return "{" + ", ".join(f"{name} = {[list(b) for b in vectors]}" for name, vectors in layout.bases) + "}"


def memory(shape: tuple[int, int], layout: LinearLayout) -> str:
    encoding = f"#ttg.shared_linear<{bases(layout)}, alignment = 1024>"
    return f"!ttg.memdesc<{shape[0]}x{shape[1]}xf16, {encoding}, #ttg.shared_memory, mutable>"


def tile(layout: LinearLayout) -> str:
    return f"tensor<64x64xf32, #ttg.linear<{bases(layout)}>>"


ROWS = memory((64, 64), mma_shared((64, 64), 1, 2))
COLUMNS = memory((64, 64), mma_shared((64, 64), 0, 2))
PLAIN = memory((64, 64), row_major((64, 64)))
ACCUMULATOR, OTHER = tile(mma_v3_accumulator([64, 64], [4, 1])), tile(mma_v2_accumulator([64, 64], [2, 2]))
FLAGS = "inputPrecision = 0 : i32, isAsync = true, maxNumImpreciseAcc = 0 : i32"


def module(body: str) -> str:
    return f"""
"builtin.module"() ({{
  "tt.func"() <{{sym_name = "k", function_type = () -> (), sym_visibility = "public"}}> ({{
    {body}
    "tt.return"() : () -> ()
  }}) : () -> ()
}}) {{"ttg.num-warps" = 4 : i32}} : () -> ()
"""


def dot(b: str = ROWS, c: str = ACCUMULATOR, result: str = ACCUMULATOR, pendings: int = 0) -> str:
    return module(f"""
    %c = "arith.constant"() <{{value = dense<0.0> : {c}}}> : () -> {c}
    %a = "ttg.local_alloc"() : () -> {ROWS}
    %b = "ttg.local_alloc"() : () -> {b}
    "ttng.fence_async_shared"() <{{bCluster = false}}> : () -> ()
    %d = "ttng.warp_group_dot"(%a, %b, %c) <{{{FLAGS}}}> : ({ROWS}, {b}, {c}) -> {result}
    %e = "ttng.warp_group_dot_wait"(%d) <{{pendings = {pendings} : i32}}> : ({result}) -> {result}""")


def transposed(order: str, result: str) -> str:
    return module(f"""
    %a = "ttg.local_alloc"() : () -> {ROWS}
    %t = "ttg.memdesc_trans"(%a) <{{order = array<i32: {order}>}}> : ({ROWS}) -> {result}""")


def part(offsets: str, shape: tuple[int, int] = (64, 16), layout: LinearLayout | None = None) -> str:
    result = memory(shape, layout or mma_shared((64, 64), 1, 2))
    return module(f"""
    %a = "ttg.local_alloc"() : () -> {ROWS}
    %p = "ttg.memdesc_subslice"(%a) <{{offsets = array<i32: {offsets}>}}> : ({ROWS}) -> {result}""")


def numbered(axis: int, shape: tuple[int, int]) -> str:
    result = memory(shape, mma_shared((64, 64), 1, 2))
    return module(f"""
    %a = "ttg.local_alloc"() : () -> {ROWS}
    %i = "arith.constant"() <{{value = 1 : i32}}> : () -> i32
    %p = "ttg.memdesc_slice"(%a, %i) <{{axis = {axis} : i32}}> : ({ROWS}, i32) -> {result}""")


def sliced(depth: int, b: str = ROWS, result: str = OTHER) -> str:
    return module(f"""
    %c = "arith.constant"() <{{value = dense<0.0> : {OTHER}}}> : () -> {OTHER}
    %a = "ttg.local_alloc"() : () -> {ROWS}
    %b = "ttg.local_alloc"() : () -> {b}
    %d = "ttg.sliced_dot"(%a, %b, %c) <{{depth = {depth} : i32, inputPrecision = 2 : i32}}>
       : ({ROWS}, {b}, {OTHER}) -> {result}""")


@pytest.mark.parametrize(
    "text",
    [
        dot(),
        dot(COLUMNS),
        transposed("1, 0", COLUMNS),
        transposed("0, 1", ROWS),
        part("0, 48"),
        sliced(8),
        sliced(64),
        numbered(1, (64, 16)),
    ],
)
def test_round_trip(text):
    parsed = parse_module(text)
    verify_ttgir(parsed, "parsing")
    printed = generic_text(parsed)
    assert generic_text(parse_module(printed)) == printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (dot(memory((32, 64), mma_shared((32, 64), 1, 2))), "do not go together"),
        (dot(result=OTHER), "the result is"),
        (dot(pendings=-1), "at least 0, got -1"),
        (sliced(8, memory((32, 64), mma_shared((32, 64), 1, 2))), "do not go together"),
        (sliced(8, result=ACCUMULATOR), "the result is"),
        (sliced(12), "power of two up to 64, got 12"),
        (sliced(128), "power of two up to 64, got 128"),
        (transposed("0, 0", ROWS), "is no permutation"),
        (transposed("1, 0", ROWS), "ttg.memdesc_trans of"),
        (part("0, 8"), "16 elements from 8 on are no aligned part of 64"),
        (part("0, 64"), "no aligned part"),
        (part("0"), "does not give"),
        (numbered(0, (64, 16)), "ttg.memdesc_slice of"),
        (numbered(1, (32, 16)), "ttg.memdesc_slice of"),
        (numbered(2, (64, 16)), "along 2 does not give"),
        (part("0, 0", layout=row_major((64, 64))), "ttg.memdesc_subslice of"),
    ],
)
def test_errors(text, message):
    with pytest.raises(IRError, match=message):
        parse_module(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [(dot(PLAIN), "no descriptor of wgmma"), (dot(c=OTHER, result=OTHER), "not as wgmma has it")],
)
def test_layouts(text, message):
    with pytest.raises(InternalError, match=message):
        verify_ttgir(parse_module(text), "parsing")
