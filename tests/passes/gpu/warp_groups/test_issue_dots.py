"""Dots that are issued before threads compute from another one: which, where their waits are; numbers stay right."""

import re

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate_compiled
from ir_text import generic_asm

import deuteron
import deuteron.language as tl

D = 64


@deuteron.jit
def backward(q, k, v, do, lse, delta, dk, dv, n, BM: tl.constexpr, D: tl.constexpr, CASE: tl.constexpr):
    """What attention's keys and values are given by the rows: 64 keys, BM rows at a time."""
    keys, rows, dims = tl.arange(0, 64), tl.arange(0, BM), tl.arange(0, D)
    at = keys[:, None] * D + dims[None, :]
    x, y = tl.load(k + at), tl.load(v + at)
    of_k, of_v = tl.zeros((64, D), tl.float32), tl.zeros((64, D), tl.float32)
    for start in range(0, n, BM):
        at_rows = (start + rows)[:, None] * D + dims[None, :]
        a = tl.load(q + at_rows)
        p = tl.exp2(tl.dot(x, a.T) - tl.load(lse + start + rows)[None, :])
        b = tl.load(do + at_rows)
        of_v = tl.dot(p.to(tl.float16), b, of_v)
        dp = tl.dot(y, b.T)
        given = tl.load(delta + start + rows)
        if CASE == "halves":
            given = (given * 2.0).to(tl.float16).to(tl.float32) / 2.0
        ds = (p if CASE != "dropped" else 1.0) * (dp - given[None, :])
        of_k = tl.dot(ds.to(tl.float16), a, of_k)
    tl.store(dk + at, of_k)
    tl.store(dv + at, of_v)


def run(rng, case, n, bm=64, asynchronous="random", **options):
    q, k, v, do = (aligned((rng.standard_normal((max(n, 64), D)) / 4).astype(np.float16)) for _ in range(4))
    lse, delta = (aligned(rng.standard_normal(max(n, 64)).astype(np.float32)) for _ in range(2))
    dk, dv = (aligned(np.full((64, D), np.nan, np.float32)) for _ in range(2))
    arguments = (q, k, v, do, lse, delta, dk, dv, n)
    kernel = compile_for("cuda:90", backward, *arguments, BM=bm, D=D, CASE=case, **options)
    emulate_compiled(kernel, *arguments, asynchronous=asynchronous)
    a, b, x, y = (array.astype(np.float64) for array in (q[:n], do[:n], k[:64], v[:64]))
    p, dp = np.exp2(x @ a.T - lse[:n]), y @ b.T
    ds = (1 if case == "dropped" else p) * (dp - delta[:n])
    for found, expected in ((dv, p @ b), (dk, ds @ a)):
        assert np.abs(found - expected).max() <= 4e-3 * max(np.abs(expected).max(), 1e-30)
    return kernel


def sequence(kernel) -> list[str]:
    """Of the loop: dots, waits with their `pendings`, exponentials, conversions of layouts."""
    text = generic_asm(kernel, "ttgir").split('"scf.for"')[1].split('"scf.yield"')[0]
    found = []
    names = "warp_group_dot_wait|warp_group_dot|exp2|convert_layout"
    for name, rest in re.findall(rf'"(?:ttng|ttg|math)\.({names})"(.*)', text):
        pendings = re.search(r"pendings = (\d+)", rest)
        found.append(f"wait {pendings.group(1)}" if pendings else name.removeprefix("warp_group_"))
    return found


@pytest.mark.parametrize("asynchronous", ["late", "early", "random"])
def test_both_dots_of_shared_memory_are_issued_first(rng, way, asynchronous):
    kernel = run(rng, "", 192, asynchronous=asynchronous)
    assert sequence(kernel) == ["dot", "dot", "wait 1", "exp2", "dot", "wait 1", "dot", "wait 1", "wait 0"]


@pytest.mark.parametrize("n", [0, 32, 64, 96])
def test_lengths(rng, way, n):
    run(rng, "", n, bm=32, num_stages=2)


def test_sums_that_would_take_more_registers_are_issued_where_they_were(rng):
    assert sequence(run(rng, "dropped", 128))[:4] == ["dot", "wait 0", "exp2", "dot"]


def test_what_a_dot_reads_is_filled_before_it(rng):
    """Without copies ahead tiles are stored before their dots."""
    assert sequence(run(rng, "", 128, num_stages=1))[:3] == ["dot", "wait 0", "exp2"]


@pytest.mark.parametrize("case", ["", "halves"])
def test_vectors_are_loaded_where_they_are_used(rng, way, case):
    """No conversion goes through shared memory, which all warps would wait for."""
    kernel = run(rng, case, 128, bm=32, num_warps=4)
    assert "convert_layout" not in sequence(kernel)
