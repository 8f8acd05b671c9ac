"""Loops and conditionals, run: how often, over which indices, with which values carried."""

from __future__ import annotations

import ctypes

import pytest

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.compile import emit_object, optimise
from deuteron.backend.llvm.loader import load_object
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import const


def run(build, *args: int) -> int:
    """The i64 that a function of i64 arguments returns, optimised or not."""
    module = Module("m")
    parameters = [("i64", f"a{i}") for i in range(len(args))]
    b = module.function("f", "i64", parameters, linkage="external")
    b.ret(build(b, *b.parameters))
    results = set()
    for level in (0, 3):
        loaded = load_object(emit_object(optimise(module.text(), "generic", opt_level=level), "generic"), ["f"])
        function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(args))(loaded.address("f"))
        results.add(function(*args))
    (result,) = results
    return result


def sum_of_range(b: Builder, start, stop, step):
    with b.loop(start, stop, step, carried=[const("i64", 0)]) as loop:
        loop.next(b.add(loop.carried[0], loop.index))
    return loop.results[0]


@pytest.mark.parametrize("bounds", [(0, 10, 1), (0, 10, 3), (5, 5, 1), (7, 3, 1), (-4, 4, 2), (0, 0, 1)])
@pytest.mark.parametrize("constant", [True, False])
def test_a_loop_is_pythons_range(bounds, constant):
    of_constants = lambda b: sum_of_range(b, *(const("i64", n) for n in bounds))  # noqa: E731
    assert (run(of_constants) if constant else run(sum_of_range, *bounds)) == sum(range(*bounds))


def test_loops_nest_and_carry_several_values():
    def build(b, n):
        zero, one = const("i64", 0), const("i64", 1)
        with b.loop(zero, n, one, carried=[zero, one]) as outer:
            with b.loop(zero, outer.index, one, carried=[outer.carried[0]]) as inner:
                inner.next(b.add(inner.carried[0], one))
            outer.next(inner.results[0], b.mul(outer.carried[1], const("i64", 2)))
        return b.add(outer.results[0], outer.results[1])

    assert run(build, 6) == 15 + 64


def test_a_carried_value_that_is_not_set_stays():
    def build(b, n):
        with b.loop(const("i64", 0), n, const("i64", 1), carried=[const("i64", 42)]) as loop:
            pass
        return loop.results[0]

    assert run(build, 3) == 42


@pytest.mark.parametrize("x", [3, -3])
def test_a_conditional_gives_the_value_of_the_way_taken(x):
    def build(b, x):
        with b.if_(b.icmp("sgt", x, const("i64", 0))) as branch:
            branch.yield_(b.mul(x, const("i64", 10)))
            branch.otherwise()
            branch.yield_(b.sub(const("i64", 0), x))
        return branch.results[0]

    assert run(build, x) == (30 if x > 0 else 3)


@pytest.mark.parametrize("x", [1, 0])
def test_a_conditional_without_otherwise_skips(x):
    def build(b, x):
        place = b.alloca("i64")
        b.store(const("i64", 5), place)
        with b.if_(b.icmp("ne", x, const("i64", 0))):
            b.store(const("i64", 6), place)
        return b.load("i64", place)

    assert run(build, x) == 5 + x


def test_conditionals_within_loops():
    def build(b, n):
        zero, one = const("i64", 0), const("i64", 1)
        with b.loop(zero, n, one, carried=[zero]) as loop:
            is_odd = b.icmp("eq", b.and_(loop.index, one), one)
            with b.if_(is_odd) as branch:
                branch.yield_(b.add(loop.carried[0], loop.index))
                branch.otherwise()
                branch.yield_(loop.carried[0])
            loop.next(branch.results[0])
        return loop.results[0]

    assert run(build, 10) == 1 + 3 + 5 + 7 + 9


def test_blocks_and_phis_by_hand():
    def build(b, x):
        entry, again, end = b.current_block, b.block("again"), b.block("end")
        b.br(again)
        b.position(again)
        n = b.phi("i64", [(x, entry)], hint="n")
        halved = b.lshr(n, const("i64", 1))
        b.add_incoming(n, halved, again)
        b.cond_br(b.icmp("ugt", halved, const("i64", 1)), again, end)
        b.position(end)
        return halved

    assert run(build, 100) == 1


def test_yielding_on_one_way_only_is_an_error():
    b = Module("m").function("f", "void", [("i1", "c")])
    with pytest.raises(ValueError, match="zip"), b.if_(b.parameters[0]) as branch:
        branch.yield_(const("i32", 1))


def test_phis_come_first_in_their_block():
    def build(b, x):
        entry, again, end = b.current_block, b.block("again"), b.block("end")
        b.br(again)
        b.position(again)
        doubled = b.add(x, x)
        n = b.phi("i64", [(x, entry), (doubled, again)])
        b.cond_br(b.icmp("slt", n, doubled), again, end)
        b.position(end)
        return n

    assert run(build, 3) == 6
