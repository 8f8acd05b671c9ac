"""Softmax and cross entropy over long rows, scans, searches, sums of columns, transposes, quantisation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.gpu.case import Case, Config, Output, Problem, Vendor, cdiv
from benchmarks.gpu.everyday.declare import case, config, empty, random

VOCABULARY = 128256
LARGEST_FP8 = 448.0


def cases(is_small: bool = False) -> Iterator[Case]:
    yield _softmax(*(3, 1500, 512) if is_small else (2048, 131072, 4096))
    wide = (5, 1700, 512) if is_small else (4096, VOCABULARY, 4096)
    yield _cross_entropy(*wide)
    yield _cross_entropy_backward(*wide)
    yield _cross_entropy_with_gradient(*wide)
    yield _cumsum(*(9, 200, 256) if is_small else (16384, 4096, 4096), kernel="cumsum")
    yield _cumsum(*(3, 1500, 512) if is_small else (1024, 131072, 2048), kernel="cumsum_blocks")
    yield _argmax(*(7, 1500, 512) if is_small else (2048, VOCABULARY, 4096))
    yield _top_k(*(21, 100, 4, 128) if is_small else (65536, 128, 8, 128))
    yield _column_sums(*(77, 300) if is_small else (16384, 8192))
    yield _transpose(*(77, 300) if is_small else (8192, 8192))
    yield _quantise_rows(*(9, 300, 512) if is_small else (16384, 4096, 4096))


def _row_case(
    name: str,
    kernel: str,
    parameters: tuple[Any, ...],
    shape: tuple[int, int],
    configs: tuple[Config, ...],
    make: Callable[[], Problem],
    bytes_of_each: float,
) -> Case:
    """A program for each row."""
    rows, columns = shape
    return _case(
        f"{name} {rows}x{columns}",
        kernel,
        parameters,
        configs,
        lambda meta: (rows,),
        make,
        bytes_of_each * rows * columns,
    )


def _case(
    name: str,
    kernel: str,
    parameters: tuple[Any, ...],
    configs: tuple[Config, ...],
    grid: Callable[[dict[str, Any]], tuple[int, ...]],
    make: Callable[[], Problem],
    num_bytes: float,
) -> Case:
    return case("rows", name, "everyday/row_kernels", kernel, parameters, configs, grid, make, num_bytes=num_bytes)


def _softmax(rows: int, columns: int, block: int) -> Case:
    def make() -> Problem:
        x, out = random(rows, columns), empty(rows, columns)
        return Problem((x, out), (Output(out, x.double().softmax(1)),), Vendor("torch", lambda: x.softmax(1)))

    configs = tuple(
        config(warps, BLOCK=size) for warps, size in ((8, block), (16, block), (16, 2 * block), (32, block))
    )
    parameters = ("*bf16", "*bf16", columns)
    return _row_case("softmax two passes", "softmax_two_passes", parameters, (rows, columns), configs, make, 4)


def _labels(rows: int, columns: int) -> Any:
    import torch  # deferred: --precompile needs none

    return torch.randint(columns, (rows,))


def _cross_entropy(rows: int, columns: int, block: int) -> Case:
    def make() -> Problem:
        from torch.nn.functional import cross_entropy  # deferred: as above

        logits, labels = random(rows, columns), _labels(rows, columns)
        loss, lse = empty(rows, dtype="float32"), empty(rows, dtype="float32")
        wide = logits.double()
        outputs = (
            Output(loss, cross_entropy(wide, labels, reduction="none"), 1e-5),
            Output(lse, wide.logsumexp(1), 1e-5),
        )
        vendor = Vendor("torch", lambda: cross_entropy(logits, labels, reduction="none"))
        return Problem((logits, labels, loss, lse), outputs, vendor)

    configs = (config(8, BLOCK=block), config(16, BLOCK=2 * block))
    parameters = ("*bf16", "*i64", "*fp32", "*fp32", columns)
    return _row_case("cross entropy", "cross_entropy", parameters, (rows, columns), configs, make, 2)


def _exact_gradient(logits: Any, labels: Any, scale: Any) -> Any:
    """Of `scale` times the loss of each row, in float64."""
    expected = logits.double().softmax(1)
    expected[range(len(labels)), labels] -= 1
    return expected.mul_(scale)


def _cross_entropy_backward(rows: int, columns: int, block: int) -> Case:
    def make() -> Problem:
        logits, labels = random(rows, columns), _labels(rows, columns)
        dloss = random(rows, dtype="float32")
        lse = logits.double().logsumexp(1).float()
        dlogits = empty(rows, columns)
        expected = _exact_gradient(logits, labels, dloss.double()[:, None])
        return Problem((logits, labels, lse, dloss, dlogits), (Output(dlogits, expected),))

    configs = (config(8, BLOCK=block), config(4, BLOCK=block // 2))
    return _case(
        f"cross entropy backward {rows}x{columns}",
        "cross_entropy_backward",
        ("*bf16", "*i64", "*fp32", "*fp32", "*bf16", columns),
        configs,
        lambda meta: (rows, cdiv(columns, meta["BLOCK"])),
        make,
        4 * rows * columns,
    )


def _cross_entropy_with_gradient(rows: int, columns: int, block: int) -> Case:
    scale = 1 / rows

    def make() -> Problem:
        from torch.nn.functional import cross_entropy  # deferred: as above

        logits, labels = random(rows, columns), _labels(rows, columns)
        loss, dlogits = empty(rows, dtype="float32"), empty(rows, columns)
        expected = cross_entropy(logits.double(), labels, reduction="none")
        outputs = (Output(loss, expected, 1e-5), Output(dlogits, _exact_gradient(logits, labels, scale)))
        return Problem((logits, labels, loss, dlogits), outputs)

    configs = (config(16, BLOCK=block), config(16, BLOCK=4 * block))
    parameters = ("*bf16", "*i64", "*fp32", "*bf16", columns, scale)
    name = "cross entropy with gradient"
    return _row_case(name, "cross_entropy_with_gradient", parameters, (rows, columns), configs, make, 4)


def _cumsum(rows: int, columns: int, block: int, kernel: str) -> Case:
    def make() -> Problem:
        x, out = random(rows, columns, dtype="float32"), empty(rows, columns, dtype="float32")
        return Problem((x, out), (Output(out, x.double().cumsum(1)),), Vendor("torch", lambda: x.cumsum(1)))

    sizes = (block, block // 2) if kernel == "cumsum_blocks" else (block,)
    configs = (*(config(4, BLOCK=size) for size in sizes), config(8, BLOCK=block))
    parameters = ("*fp32", "*fp32", columns)
    return _row_case(kernel.replace("_", " "), kernel, parameters, (rows, columns), configs, make, 8)


def _argmax(rows: int, columns: int, block: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        x, out = random(rows, columns, dtype="float32"), empty(rows, dtype="int32")
        return Problem((x, out), (Output(out, x.argmax(1), 0.0),), Vendor("torch", lambda: torch.argmax(x, 1)))

    configs = (config(8, BLOCK=block), config(16, BLOCK=block))
    return _row_case("argmax", "argmax", ("*fp32", "*i32", columns), (rows, columns), configs, make, 4)


def _top_k(rows: int, columns: int, k: int, block: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        x = random(rows, columns, dtype="float32")
        weights, places = empty(rows, k, dtype="float32"), empty(rows, k, dtype="int32")
        values, order = x.double().sort(dim=1, descending=True, stable=True)
        outputs = Output(weights, values[:, :k].softmax(1)), Output(places, order[:, :k], 0.0)
        return Problem((x, weights, places), outputs, Vendor("torch", lambda: torch.topk(x, k)[0].softmax(1)))

    return _case(
        f"top {k} of {columns}, {rows} rows",
        "top_k",
        ("*fp32", "*fp32", "*i32", rows, columns),
        tuple(config(4, K=k, ROWS=count, BLOCK=block) for count in (16, 4)),
        lambda meta: (cdiv(rows, meta["ROWS"]),),
        make,
        rows * (4 * columns + 8 * k),
    )


def _column_sums(rows: int, columns: int) -> Case:
    num_shares = min(rows, 16)

    def make() -> Problem:
        x, out = random(rows, columns), empty(columns, dtype="float32")
        return Problem((x, out), (Output(out, x.double().sum(0), 1e-5),), Vendor("torch", lambda: x.sum(0)), (out,))

    return _case(
        f"column sums {rows}x{columns}",
        "column_sums",
        ("*bf16", "*fp32", rows, columns, cdiv(rows, num_shares)),
        tuple(
            config(warps, ROWS=count, BLOCK=block)
            for warps, count, block in ((4, 16, 128), (4, 8, 256), (2, 8, 128), (8, 8, 512))
        ),
        lambda meta: (num_shares, cdiv(columns, meta["BLOCK"])),
        make,
        2 * rows * columns,
    )


def _transpose(rows: int, columns: int) -> Case:
    def make() -> Problem:
        x, out = random(rows, columns), empty(columns, rows)
        return Problem((x, out), (Output(out, x.T, 0.0),), Vendor("torch", lambda: x.T.contiguous()))

    return _case(
        f"transpose {rows}x{columns}",
        "transpose",
        ("*bf16", "*bf16", rows, columns),
        tuple(config(warps, BLOCK_M=m, BLOCK_N=n) for warps, m, n in ((4, 64, 64), (8, 128, 64), (8, 128, 128))),
        lambda meta: (cdiv(rows, meta["BLOCK_M"]), cdiv(columns, meta["BLOCK_N"])),
        make,
        4 * rows * columns,
    )


def _quantise_rows(rows: int, columns: int, block: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        x, out, scales = (
            random(rows, columns),
            empty(rows, columns, dtype="float8_e4m3fn"),
            empty(rows, dtype="float32"),
        )
        exact = x.double().abs().amax(1) / LARGEST_FP8
        expected = (x.float() / exact.float()[:, None]).to(torch.float8_e4m3fn).float()
        return Problem((x, out, scales), (Output(out, expected, 1e-2), Output(scales, exact, 1e-5)))

    configs = (config(8, BLOCK=block), config(4, BLOCK=block))
    parameters = ("*bf16", "*fp8e4nv", "*fp32", columns, LARGEST_FP8)
    return _row_case("quantise rows fp8", "quantise_rows", parameters, (rows, columns), configs, make, 3)
