"""Which arguments are relied on to be apart: written down once of each two, whenever it is that something asks."""

from itertools import combinations

import numpy as np
from ir_text import parse_kernel
from processor_time import slowness, used

from deuteron.analysis.aliasing.apart import pairs_apart, take_apart
from deuteron.analysis.aliasing.points_to import Targets
from deuteron.ir.text import parse_module, print_module
from deuteron.ir.tt.apart import Pair


def kernel_of(count: int):
    module = parse_kernel(", ".join(f"%x{n}: !tt.ptr<f32>" for n in range(count)), "")
    func = next(iter(module.ops))
    return module, func, [Targets(frozenset({argument})) for argument in func.args]


def test_of_each_two_all_that_was_relied_on():
    module, func, (a, b, c) = kernel_of(3)
    n, m = func.args[1], func.args[2]
    take_apart(c, b, or_equal=True, equal=frozenset({(n, m)}))
    take_apart(a, b, or_equal=True)
    take_apart(b, c, or_equal=True)
    take_apart(b, a)
    expected = [Pair(0, 1, False), Pair(1, 2, True, ((1, 2),))]
    assert pairs_apart(func) == expected
    assert pairs_apart(next(iter(parse_module(print_module(module)).ops))) == expected


def test_a_kernel_with_a_hundred_arguments(rng: np.random.Generator):
    """With each pair all were written down again: 9 s for fifty arguments, eleven times as long for twice as many."""
    _, func, targets = kernel_of(100)
    begin = used()
    for pair in rng.permutation(list(combinations(targets, 2))):
        assert take_apart(*pair, or_equal=True)
    assert (used() - begin) / slowness() < 4
    assert [pair[:2] for pair in pairs_apart(func)] == list(combinations(range(100), 2))
