"""Products that share out k, of groups and many small matrices, of odd strides, and with more than a product."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.gpu.case import Case, Config, Output, Problem, Vendor, cdiv
from benchmarks.gpu.everyday.declare import case, config, empty, random

NUM_MULTIPROCESSORS = 132
Shape = tuple[int, int, int]
# BLOCK_M, BLOCK_N, BLOCK_K, warps, stages
SMALL_TILES = ((16, 32, 32, 4, 2),)
LARGE_TILES = ((128, 256, 64, 8, 3), (128, 128, 64, 4, 4))


def cases(is_small: bool = False) -> Iterator[Case]:
    yield _split_k(*((5, 40, 128), 2, SMALL_TILES) if is_small else ((16, 4096, 14336), 7, ((16, 64, 128, 4, 4),)))
    if not is_small:
        yield _split_k((128, 4096, 14336), 4, ((128, 128, 64, 8, 3), (64, 128, 64, 4, 4)))
    yield _stream_k(*((37, 40, 96), SMALL_TILES) if is_small else ((2048, 4352, 8192), LARGE_TILES[1:]))
    yield _grouped(*(3, 37, 40, 64, SMALL_TILES) if is_small else (16, 8192, 4096, 2048, LARGE_TILES[1:]))
    yield _batched(*(3, (13, 20, 27)) if is_small else (16384, (64, 64, 64)))
    yield _ragged(
        *((37, 41, 67), SMALL_TILES) if is_small else ((4095, 4093, 4091), ((128, 128, 64, 8, 3), (128, 128, 32, 4, 3)))
    )
    large = ((37, 40, 96), SMALL_TILES) if is_small else ((4096, 8192, 4096), LARGE_TILES)
    yield _with_bias_and_gelu(*large)
    gated_tiles = SMALL_TILES if is_small else ((128, 128, 64, 8, 3), (64, 128, 64, 4, 3))
    yield _gated((37, 40, 96) if is_small else (4096, 14336, 4096), gated_tiles)
    if not is_small:
        yield _gated((16, 14336, 4096), ((16, 64, 128, 4, 4), (16, 32, 128, 4, 4)))
    yield _linear_cross_entropy(
        *((37, 50, 64), 32, SMALL_TILES)
        if is_small
        else ((2048, 128256, 4096), 128, ((128, 128, 64, 8, 3), (128, 128, 64, 4, 4)))
    )


def _configs(tiles: tuple[tuple[int, ...], ...]) -> tuple[Config, ...]:
    return tuple(config(warps, stages, BLOCK_M=m, BLOCK_N=n, BLOCK_K=k) for m, n, k, warps, stages in tiles)


def _case(
    name: str,
    kernel: str,
    parameters: tuple[Any, ...],
    configs: tuple[Config, ...],
    grid: Callable[[dict[str, Any]], tuple[int, ...]],
    make: Callable[[], Problem],
    num_bytes: float,
    operations: float,
    source: str = "everyday/shared_product_kernels",
) -> Case:
    return case(
        "shared products",
        name,
        source,
        kernel,
        parameters,
        configs,
        grid,
        make,
        num_bytes=num_bytes,
        operations=operations,
    )


def _num_bytes(m: int, n: int, k: int) -> int:
    return 2 * (m * n + m * k + n * k)


def _tile_grid(m: int, n: int) -> Callable[[dict[str, Any]], tuple[int, ...]]:
    return lambda meta: (cdiv(m, meta["BLOCK_M"]), cdiv(n, meta["BLOCK_N"]))


def _label(m: int, n: int, k: int) -> str:
    return f"{m}x{n}x{k}"


def _into_fp32(m: int, n: int, k: int) -> Callable[[], Problem]:
    def make() -> Problem:
        a, b, out = random(m, k), random(k, n), empty(m, n, dtype="float32")
        vendor = Vendor("cuBLAS", lambda: a @ b)
        return Problem((a, b, out), (Output(out, a.double() @ b.double(), 1e-5),), vendor, zeroed=(out,))

    return make


def _split_k(shape: Shape, num_shares: int, tiles: Any) -> Case:
    m, n, k = shape
    return _case(
        f"split k {_label(*shape)} by {num_shares}",
        "split_k",
        ("*bf16", "*bf16", "*fp32", m, n, k, k // num_shares),
        _configs(tiles),
        lambda meta: (cdiv(m, meta["BLOCK_M"]), cdiv(n, meta["BLOCK_N"]), num_shares),
        _into_fp32(*shape),
        _num_bytes(*shape),
        2 * m * n * k,
    )


def _stream_k(shape: Shape, tiles: Any) -> Case:
    m, n, k = shape
    return _case(
        f"stream k {_label(*shape)}",
        "stream_k",
        ("*bf16", "*bf16", "*fp32", m, n, k),
        _configs(tiles),
        lambda meta: (NUM_MULTIPROCESSORS if m > 64 else 3,),
        _into_fp32(*shape),
        _num_bytes(*shape),
        2 * m * n * k,
    )


def _grouped(num_groups: int, rows: int, n: int, k: int, tiles: Any) -> Case:
    def make() -> Problem:
        import torch  # deferred: --precompile needs none

        a, b, out = random(rows, k), random(num_groups, n, k), empty(rows, n)
        inner = torch.randint(rows, (num_groups - 1,)).sort().values.tolist()
        ends = [0, *inner, rows]
        starts = torch.tensor(ends, dtype=torch.int32)
        parts = [a[ends[i] : ends[i + 1]].double() @ b[i].double().T for i in range(num_groups)]
        return Problem((a, b, out, starts), (Output(out, torch.cat(parts)),))

    return _case(
        f"grouped {num_groups} of {_label(rows, n, k)}",
        "grouped",
        ("*bf16", "*bf16", "*bf16", "*i32", num_groups, n, k),
        _configs(tiles),
        lambda meta: (NUM_MULTIPROCESSORS if rows > 64 else 3,),
        make,
        2 * (rows * (n + k) + num_groups * n * k),
        2 * rows * n * k,
    )


def _batched(batches: int, shape: Shape) -> Case:
    m, n, k = shape

    def make() -> Problem:
        import torch  # deferred: as above

        a, b, out = random(batches, m, k), random(batches, k, n), empty(batches, m, n)
        expected = a.double() @ b.double()
        return Problem((a, b, out), (Output(out, expected),), Vendor("cuBLAS", lambda: torch.bmm(a, b)))

    blocks = (64, 64, 64) if k > 32 else (16, 32, 32)
    return _case(
        f"batched {batches} of {_label(*shape)}",
        "batched",
        ("*bf16", "*bf16", "*bf16", m, n, k),
        _configs(((*blocks, 4, 1), (*blocks, 2, 1))),
        lambda meta: (batches,),
        make,
        batches * _num_bytes(*shape),
        2 * batches * m * n * k,
    )


def _ragged(shape: Shape, tiles: Any) -> Case:
    """Sizes and strides that are odd: `matmul` of the other benchmark."""
    m, n, k = shape

    def make() -> Problem:
        a, b, out = random(m, k), random(k, n), empty(m, n)
        return Problem((a, b, out), (Output(out, a.double() @ b.double()),), Vendor("cuBLAS", lambda: a @ b))

    configs = tuple(
        config(warps, stages, BLOCK_M=bm, BLOCK_N=bn, BLOCK_K=bk, GROUP_M=8, WRAP=False)
        for bm, bn, bk, warps, stages in tiles
    )
    return _case(
        f"ragged {_label(*shape)}",
        "matmul",
        ("*bf16",) * 3 + (m, n, k, k, 1, n, 1, n, 1),
        configs,
        lambda meta: (cdiv(m, meta["BLOCK_M"]) * cdiv(n, meta["BLOCK_N"]),),
        make,
        _num_bytes(*shape),
        2 * m * n * k,
        source="kernels",
    )


def _with_bias_and_gelu(shape: Shape, tiles: Any) -> Case:
    m, n, k = shape

    def make() -> Problem:
        a, b, bias, residual = random(m, k), random(k, n, scale=k**-0.5), random(n), random(m, n)
        out = empty(m, n)
        wide = a.double() @ b.double() + bias.double()
        expected = wide * (1.702 * wide).sigmoid() + residual.double()
        return Problem((a, b, bias, residual, out), (Output(out, expected),), Vendor("cuBLAS, no more", lambda: a @ b))

    name, num_bytes = f"with bias, gelu {_label(*shape)}", _num_bytes(*shape) + 2 * m * n
    parameters = ("*bf16",) * 5 + shape
    return _case(
        name, "with_bias_and_gelu", parameters, _configs(tiles), _tile_grid(m, n), make, num_bytes, 2 * m * n * k
    )


def _gated(shape: Shape, tiles: Any) -> Case:
    m, n, k = shape

    def make() -> Problem:
        from torch.nn.functional import silu  # deferred: as above

        a, gate, up, out = random(m, k), random(n, k, scale=k**-0.5), random(n, k, scale=k**-0.5), empty(m, n)
        expected = silu(a.double() @ gate.double().T) * (a.double() @ up.double().T)
        vendor = Vendor("torch", lambda: silu(a @ gate.T) * (a @ up.T))
        return Problem((a, gate, up, out), (Output(out, expected),), vendor)

    num_bytes = 2 * (m * n + m * k + 2 * n * k)
    parameters = ("*bf16",) * 4 + shape
    return _case(
        f"gated {_label(*shape)}",
        "gated",
        parameters,
        _configs(tiles),
        _tile_grid(m, n),
        make,
        num_bytes,
        4 * m * n * k,
    )


def _linear_cross_entropy(shape: Shape, block_n: int, tiles: Any) -> Case:
    """All tiles have `block_n` columns, which the results depend on."""
    m, n, k = shape

    def make() -> Problem:
        import torch  # deferred: as above

        hidden, w, labels = random(m, k), random(n, k, scale=k**-0.5), torch.randint(n, (m,))
        num_tiles = cdiv(n, block_n)
        largest, sums, own = (empty(*size, dtype="float32") for size in ((num_tiles, m), (num_tiles, m), (m,)))
        logits = hidden.double() @ w.double().T
        own_logits = logits[range(m), labels]
        padding = logits.new_full((m, num_tiles * block_n - n), -torch.inf)
        tiled = torch.cat((logits, padding), 1).view(m, num_tiles, block_n)
        row_max = tiled.amax(2)
        row_sum = tiled.sub_(row_max[:, :, None]).exp_().sum(2)
        outputs = (Output(largest, row_max.T, 1e-5), Output(sums, row_sum.T, 1e-5), Output(own, own_logits, 1e-5))
        return Problem(
            (hidden, w, labels, largest, sums, own), outputs, Vendor("cuBLAS, no more", lambda: hidden @ w.T)
        )

    return _case(
        f"linear cross entropy {_label(*shape)}",
        "linear_cross_entropy",
        ("*bf16", "*bf16", "*i64", "*fp32", "*fp32", "*fp32", m, n, k),
        _configs(tiles),
        _tile_grid(m, n),
        make,
        2 * (m * k + n * k),
        2 * m * n * k,
    )
