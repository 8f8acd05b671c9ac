"""What goes along rows or columns: softmax and cross entropy over rows too long for registers, scans, searches."""

import triton
import triton.language as tl


@triton.jit
def softmax_two_passes(x_ptr, out_ptr, num_columns, BLOCK: tl.constexpr):
    """Maximum and sum in one pass over the row, block by block; the second pass writes."""
    base = tl.program_id(0).to(tl.int64) * num_columns
    columns = tl.arange(0, BLOCK)
    largest = tl.full([BLOCK], -float("inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, num_columns, BLOCK):
        mask = start + columns < num_columns
        x = tl.load(x_ptr + base + start + columns, mask=mask, other=-1.0e30).to(tl.float32)
        new = tl.maximum(largest, x)
        total = total * tl.exp(largest - new) + tl.exp(x - new)
        largest = new
    row_max = tl.max(largest, axis=0)
    row_sum = tl.sum(total * tl.exp(largest - row_max), axis=0)
    for start in range(0, num_columns, BLOCK):
        mask = start + columns < num_columns
        x = tl.load(x_ptr + base + start + columns, mask=mask, other=0.0).to(tl.float32)
        out = tl.exp(x - row_max) / row_sum
        tl.store(out_ptr + base + start + columns, out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def log_sum_exp(row_ptr, num_columns, BLOCK: tl.constexpr):
    """Online: the maximum and the sum of exponentials beside it are those of the row so far."""
    columns = tl.arange(0, BLOCK)
    row_max = -float("inf")
    row_sum = 0.0
    for start in range(0, num_columns, BLOCK):
        x = tl.load(row_ptr + start + columns, mask=start + columns < num_columns, other=-float("inf")).to(tl.float32)
        new_max = tl.maximum(row_max, tl.max(x, axis=0))
        row_sum = row_sum * tl.exp(row_max - new_max) + tl.sum(tl.exp(x - new_max), axis=0)
        row_max = new_max
    return row_max + tl.log(row_sum)


@triton.jit
def cross_entropy(logits_ptr, labels_ptr, loss_ptr, lse_ptr, num_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels_ptr + row)
    lse = log_sum_exp(logits_ptr + row * num_columns, num_columns, BLOCK)
    own = tl.load(logits_ptr + row * num_columns + label).to(tl.float32)
    tl.store(loss_ptr + row, lse - own)
    tl.store(lse_ptr + row, lse)


@triton.jit
def cross_entropy_backward(logits_ptr, labels_ptr, lse_ptr, dloss_ptr, dlogits_ptr, num_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < num_columns
    label = tl.load(labels_ptr + row)
    lse = tl.load(lse_ptr + row)
    dloss = tl.load(dloss_ptr + row)
    x = tl.load(logits_ptr + row * num_columns + columns, mask=mask, other=0.0).to(tl.float32)
    gradient = dloss * (tl.exp(x - lse) - tl.where(columns == label, 1.0, 0.0))
    tl.store(dlogits_ptr + row * num_columns + columns, gradient.to(dlogits_ptr.dtype.element_ty), mask=mask)


@triton.jit
def cross_entropy_with_gradient(logits_ptr, labels_ptr, loss_ptr, dlogits_ptr, num_columns, scale, BLOCK: tl.constexpr):
    """Loss and gradient at once: two loops over the row, of which the second finds it in the L2."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    label = tl.load(labels_ptr + row)
    lse = log_sum_exp(logits_ptr + row * num_columns, num_columns, BLOCK)
    for start in range(0, num_columns, BLOCK):
        place = start + columns
        mask = place < num_columns
        x = tl.load(logits_ptr + row * num_columns + place, mask=mask, other=0.0).to(tl.float32)
        gradient = scale * (tl.exp(x - lse) - tl.where(place == label, 1.0, 0.0))
        tl.store(dlogits_ptr + row * num_columns + place, gradient.to(dlogits_ptr.dtype.element_ty), mask=mask)
    own = tl.load(logits_ptr + row * num_columns + label).to(tl.float32)
    tl.store(loss_ptr + row, lse - own)


@triton.jit
def cumsum(x_ptr, out_ptr, num_columns, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * num_columns
    columns = tl.arange(0, BLOCK)
    mask = columns < num_columns
    x = tl.load(x_ptr + base + columns, mask=mask, other=0.0)
    tl.store(out_ptr + base + columns, tl.cumsum(x, axis=0), mask=mask)


@triton.jit
def cumsum_blocks(x_ptr, out_ptr, num_columns, BLOCK: tl.constexpr):
    """Long rows: what the blocks before add up to is carried."""
    base = tl.program_id(0).to(tl.int64) * num_columns
    columns = tl.arange(0, BLOCK)
    before = 0.0
    for start in range(0, num_columns, BLOCK):
        mask = start + columns < num_columns
        x = tl.load(x_ptr + base + start + columns, mask=mask, other=0.0)
        tl.store(out_ptr + base + start + columns, before + tl.cumsum(x, axis=0), mask=mask)
        before += tl.sum(x, axis=0)


@triton.jit
def argmax(x_ptr, out_ptr, num_columns, BLOCK: tl.constexpr):
    """The block's elements each keep the largest of their own columns; one reduction in the end."""
    base = tl.program_id(0).to(tl.int64) * num_columns
    columns = tl.arange(0, BLOCK)
    best = tl.full([BLOCK], -float("inf"), dtype=tl.float32)
    place = tl.zeros([BLOCK], dtype=tl.int32)
    for start in range(0, num_columns, BLOCK):
        x = tl.load(x_ptr + base + start + columns, mask=start + columns < num_columns, other=-float("inf"))
        place = tl.where(x > best, start + columns, place)
        best = tl.maximum(best, x)
    winner = tl.argmax(best, axis=0)
    tl.store(out_ptr + tl.program_id(0), tl.sum(tl.where(columns == winner, place, 0), axis=0))


@triton.jit
def top_k(
    x_ptr, weights_ptr, places_ptr, num_rows, num_columns, K: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """The gate of a mixture of experts: of each row the largest K, one after the other, and their softmax."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)
    in_rows = rows < num_rows
    mask = in_rows[:, None] & (columns < num_columns)[None, :]
    x = tl.load(x_ptr + rows[:, None] * num_columns + columns[None, :], mask=mask, other=-float("inf"))
    total = tl.zeros([ROWS], dtype=tl.float32)
    first = tl.max(x, axis=1)
    ks = tl.arange(0, K)
    weights = tl.zeros([ROWS, K], dtype=tl.float32)
    places = tl.zeros([ROWS, K], dtype=tl.int32)
    for k in tl.static_range(K):
        value, place = tl.max(x, axis=1, return_indices=True)
        weight = tl.exp(value - first)
        total += weight
        weights = tl.where(ks[None, :] == k, weight[:, None], weights)
        places = tl.where(ks[None, :] == k, place[:, None], places)
        x = tl.where(columns[None, :] == place[:, None], -float("inf"), x)
    out = rows[:, None] * K + ks[None, :]
    tl.store(weights_ptr + out, weights / total[:, None], mask=in_rows[:, None])
    tl.store(places_ptr + out, places, mask=in_rows[:, None])


@triton.jit
def column_sums(x_ptr, out_ptr, num_rows, num_columns, rows_per_program, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """The gradient of a bias: a program sums its share of the rows, and adds what it has to memory."""
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    in_columns = columns < num_columns
    first = tl.program_id(0) * rows_per_program
    last = min(first + rows_per_program, num_rows)
    total = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    for start in range(first, last, ROWS):
        rows = start + tl.arange(0, ROWS)
        mask = (rows < last)[:, None] & in_columns[None, :]
        x = tl.load(x_ptr + rows.to(tl.int64)[:, None] * num_columns + columns[None, :], mask=mask, other=0.0)
        total += x.to(tl.float32)
    tl.atomic_add(out_ptr + columns, tl.sum(total, axis=0), mask=in_columns)


@triton.jit
def transpose(x_ptr, out_ptr, num_rows, num_columns, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows < num_rows)[:, None] & (columns < num_columns)[None, :]
    x = tl.load(x_ptr + rows[:, None] * num_columns + columns[None, :], mask=mask)
    tl.store(out_ptr + columns[:, None] * num_rows + rows[None, :], tl.trans(x), mask=tl.trans(mask))


@triton.jit
def quantise_rows(x_ptr, out_ptr, scales_ptr, num_columns, largest, BLOCK: tl.constexpr):
    """Each row divided by its scale, so that its largest element becomes the type's."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < num_columns
    x = tl.load(x_ptr + row * num_columns + columns, mask=mask, other=0.0).to(tl.float32)
    scale = tl.max(tl.abs(x), axis=0) / largest
    tl.store(out_ptr + row * num_columns + columns, (x / scale).to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(scales_ptr + row, scale)
