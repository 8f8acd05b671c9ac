"""Which loads become loads through descriptors, and that kernels compute the same then."""

from __future__ import annotations

import numpy as np
import pytest
from backend.cuda.launching import aligned

import deuteron
import deuteron.language as tl
from deuteron.frontend import lower_function
from deuteron.interpreter import run_module
from deuteron.passes import run_passes
from deuteron.passes.gpu.infer_descriptors import InferDescriptors
from deuteron.passes.tile import tile_passes

HINT = (("tt.divisibility", 16),)


def ttir(kernel, hinted=None, **constexprs):
    """A kernel of fp16 pointers (`*_ptr`) and i32, all divisible by 16 unless said otherwise."""
    names = [name for name in kernel.arg_names if name not in constexprs]
    signature = {name: "*fp16" if name.endswith("_ptr") else "i32" for name in names}
    signature |= dict.fromkeys(constexprs, "constexpr")
    module = lower_function(kernel, signature, constexprs, dict.fromkeys(names if hinted is None else hinted, HINT))
    run_passes(module, tile_passes())
    return module


def inferred(module):
    """The module behind the pass, and how many loads are through descriptors, how many are not."""
    changed = module.clone()
    run_passes(changed, [InferDescriptors()])
    names = [op.name for op in changed.walk()]
    return changed, names.count("tt.descriptor_load"), names.count("tt.load")


def loads(kernel, hinted=None, **constexprs):
    return inferred(ttir(kernel, hinted, **constexprs))[1:]


def check_same(module, arguments, out, grid):
    """Equal bits before and behind the pass; the output starts poisoned."""
    results = []
    for one in (module, inferred(module)[0]):
        out[...] = np.nan
        run_module(one, arguments, grid=grid)
        results.append(out.copy())
    assert np.array_equal(results[0], results[1], equal_nan=True)


def array(rng, rows, columns):
    return aligned(rng.standard_normal((max(rows, 1), max(columns, 1))).astype(np.float16))


@deuteron.jit
def matmul(
    a_ptr, b_ptr, out_ptr, M, N, K, stride_a, stride_b, BLOCK: tl.constexpr, CASE: tl.constexpr, TRANS: tl.constexpr
):
    rows = tl.program_id(0) * 64 + tl.arange(0, 64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    ks = tl.arange(0, 32)
    a_rows = rows % M if CASE == "wrap" or CASE == "seen" else rows
    b_columns = columns % N if CASE == "wrap" or CASE == "seen" else columns
    a_ptrs = a_ptr + a_rows[:, None] * stride_a + ks[None, :]
    if TRANS:
        b_ptrs = b_ptr + b_columns[None, :] * stride_b + ks[:, None]
    else:
        b_ptrs = b_ptr + b_columns[None, :] + ks[:, None] * stride_b
    acc = tl.zeros((64, BLOCK), tl.float32)
    for k in range(tl.cdiv(K, 32)):
        left = K - k * 32
        if CASE == "masks" or CASE == "ones":
            a = tl.load(a_ptrs, (rows < M)[:, None] & (ks[None, :] < left), 0.0)
            b = tl.load(b_ptrs, (ks[:, None] < left) & (columns < N)[None, :], 1.0 if CASE == "ones" else 0.0)
        elif CASE == "begin":
            a = tl.load(a_ptrs - 32 * stride_a, ((rows - 32 >= 0) & (rows - 32 < M))[:, None], 0.0)
            b = tl.load(b_ptrs)
        elif CASE == "before":
            a = tl.load(a_ptrs - 32 * stride_a)
            b = tl.load(b_ptrs)
        else:
            a = tl.load(a_ptrs, ks[None, :] < left, 0.0)
            b = tl.load(b_ptrs, ks[:, None] < left, 0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += 32
        b_ptrs += 32 if TRANS else 32 * stride_b
    out_ptrs = out_ptr + rows[:, None] * N + columns[None, :]
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    if CASE == "seen":
        tl.store(out_ptrs, acc.to(tl.float16), columns[None, :] < N)
    elif CASE == "store":
        tl.store(out_ptrs, acc.to(tl.float16), mask)
        tl.store(a_ptr, 0.0)
    else:
        tl.store(out_ptrs, acc.to(tl.float16), mask)


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("masks", (2, 0)),
        ("wrap", (2, 0)),
        ("begin", (2, 0)),
        ("plain", (2, 0)),
        ("ones", (1, 1)),
        ("seen", (1, 1)),
        ("before", (1, 1)),
        ("store", (1, 1)),
    ],
)
def test_products(case, expected, trans):
    assert loads(matmul, BLOCK=32, CASE=case, TRANS=trans) == expected


@pytest.mark.parametrize("case", ["masks", "wrap"])
@pytest.mark.parametrize(("m", "n", "k"), [(64, 32, 32), (80, 48, 80), (16, 16, 16), (144, 80, 0)])
@pytest.mark.parametrize("trans", [False, True])
def test_products_are_the_same(rng, case, m, n, k, trans):
    stride_b = k if trans else n
    a, b = array(rng, m, k), array(rng, *((n, k) if trans else (k, n)))
    out = aligned(np.empty((m, n), np.float16))
    module = ttir(matmul, BLOCK=32, CASE=case, TRANS=trans)
    check_same(module, [a, b, out, m, n, k, max(k, 16), stride_b], out, (-(-m // 64), -(-n // 32), 1))


@pytest.mark.parametrize(
    ("missing", "expected"),
    [("K", (2, 0)), ("M", (2, 0)), ("a_ptr", (1, 1)), ("stride_b", (1, 1)), ("stride_a", (1, 1))],
)
def test_what_is_not_aligned_stays(missing, expected):
    hinted = [name for name in matmul.arg_names if name not in (missing, "BLOCK", "CASE", "TRANS")]
    assert loads(matmul, hinted, BLOCK=32, CASE="masks", TRANS=False) == expected


@deuteron.jit
def attention(q_ptr, k_ptr, v_ptr, out_ptr, stride_z, stride_h, stride_row, begin, length, CASE: tl.constexpr):
    rows = tl.program_id(0) * 64 + tl.arange(0, 64)
    columns = tl.arange(0, 32)
    dims = tl.arange(0, 16)
    base = tl.program_id(1).to(tl.int64) * stride_h + tl.program_id(2).to(tl.int64) * stride_z
    at = columns[:, None] * stride_row + dims[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * stride_row + dims[None, :])
    k_ptrs = k_ptr + base + columns[None, :] * stride_row + dims[:, None]
    v_ptrs = v_ptr + base + at
    acc = tl.zeros((64, 16), tl.float32)
    for start in range(begin if CASE == "begin" else 0, length, 32):
        k = tl.load(k_ptrs + start * stride_row)
        p = tl.dot(q, k)
        if CASE == "index":
            start = tl.load(q_ptr + start).to(tl.int32)
        v = tl.load(v_ptrs + start * stride_row)
        if CASE == "cast":
            v = (v * 2.0).to(tl.float16)
        acc = tl.dot(p.to(tl.float16), v, acc)
    tl.store(out_ptr + base + rows[:, None] * stride_row + dims[None, :], acc.to(tl.float16))


@pytest.mark.parametrize(
    ("case", "expected"), [("plain", (2, 1)), ("begin", (0, 3)), ("index", (1, 3)), ("cast", (1, 2))]
)
def test_attention(case, expected):
    assert loads(attention, CASE=case) == expected


def test_offsets_of_heads_are_dimensions(rng):
    module = ttir(attention, CASE="plain")
    text = str(inferred(module)[0])
    assert text.count("!tt.tensordesc<1x1x32x16xf16>") > 0
    q, k, v, out = (array(rng, 4 * 64, 16) for _ in range(4))
    check_same(module, [q, k, v, out, 2 * 64 * 16, 64 * 16, 16, 0, 64], out, (1, 2, 2))
