"""Which iterations come, as is said before a loop and iterations ahead in it: at both ends of the index's type."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from ir_text import parse_kernel, value_named
from xdsl.dialects import scf
from xdsl.ir import SSAValue

from deuteron.interpreter import run_module
from deuteron.ir.arith import CmpIOp
from deuteron.ir.builder import Builder
from deuteron.ir.tt.memory import AddPtrOp, StoreOp
from deuteron.ir.types import i1, i32
from deuteron.passes.gpu.pipelining.run_ahead import Ahead, Iteration, lead_of, without_first

MOST = 5  # iterations of a loop


def kernel(type: str, known: dict[str, int]):
    """A loop that counts its iterations, from b to e in steps of s; what is known of these is constants."""
    constants = "\n".join(
        f'%{n} = "arith.constant"() <{{value = {v} : {type}}}> : () -> {type}' for n, v in known.items()
    )
    given = [f"%{name}: {type}" for name in "bes" if name not in known]
    return parse_kernel(
        ", ".join(["%out: !tt.ptr<i1>", *given]),
        f"""
        {constants}
        %c0 = "arith.constant"() <{{value = 0 : i32}}> : () -> i32
        %c1 = "arith.constant"() <{{value = 1 : i32}}> : () -> i32
        %count = "scf.for"(%b, %e, %s, %c0) ({{
        ^bb1(%k: {type}, %j: i32):
          %next = "arith.addi"(%j, %c1) : (i32, i32) -> i32
          "scf.yield"(%next) : (i32) -> ()
        }}) : ({type}, {type}, {type}, i32) -> i32""",
    )


def store(b: Builder, out: SSAValue, place: SSAValue, value: SSAValue) -> None:
    b.insert(StoreOp(b.value(AddPtrOp(out, place)), value))


@st.composite
def bounds(draw: st.DrawFn, bits: int) -> tuple[int, int, int]:
    """Begin, end and step of a loop of few iterations, or none."""
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    near = [st.integers(max(end - 20, low), min(end + 20, high)) for end in (low, 0, high)]
    b, e = (draw(st.one_of(*near, st.integers(low, high))) for _ in range(2))
    s = draw(st.one_of(st.integers(1, 40), st.integers(1, high), st.just(high)))
    assume(iterations(b, e, s) <= MOST)
    return b, e, s


def iterations(b: int, e: int, s: int) -> int:
    return max(-(-(e - b) // s), 0)


def check(bits: int, numbers: tuple[int, int, int], known: str, distance: int) -> None:
    names = dict(zip("bes", numbers, strict=True))
    module = kernel(f"i{bits}", {name: number for name, number in names.items() if name in known})
    (loop,) = (op for op in module.walk() if isinstance(op, scf.ForOp))
    out, b, inside = value_named(module, "out"), Builder.before(loop), Builder.before(loop.body.block.first_op)
    for number in range(4):
        runs = Iteration.of(b, loop, number).runs
        store(b, out, b.constant(number, i32), b.constant(True, i1) if runs is None else runs)
    store(b, out, b.constant(4, i32), b.value(CmpIOp(*without_first(b, loop), "slt")))
    _, runs = lead_of(loop, b, inside, distance)
    store(inside, inside.value(AddPtrOp(out, inside.constant(5, i32))), loop.body.block.args[1], runs)
    found, count = np.zeros(5 + MOST, bool), iterations(*numbers)
    run_module(module, [found, *(number for name, number in names.items() if name not in known)], (1, 1, 1))
    assert list(found[:5]) == [*(number < count for number in range(4)), count > 1]
    assert list(found[5 : 5 + count]) == [number + distance < count for number in range(count)]


@pytest.mark.parametrize("bits", [32, 64])
@settings(deadline=None)
@given(st.data(), st.sampled_from(["", "b", "s", "e", "bs", "be", "es", "bes"]), st.integers(0, 4))
def test_what_comes(bits, data, known, distance):
    check(bits, data.draw(bounds(bits)), known, distance)


def test_nothing_comes_beyond_the_largest_number():
    """It was said to, of a loop without iterations: its end less the step is beyond the smallest."""
    check(32, (2**31 - 5, -(2**31) + 4, 5), "bs", 1)


def test_what_is_carried_from_one_value_to_the_next_is_there_already():
    """Not where it goes around: what an iteration computes comes from none before."""
    module = parse_kernel(
        "%b: i32, %e: i32, %x: i32",
        """
        %c1 = "arith.constant"() <{value = 1 : i32}> : () -> i32
        %r:4 = "scf.for"(%b, %e, %c1, %x, %b, %e, %x) ({
        ^bb1(%k: i32, %first: i32, %second: i32, %third: i32, %fourth: i32):
          %sum = "arith.addi"(%first, %second) : (i32, i32) -> i32
          "scf.yield"(%second, %third, %first, %sum) : (i32, i32, i32, i32) -> ()
        }) : (i32, i32, i32, i32, i32, i32, i32) -> (i32, i32, i32, i32)""",
    )
    (loop,) = (op for op in module.walk() if isinstance(op, scf.ForOp))
    assert Ahead(loop, [loop.body.block.args[1]], 2).carried == []
    assert Ahead(loop, [loop.body.block.args[1]], 7).carried == []
    assert Ahead(loop, [loop.body.block.args[4]], 1).carried == [3]
