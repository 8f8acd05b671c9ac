"""Programs with more to do start first, and every program does what it did."""

from __future__ import annotations

import numpy as np
import pytest
from backend.cuda.launching import aligned

import deuteron
import deuteron.language as tl
from deuteron.frontend import lower_function
from deuteron.interpreter import run_module
from deuteron.passes import run_passes
from deuteron.passes.gpu.order_programs import OrderPrograms
from deuteron.passes.tile import tile_passes


@deuteron.jit
def kernel(x_ptr, out_ptr, count_ptr, n, CASE: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, 16)
    square = i[:, None] * 16 + i[None, :]
    acc = tl.zeros((16, 16), tl.float32)
    begin = 0 if CASE != "begins" else pid * 16
    end = pid * 16 if CASE != "same" and CASE != "begins" else n
    if CASE == "least" or CASE == "window":
        end = tl.minimum(pid * 16, n) // 16 * 16
    if CASE == "window":
        begin = tl.maximum(pid * 16 - 32, 0)
    if CASE == "falls":
        end = tl.maximum(n - pid * 16, 0)
    for k in range(begin, end, 16):
        x = tl.load(x_ptr + k * 16 + square)
        acc += x if CASE == "sum" else tl.dot(x, x)
    if CASE == "both":
        for _ in range(pid, n):
            acc = tl.dot(acc, acc)
    if CASE == "atomic":
        tl.atomic_add(count_ptr, 1.0)
    if CASE == "volatile":
        acc += tl.load(count_ptr, volatile=True)
    tl.store(out_ptr + (tl.program_id(0) + tl.program_id(1) * tl.num_programs(0)) * 256 + square, acc)


def modules(case):
    names = kernel.arg_names[:-1]
    signature = {name: "*fp32" if name.endswith("_ptr") else "i32" for name in names} | {"CASE": "constexpr"}
    before = lower_function(kernel, signature, {"CASE": case}, {})
    run_passes(before, tile_passes())
    after = before.clone()
    run_passes(after, [OrderPrograms()])
    return before, after


@pytest.mark.parametrize(
    ("case", "reverses"),
    [
        ("grows", True),
        ("least", True),
        ("same", False),
        ("window", False),
        ("falls", False),
        ("begins", False),
        ("sum", False),
        ("both", False),
        ("atomic", False),
        ("volatile", False),
    ],
)
def test_what_is_reversed(case, reverses):
    before, after = modules(case)
    assert (str(before) != str(after)) is reverses


def test_every_program_does_what_it_did(rng):
    x = aligned(rng.standard_normal((48, 16)).astype(np.float32))
    results = []
    for module in modules("grows"):
        out = aligned(np.full((6, 16, 16), np.nan, np.float32))
        run_module(module, [x, out, out, 48], grid=(3, 2, 1))
        results.append(out)
    assert np.array_equal(*results) and not np.isnan(results[0]).any()


def test_the_first_program_has_most_to_do():
    text = str(modules("grows")[1])
    assert text.index("tt.get_num_programs") < text.index("scf.for")
