"""TMA copies in IR: text, and what the verifier objects to."""

from __future__ import annotations

import pytest
from ir_text import generic_text

from deuteron.errors import IRError
from deuteron.ir.text import parse_module
from deuteron.layout.linear import LinearLayout
from deuteron.layout.shared import mma_shared, row_major

BAR = "!ttg.memdesc<1xi64, #ttg.shared_linear<{offset = [], block = []}, alignment = 8>, #ttg.shared_memory, mutable>"
DESC = "!tt.tensordesc<64x64xf16>"


def memory(layout: LinearLayout) -> str:
    bases = "{" + ", ".join(f"{name} = {[list(b) for b in vectors]}" for name, vectors in layout.bases) + "}"
    shape = "x".join(map(str, layout.shape))
    return f"!ttg.memdesc<{shape}xf16, #ttg.shared_linear<{bases}, alignment = 1024>, #ttg.shared_memory, mutable>"


SWIZZLED, COLUMNS, SMALL = (
    memory(layout) for layout in (mma_shared((64, 64), 1, 2), mma_shared((64, 64), 0, 2), row_major((32, 64)))
)


def module(op: str, buffer: str = SWIZZLED) -> str:
    return f"""
"builtin.module"() ({{
  "tt.func"() <{{sym_name = "k", function_type = (!tt.ptr<f16>, i32, i64, i1) -> (), sym_visibility = "public"}}> ({{
  ^bb0(%p: !tt.ptr<f16>, %i: i32, %s: i64, %c: i1):
    %one = "arith.constant"() <{{value = 1 : i64}}> : () -> i64
    %d = "tt.make_tensor_descriptor"(%p, %i, %i, %s, %one) <{{operandSegmentSizes = array<i32: 1, 2, 2>}}>
        : (!tt.ptr<f16>, i32, i32, i64, i64) -> {DESC}
    %bar = "ttg.local_alloc"() : () -> {BAR}
    %m = "ttg.local_alloc"() : () -> {buffer}
    {op}
    "tt.return"() : () -> ()
  }}) : () -> ()
}}) : () -> ()"""


def load(buffer: str = SWIZZLED, coordinates: str = "%i, %i", types: str = "i32, i32", barrier: str = "%bar") -> str:
    kind = BAR if barrier == "%bar" else buffer
    return (
        f'"ttng.async_tma_copy_global_to_local"(%d, {coordinates}, {barrier}, %m, %c)'
        f" : ({DESC}, {types}, {kind}, {buffer}, i1) -> ()"
    )


def store(name: str, properties: str = "") -> str:
    return f'"ttng.{name}"(%d, %i, %i, %m){properties} : ({DESC}, i32, i32, {SWIZZLED}) -> ()'


@pytest.mark.parametrize(
    "op",
    [
        load(),
        store("async_tma_copy_local_to_global"),
        store("async_tma_reduce", " <{kind = 1 : i32}>"),
        '"ttng.async_tma_store_wait"() <{pendings = 0 : i32}> : () -> ()',
        '"ttng.async_tma_store_wait"() <{pendings = 1 : i32, read_only}> : () -> ()',
    ],
)
def test_round_trip(op: str):
    text = generic_text(parse_module(module(op)))
    assert op.split("(")[0] in text
    assert generic_text(parse_module(text)) == text


@pytest.mark.parametrize(
    ("op", "buffer", "message"),
    [
        (load(COLUMNS), COLUMNS, "no copy of TMA makes the layout"),
        (load(SMALL), SMALL, "does not fit into"),
        (load(coordinates="%i", types="i32"), SWIZZLED, "has 1 coordinates"),
        (load(barrier="%m"), SWIZZLED, "needs a barrier"),
        ('"ttng.async_tma_store_wait"() <{pendings = -1 : i32}> : () -> ()', SWIZZLED, "leaves 0 or more stores"),
    ],
)
def test_errors(op: str, buffer: str, message: str):
    with pytest.raises(IRError, match=message):
        parse_module(module(op, buffer))
