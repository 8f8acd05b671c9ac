"""Registers that follow from those of neighbours: whatever the layout, what is counted up is what each thread holds."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl
from deuteron.analysis.axis.axis_info import AxisInfo
from deuteron.backend.gpu.fragment import Fragment
from deuteron.backend.gpu.neighbours import count_up, counted_along, first_of_equals
from deuteron.backend.llvm.types import Value, const
from deuteron.compiler.source import ASTSource
from deuteron.layout.linear import LANE, REGISTER, LinearLayout

SHAPE = (8, 16)


class Numbers:
    """A builder that computes with constants."""

    def add(self, x: Value, y: Value) -> Value:
        return const(x.type, int(x.text) + int(y.text))


def random_layout(rng: np.random.Generator) -> LinearLayout:
    """Every register and lane at any place, also those that share bits of it."""
    columns = rng.permutation(7)
    vectors = [1 << int(column) for column in columns]
    for _ in range(int(rng.integers(4))):
        to, of = rng.permutation(7)[:2]
        vectors[to] ^= vectors[of]
    places = [divmod(vector, SHAPE[1]) for vector in vectors]
    outs = (("dim0", SHAPE[0]), ("dim1", SHAPE[1]))
    return LinearLayout(((REGISTER, tuple(places[:4])), (LANE, tuple(places[4:]))), outs)


def held(layout: LinearLayout, numbers: np.ndarray, lane: int) -> Fragment:
    at = [layout(register=register, lane=lane) for register in range(layout.in_size(REGISTER))]
    return Fragment(layout, tuple(const("i32", int(numbers[place])) for place in at))


@pytest.mark.parametrize("contiguity", [(1, 1), (1, 4), (8, 1), (2, 8), (8, 16)])
def test_what_is_counted_up_is_what_each_thread_holds(rng, contiguity):
    rows, columns = np.indices(SHAPE)
    firsts = rng.integers(1000, size=SHAPE)[rows // contiguity[0], columns // contiguity[1]]
    numbers = firsts + rows % contiguity[0] + columns % contiguity[1]
    info = AxisInfo(contiguity, (1, 1), (1, 1))
    for _ in range(50):
        layout = random_layout(rng)
        for lane in range(8):
            fragment = held(layout, numbers, lane)
            sizes = counted_along(fragment, info)
            assert count_up(Numbers(), first_of_equals(fragment, sizes), sizes) == fragment, layout


def test_of_neighbours_in_a_thread_one_is_needed():
    layout = LinearLayout(((REGISTER, ((0, 1), (0, 2))), (LANE, ((0, 4),))), (("dim0", 1), ("dim1", 8)))
    fragment = held(layout, np.arange(8)[None], 1)
    sizes = counted_along(fragment, AxisInfo((1, 8), (1, 1), (1, 1)))
    assert sizes == (1, 8)
    assert {value.text for value in first_of_equals(fragment, sizes).registers} == {"4"}


def compiled(kernel, signature: dict[str, str], **constexprs: int) -> str:
    """The LLVM IR of a kernel whose arguments are multiples of 16."""
    hints = {name: [["tt.divisibility", 16]] for name in signature}
    types = signature | dict.fromkeys(constexprs, "constexpr")
    return triton.compile(ASTSource(kernel, types, constexprs, hints), "cuda:90").asm["llir"]


@triton.jit
def mean_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    count, mean = tl.zeros([BLOCK], tl.float32), tl.zeros([BLOCK], tl.float32)
    for start in tl.range(0, n, BLOCK, loop_unroll_factor=1):
        mask = start + i < n
        x = tl.load(x_ptr + start + i, mask=mask, other=0.0)
        count += mask.to(tl.float32)
        mean = tl.where(mask, mean + (x - mean) / count, mean)
    tl.store(out_ptr + i, mean)


def test_a_loop_carries_one_count_of_four_neighbours_and_exchanges_none():
    """Besides four means and four elements that are loaded ahead; it is in the layout of the means."""
    llir = compiled(mean_kernel, {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}, BLOCK=512)
    assert llir.count(" = phi float ") == 9
    assert "@shared" not in llir


@triton.jit
def scaled_kernel(x_ptr, scales_ptr, out_ptr, n, group, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i % group, mask=i < n) * tl.load(scales_ptr + i // group, mask=i < n)
    tl.store(out_ptr + i, x, mask=i < n)


def test_a_thread_divides_once_and_loads_once_for_four_neighbours():
    signature = {"x_ptr": "*fp32", "scales_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "group": "i32"}
    llir = compiled(scaled_kernel, signature, BLOCK=512)
    assert (llir.count(" = udiv "), llir.count(" = urem ")) == (1, 1)
    assert llir.count("ld.global") == 2
