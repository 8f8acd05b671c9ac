"""Which stores a program may do before and after a load, and which arguments a load relies on being apart from."""

import pytest

import deuteron
import deuteron.language as tl
from deuteron.analysis.aliasing.apart import pairs_apart
from deuteron.analysis.aliasing.program_order import ProgramOrder, Writers, writers_in
from deuteron.frontend import lower_function
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.memory import LoadOp


@deuteron.jit
def branches(a, b, c, d, n):
    tl.store(b, 1.0)
    if n > 3:
        x = tl.load(a)
        tl.store(c, x)
    else:
        tl.store(d, 2.0)
    tl.store(b + 1, 3.0)


@deuteron.jit
def branches_in_a_loop(a, b, c, d, n):
    for i in range(n):
        if i > 3:
            tl.store(c, tl.load(a))
        else:
            tl.store(d, 2.0)
    tl.store(b, 1.0)


def function(kernel):
    signature = dict.fromkeys("abcd", "*fp32") | {"n": "i32"}
    func = next(iter(lower_function(kernel, signature, {}, {}).ops))
    (load,) = nested_ops(func, LoadOp)
    return func, load


@pytest.mark.parametrize(
    ("kernel", "before", "after"), [(branches, [0], [1, 3]), (branches_in_a_loop, [0, 1], [0, 1, 2])]
)
def test_what_a_program_does_around_a_load(kernel, before: list[int], after: list[int]):
    func, load = function(kernel)
    writers = writers_in(func)
    order = ProgramOrder(func, writers)
    assert [writers.index(op) for op in order.before(load)] == before
    assert [writers.index(op) for op in order.after(load)] == after


def test_what_is_new_may_be_anywhere():
    func, load = function(branches)
    order = ProgramOrder(func, writers_in(func))
    clone = load.clone()
    assert order.before(clone) == order.after(clone) == tuple(writers_in(func))


@pytest.mark.parametrize(("kernel", "others"), [(branches, {1}), (branches_in_a_loop, {1, 2, 3})])
def test_a_load_relies_on_nothing_that_the_other_branch_stores(kernel, others: set[int]):
    """Nor on what waits for it, unless that comes before it as well."""
    func, load = function(kernel)
    assert Writers(func).are_apart(load)
    assert {pair.second for pair in pairs_apart(func)} == others
