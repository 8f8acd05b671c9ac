"""Which loads become loads through descriptors, and that kernels compute the same then."""

from __future__ import annotations

import numpy as np
import pytest
from backend.cuda.launching import aligned, emulate

import deuteron
import deuteron.language as tl
from deuteron.backend.cuda.target import architecture
from deuteron.frontend import lower_function
from deuteron.interpreter import run_module
from deuteron.machine.gpu import GPUConfig
from deuteron.passes import run_passes
from deuteron.passes.gpu.descriptors.infer_descriptors import InferDescriptors
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
    """The module after the pass, and how many loads are through descriptors, how many are not."""
    changed = module.clone()
    run_passes(changed, [InferDescriptors(GPUConfig(architecture(90).machine))])
    names = [op.name for op in changed.walk()]
    return changed, names.count("tt.descriptor_load"), names.count("tt.load")


def loads(kernel, hinted=None, **constexprs):
    return inferred(ttir(kernel, hinted, **constexprs))[1:]


def check_same(module, arguments, out, grid):
    """Equal bits before and after the pass; the output starts poisoned."""
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
        elif CASE == "far" or CASE == "farther":
            a = tl.load(a_ptrs, (rows - M < 2147483647)[:, None], 0.0)
            b = tl.load(b_ptrs, (columns - 5 < (2147483640 if CASE == "far" else 2147483647))[None, :], 0.0)
        elif CASE == "begin":
            a = tl.load(a_ptrs - 32 * stride_a, ((rows - 32 >= 0) & (rows - 32 < M))[:, None], 0.0)
            b = tl.load(b_ptrs)
        elif CASE == "before":
            a = tl.load(a_ptrs - 32 * stride_a)
            b = tl.load(b_ptrs)
        else:
            a = tl.load(a_ptrs, ks[None, :] < left, 0.0)
            b = tl.load(b_ptrs, ks[:, None] < left, -0.0 if CASE == "minus zero" else 0.0)
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
        ("minus zero", (1, 1)),
        ("far", (1, 1)),
        ("farther", (0, 2)),
        ("seen", (1, 1)),
        ("before", (1, 1)),
        ("store", (1, 1)),
    ],
)
def test_dots(case, expected, trans):
    assert loads(matmul, BLOCK=32, CASE=case, TRANS=trans) == expected


@pytest.mark.parametrize("case", ["masks", "wrap"])
@pytest.mark.parametrize(("m", "n", "k"), [(64, 32, 32), (80, 48, 80), (16, 16, 16), (144, 80, 0)])
@pytest.mark.parametrize("trans", [False, True])
def test_dots_are_the_same(rng, case, m, n, k, trans):
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
def by_blocks(a_ptr, b_ptr, out_ptr, M, N, K, stride_a, stride_b, CHECKED: tl.constexpr, TRANS: tl.constexpr):
    """The same by block pointers."""
    row, column = tl.program_id(0) * 64, tl.program_id(1) * 32
    strides = (1, stride_b) if TRANS else (stride_b, 1)
    a = tl.make_block_ptr(a_ptr, (M, K), (stride_a, 1), (row, 0), (64, 32), (1, 0))
    b = tl.make_block_ptr(b_ptr, (K, N), strides, (0, column), (32, 32), (1, 0))
    acc = tl.zeros((64, 32), tl.float32)
    for _ in range(0, K, 32):
        acc = tl.dot(tl.load(a, boundary_check=CHECKED), tl.load(b, boundary_check=CHECKED), acc)
        a, b = tl.advance(a, (0, 32)), tl.advance(b, (32, 0))
    out = tl.make_block_ptr(out_ptr, (M, N), (N, 1), (row, column), (64, 32), (1, 0))
    tl.store(out, acc.to(tl.float16), boundary_check=(0, 1))


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("checked", [(), (0,), (0, 1)])
def test_block_pointers_are_tiles(checked, trans):
    assert loads(by_blocks, CHECKED=checked, TRANS=trans) == (2, 0)


@pytest.mark.parametrize(("m", "n", "k"), [(80, 48, 80), (16, 16, 16), (144, 80, 0)])
@pytest.mark.parametrize("trans", [False, True])
def test_block_pointers_load_the_same(rng, m, n, k, trans):
    a, b = array(rng, m, k), array(rng, *((n, k) if trans else (k, n)))
    out = aligned(np.empty((m, n), np.float16))
    module = ttir(by_blocks, CHECKED=(0, 1), TRANS=trans)
    check_same(module, [a, b, out, m, n, k, max(k, 16), k if trans else n], out, (-(-m // 64), -(-n // 32), 1))


@deuteron.jit
def heads_by_blocks(a_ptr, b_ptr, out_ptr, T, HEADS: tl.constexpr, DIM: tl.constexpr):
    """Strides are numbers, of which the offsets of heads and batches are multiples."""
    row, head, first = tl.program_id(0) * 64, tl.program_id(1), tl.program_id(2) * T
    at = (first * HEADS + head) * DIM
    acc = tl.zeros((64, DIM), tl.float32)
    for column in range(0, T, 32):
        a = tl.make_block_ptr(a_ptr + at, (T, DIM), (HEADS * DIM, 1), (row, 0), (64, DIM), (1, 0))
        b = tl.make_block_ptr(b_ptr + at, (T, DIM), (HEADS * DIM, 1), (column, 0), (32, DIM), (1, 0))
        x, y = tl.load(a, boundary_check=(0, 1)), tl.load(b, boundary_check=(0, 1))
        acc = tl.dot(tl.dot(x, tl.trans(y)).to(tl.float16), y, acc)
    out = tl.make_block_ptr(out_ptr + at, (T, DIM), (HEADS * DIM, 1), (row, 0), (64, DIM), (1, 0))
    tl.store(out, acc.to(tl.float16), boundary_check=(0, 1))


@pytest.mark.parametrize("rows", [16, 80])
def test_heads_of_constant_strides_are_dimensions(rng, rows):
    assert loads(heads_by_blocks, HEADS=2, DIM=32) == (2, 0)
    a, b = array(rng, 2 * rows * 2, 32), array(rng, 2 * rows * 2, 32)
    out = aligned(np.empty((2 * rows * 2, 32), np.float16))
    check_same(ttir(heads_by_blocks, HEADS=2, DIM=32), [a, b, out, rows], out, (-(-rows // 64), 2, 2))


@deuteron.jit
def attention(q_ptr, k_ptr, v_ptr, out_ptr, stride_z, stride_h, stride_row, begin, length, CASE: tl.constexpr):
    rows = tl.program_id(0) * 64 + tl.arange(0, 64)
    columns = tl.arange(0, 32)
    dims = tl.arange(0, 32)
    base = tl.program_id(1).to(tl.int64) * stride_h + tl.program_id(2).to(tl.int64) * stride_z
    at = columns[:, None] * stride_row + dims[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * stride_row + dims[None, :])
    k_ptrs = k_ptr + base + columns[None, :] * stride_row + dims[:, None]
    v_ptrs = v_ptr + base + at
    acc = tl.zeros((64, 32), tl.float32)
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
    ("case", "expected"), [("plain", (2, 1)), ("begin", (2, 1)), ("index", (1, 3)), ("cast", (1, 2))]
)
def test_attention(case, expected):
    assert loads(attention, CASE=case) == expected


def test_what_may_be_before_the_array_stays():
    hinted = [name for name in attention.arg_names if name not in ("begin", "CASE")]
    assert loads(attention, hinted, CASE="begin") == (0, 3)


@deuteron.jit
def two_loops(q_ptr, k_ptr, out_ptr, n, stride, CASE: tl.constexpr):
    """The second loop goes on where the first has ended, by pointers, block pointers or the index."""
    first = tl.program_id(0) * 64
    rows, columns, dims = first + tl.arange(0, 64), tl.arange(0, 32), tl.arange(0, 16)
    q = tl.load(q_ptr + rows[:, None] * stride + dims[None, :], rows[:, None] < n, 0.0)
    ptrs = k_ptr + columns[:, None] * stride + dims[None, :]
    block = tl.make_block_ptr(k_ptr, (n, 16), (stride, 1), (0, 0), (32, 16), (1, 0))
    middle = n // 32 * 32 if CASE == "all" or CASE == "blocks" else tl.minimum(first, n) // 32 * 32
    end = n if CASE == "all" or CASE == "blocks" else tl.minimum(first + (64 if CASE != "beyond" else n), n)
    end += CASE == "past"
    acc = tl.zeros((64, 16), tl.float32)
    for start in range(0, middle, 32):
        if CASE == "pointers":
            k = tl.load(ptrs)
        elif CASE == "blocks":
            k = tl.load(block)
        else:
            k = tl.load(ptrs + start * stride)
        acc = tl.dot(tl.dot(q, k.T).to(tl.float16), k, acc)
        if CASE == "pointers":
            ptrs += 32 * stride
        block = tl.advance(block, (32, 0))
    for start in range(middle, end, 32):
        inside = (start + columns < n)[:, None]
        if CASE == "pointers":
            k = tl.load(ptrs, inside, 0.0)
        elif CASE == "blocks":
            k = tl.load(block, boundary_check=(0,), padding_option="zero")
        else:
            k = tl.load(ptrs + start * stride, inside, 0.0)
        acc = tl.dot(tl.where(rows[:, None] >= start + columns[None, :], tl.dot(q, k.T), 0).to(tl.float16), k, acc)
        if CASE == "pointers":
            ptrs += 32 * stride
        block = tl.advance(block, (32, 0))
    tl.store(out_ptr + rows[:, None] * 16 + dims[None, :], acc.to(tl.float16), rows[:, None] < n)


@pytest.mark.parametrize(
    ("case", "of_hinted", "of_any"),
    [
        ("index", (2, 1), (2, 1)),  # a negative n leaves no iteration
        ("all", (2, 1), (2, 1)),
        ("beyond", (2, 1), (2, 1)),
        ("past", (2, 1), (1, 2)),  # an iteration where n is -1 begins before the array
        ("pointers", (2, 1), (1, 2)),
        ("blocks", (2, 1), (2, 1)),  # they leave out what is before the array
    ],
)
def test_two_loops(case, of_hinted, of_any):
    hinted = [name for name in two_loops.arg_names if name not in ("n", "CASE")]
    assert loads(two_loops, CASE=case) == of_hinted
    assert loads(two_loops, hinted, CASE=case) == of_any


@pytest.mark.parametrize("n", [-96, 0, 16, 30, 64, 100, 160])
@pytest.mark.parametrize("case", ["index", "pointers", "blocks"])
def test_two_loops_load_the_same(rng, case, n):
    q, k, out = (array(rng, max(n, 64), 16) for _ in range(3))
    hinted = [name for name in two_loops.arg_names if name not in ("CASE", *(() if n % 16 == 0 and n >= 0 else "n"))]
    check_same(ttir(two_loops, hinted, CASE=case), [q, k, out, n, 16], out, (3, 1, 1))


def test_offsets_of_heads_are_dimensions(rng):
    module = ttir(attention, CASE="plain")
    text = str(inferred(module)[0])
    assert text.count("!tt.tensordesc<1x1x32x32xf16>") > 0
    q, k, v, out = (array(rng, 4 * 64, 32) for _ in range(4))
    check_same(module, [q, k, v, out, 2 * 64 * 32, 64 * 32, 32, 0, 64], out, (1, 2, 2))


# -- where it could go wrong ---


@deuteron.jit
def edges(a_ptr, b_ptr, out_ptr, bounds_ptr, M, N, K, stride_a, stride_b, begin, CASE: tl.constexpr):
    pid = tl.program_id(0)
    rows, columns, ks = pid * 64 + tl.arange(0, 64), tl.arange(0, 32), tl.arange(0, 32)
    low, high = begin, K
    if CASE == "negative":
        low = -32
    elif CASE == "memory" or CASE == "memory end":
        low = tl.load(bounds_ptr).to(tl.int32) if CASE == "memory" else 0
        high = tl.load(bounds_ptr + 1).to(tl.int32)
    elif CASE != "begin":
        low = 0
    a_rows = rows % M if CASE == "stored round" else rows
    a_mask = rows < M
    if CASE == "from five":
        a_mask = a_mask & (rows >= 5)
    elif CASE == "masked round":
        a_mask = (rows % 16) < 8
    elif CASE == "stored round":
        a_mask = rows >= 0
    elif CASE == "nothing":
        a_mask = rows < 0 * M
    step = -stride_a if CASE == "backwards" else 16 * begin if CASE == "times 16" else stride_a
    first = pid.to(tl.int64) * 64 * stride_a + tl.arange(0, 64) * stride_a if CASE == "wide" else a_rows * step
    acc = tl.zeros((64, 32), tl.float32)
    for k in tl.range(low, high, 32):
        inside = (k + ks >= 0) & (k + ks < K)
        x = tl.load(a_ptr + first[:, None] + (k + ks)[None, :], a_mask[:, None] & inside[None, :], 0.0)
        y = tl.load(b_ptr + (k + ks)[:, None] * stride_b + columns[None, :], inside[:, None] & (columns < N)[None, :])
        acc = tl.dot(x, y, acc)
    here = a_rows < M if CASE == "stored round" else rows < M
    to = out_ptr + a_rows[:, None] * N + columns[None, :]
    tl.store(to, acc.to(tl.float16), here[:, None] & (columns < N)[None, :])


EDGES = [
    # case, loads by TMA, how others there are, the number that `begin` is
    ("plain", 2, 0, 0),
    ("wide", 2, 0, 0),
    ("negative", 2, 0, 0),
    ("begin", 2, 0, -32),
    ("begin", 2, 0, 16),
    ("begin", 2, 0, 208),
    ("begin", 1, 1, 5),
    ("begin", 1, 1, -5),
    ("memory end", 2, 1, 0),
    ("memory", 1, 3, 0),
    ("from five", 1, 1, 0),
    ("masked round", 1, 1, 0),
    ("stored round", 1, 1, 0),
    ("times 16", 2, 0, 5),
    ("nothing", 2, 0, 0),
]


@pytest.mark.share(3)
@pytest.mark.parametrize(("case", "by_tma", "others", "begin"), EDGES)
@pytest.mark.parametrize(("m", "n", "k"), [(80, 32, 80), (1, 1, 1), (64, 16, 0), (0, 8, 40)])
def test_edges(rng, case, by_tma, others, begin, m, n, k):
    a, b, out = array(rng, 192, 96), array(rng, 96, 32), array(rng, 80, 32)
    bounds = aligned(np.array([-32 if case == "memory" else 0, k], np.float16))
    m = max(m, 1) if case == "stored round" else m
    arguments = [a, b, out, bounds, m, n, k, 96, 32, begin]
    module = ttir(edges, edges.arg_names[: -1 if begin % 16 == 0 else -2], CASE=case)
    assert inferred(module)[1:] == (by_tma, others)
    check_same(module, arguments, out, (2, 1, 1))
    expected = out.copy()
    out[...] = np.nan
    emulate(edges, *arguments, CASE=case, grid=(2,))
    np.testing.assert_allclose(out.astype(np.float32), expected.astype(np.float32), rtol=1e-2, atol=1e-2)


@deuteron.jit
def far(a_ptr, b_ptr, out_ptr, K, stride, WIDE: tl.constexpr, ROW: tl.constexpr):
    """Row by row, arrays of 1 << 22 elements."""
    i, j = tl.arange(0, 64), tl.arange(0, 32)
    pid = tl.program_id(0).to(tl.int64) if WIDE else tl.program_id(0)
    acc = tl.zeros((64, 32), tl.float32)
    for k in range(0, K, 32):
        x = tl.load(a_ptr + pid * 4194304 + i[:, None] * (ROW or stride) + (k + j)[None, :])
        acc = tl.dot(x, tl.load(b_ptr + (k + j)[:, None] * 32 + j[None, :]), acc)
    tl.store(out_ptr + i[:, None] * 32 + j[None, :], acc.to(tl.float16))


@pytest.mark.parametrize(("wide", "row", "expected"), [(True, 0, 1), (True, 64, 2), (True, 32, 1), (False, 0, 2)])
def test_offsets_that_may_not_fit_32_bits(wide, row, expected):
    """In an array of more than 2**31 elements, offsets along rows do not; rows of 128 bytes can be counted."""
    assert loads(far, WIDE=wide, ROW=row)[0] == expected


def test_a_stride_may_not_be_negative():
    assert loads(edges, CASE="backwards") == (1, 1)


@deuteron.jit
def one_after(a_ptr, b_ptr, out_ptr, M):
    """Stores what the tile before gave, where rows of this tile are."""
    i, j = tl.arange(0, 64), tl.arange(0, 32)
    last = tl.zeros((64, 32), tl.float32)
    for tile in range(2):
        rows = tile * 64 + i
        tl.store(out_ptr + (rows * 32)[:, None] + j[None, :], last.to(tl.float16), (rows < M)[:, None])
        acc = tl.zeros((64, 32), tl.float32)
        for k in range(0, 64, 32):
            x = tl.load(a_ptr + (rows % M)[:, None] * 64 + (k + j)[None, :])
            acc = tl.dot(x, tl.load(b_ptr + (k + j)[:, None] * 32 + j[None, :]), acc)
        last = acc


def test_what_goes_round_is_seen_in_a_later_iteration_of_other_bounds(rng):
    module = ttir(one_after)
    assert inferred(module)[1:] == (1, 1)
    out = array(rng, 128, 32)
    check_same(module, [array(rng, 128, 64), array(rng, 64, 32), out, 80], out, (1, 1, 1))


@deuteron.jit
def strided(a, b, out, stride_a, stride_b, K):
    i, j, ks = tl.arange(0, 64), tl.arange(0, 32), tl.arange(0, 32)
    acc = tl.zeros((64, 32), tl.float32)
    for k in range(0, K, 32):
        x = tl.load(a + i[:, None] * stride_a + (k + ks)[None, :], (k + ks < K)[None, :], 0.0)
        y = tl.load(b + (k + ks)[:, None] * stride_b + j[None, :], (k + ks < K)[:, None], 0.0)
        acc = tl.dot(x, y, acc)
    tl.store(out + i[:, None] * 32 + j[None, :], acc.to(out.dtype.element_ty))


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("rows", "by_tma"),
    [
        (slice(None, None, -1), 1),
        (slice(None, None, -2), 1),
        (slice(16, None), 2),
        (slice(None, None, 2), 2),
        (None, 2),
    ],
)
@pytest.mark.parametrize("k", [80, 16, 0])
def test_launches_of_any_stride(monkeypatch, rng, rows, by_tma, k):
    """Negative strides carry no hint; None: one row is broadcast, with stride 0."""
    monkeypatch.setenv("DEUTERON_EMULATE", "1")
    monkeypatch.setenv("DEUTERON_TARGET", "cuda:90")
    whole, b, out = array(rng, 128, 96), array(rng, 96, 32), aligned(np.full((64, 32), np.nan, np.float32))
    a = np.broadcast_to(whole[:1], (64, 96)) if rows is None else whole[rows][:64]
    given = whole[:1] if rows is None else a
    kernel = strided[(1,)](given, b, out, a.strides[0] // 2, 32, k)
    assert len(kernel.metadata.tensor_maps) == by_tma
    expected = a[:, :k].astype(np.float64) @ b[:k].astype(np.float64)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


def test_an_operand_given_twice_and_an_output_over_it(rng):
    x = array(rng, 64, 64)
    expected = x.astype(np.float64)[:, :64] @ x.astype(np.float64)[:, :32]
    y, out = aligned(x), aligned(np.zeros((64, 32), np.float16))
    emulate(strided, x, x, out, 64, 64, 64)
    np.testing.assert_allclose(out, expected, rtol=1e-2, atol=1e-2)
    emulate(strided, y, y, y, 64, 64, 64)
    np.testing.assert_allclose(y.reshape(-1)[: 64 * 32].reshape(64, 32), expected, rtol=1e-2, atol=1e-2)


@deuteron.jit
def low_rank(x_ptr, w_ptr, a_ptr, out_ptr, K, stride_x, COLUMNS: tl.constexpr, STEP: tl.constexpr, RANK: tl.constexpr):
    rows, columns, ks, rank = tl.arange(0, 64), tl.arange(0, COLUMNS), tl.arange(0, STEP), tl.arange(0, RANK)
    acc, low = tl.zeros((64, COLUMNS), tl.float32), tl.zeros((64, RANK), tl.float32)
    for k in range(0, K, STEP):
        x = tl.load(x_ptr + rows[:, None] * stride_x + k + ks[None, :])
        acc = tl.dot(x, tl.load(w_ptr + (k + ks)[:, None] * COLUMNS + columns[None, :]), acc)
        low = tl.dot(x, tl.load(a_ptr + (k + ks)[:, None] * RANK + rank[None, :]), low)
    tl.store(out_ptr + rows[:, None] * COLUMNS + columns[None, :], acc.to(tl.float16))
    tl.store(out_ptr + 64 * COLUMNS + rows[:, None] * RANK + rank[None, :], low.to(tl.float16))


@pytest.mark.parametrize(
    ("columns", "step", "rank", "by_tma"),
    [(64, 32, 32, 3), (64, 32, 16, 2), (64, 16, 16, 1), (16, 16, 16, 3), (32, 64, 16, 2)],
)
def test_narrow_rows_stay_beside_wide_ones(columns, step, rank, by_tma):
    assert loads(low_rank, COLUMNS=columns, STEP=step, RANK=rank) == (by_tma, 3 - by_tma)
