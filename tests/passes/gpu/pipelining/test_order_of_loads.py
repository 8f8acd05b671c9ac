"""In which order loads are done ahead follows from the kernel, not from where ops lie in memory."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
from backend.cuda.launching import compile_for
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import i32

import deuteron
import deuteron.language as tl
from deuteron.passes.gpu.pipelining.choose_loads import ChosenLoads


@deuteron.jit
def three_rows(x, o, n, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros((N,), tl.float32)
    for k in tl.range(n, loop_unroll_factor=1):
        first = tl.load(x + k * 3 * N + i)
        second = tl.load(x + k * 3 * N + N + i)
        third = tl.load(x + k * 3 * N + 2 * N + i)
        total += tl.sum(first * second * third)
    tl.store(o + i, total)


def test_what_is_waited_for_first_is_loaded_first():
    """In the other order an iteration would wait for all of them before it added up the first."""
    x = np.zeros(1 << 10, np.float32)
    loop = compile_for("cuda:90", three_rows, x, x, 100, N=256).asm["ttgir"].split("scf.for")[1]
    assert re.findall(r"%(first|second|third)\w* = tt\.load", loop) == ["first", "second", "third"]


def test_what_addresses_depend_on_is_loaded_in_the_order_of_the_loads():
    loads, sources = ([ConstantOp.from_int_and_width(number, i32) for number in range(40)] for _ in range(2))
    source_of = dict(zip(loads, sources, strict=True))
    addresses = SimpleNamespace(with_sources=lambda wanted: {source_of[load]: wanted[load] + 1 for load in wanted})
    chosen = ChosenLoads(addresses, copied=[SimpleNamespace(load=load) for load in loads])
    assert list(chosen.into_registers(2)) == sources
