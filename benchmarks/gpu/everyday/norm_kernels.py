"""Norms over rows, forward and backward: a program has a row, or loops over its share of the rows."""

import triton
import triton.language as tl


@triton.jit
def layer_norm(x_ptr, weight_ptr, bias_ptr, out_ptr, mean_ptr, rstd_ptr, stride, num_columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < num_columns
    x = tl.load(x_ptr + row * stride + columns, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / num_columns
    centred = tl.where(mask, x - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / num_columns + eps)
    weight = tl.load(weight_ptr + columns, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + columns, mask=mask).to(tl.float32)
    out = centred * rstd * weight + bias
    tl.store(out_ptr + row * stride + columns, out.to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


@triton.jit
def layer_norm_backward(
    dout_ptr,
    x_ptr,
    weight_ptr,
    mean_ptr,
    rstd_ptr,
    dx_ptr,
    dweight_ptr,
    dbias_ptr,
    stride,
    num_rows,
    num_columns,
    rows_per_program,
    BLOCK: tl.constexpr,
):
    """Gradients of weight and bias are summed over the program's rows, then added to memory."""
    columns = tl.arange(0, BLOCK)
    mask = columns < num_columns
    weight = tl.load(weight_ptr + columns, mask=mask, other=0.0).to(tl.float32)
    dweight = tl.zeros([BLOCK], dtype=tl.float32)
    dbias = tl.zeros([BLOCK], dtype=tl.float32)
    first = tl.program_id(0) * rows_per_program
    for row in range(first, min(first + rows_per_program, num_rows)):
        offset = row.to(tl.int64) * stride
        x = tl.load(x_ptr + offset + columns, mask=mask, other=0.0).to(tl.float32)
        dout = tl.load(dout_ptr + offset + columns, mask=mask, other=0.0).to(tl.float32)
        mean = tl.load(mean_ptr + row)
        rstd = tl.load(rstd_ptr + row)
        normal = tl.where(mask, (x - mean) * rstd, 0.0)
        scaled = dout * weight
        along = tl.sum(scaled * normal, axis=0) / num_columns
        shift = tl.sum(scaled, axis=0) / num_columns
        dx = (scaled - normal * along - shift) * rstd
        tl.store(dx_ptr + offset + columns, dx.to(dx_ptr.dtype.element_ty), mask=mask)
        dweight += dout * normal
        dbias += dout
    tl.atomic_add(dweight_ptr + columns, dweight, mask=mask)
    tl.atomic_add(dbias_ptr + columns, dbias, mask=mask)


@triton.jit
def rms_norm(x_ptr, weight_ptr, out_ptr, rstd_ptr, stride, num_columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < num_columns
    x = tl.load(x_ptr + row * stride + columns, mask=mask, other=0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / num_columns + eps)
    weight = tl.load(weight_ptr + columns, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * stride + columns, (x * rstd * weight).to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(rstd_ptr + row, rstd)


@triton.jit
def add_rms_norm(x_ptr, residual_ptr, weight_ptr, sum_ptr, out_ptr, stride, num_columns, eps, BLOCK: tl.constexpr):
    """The sum is what the next layer adds to; it is rounded before it is normalised."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < num_columns
    x = tl.load(x_ptr + row * stride + columns, mask=mask, other=0.0)
    residual = tl.load(residual_ptr + row * stride + columns, mask=mask, other=0.0)
    total = (x.to(tl.float32) + residual.to(tl.float32)).to(sum_ptr.dtype.element_ty)
    tl.store(sum_ptr + row * stride + columns, total, mask=mask)
    value = total.to(tl.float32)
    rstd = tl.rsqrt(tl.sum(value * value, axis=0) / num_columns + eps)
    weight = tl.load(weight_ptr + columns, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * stride + columns, (value * rstd * weight).to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def rms_norm_two_passes(x_ptr, weight_ptr, out_ptr, stride, num_columns, eps, BLOCK: tl.constexpr):
    """Rows that are read twice, block by block; the second time they come from the L2."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, num_columns, BLOCK):
        mask = start + columns < num_columns
        x = tl.load(x_ptr + row * stride + start + columns, mask=mask, other=0.0).to(tl.float32)
        squares += x * x
    rstd = tl.rsqrt(tl.sum(squares, axis=0) / num_columns + eps)
    for start in range(0, num_columns, BLOCK):
        mask = start + columns < num_columns
        x = tl.load(x_ptr + row * stride + start + columns, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + start + columns, mask=mask, other=0.0).to(tl.float32)
        out = x * rstd * weight
        tl.store(out_ptr + row * stride + start + columns, out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def rms_norm_backward(
    dout_ptr,
    x_ptr,
    weight_ptr,
    rstd_ptr,
    dx_ptr,
    dweight_ptr,
    stride,
    num_rows,
    num_columns,
    BLOCK: tl.constexpr,
):
    """A program has every n-th row; each writes its own sum for the weight, which a sum over programs follows."""
    columns = tl.arange(0, BLOCK)
    mask = columns < num_columns
    weight = tl.load(weight_ptr + columns, mask=mask, other=0.0).to(tl.float32)
    dweight = tl.zeros([BLOCK], dtype=tl.float32)
    for row in range(tl.program_id(0), num_rows, tl.num_programs(0)):
        offset = row.to(tl.int64) * stride
        x = tl.load(x_ptr + offset + columns, mask=mask, other=0.0).to(tl.float32)
        dout = tl.load(dout_ptr + offset + columns, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row)
        normal = x * rstd
        scaled = dout * weight
        along = tl.sum(scaled * normal, axis=0) / num_columns
        dx = (scaled - normal * along) * rstd
        tl.store(dx_ptr + offset + columns, dx.to(dx_ptr.dtype.element_ty), mask=mask)
        dweight += dout * normal
    tl.store(dweight_ptr + tl.program_id(0).to(tl.int64) * num_columns + columns, dweight, mask=mask)
