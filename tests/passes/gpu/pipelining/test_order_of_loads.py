"""In which order loads are done ahead follows from the kernel, not from where ops lie in memory."""

from __future__ import annotations

from types import SimpleNamespace

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import i32

from deuteron.passes.gpu.pipelining.choose_loads import ChosenLoads


def test_what_addresses_depend_on_is_loaded_in_the_order_of_the_loads():
    loads, sources = ([ConstantOp.from_int_and_width(number, i32) for number in range(40)] for _ in range(2))
    source_of = dict(zip(loads, sources, strict=True))
    addresses = SimpleNamespace(with_sources=lambda wanted: {source_of[load]: wanted[load] + 1 for load in wanted})
    chosen = ChosenLoads(addresses, copied=[SimpleNamespace(load=load) for load in loads])
    assert list(chosen.into_registers(2)) == sources
