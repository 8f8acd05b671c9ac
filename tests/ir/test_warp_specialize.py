"""Specialised warps in IR: text, and what the verifiers object to."""

from __future__ import annotations

import pytest
from ir_text import generic_text

from deuteron.errors import InternalError, IRError
from deuteron.ir.text import parse_module
from deuteron.ir.ttg.warp_specialize import WarpSpecializeOp
from deuteron.ir.verifier import verify_ttgir


def layout(num_warps: int) -> str:
    bits = num_warps.bit_length() - 1
    bases = [[1 << bit] for bit in range(10)]
    return (
        f"#ttg.linear<{{register = {bases[5 + bits :]}, lane = {bases[:5]}, warp = {bases[5 : 5 + bits]}, block = []}}>"
    )


def tile(num_warps: int) -> str:
    type = f"tensor<1024xi32, {layout(num_warps)}>"
    return f'%t = "tt.make_range"() <{{start = 0 : i32, end = 1024 : i32}}> : () -> {type}'


def specialized(default: str, partition: str, properties: str = "partitionNumWarps = array<i32: 4>") -> str:
    return f"""
"builtin.module"() ({{
  "tt.func"() <{{sym_name = "k", function_type = () -> (), sym_visibility = "public"}}> ({{
    "ttg.warp_specialize"() <{{{properties}}}> ({{
      {default}
      "ttg.warp_yield"() : () -> ()
    }}, {{
      {partition}
      "ttg.warp_return"() : () -> ()
    }}) : () -> ()
    "tt.return"() : () -> ()
  }}) : () -> ()
}}) {{"ttg.num-warps" = 8 : i32}} : () -> ()
"""


@pytest.mark.parametrize("registers", ["", ", requestedRegisters = array<i32: 40>"])
def test_round_trip(registers):
    text = specialized(tile(8), tile(4).replace("%t", "%u"), f"partitionNumWarps = array<i32: 4>{registers}")
    parsed = parse_module(text)
    verify_ttgir(parsed, "parsing")
    printed = generic_text(parsed)
    assert generic_text(parse_module(printed)) == printed


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ("partitionNumWarps = array<i32: 4, 4>", "1 partitions, and"),
        ("partitionNumWarps = array<i32: 3>", "powers of two"),
        ("partitionNumWarps = array<i32: 4>, requestedRegisters = array<i32: 20>", "multiples of 8 from 24"),
        ("partitionNumWarps = array<i32: 4>, requestedRegisters = array<i32: 24, 24>", "registers for them"),
    ],
)
def test_errors(properties, message):
    with pytest.raises(IRError, match=message):
        parse_module(specialized("", "", properties))


def test_regions_end_as_they_should():
    text = specialized("", "")
    with pytest.raises(IRError, match="ends with ttg.warp_yield"):
        parse_module(text.replace("ttg.warp_yield", "ttg.warp_return"))


def test_layouts_are_for_the_warps_of_their_region():
    with pytest.raises(InternalError, match="is not for 4 warps"):
        verify_ttgir(parse_module(specialized(tile(8), tile(8).replace("%t", "%u"))), "parsing")


@pytest.mark.parametrize(("num_warps", "launched"), [(1, 4), (2, 4), (4, 4), (8, 8)])
def test_whole_warpgroups_are_launched(num_warps, launched):
    module = parse_module(specialized("", "", f"partitionNumWarps = array<i32: {num_warps}>"))
    (op,) = (op for op in module.walk() if isinstance(op, WarpSpecializeOp))
    assert op.num_warps == (num_warps,) and op.launched_warps == (launched,)
