"""Vector addition, and softmax and layer norm over rows, in fp32: what memory bandwidth bounds.

Rates count what must be read and written; the vendor's figure is that of a copy of an array of the same size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.gpu.case import Case, Config, Output, Problem, Vendor

NUM_ADDED = 2**27
SHAPES = ((32768, 1024), (16384, 4096), (8192, 16384))
EPS = 1e-5


def cases() -> Iterator[Case]:
    yield add()
    for make in (softmax, layer_norm):
        for rows, columns in SHAPES:
            yield make(rows, columns)


def add() -> Case:
    tiles = ((1024, 4), (2048, 8), (1024, 8), (4096, 8), (512, 4))
    configs = tuple(Config((("BLOCK", block),), warps, 1, f"{block} w{warps}") for block, warps in tiles)
    return Case(
        "elementwise",
        "add fp32 2^27",
        "add",
        ("*fp32",) * 3 + (NUM_ADDED,),
        configs,
        3,
        lambda meta: (-(-NUM_ADDED // meta["BLOCK"]),),
        3 * 4 * NUM_ADDED * 1e-9,
        "GB/s",
        _make_add,
    )


def softmax(rows: int, columns: int) -> Case:
    parameters = ("*fp32", "*fp32", columns, columns, columns)
    return _row_case("softmax", rows, columns, parameters, lambda: _make_softmax(rows, columns))


def layer_norm(rows: int, columns: int) -> Case:
    parameters = ("*fp32",) * 4 + (columns, columns, EPS)
    return _row_case("layer_norm", rows, columns, parameters, lambda: _make_layer_norm(rows, columns))


def _row_case(kernel: str, rows: int, columns: int, parameters: tuple[Any, ...], make: Callable[[], Problem]) -> Case:
    """One program for each row; several numbers of warps, those near 16 elements a thread first."""
    near = max(4, min(16, columns // 512))
    warps = (near, near * 2, near // 2) if near < 16 else (16, 32, 8)
    configs = tuple(Config((("BLOCK", columns),), count, 1, f"{columns} w{count}") for count in warps)
    return Case(
        "elementwise",
        f"{kernel.replace('_', ' ')} {rows}x{columns}",
        kernel,
        parameters,
        configs,
        2,
        lambda meta: (rows,),
        2 * 4 * rows * columns * 1e-9,
        "GB/s",
        make,
    )


def _copy(x: Any) -> Vendor:
    copied = x.new_empty(x.shape)
    return Vendor("copy", lambda: copied.copy_(x), 2 * x.numel() * x.element_size() * 1e-9)


def _random(*shape: int) -> Any:
    import torch  # deferred: --precompile needs none

    return torch.randn(shape, device="cuda", dtype=torch.float32)


def _make_add() -> Problem:
    x, y = _random(NUM_ADDED), _random(NUM_ADDED)
    out = x.new_empty(x.shape)
    return Problem((x, y, out), (Output(out, x.double() + y),), _copy(x))


def _make_softmax(rows: int, columns: int) -> Problem:
    x = _random(rows, columns)
    out = x.new_empty(x.shape)
    return Problem((x, out), (Output(out, x.double().softmax(1)),), _copy(x))


def _make_layer_norm(rows: int, columns: int) -> Problem:
    from torch.nn.functional import layer_norm as reference  # deferred: --precompile needs none

    x, weight, bias = _random(rows, columns), _random(columns), _random(columns)
    out = x.new_empty(x.shape)
    expected = reference(x.double(), (columns,), weight.double(), bias.double(), EPS)
    return Problem((x, weight, bias, out), (Output(out, expected),), _copy(x))
