"""The kernels that are measured, as one writes them with plain pointers and masks.

`peers.load_kernels` executes this source once with Triton and once with Deuteron in the place of `import triton`.
Every size may be anything that the masks allow, except that attention takes lengths that are multiples of its tiles.
"""

import triton
import triton.language as tl


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


@triton.jit
def softmax(x_ptr, out_ptr, x_stride, out_stride, num_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < num_columns
    x = tl.load(x_ptr + row * x_stride + columns, mask=mask, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * out_stride + columns, numerator / tl.sum(numerator, axis=0), mask=mask)


@triton.jit
def layer_norm(x_ptr, weight_ptr, bias_ptr, out_ptr, stride, num_columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < num_columns
    x = tl.load(x_ptr + row * stride + columns, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / num_columns
    centred = tl.where(mask, x - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / num_columns + eps)
    weight = tl.load(weight_ptr + columns, mask=mask)
    bias = tl.load(bias_ptr + columns, mask=mask)
    tl.store(out_ptr + row * stride + columns, centred * rstd * weight + bias, mask=mask)


@triton.jit
def tile_of(program, num_m, num_n, GROUP_M: tl.constexpr):
    """Row and column of a program's tile; groups of GROUP_M rows of tiles share the L2."""
    group = program // (GROUP_M * num_n)
    group_rows = min(num_m - group * GROUP_M, GROUP_M)
    within = program % (GROUP_M * num_n)
    return group * GROUP_M + within % group_rows, within // group_rows


@triton.jit
def matmul(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    WRAP: tl.constexpr,
):
    """Rows and columns beyond the end: with WRAP modulo the size, else masked."""
    row, column = tile_of(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M)
    rows = row * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = column * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    a_rows = rows % M if WRAP else rows
    b_columns = columns % N if WRAP else columns
    a_ptrs = a_ptr + (a_rows[:, None] * stride_am + ks[None, :] * stride_ak)
    b_ptrs = b_ptr + (ks[:, None] * stride_bk + b_columns[None, :] * stride_bn)

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        if WRAP:
            a = tl.load(a_ptrs, mask=ks[None, :] < left, other=0.0)
            b = tl.load(b_ptrs, mask=ks[:, None] < left, other=0.0)
        else:
            a = tl.load(a_ptrs, mask=(rows[:, None] < M) & (ks[None, :] < left), other=0.0)
            b = tl.load(b_ptrs, mask=(ks[:, None] < left) & (columns[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk

    c_ptrs = c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))


@triton.jit
def matmul_descriptors(
    a,
    b,
    c,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    FLATTEN: tl.constexpr,
):
    """a [M, K], b [N, K] and c [M, N] as tensor descriptors; a program does one tile after another."""
    num_m = tl.cdiv(M, BLOCK_M)
    num_n = tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), num_m * num_n, tl.num_programs(0), flatten=FLATTEN):
        row, column = tile_of(tile, num_m, num_n, GROUP_M)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(tl.cdiv(K, BLOCK_K)):
            rows_of_a = a.load([row * BLOCK_M, k * BLOCK_K])
            rows_of_b = b.load([column * BLOCK_N, k * BLOCK_K])
            acc = tl.dot(rows_of_a, rows_of_b.T, acc)
        c.store([row * BLOCK_M, column * BLOCK_N], acc.to(c.dtype))


@triton.jit
def matmul_made_descriptors(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    FLATTEN: tl.constexpr,
):
    """The same with descriptors that the kernel makes."""
    a = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BLOCK_M, BLOCK_K])
    b = tl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[K, 1], block_shape=[BLOCK_N, BLOCK_K])
    c = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BLOCK_M, BLOCK_N])
    matmul_descriptors(a, b, c, M, N, K, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, FLATTEN)


@triton.jit
def attend(
    acc,
    row_sum,
    row_max,
    q,
    k_ptrs,
    v_ptrs,
    rows,
    stride,
    begin,
    end,
    scale,
    MASKED: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """The online softmax over the keys from `begin` to `end`; with MASKED only those up to the row's own."""
    columns = tl.arange(0, BLOCK_N)
    for start in range(begin, end, BLOCK_N):
        k = tl.load(k_ptrs + start * stride)
        scores = tl.dot(q, k)
        if MASKED:
            scores = tl.where(rows[:, None] >= start + columns[None, :], scores, -1.0e6)
        new_max = tl.maximum(row_max, tl.max(scores, 1) * scale)
        p = tl.exp2(scores * scale - new_max[:, None])
        alpha = tl.exp2(row_max - new_max)
        row_sum = row_sum * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = tl.load(v_ptrs + start * stride)
        acc = tl.dot(p.to(v.dtype), v, acc)
        row_max = new_max
    return acc, row_sum, row_max


@triton.jit
def attention(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    scale,
    stride_head,
    stride_row,
    length,
    CAUSAL: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Causal: first the tiles of keys that all rows see, then those on the diagonal. BLOCK_N divides BLOCK_M."""
    first_row = tl.program_id(0) * BLOCK_M
    base = tl.program_id(1).to(tl.int64) * stride_head
    rows = first_row + tl.arange(0, BLOCK_M)
    columns = tl.arange(0, BLOCK_N)
    dims = tl.arange(0, HEAD_DIM)
    row_offsets = rows[:, None] * stride_row + dims[None, :]
    k_ptrs = k_ptr + base + (columns[None, :] * stride_row + dims[:, None])
    v_ptrs = v_ptr + base + (columns[:, None] * stride_row + dims[None, :])

    scale *= 1.4426950408889634  # exp2 is what machines have: log2(e) goes into the scale
    q = tl.load(q_ptr + base + row_offsets)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    row_sum = tl.zeros([BLOCK_M], dtype=tl.float32)
    row_max = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    seen_by_all = first_row if CAUSAL else length
    acc, row_sum, row_max = attend(
        acc, row_sum, row_max, q, k_ptrs, v_ptrs, rows, stride_row, 0, seen_by_all, scale, False, BLOCK_N
    )
    if CAUSAL:
        acc, row_sum, row_max = attend(
            acc,
            row_sum,
            row_max,
            q,
            k_ptrs,
            v_ptrs,
            rows,
            stride_row,
            first_row,
            first_row + BLOCK_M,
            scale,
            True,
            BLOCK_N,
        )
    out = acc / row_sum[:, None]
    tl.store(out_ptr + base + row_offsets, out.to(out_ptr.dtype.element_ty))
