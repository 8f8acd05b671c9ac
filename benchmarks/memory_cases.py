"""Cases that move memory, beside torch on as many threads; a sort beside NumPy's, which gives no positions either.

    for case in memory_cases(threads=2):
        print(case.measure())    # {"name": "add 4096 x 4096 bf16", "peer": "torch", ...}

Imported only where torch is installed. Arrays have 2 ** 24 elements, more than a cache holds, and rows of 4,096.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.nn.functional import gelu

import deuteron as triton
import deuteron.language as tl
from benchmarks.cases import Case
from benchmarks.programs import load_example
from benchmarks.torch_cases import NAMES, TOLERANCES

ROWS = COLUMNS = 4096
COUNT = ROWS * COLUMNS
BLOCK = 4096
GIGA = 1e-9


@triton.jit
def gelu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """By tanh."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float32)
    inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    tanh = 1 - 2 / (tl.exp(2 * inner) + 1)
    tl.store(out_ptr + i, 0.5 * x * (1 + tanh), mask=i < n)


@triton.jit
def dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keeps = tl.rand(seed, i) > p
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.where(keeps, x / (1 - p), 0.0), mask=i < n)


@triton.jit
def cumsum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * n + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < n
    tl.store(out_ptr + i, tl.cumsum(tl.load(x_ptr + i, mask=mask, other=0.0), 0), mask=mask)


@triton.jit
def sort_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * n + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < n
    tl.store(out_ptr + i, tl.sort(tl.load(x_ptr + i, mask=mask, other=float("inf"))), mask=mask)


@triton.jit
def gather_rows_kernel(x_ptr, index_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < n
    x = tl.load(x_ptr + tl.load(index_ptr + row) * n + column, mask=mask)
    tl.store(out_ptr + row * n + column, x, mask=mask)


@triton.jit
def layer_norm_backward_kernel(
    x_ptr, grad_ptr, weight_ptr, mean_ptr, rstd_ptr, out_ptr, parts_ptr, n, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """The gradient of ROWS rows, and their parts of the gradients of weight and bias, which are summed afterwards."""
    column = tl.arange(0, BLOCK)
    mask = column < n
    weight = tl.load(weight_ptr + column, mask=mask, other=0.0)
    weight_grad = tl.zeros((BLOCK,), tl.float32)
    bias_grad = tl.zeros((BLOCK,), tl.float32)
    for step in range(ROWS):
        row = tl.program_id(0) * ROWS + step
        x = tl.load(x_ptr + row * n + column, mask=mask, other=0.0)
        grad = tl.load(grad_ptr + row * n + column, mask=mask, other=0.0)
        rstd = tl.load(rstd_ptr + row)
        normal = tl.where(mask, (x - tl.load(mean_ptr + row)) * rstd, 0.0)
        scaled = grad * weight
        means = tl.sum(scaled * normal, 0) / n * normal + tl.sum(scaled, 0) / n
        tl.store(out_ptr + row * n + column, (scaled - means) * rstd, mask=mask)
        weight_grad += grad * normal
        bias_grad += grad
    part = parts_ptr + tl.program_id(0) * 2 * n + column
    tl.store(part, weight_grad, mask=mask)
    tl.store(part + n, bias_grad, mask=mask)


def memory_cases(threads: int) -> Iterator[Case]:
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    for dtype in (torch.float32, torch.bfloat16):
        yield from (_add(dtype), _gelu(dtype), _softmax(dtype), _layer_norm(dtype))
    yield from (_layer_norm_backward(), _cumsum(), _sort(), _gather(), _dropout())


def _case(name: str, dtype: torch.dtype, *parts: object, tolerance: float = 0.0) -> Case:
    """Beside torch, on as many threads."""
    return Case(f"{name} {NAMES[dtype]}", *parts, 1.0, True, "torch", tolerance or TOLERANCES[dtype])


def _add(dtype: torch.dtype) -> Case:
    kernel = load_example("vector_add").add_kernel
    x, y = torch.randn(2, ROWS, COLUMNS).to(dtype)
    out = torch.empty_like(x)
    return _case(
        "add 4096 x 4096",
        dtype,
        lambda: kernel[(COUNT // BLOCK,)](x, y, out, COUNT, BLOCK=BLOCK),
        lambda: torch.add(x, y, out=out),
        out,
        (x.double() + y.double()).numpy(),
        3 * x.nbytes * GIGA,
        "GB/s",
    )


def _gelu(dtype: torch.dtype) -> Case:
    x = torch.randn(ROWS, COLUMNS).to(dtype)
    out = torch.empty_like(x)
    return _case(
        "gelu 4096 x 4096",
        dtype,
        lambda: gelu_kernel[(COUNT // BLOCK,)](x, out, COUNT, BLOCK=BLOCK),
        lambda: torch.ops.aten.gelu.out(x, approximate="tanh", out=out),
        out,
        gelu(x.double(), approximate="tanh").numpy(),
        2 * x.nbytes * GIGA,
        "GB/s",
    )


def _softmax(dtype: torch.dtype) -> Case:
    kernel = load_example("softmax").softmax_kernel
    x = torch.randn(ROWS, COLUMNS).to(dtype)
    out = torch.empty_like(x)
    return _case(
        "softmax 4096 x 4096",
        dtype,
        lambda: kernel[(ROWS,)](x, out, COLUMNS, COLUMNS, COLUMNS, BLOCK=BLOCK),
        lambda: torch.softmax(x, 1, out=out),
        out,
        torch.softmax(x.double(), 1).numpy(),
        2 * x.nbytes * GIGA,
        "GB/s",
    )


def _layer_norm(dtype: torch.dtype) -> Case:
    kernel = load_example("layer_norm").layer_norm_kernel
    x = torch.randn(ROWS, COLUMNS).to(dtype)
    weight, bias = torch.randn(2, COLUMNS).to(dtype)
    out, mean, rstd = torch.empty_like(x), torch.empty(ROWS), torch.empty(ROWS)
    normalise = torch.ops.aten.native_layer_norm
    return _case(
        "layer norm 4096 x 4096",
        dtype,
        lambda: kernel[(ROWS,)](x, out, weight, bias, mean, rstd, COLUMNS, COLUMNS, 1e-5, BLOCK=BLOCK),
        lambda: normalise(x, (COLUMNS,), weight, bias, 1e-5)[0],
        out,
        normalise(x.double(), (COLUMNS,), weight.double(), bias.double(), 1e-5)[0].numpy(),
        2 * x.nbytes * GIGA,
        "GB/s",
    )


def _layer_norm_backward() -> Case:
    """Of the input; the gradients of weight and bias are computed too, and not compared."""
    x, grad = torch.randn(2, ROWS, COLUMNS)
    weight, bias = torch.randn(2, COLUMNS)
    _, mean, rstd = torch.ops.aten.native_layer_norm(x, (COLUMNS,), weight, bias, 1e-5)
    backward = torch.ops.aten.native_layer_norm_backward
    programs = 64
    out, parts = torch.empty_like(x), torch.empty(programs, 2, COLUMNS)

    def ours() -> None:
        args = (x, grad, weight, mean, rstd, out, parts, COLUMNS)
        layer_norm_backward_kernel[(programs,)](*args, ROWS=ROWS // programs, BLOCK=BLOCK)
        parts.sum(0)

    inputs = [tensor.double() for tensor in (grad, x)]
    known = [tensor.double() for tensor in (mean, rstd, weight, bias)]
    return _case(
        "layer norm backward 4096 x 4096",
        torch.float32,
        ours,
        lambda: backward(grad, x, (COLUMNS,), mean, rstd, weight, bias, (True, True, True))[0],
        out,
        backward(*inputs, (COLUMNS,), *known, (True, False, False))[0].numpy(),
        3 * x.nbytes * GIGA,
        "GB/s",
    )


def _cumsum() -> Case:
    x = torch.randn(ROWS, COLUMNS)
    out = torch.empty_like(x)
    return _case(
        "cumsum of rows of 4096",
        torch.float32,
        lambda: cumsum_kernel[(ROWS,)](x, out, COLUMNS, BLOCK=BLOCK),
        lambda: torch.cumsum(x, 1, out=out),
        out,
        torch.cumsum(x.double(), 1).numpy(),
        2 * x.nbytes * GIGA,
        "GB/s",
    )


def _sort() -> Case:
    x = torch.randn(ROWS, 256)
    out, copy = torch.empty_like(x), torch.empty_like(x)

    def with_numpy() -> torch.Tensor:
        copy.copy_(x)
        copy.numpy().sort(1)
        return copy

    return Case(
        "sort of rows of 256 fp32",
        lambda: sort_kernel[(ROWS,)](x, out, 256, BLOCK=256),
        with_numpy,
        out,
        x.double().sort(1)[0].numpy(),
        2 * x.nbytes * GIGA,
        "GB/s",
    )


def _gather() -> Case:
    """Rows of a table, as an embedding reads them."""
    x, index = torch.randn(32768, 1024), torch.randint(0, 32768, (16384,))
    out = torch.empty(16384, 1024)
    return _case(
        "gather 16384 rows of 1024",
        torch.float32,
        lambda: gather_rows_kernel[(16384,)](x, index, out, 1024, BLOCK=1024),
        lambda: torch.index_select(x, 0, index, out=out),
        out,
        x.double()[index].numpy(),
        2 * out.nbytes * GIGA,
        "GB/s",
    )


def _dropout() -> Case:
    """What is kept is random: only that it is x / (1 - p) or 0 can be said, of ones."""
    x = torch.ones(ROWS, COLUMNS)
    out = torch.empty_like(x)
    return _case(
        "dropout 4096 x 4096",
        torch.float32,
        lambda: dropout_kernel[(COUNT // BLOCK,)](x, out, COUNT, 0.5, 7, BLOCK=BLOCK),
        lambda: torch.dropout(x, 0.5, True),
        out,
        torch.ones(ROWS, COLUMNS).double().numpy(),
        2 * x.nbytes * GIGA,
        "GB/s",
        tolerance=1.1,
    )
