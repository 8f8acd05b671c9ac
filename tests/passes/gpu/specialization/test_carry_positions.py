"""Positions in rings, carried through loops and branches: the ops that use a slot get one after the other."""

from __future__ import annotations

import numpy as np
import pytest
from ir_text import parse_kernel, value_named
from xdsl.dialects import arith
from xdsl.ir import Operation

from deuteron.interpreter import run_module
from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.memory import AddPtrOp, LoadOp, StoreOp
from deuteron.ir.tt.shape import SplatOp
from deuteron.ir.types import i32
from deuteron.ir.verifier import verify_ir
from deuteron.passes.gpu.rings.ring import Position
from deuteron.passes.gpu.specialization.carry_positions import Positions


class Counting:
    """Stands for a ring whose positions are numbers that the interpreter counts."""

    def following(self, b: Builder, position: Position) -> Position:
        return tuple(
            b.value(arith.AddiOp(value, b.constant(step, i32))) for value, step in zip(position, (1, 10), strict=True)
        )


def user(name: str) -> str:
    """An op that uses a slot of the ring of that name."""
    return f'%{name} = "tt.splat"(%n) : (i32) -> tensor<1xi32>'


def loop(body: str, end: str) -> str:
    return f"""
    "scf.for"(%c0, {end}, %c1) ({{
    ^bb1(%k{end[1:]}: i32):
      {body}
      "scf.yield"() : () -> ()
    }}) : (i32, i32, i32) -> ()"""


def branch(body: str, other: str | None = None) -> str:
    otherwise = "" if other is None else f'{other}\n"scf.yield"() : () -> ()'
    return f"""
    "scf.if"(%runs) ({{
      {body}
      "scf.yield"() : () -> ()
    }}, {{ {otherwise} }}) : (i1) -> ()"""


PROGRAMS = {
    "in line": (user("a1") + "\n" + user("b1") + "\n" + user("a2"), lambda n, m, runs: "aba"),
    "loops": (
        loop(user("a1"), "%n") + loop(user("a2") + "\n" + user("b1"), "%m"),
        lambda n, m, runs: "a" * n + "ab" * m,
    ),
    "a loop in a loop": (
        loop(user("a1") + loop(user("b1") + "\n" + user("a2"), "%m") + user("b2"), "%n") + user("a3"),
        lambda n, m, runs: ("a" + "ba" * m + "b") * n + "a",
    ),
    "one branch": (
        loop(branch(user("a1")) + user("b1"), "%n") + user("a2"),
        lambda n, m, runs: ("a" * runs + "b") * n + "a",
    ),
    "both branches": (
        branch(loop(user("a1"), "%m") + user("b1"), user("a2")) + user("a3") + "\n" + user("b2"),
        lambda n, m, runs: ("a" * m + "b" if runs else "a") + "ab",
    ),
    "no ring in it": (
        user("a1") + loop(branch('%x = "arith.addi"(%n, %m) : (i32, i32) -> i32'), "%n") + user("a2"),
        lambda n, m, runs: "aa",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_after_the_other(name):
    body, order = PROGRAMS[name]
    for n, m, runs in ((0, 0, False), (1, 2, True), (3, 1, False), (2, 0, True)):
        np.testing.assert_array_equal(used(body, n, m, runs), [*expected(order(n, m, runs)), *[-1] * 40][:40])


def expected(order: str) -> list[int]:
    """Positions of ring a begin with (0, 0), those of b with (0, 1000)."""
    return [order[:place].count(ring) * 11 + 1000 * (ring == "b") for place, ring in enumerate(order)]


def used(body: str, n: int, m: int, runs: bool) -> np.ndarray:
    """Index and phase of the positions that were used, in order: `%at` counts them in memory."""
    constants = "".join(f'%c{n} = "arith.constant"() <{{value = {n} : i32}}> : () -> i32\n' for n in (0, 1))
    module = parse_kernel("%at: !tt.ptr<i32>, %out: !tt.ptr<i32>, %n: i32, %m: i32, %runs: i1", constants + body)
    func, rings = module.body.block.first_op, {"a": Counting(), "b": Counting()}
    users = {op: [rings[op.result.name_hint[0]]] for op in nested_ops(func, SplatOp)}
    at, out = value_named(module, "at"), value_named(module, "out")

    def visit(op: Operation, ring: Counting, position: Position) -> None:
        b = Builder.before(op)
        count = b.value(LoadOp(at))
        b.insert(StoreOp(b.value(AddPtrOp(out, count)), b.value(arith.AddiOp(*position))))
        b.insert(StoreOp(at, b.value(arith.AddiOp(count, b.constant(1, i32)))))

    def first(ring: Counting, b: Builder) -> Position:
        return b.constant(0, i32), b.constant(1000 * (ring is rings["b"]), i32)

    Positions(users, visit).begin(func.body.block, first)
    verify_ir(module, "positions")
    found, place = np.full(40, -1, np.int32), np.zeros(1, np.int32)
    run_module(module, [place, found, n, m, runs], (1, 1, 1))
    return found
