"""Rows that an index chooses: bags of embeddings, sums by atomics, a sparse matrix times a dense one."""

import triton
import triton.language as tl


@triton.jit
def embedding_bag(weight_ptr, index_ptr, starts_ptr, out_ptr, D, BLOCK: tl.constexpr):
    """Sums of the rows of each bag; how many there are is known at run time."""
    bag = tl.program_id(0)
    d = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    begin = tl.load(starts_ptr + bag)
    end = tl.load(starts_ptr + bag + 1)
    acc = tl.zeros([BLOCK], tl.float32)
    for i in range(begin, end):
        row = tl.load(index_ptr + i).to(tl.int64)
        acc += tl.load(weight_ptr + row * D + d, mask=d < D, other=0.0).to(tl.float32)
    tl.store(out_ptr + bag.to(tl.int64) * D + d, acc.to(out_ptr.dtype.element_ty), mask=d < D)


@triton.jit
def scatter_add(x_ptr, index_ptr, out_ptr, rows, D, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    d = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(index_ptr + r, mask=r < rows, other=0)
    mask = (r < rows)[:, None] & (d < D)[None, :]
    x = tl.load(x_ptr + r.to(tl.int64)[:, None] * D + d[None, :], mask=mask, other=0.0)
    tl.atomic_add(out_ptr + index[:, None] * D + d[None, :], x, mask=mask)


@triton.jit
def sparse_times_dense(
    starts_ptr, columns_ptr, values_ptr, b_ptr, out_ptr, N, BLOCK_K: tl.constexpr, BLOCK_N: tl.constexpr
):
    """A row of a sparse matrix times a dense one, `BLOCK_K` of its elements at once."""
    row = tl.program_id(0)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    begin = tl.load(starts_ptr + row)
    end = tl.load(starts_ptr + row + 1)
    acc = tl.zeros([BLOCK_N], tl.float32)
    for start in range(begin, end, BLOCK_K):
        i = start + tl.arange(0, BLOCK_K)
        column = tl.load(columns_ptr + i, mask=i < end, other=0)
        value = tl.load(values_ptr + i, mask=i < end, other=0.0)
        b = tl.load(b_ptr + column[:, None] * N + n[None, :], mask=(i < end)[:, None] & (n < N)[None, :], other=0.0)
        acc += tl.sum(value[:, None] * b, axis=0)
    tl.store(out_ptr + row * N + n, acc, mask=n < N)
