"""Passes run in order, each is verified, and a dump sees the module after each."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import UNKNOWN_LOC, IntegerAttr, ModuleOp, i64
from xdsl.passes import ModulePass

from deuteron.backend.stage import Unit
from deuteron.backend.ttir import run_pipeline
from deuteron.errors import InternalError
from deuteron.options import Target
from deuteron.passes import ALL_PASSES, run_passes
from deuteron.passes.rewrite import erase
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


@dataclass(frozen=True)
class LoseTerminators(ModulePass):
    name = "lose-terminators"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if inner.name == "tt.return":
                erase(inner)


@pytest.mark.parametrize(("verifies_each", "after"), [(True, "lose-terminators"), (False, "VERIFY_EACH=1 tells")])
def test_what_all_passes_make_is_verified_at_least_at_the_end(parse_kernel, verifies_each, after):
    with pytest.raises(InternalError, match=f"does not verify after .*{after}"):
        passes = [Fold(), LoseTerminators(), EliminateDeadCode()]
        run_passes(parse_kernel("", BODY), passes, verifies_each=verifies_each)


@dataclass(frozen=True)
class MoveFirst(ModulePass):
    """Moves a sum before its operands."""

    name = "move-first"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if inner.name == "arith.addi":
                block = inner.parent
                inner.detach()
                block.insert_op_before(inner, block.first_op)


def test_an_op_that_was_moved_before_its_operands_is_found(parse_kernel):
    with pytest.raises(InternalError, match="after move-first: arith.addi uses a value before it is computed"):
        run_passes(parse_kernel("", BODY), [MoveFirst(), EliminateDeadCode()])


@pytest.mark.parametrize("asked", [True, False])
def test_a_compile_verifies_each_pass_where_it_is_asked_to(parse_kernel, monkeypatch, asked):
    monkeypatch.setenv("DEUTERON_VERIFY_EACH", "1" if asked else "0")
    after = []
    monkeypatch.setattr("deuteron.ir.verifier.verify_ir", lambda module, name, ops: after.append((name, ops is None)))
    run_pipeline(parse_kernel("", BODY), Unit("k", "k", Target("cpu", ""), None), [Fold(), EliminateDeadCode()])
    assert after == ([("fold", False), ("eliminate-dead-code", False)] if asked else [(ALL_PASSES, True)])


@dataclass(frozen=True)
class YieldAnotherType(ModulePass):
    name = "yield-another-type"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if inner.name == "scf.yield":
                inner.operands[0] = inner.parent.args[0]


@dataclass(frozen=True)
class ChangeTypes(ModulePass):
    """Of a result or an argument of a block, and of what makes it, but not of who uses it."""

    name = "change-types"
    of: str

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if inner.name == self.of:
                value = inner.regions[0].block.args[1] if inner.regions else inner.results[0]
                value._type = i64
                if not inner.regions:
                    inner.properties["value"] = IntegerAttr(1, i64)


LOOP = """
    %a = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %x = "arith.constant"() <{value = 1.0 : f32}> : () -> f32
    %r = "scf.for"(%a, %a, %a, %x) ({
    ^bb0(%i: i32, %s: f32):
      "scf.yield"(%s) : (f32) -> ()
    }) : (i32, i32, i32, f32) -> f32"""


@pytest.mark.parametrize("of", ["arith.constant", "scf.for"])
def test_who_uses_a_value_is_verified_where_its_type_changes(parse_kernel, of):
    looked_at = []
    body = """
    %a = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %r = "scf.for"(%n, %n, %n, %n) ({
    ^bb0(%i: i32, %s: i32):
      %b = "arith.addi"(%s, %n) : (i32, i32) -> i32
      %c = "arith.addi"(%n, %a) : (i32, i32) -> i32
      %d = "arith.addi"(%b, %c) : (i32, i32) -> i32
      "scf.yield"(%d) : (i32) -> ()
    }) : (i32, i32, i32, i32) -> i32"""
    module = parse_kernel("%n: i32", body)
    run_passes(module, [ChangeTypes(of)], verify=lambda module, after, ops: looked_at.extend(ops))
    users = {"arith.constant": "%c", "scf.for": "%b"}
    changed = [op.results[0].name_hint for op in looked_at if op.name == "arith.addi"]
    assert changed == [users[of].removeprefix("%")]


@pytest.mark.parametrize("broken_by", [LoseTerminators(), YieldAnotherType()])
def test_what_a_pass_changed_is_verified_where_it_shows(parse_kernel, broken_by):
    """Neither the op before the terminator nor the loop has changed itself."""
    with pytest.raises(InternalError, match=f"after {broken_by.name}"):
        run_passes(parse_kernel("", LOOP), [broken_by])


def test_only_what_changed_is_verified_again(parse_kernel):
    looked_at = []
    run_passes(
        parse_kernel("", BODY),
        [Fold(), Fold(), EliminateDeadCode(), EliminateDeadCode()],
        verify=lambda module, after, ops: looked_at.append((after, [op.name for op in ops])),
    )
    (first, folded), (second, _) = looked_at
    assert (first, second) == ("fold", "eliminate-dead-code") and "arith.constant" in folded


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
