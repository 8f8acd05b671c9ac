"""Products with weights in 8 and 4 bits, and with both operands in 8 bits, from one row to 4096.

Weights are those of a layer from 4096 to 14336. What is compared with is cuBLAS on weights of 16 bits, or of 8 where it
has that: a row says what a launch must read, so beside weights of 4 bits cuBLAS reads four times as much.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.gpu.case import TORCH_NAMES, Case, Config, Output, Problem, Vendor, cdiv
from benchmarks.gpu.everyday.declare import case, config, empty, random

# rows -> BLOCK_M, BLOCK_N, BLOCK_K, warps, stages
TILES = {
    1: ((16, 64, 128, 4, 4), (16, 64, 128, 4, 6), (16, 32, 256, 4, 4)),
    16: ((16, 64, 128, 4, 4), (16, 64, 128, 4, 6), (16, 32, 256, 4, 4)),
    64: ((64, 64, 128, 4, 4), (64, 128, 64, 4, 4)),
    512: ((128, 128, 64, 8, 3), (128, 128, 64, 4, 4), (256, 128, 64, 8, 3)),
    4096: ((128, 128, 64, 8, 3), (128, 256, 64, 8, 3), (256, 128, 64, 8, 3)),
}
# With a group of 128: a step reads one scale of a column.
INT4_TILES = {
    **TILES,
    1: ((16, 64, 128, 4, 4), (16, 128, 64, 4, 4), (16, 64, 128, 4, 8), (16, 128, 128, 4, 6)),
    16: ((16, 64, 128, 4, 4), (16, 128, 64, 4, 4), (16, 64, 128, 4, 8), (16, 128, 128, 4, 6)),
    4096: ((128, 128, 64, 8, 3), (128, 128, 64, 4, 4), (256, 128, 64, 8, 3)),
}
SMALL_TILES = ((16, 32, 32, 4, 2),)
# Steps of at least 128 along k: what wgmma reads of elements of 8 bits is 128 bytes wide.
SCALED_TILES = {rows: tuple((m, n, max(k, 128), *rest) for m, n, k, *rest in tiles) for rows, tiles in TILES.items()}
SCALED_TILES[64] += ((64, 64, 128, 4, 5),)  # weights, which are computed, take a quarter longer with five stages
INT4_GROUP, SMALL_GROUP = 128, 32


def cases(is_small: bool = False) -> Iterator[Case]:
    for rows in (5,) if is_small else TILES:
        shape = (rows, 40, 96) if is_small else (rows, 14336, 4096)
        yield _weight_only("int8", "i8", shape)
        yield _weight_only("fp8", "fp8e4nv", shape)
        yield _int4(shape, SMALL_GROUP if is_small else INT4_GROUP)
        if rows <= 64:
            yield _int4_pairs(shape, SMALL_GROUP if is_small else INT4_GROUP)
        if rows == 1 or is_small:
            yield _matrix_vector(*shape[1:])
        if rows > 1:
            yield _scaled("int8", "i8", shape)
            yield _scaled("fp8", "fp8e4nv", shape)
    for rows in (5,) if is_small else (64, 4096):
        yield _scaled_blocks(*(rows, 64, 96, 32) if is_small else (rows, 14336, 4096, 128))


def _tiles(tiles: dict[int, Any], rows: int, **constants: Any) -> tuple[Config, ...]:
    return tuple(
        config(warps, stages, **constants, BLOCK_M=m, BLOCK_N=n, BLOCK_K=k)
        for m, n, k, warps, stages in tiles.get(rows, SMALL_TILES)
    )


def _case(
    name: str,
    kernel: str,
    arrays: tuple[str, ...],
    shape: tuple[int, int, int],
    configs: tuple[Config, ...],
    make: Any,
    num_bytes: float,
    multiplied: str,
) -> Case:
    m, n, k = shape
    return case(
        "products",
        f"{name} {m}x{n}x{k}",
        "everyday/product_kernels",
        kernel,
        (*arrays, m, n, k),
        configs,
        lambda meta: (cdiv(m, meta["BLOCK_M"]), cdiv(n, meta["BLOCK_N"])),
        make,
        num_bytes=num_bytes,
        operations=2 * m * n * k,
        multiplied=multiplied,
    )


def _weights(element: str, *shape: int) -> Any:
    """Of 8 bits, over all of what the type has that is near 0."""
    import torch  # deferred: --precompile needs none

    if element == "i8":
        return torch.randint(-127, 128, shape, dtype=torch.int8)
    return torch.randn(shape).to(getattr(torch, TORCH_NAMES[element]))


def _wide(x: Any) -> Any:
    """In float64, which fp8 becomes by way of float32."""
    return x.float().double()


def _dense(a: Any, w: Any) -> Vendor:
    """cuBLAS on weights of 16 bits; w is [K, N] of any strides."""
    return Vendor("cuBLAS 16 bit", lambda: a @ w)


def _weight_only(name: str, element: str, shape: tuple[int, int, int]) -> Case:
    m, n, k = shape

    def make() -> Problem:
        a, w, scales, out = random(m, k), _weights(element, n, k), random(n, dtype="float32"), empty(m, n)
        expected = a.double() @ _wide(w).T * scales.double()
        return Problem((a, w, scales, out), (Output(out, expected),), _dense(a, w.to(a.dtype).T))

    arrays = ("*bf16", f"*{element}", "*fp32", "*bf16")
    num_bytes = n * k + 2 * m * (n + k)
    return _case(f"weight {name}", "weight_only", arrays, shape, _tiles(TILES, m), make, num_bytes, "bf16")


def _int4(shape: tuple[int, int, int], group: int) -> Case:
    m, n, k = shape

    def make() -> Problem:
        import torch  # deferred: as above

        a, out = random(m, k, dtype="float16"), empty(m, n, dtype="float16")
        numbers = torch.randint(16, (k, n), dtype=torch.int32)
        words = sum(numbers[i::8] << 4 * i for i in range(8)).to(torch.int32)
        scales = random(k // group, n, dtype="float16", scale=0.1)
        zeros = 8 * scales
        w = numbers.double() * scales.double().repeat_interleave(group, 0)
        w -= zeros.double().repeat_interleave(group, 0)
        outputs = (Output(out, a.double() @ w, 2e-3),)
        return Problem((a, words, scales, zeros, out), outputs, _dense(a, w.to(a.dtype)))

    arrays = ("*fp16", "*i32", "*fp16", "*fp16", "*fp16")
    num_bytes = n * k / 2 + 4 * n * k / group + 2 * m * (n + k)
    configs = _tiles(INT4_TILES, m, GROUP=group)
    return _case("weight int4", "weight_only_int4", arrays, shape, configs, make, num_bytes, "fp16")


def _int4_pairs(shape: tuple[int, int, int], group: int) -> Case:
    m, n, k = shape

    def make() -> Problem:
        import torch  # deferred: as above

        a, out = random(m, k), empty(m, n)
        numbers = torch.randint(-8, 8, (n, k), dtype=torch.int8)
        pairs = (numbers[:, ::2] & 15) | (numbers[:, 1::2] << 4)
        scales = random(n, k // group, dtype="float32")
        w = numbers.double() * scales.double().repeat_interleave(group, 1)
        return Problem((a, pairs, scales, out), (Output(out, a.double() @ w.T),), _dense(a, w.to(a.dtype).T))

    arrays = ("*bf16", "*i8", "*fp32", "*bf16")
    num_bytes = n * k / 2 + 4 * n * k / group + 2 * m * (n + k)
    configs = _tiles(INT4_TILES, m, GROUP=group)
    return _case("weight int4 pairs", "weight_only_int4_pairs", arrays, shape, configs, make, num_bytes, "bf16")


def _matrix_vector(n: int, k: int) -> Case:
    def make() -> Problem:
        w, x, out = random(n, k), random(k), empty(n)
        return Problem((w, x, out), (Output(out, w.double() @ x.double()),), Vendor("cuBLAS", lambda: w @ x))

    tiles = ((4, 512, 4), (4, 1024, 4), (2, 1024, 4), (16, 256, 8)) if k >= 512 else ((4, 32, 4),)
    return case(
        "products",
        f"matrix vector {n}x{k}",
        "everyday/product_kernels",
        "matrix_vector",
        ("*bf16", "*bf16", "*bf16", n, k),
        tuple(config(warps, 3, BLOCK_N=bn, BLOCK_K=bk) for bn, bk, warps in tiles),
        lambda meta: (cdiv(n, meta["BLOCK_N"]),),
        make,
        num_bytes=2 * n * k,
    )


def _scaled(name: str, element: str, shape: tuple[int, int, int]) -> Case:
    m, n, k = shape

    def make() -> Problem:
        a, w, out = _weights(element, m, k), _weights(element, n, k), empty(m, n)
        a_scales, w_scales = random(m, dtype="float32"), random(n, dtype="float32")
        expected = _wide(a) @ _wide(w).T * a_scales.double()[:, None] * w_scales.double()
        arrays = a, w, a_scales, w_scales, out
        return Problem(arrays, (Output(out, expected),), _scaled_vendor(*arrays[:-1]))

    arrays = (f"*{element}",) * 2 + ("*fp32", "*fp32", "*bf16")
    configs = _tiles(SCALED_TILES, m, IS_INTEGER=element == "i8")
    return _case(f"scaled {name}", "scaled", arrays, shape, configs, make, n * k + m * k + 2 * m * n, element)


def _scaled_vendor(a: Any, w: Any, a_scales: Any, w_scales: Any) -> Vendor:
    import torch  # deferred: as above

    if a.dtype == torch.int8:
        return Vendor("cuBLAS, no scales", lambda: torch._int_mm(a, w.T))
    scales = a_scales[:, None], w_scales[None, :]
    return Vendor("torch", lambda: torch._scaled_mm(a, w.T, *scales, out_dtype=torch.bfloat16))


def _scaled_blocks(m: int, n: int, k: int, block: int) -> Case:
    def make() -> Problem:
        a, w, out = _weights("fp8e4nv", m, k), _weights("fp8e4nv", n, k), empty(m, n)
        a_scales = random(m, k // block, dtype="float32")
        w_scales = random(n // block, k // block, dtype="float32")
        wide_a = _wide(a) * a_scales.double().repeat_interleave(block, 1)
        wide_w = _wide(w) * w_scales.double().repeat_interleave(block, 0).repeat_interleave(block, 1)
        return Problem((a, w, a_scales, w_scales, out), (Output(out, wide_a @ wide_w.T),))

    tiles = {64: ((64, block, block, 4, 4),), 4096: ((128, block, block, 8, 3), (128, block, block, 4, 3))}
    configs = _tiles(tiles, m) if m in tiles else (config(4, 2, BLOCK_M=16, BLOCK_N=block, BLOCK_K=block),)
    arrays = ("*fp8e4nv",) * 2 + ("*fp32", "*fp32", "*bf16")
    num_bytes = n * k + m * k + 2 * m * n
    return _case("scaled fp8 blocks", "scaled_blocks", arrays, (m, n, k), configs, make, num_bytes, "fp8e4nv")
