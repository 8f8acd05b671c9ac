"""Which stores wait for the elements of a load, one by one or for all: along chains of any length, through loops."""

import pytest
from ir_text import parse_kernel

import deuteron
import deuteron.language as tl
from deuteron.analysis.aliasing.element_order import ElementOrder
from deuteron.analysis.aliasing.program_order import writers_in
from deuteron.frontend import lower_function
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.memory import LoadOp


@deuteron.jit
def elementwise(a, b, c, n):
    i = tl.arange(0, 16)
    x = tl.load(a + i)
    tl.store(b + i, x * 2.0)
    tl.store(b + i, tl.sum(x) + i)
    tl.store(b + i, tl.flip(x, 0))
    tl.store(b + i, n + i)


@deuteron.jit
def loops(a, b, c, n):
    """What is loaded before, added up in the loop, and used in each iteration."""
    i = tl.arange(0, 16)
    x = tl.load(a + i)
    total = x
    count = tl.zeros([16], tl.float32)
    for k in range(n):
        tl.store(b + i, total)
        total += k
        count = x
    tl.store(b + i, total)
    tl.store(b + i, count)


@deuteron.jit
def of_each_iteration(a, b, c, n):
    i = tl.arange(0, 16)
    total = tl.zeros([16], tl.float32)
    last = total
    for _ in range(n):
        x = tl.load(a + i)
        total += x
        last = x
    tl.store(b + i, total)
    tl.store(b + i, last)


@deuteron.jit
def branches(a, b, c, n):
    i = tl.arange(0, 16)
    x = tl.load(a + i)
    if n > 3:
        y, z = x, x
    else:
        y, z = x + 1.0, tl.zeros([16], tl.float32)
    tl.store(b + i, y)
    tl.store(b + i, z)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (elementwise, [True, True, False, False]),
        (loops, [True, True, False]),
        (of_each_iteration, [True, False]),
        (branches, [True, False]),
    ],
)
def test_what_waits(kernel, expected):
    func = next(iter(lower_function(kernel, dict.fromkeys("abc", "*fp32") | {"n": "i32"}, {}, {}).ops))
    (load,) = nested_ops(func, LoadOp)
    waits = ElementOrder(func).waits_for_each(load)
    assert [waits(writer) for writer in writers_in(func)] == expected


def test_a_chain_of_many_ops():
    """Longer than Python's stack is deep."""
    count = 3000
    adds = "\n".join(f'%x{n + 1} = "arith.addf"(%x{n}, %x0) : (f32, f32) -> f32' for n in range(count))
    of_memory = "cache = 1 : i32, evict = 1 : i32"
    of_load = f"operandSegmentSizes = array<i32: 1, 0, 0>, boundaryCheck = array<i32>, {of_memory}, isVolatile = false"
    module = parse_kernel(
        "%p: !tt.ptr<f32>",
        f"""
        %x0 = "tt.load"(%p) <{{{of_load}}}> : (!tt.ptr<f32>) -> f32
        {adds}
        "tt.store"(%p, %x{count}) <{{boundaryCheck = array<i32>, {of_memory}}}> : (!tt.ptr<f32>, f32) -> ()
        """,
    )
    func = next(iter(module.ops))
    (load,) = nested_ops(func, LoadOp)
    (store,) = writers_in(func)
    assert ElementOrder(func).waits_for_each(load)(store)
