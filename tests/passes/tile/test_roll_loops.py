"""Code that repeats itself becomes a loop that computes the same; what differs from iteration to iteration does not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from deuteron.interpreter import run_module
from deuteron.passes import run_passes
from deuteron.passes.tile.roll_loops import LEAST_ITERATIONS, RollLoops

COUNT = LEAST_ITERATIONS
PARAMETERS = "%x: i32, %n: i32"


def repeated(iteration: Callable[[int], str], count: int = COUNT) -> str:
    return "".join(iteration(number) for number in range(count))


def step(number: int, constant: Callable[[int], int], before: str | None = None) -> str:
    """%a<number + 1> = (%a<number> * %n) xor a constant."""
    before = before or (f"%a{number}" if number else "%x")
    return f"""
        %c{number} = "arith.constant"() <{{value = {constant(number)} : i32}}> : () -> i32
        %m{number} = "arith.muli"({before}, %n) : (i32, i32) -> i32
        %a{number + 1} = "arith.xori"(%m{number}, %c{number}) : (i32, i32) -> i32"""


def expected(x: int, n: int, constants: list[int]) -> int:
    for constant in constants:
        x = wrapped(x * n ^ constant)
    return x


def wrapped(x: int) -> int:
    return (x + 2**31) % 2**32 - 2**31


def rolled(parse_kernel, body: str, parameters: str = PARAMETERS):
    module = parse_kernel(parameters, body)
    run_passes(module, [RollLoops(least_cost=1)])
    return module, [op.name for op in module.walk()]


def test_a_chain(check):
    body = repeated(lambda number: step(number, lambda i: 2 * i + 3))
    checks = f"""
        // CHECK:      %[[END:.*]] = "arith.constant"() <{{value = {COUNT} : i32}}>
        // CHECK:      %[[R:.*]] = "scf.for"(%{{{{.*}}}}, %[[END]], %{{{{.*}}}}, %x)
        // CHECK-NEXT: ^bb0(%[[I:.*]]: i32, %[[X:.*]]: i32)
        // CHECK:      %[[P:.*]] = "arith.muli"(%[[I]],
        // CHECK:      %[[C:.*]] = "arith.addi"(%[[P]],
        // CHECK:      %[[M:.*]] = "arith.muli"(%[[X]], %n)
        // CHECK-NEXT: %[[A:.*]] = "arith.xori"(%[[M]], %[[C]])
        // CHECK-NEXT: "scf.yield"(%[[A]])
        // CHECK-NOT:  arith.xori
        // CHECK:      "tt.print"(%[[R]])"""
    check([RollLoops(least_cost=1)], PARAMETERS, checks + body + f"\nuse %a{COUNT} : i32")


@pytest.mark.parametrize(
    ("constant", "loops", "bodies"),
    [
        (lambda i: 7, 1, 1),
        (lambda i: -3 * i, 1, 1),
        (lambda i: i * i, 0, COUNT),
        (lambda i: i if i else 40, 0, COUNT),
    ],
    ids=["the same", "steps", "no steps", "another first"],
)
def test_constants(parse_kernel, constant, loops, bodies):
    body = repeated(lambda number: step(number, constant)) + store(f"%a{COUNT}")
    module, names = rolled(parse_kernel, body, PARAMETERS + ", %p: !tt.ptr<i32>")
    assert (names.count("scf.for"), names.count("arith.xori")) == (loops, bodies)
    out = np.zeros(1, np.int32)
    run_module(module, [5, 3, out], (1, 1, 1))
    assert out[0] == expected(5, 3, [constant(number) for number in range(COUNT)])


@pytest.mark.parametrize(
    ("constant", "loops"),
    [(lambda i: 3 - 2 * i, 1), (lambda i: i / 2, 0), (lambda i: 250 + i, 0), (lambda i: i or -0.0, 0)],
    ids=["whole numbers", "halves", "too large", "-0"],
)
def test_floats(parse_kernel, constant, loops):
    """Those that every float of 16 bits holds, so that no sum of integers is rounded."""
    body = repeated(
        lambda i: (
            f"""
        %c{i} = "arith.constant"() <{{value = {float(constant(i))} : f32}}> : () -> f32
        %a{i + 1} = "arith.divf"({f"%a{i}" if i else "%x"}, %c{i}) <{{fastmath = #arith.fastmath<none>}}>
                  : (f32, f32) -> f32"""
        )
    )
    _, names = rolled(parse_kernel, body + f"\nuse %a{COUNT} : f32", "%x: f32")
    assert (names.count("scf.for"), names.count("arith.divf")) == (loops, 1 if loops else COUNT)


def store(value: str) -> str:
    properties = "{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}"
    return f'\n"tt.store"(%p, {value}) <{properties}> : (!tt.ptr<i32>, i32) -> ()'


def test_what_the_last_iteration_gives_besides(parse_kernel):
    """It stays behind the loop."""
    body = repeated(lambda number: step(number, lambda i: i)) + store(f"%a{COUNT}") + store(f"%m{COUNT - 1}")
    module, names = rolled(parse_kernel, body, PARAMETERS + ", %p: !tt.ptr<i32>")
    assert (names.count("scf.for"), names.count("arith.xori")) == (1, 2)
    out = np.zeros(1, np.int32)
    run_module(module, [5, 3, out], (1, 1, 1))
    assert out[0] == wrapped(3 * expected(5, 3, list(range(COUNT - 1))))


@pytest.mark.parametrize(
    "extra",
    ["use %a3 : i32", f"use %a{COUNT - 1} : i32"],
    ids=["in the middle", "the one before the last"],
)
def test_what_is_used_of_others_is_in_no_loop(parse_kernel, extra):
    body = repeated(lambda number: step(number, lambda i: i)) + f"\nuse %a{COUNT} : i32\n{extra}"
    _, names = rolled(parse_kernel, body)
    assert names.count("scf.for") == 0


def test_what_depends_on_two_iterations_before_is_in_no_loop(parse_kernel):
    body = repeated(lambda number: step(number, lambda i: i, f"%a{number - 1}" if number > 1 else "%x"))
    _, names = rolled(parse_kernel, body + f"\nuse %a{COUNT} : i32")
    assert names.count("scf.for") == 0


def test_other_ops_between_are_in_no_loop(parse_kernel):
    body = repeated(lambda number: step(number, lambda i: i) + (f"\nuse %a{number} : i32" if number == 4 else ""))
    _, names = rolled(parse_kernel, body + f"\nuse %a{COUNT} : i32")
    assert names.count("scf.for") == 0


def test_loops_in_loops(parse_kernel):
    """Five ops eight times, and something else, all that eight times: two loops, four bodies at most."""

    def outer(number: int) -> str:
        inner = repeated(lambda i: step(number * COUNT + i, lambda j: j % COUNT))
        last = f"%a{(number + 1) * COUNT}"
        more = f'\n%s{number} = "arith.subi"({last}, %n) : (i32, i32) -> i32'
        return inner.replace(f"%a{number * COUNT},", f"%s{number - 1}," if number else "%x,") + more

    body = repeated(outer) + store(f"%s{COUNT - 1}")
    module, names = rolled(parse_kernel, body, PARAMETERS + ", %p: !tt.ptr<i32>")
    assert (names.count("scf.for"), names.count("arith.xori")) == (2, 1)
    out, value = np.zeros(1, np.int32), 5
    run_module(module, [5, 3, out], (1, 1, 1))
    for _ in range(COUNT):
        value = wrapped(expected(value, 3, list(range(COUNT))) - 3)
    assert out[0] == value


def test_a_constant_that_the_next_iteration_uses(parse_kernel):
    """It is counted, and carried."""

    def iteration(number: int) -> str:
        before = f"%c{number - 1}" if number else "%x"
        return (
            step(number, lambda i: 5 * i + 2)
            + f"""
        %s{number} = "arith.addi"({before}, %n) : (i32, i32) -> i32
        %b{number + 1} = "arith.xori"(%s{number}, {f"%b{number}" if number else "%x"}) : (i32, i32) -> i32"""
        )

    body = repeated(iteration) + store(f"%b{COUNT}")
    module, names = rolled(parse_kernel, body, PARAMETERS + ", %p: !tt.ptr<i32>")
    assert names.count("scf.for") == 1
    out, value = np.zeros(1, np.int32), 5
    run_module(module, [5, 3, out], (1, 1, 1))
    for added in [5, *(5 * i + 2 for i in range(COUNT - 1))]:
        value ^= added + 3
    assert out[0] == value


def test_what_is_short_stays(parse_kernel):
    module = parse_kernel(PARAMETERS, repeated(lambda number: step(number, lambda i: i)) + f"\nuse %a{COUNT} : i32")
    run_passes(module, [RollLoops()])
    assert "scf.for" not in [op.name for op in module.walk()]


@pytest.mark.parametrize(("least_saved", "loops"), [(9, 1), (10, 0)])
def test_few_iterations_become_a_loop_where_it_saves_much(parse_kernel, least_saved, loops):
    """Four of three ops each."""
    body = repeated(lambda number: step(number, lambda i: 2 * i + 1), 4) + store("%a4")
    module = parse_kernel(PARAMETERS + ", %p: !tt.ptr<i32>", body)
    run_passes(module, [RollLoops(least_cost=1, least_saved=least_saved)])
    assert [op.name for op in module.walk()].count("scf.for") == loops
    out = np.zeros(1, np.int32)
    run_module(module, [5, 3, out], (1, 1, 1))
    assert out[0] == expected(5, 3, [1, 3, 5, 7])
