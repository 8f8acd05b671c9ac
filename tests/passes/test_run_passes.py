"""Passes run in order, each is verified, and a dump sees the module after each."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import UNKNOWN_LOC, ModuleOp
from xdsl.passes import ModulePass

from deuteron.errors import InternalError
from deuteron.passes import run_passes
from deuteron.passes.tile import tile_passes
from deuteron.passes.tile.eliminate_dead_code import EliminateDeadCode
from deuteron.passes.tile.fold import Fold

BODY = """
    %a = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %b = "arith.addi"(%a, %a) : (i32, i32) -> i32
    use %b : i32"""


@dataclass(frozen=True)
class LoseLocations(ModulePass):
    name = "lose-locations"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            inner.location = UNKNOWN_LOC


def test_dump_sees_the_module_after_each_pass(parse_kernel):
    dumped = []
    run_passes(parse_kernel("", BODY), [Fold(), EliminateDeadCode()], lambda name, text: dumped.append((name, text)))
    assert [name for name, _ in dumped] == ["fold", "eliminate-dead-code"]
    assert "%a = " in dumped[0][1] and "%a = " not in dumped[1][1]


def test_a_pass_that_breaks_the_module_is_named(parse_kernel):
    with pytest.raises(InternalError, match="has no location"):
        run_passes(parse_kernel("", BODY), [LoseLocations()])


def test_names_and_locations_survive_all_tile_passes(check):
    check(
        tile_passes(),
        "%x: tensor<4xf32>, %n: i32",
        """
        // CHECK: %total = "arith.addi"(%n, %n)
        // CHECK-SAME: loc("k.py":7:3)
        %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32 loc("k.py":6:3)
        %same = "arith.addi"(%n, %zero) : (i32, i32) -> i32 loc("k.py":6:9)
        %total = "arith.addi"(%same, %n) : (i32, i32) -> i32 loc("k.py":7:3)
        use %total : i32""",
        locations=True,
    )
