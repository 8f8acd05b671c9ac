"""Statistics over any axis, losses of distributions, lists of rows that are gathered, added, sorted, counted."""

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
def kl_divergence(pred_ptr, truth_ptr, loss_ptr, V, eps, BLOCK: tl.constexpr):
    """Of logarithms and probabilities, a row a program."""
    row = tl.program_id(0).to(tl.int64)
    total = 0.0
    for start in range(0, V, BLOCK):
        i = start + tl.arange(0, BLOCK)
        mask = i < V
        y = tl.load(pred_ptr + row * V + i, mask=mask, other=0.0)
        t = tl.load(truth_ptr + row * V + i, mask=mask, other=0.0)
        total += tl.sum(t * (tl.log(tl.maximum(t, eps)) - y), axis=0)
    tl.store(loss_ptr + row, total)


@triton.jit
def jensen_shannon(x_ptr, y_ptr, loss_ptr, dx_ptr, beta, scale, V, BLOCK: tl.constexpr):
    """Generalised by beta, of logarithms of probabilities; the loss of each element, and the gradient."""
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, V, BLOCK):
        i = start + tl.arange(0, BLOCK)
        mask = i < V
        x = tl.load(x_ptr + row * V + i, mask=mask, other=-float("inf")).to(tl.float32)
        y = tl.load(y_ptr + row * V + i, mask=mask, other=-float("inf")).to(tl.float32)
        largest = tl.maximum(tl.max(x, axis=0), tl.max(y, axis=0))
        q = tl.exp(x - largest) * tl.exp(largest)
        p = tl.exp(y - largest) * tl.exp(largest)
        m = beta * p + (1 - beta) * q
        log_m = tl.log(m)
        loss = beta * p * (y - log_m) + (1 - beta) * q * (x - log_m)
        dx = (1 - beta) * q * (x - log_m)
        tl.store(loss_ptr + row * V + i, loss * scale, mask=mask)
        tl.store(dx_ptr + row * V + i, (dx * scale).to(dx_ptr.dtype.element_ty), mask=mask)


@triton.jit
def smooth_cross_entropy(
    logits_ptr, labels_ptr, loss_ptr, z_ptr, stride, V, eps, z_weight, count, ignored, BLOCK: tl.constexpr
):
    """Label smoothing and the z loss; the gradient goes where the logits were (in another array here)."""
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels_ptr + row)
    logits_ptr += row * stride
    z_ptr += row * stride
    if label == ignored:
        for start in range(0, V, BLOCK):
            i = start + tl.arange(0, BLOCK)
            tl.store(z_ptr + i, 0.0, mask=i < V)
        tl.store(loss_ptr + row, 0.0)
        return
    m = float("-inf")
    d = 0.0
    own = tl.load(logits_ptr + label).to(tl.float32)
    scaled = 0.0
    smooth = eps / V
    for start in range(0, V, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + i, mask=i < V, other=float("-inf")).to(tl.float32)
        scaled += tl.sum(tl.where(i < V, -smooth * x, 0.0))
        new = tl.maximum(m, tl.max(x))
        d = d * tl.exp(m - new) + tl.sum(tl.exp(x - new))
        m = new
    lse = m + tl.log(d)
    for start in range(0, V, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + i, mask=i < V, other=float("-inf")).to(tl.float32)
        p = tl.exp(x - m) / d
        p += 2 * z_weight * lse * p
        p += -smooth
        p = tl.where(i != label, p, p - (1 - eps))
        tl.store(z_ptr + i, (p / count).to(z_ptr.dtype.element_ty), mask=i < V)
    loss = (lse - own) * (1 - eps) + scaled + eps * lse + z_weight * lse * lse
    tl.store(loss_ptr + row, loss / count)


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


@triton.jit
def argsort_rows(x_ptr, values_ptr, index_ptr, N: tl.constexpr, ROWS: tl.constexpr):
    """By keys that hold the value, made an integer whose order is the float's, and the place."""
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    n = tl.arange(0, N)
    x = tl.load(x_ptr + r[:, None] * N + n[None, :])
    bits = x.to(tl.int32, bitcast=True)
    bits = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    keys = (bits.to(tl.int64) << 32) | n[None, :].to(tl.int64)
    keys = tl.sort(keys, dim=1)
    places = (keys & 0xFFFFFFFF).to(tl.int32)
    bits = (keys >> 32).to(tl.int32)
    bits = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    tl.store(values_ptr + r[:, None] * N + n[None, :], bits.to(tl.float32, bitcast=True))
    tl.store(index_ptr + r[:, None] * N + n[None, :], places)


@triton.jit
def larger(value_a, index_a, value_b, index_b):
    is_a = (value_a > value_b) | ((value_a == value_b) & (index_a > index_b))
    return tl.where(is_a, value_a, value_b), tl.where(is_a, index_a, index_b)


@triton.jit
def cumulative_max(x_ptr, values_ptr, index_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + i, mask=i < N, other=-float("inf"))
    values, index = tl.associative_scan((x, i), 0, larger)
    tl.store(values_ptr + row * N + i, values, mask=i < N)
    tl.store(index_ptr + row * N + i, index.to(tl.int64), mask=i < N)


@triton.jit
def add_scans(value_a, flag_a, value_b, flag_b):
    return tl.where(flag_b != 0, value_b, value_a + value_b), flag_a | flag_b


@triton.jit
def segmented_scan(x_ptr, flags_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """Sums that begin anew at each flag, in rows."""
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + i, mask=i < N, other=0.0)
    flags = tl.load(flags_ptr + row * N + i, mask=i < N, other=0).to(tl.int32)
    out, _ = tl.associative_scan((x, flags), 0, add_scans)
    tl.store(out_ptr + row * N + i, out, mask=i < N)


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
def radix_counts(x_ptr, counts_ptr, n, shift, BINS: tl.constexpr, BLOCK: tl.constexpr):
    """A pass of a radix sort: how many of each block have each digit; counts [BINS, blocks]."""
    block = tl.program_id(0)
    i = block * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    digits = (x >> shift) & (BINS - 1)
    counts = tl.histogram(digits, BINS)
    tl.store(counts_ptr + tl.arange(0, BINS) * tl.num_programs(0) + block, counts)


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
