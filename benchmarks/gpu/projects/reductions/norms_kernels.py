"""Norms and statistics over rows, groups, batches, images and middle axes."""

import triton
import triton.language as tl


@triton.jit
def layer_norm_dropout_residual(
    x_ptr, residual_ptr, weight_ptr, bias_ptr, keep_ptr, out_ptr, sum_ptr, N, eps, scale, BLOCK: tl.constexpr
):
    """The sum of what is not dropped and a residual, which is kept, and its layer norm; keep is bytes."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < N
    x = tl.load(x_ptr + row * N + columns, mask=mask, other=0.0).to(tl.float32)
    keep = tl.load(keep_ptr + row * N + columns, mask=mask, other=0)
    x = tl.where(keep != 0, x * scale, 0.0)
    x += tl.load(residual_ptr + row * N + columns, mask=mask, other=0.0).to(tl.float32)
    tl.store(sum_ptr + row * N + columns, x.to(sum_ptr.dtype.element_ty), mask=mask)
    mean = tl.sum(x, axis=0) / N
    centred = tl.where(mask, x - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / N + eps)
    weight = tl.load(weight_ptr + columns, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + columns, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * N + columns, (centred * rstd * weight + bias).to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def group_norm(x_ptr, weight_ptr, bias_ptr, out_ptr, size, per_group, groups, eps, BLOCK: tl.constexpr):
    """x [batch, channels, size]: a group's channels follow each other; two loops over them."""
    batch = tl.program_id(0)
    group = tl.program_id(1)
    base = (batch * groups + group).to(tl.int64) * per_group * size
    count = per_group * size
    sums = tl.zeros([BLOCK], tl.float32)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, count, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + i, mask=i < count, other=0.0).to(tl.float32)
        sums += x
        squares += x * x
    mean = tl.sum(sums, axis=0) / count
    variance = tl.sum(squares, axis=0) / count - mean * mean
    rstd = 1 / tl.sqrt(variance + eps)
    for channel in range(per_group):
        weight = tl.load(weight_ptr + group * per_group + channel).to(tl.float32) * rstd
        bias = tl.load(bias_ptr + group * per_group + channel).to(tl.float32) - mean * weight
        for start in range(0, size, BLOCK):
            i = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + base + channel * size + i, mask=i < size, other=0.0).to(tl.float32)
            y = x * weight + bias
            y = y * tl.sigmoid(y)
            tl.store(out_ptr + base + channel * size + i, y.to(out_ptr.dtype.element_ty), mask=i < size)


@triton.jit
def welford(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    delta = mean_b - mean_a
    count = count_a + count_b
    ratio = tl.where(count == 0.0, 0.0, count_b / count)
    return mean_a + delta * ratio, m2_a + m2_b + delta * delta * count_a * ratio, count


@triton.jit
def batch_norm_statistics(x_ptr, mean_ptr, rstd_ptr, batches, channels, size, eps, BLOCK: tl.constexpr):
    """Of a channel of x [batch, channels, size], by Welford's sums."""
    channel = tl.program_id(0)
    mean = tl.zeros([BLOCK], tl.float32)
    m2 = tl.zeros([BLOCK], tl.float32)
    count = tl.zeros([BLOCK], tl.float32)
    for batch in range(batches):
        base = (batch * channels + channel).to(tl.int64) * size
        for start in range(0, size, BLOCK):
            i = start + tl.arange(0, BLOCK)
            mask = i < size
            x = tl.load(x_ptr + base + i, mask=mask, other=0.0).to(tl.float32)
            count += mask.to(tl.float32)
            delta = x - mean
            mean = tl.where(mask, mean + delta / count, mean)
            m2 = tl.where(mask, m2 + delta * (x - mean), m2)
    total_mean, total_m2, total = tl.reduce((mean, m2, count), 0, welford)
    tl.store(mean_ptr + channel, total_mean)
    tl.store(rstd_ptr + channel, 1 / tl.sqrt(total_m2 / total + eps))


@triton.jit
def instance_norm_last(x_ptr, out_ptr, size, channels, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """x [batch, size, channels]: a program has a block of the channels of an image, rows by rows."""
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    base = x_ptr + tl.program_id(0).to(tl.int64) * size * channels
    out_base = out_ptr + tl.program_id(0).to(tl.int64) * size * channels
    in_channels = (c < channels)[None, :]
    sums = tl.zeros([ROWS, BLOCK], tl.float32)
    squares = tl.zeros([ROWS, BLOCK], tl.float32)
    for start in range(0, size, ROWS):
        r = start + tl.arange(0, ROWS)[:, None]
        x = tl.load(base + r * channels + c[None, :], mask=(r < size) & in_channels, other=0.0).to(tl.float32)
        sums += x
        squares += x * x
    mean = tl.sum(sums, axis=0) / size
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / size - mean * mean + eps)
    for start in range(0, size, ROWS):
        r = start + tl.arange(0, ROWS)[:, None]
        mask = (r < size) & in_channels
        x = tl.load(base + r * channels + c[None, :], mask=mask, other=0.0).to(tl.float32)
        y = (x - mean[None, :]) * rstd[None, :]
        tl.store(out_base + r * channels + c[None, :], y.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def softmax_middle(x_ptr, out_ptr, N, K, TILE_N: tl.constexpr, TILE_K: tl.constexpr):
    """Over the second of three axes: x [M, N, K]."""
    m = tl.program_id(1).to(tl.int64)
    k = tl.program_id(0) * TILE_K + tl.arange(0, TILE_K)
    n = tl.arange(0, TILE_N)
    offsets = m * N * K + n[:, None] * K + k[None, :]
    mask = (n[:, None] < N) & (k < K)[None, :]
    x = tl.load(x_ptr + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0)[None, :])
    out = e / tl.sum(e, 0)[None, :]
    tl.store(out_ptr + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def variance_axis0(x_ptr, mean_ptr, var_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Of columns, all rows by one program."""
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    in_columns = (c < columns)[None, :]
    sums = tl.zeros([ROWS, BLOCK], tl.float32)
    squares = tl.zeros([ROWS, BLOCK], tl.float32)
    for start in range(0, rows, ROWS):
        r = start + tl.arange(0, ROWS)[:, None]
        x = tl.load(x_ptr + r * columns + c[None, :], mask=(r < rows) & in_columns, other=0.0).to(tl.float32)
        sums += x
        squares += x * x
    mean = tl.sum(sums, 0) / rows
    tl.store(mean_ptr + c, mean, mask=c < columns)
    tl.store(var_ptr + c, tl.sum(squares, 0) / rows - mean * mean, mask=c < columns)


@triton.jit
def swiglu_quantise(x_ptr, out_ptr, scales_ptr, N, BLOCK: tl.constexpr):
    """SiLU times the other half, then fp8 with a scale for each 128."""
    row = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(x_ptr + row * 2 * N + i).to(tl.float32)
    up = tl.load(x_ptr + row * 2 * N + N + i).to(tl.float32)
    y = tl.reshape(gate * tl.sigmoid(gate) * up, [BLOCK // 128, 128])
    scale = tl.maximum(tl.max(tl.abs(y), axis=1), 1e-10) / 448.0
    q = (y / scale[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + row * N + i, tl.reshape(q, [BLOCK]))
    places = tl.program_id(1) * (BLOCK // 128) + tl.arange(0, BLOCK // 128)
    tl.store(scales_ptr + row * (N // 128) + places, scale)
