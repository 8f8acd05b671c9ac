"""Square matrix products, with B row-major (nn) or transposed (nt), beside cuBLAS: through pointers in fp16, bf16 and
fp8, and through tensor descriptors by persistent programs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.gpu.case import TORCH_NAMES, Case, Config, Descriptor, Output, Problem, Vendor, cdiv

SIZES = (1024, 4096, 8192)
LARGE = SIZES[1:]
GROUP_M = 8
# BLOCK_M, BLOCK_N, BLOCK_K, warps, stages, WRAP (`% M`, else masks)
TILES = (
    (128, 256, 64, 8, 4, True),
    (128, 256, 64, 8, 3, True),
    (256, 128, 64, 8, 4, True),
    (128, 128, 64, 8, 4, True),
    (128, 128, 64, 4, 4, True),
    (64, 128, 64, 4, 4, True),
    (64, 64, 64, 4, 5, True),
    (128, 256, 64, 8, 4, False),
    (256, 128, 64, 8, 3, True),
    (128, 128, 64, 8, 3, True),
    (128, 128, 64, 4, 3, True),
    (128, 128, 32, 4, 4, True),
    (64, 256, 64, 4, 4, True),
    (64, 128, 64, 4, 4, False),
)
NUM_QUICK = 8
FP8_TILES = (
    (128, 256, 128, 8, 3, True),
    (128, 256, 128, 8, 4, True),
    (256, 128, 128, 8, 4, True),
    (128, 128, 128, 4, 4, True),
    (128, 128, 128, 8, 4, True),
    (256, 128, 128, 8, 3, True),
    (128, 128, 64, 4, 5, True),
)
# BLOCK_M, BLOCK_N, BLOCK_K, warps, stages, FLATTEN (the loop over tiles and that over K are one)
DESCRIPTOR_TILES = (
    (128, 256, 64, 8, 3, False),
    (128, 256, 64, 8, 3, True),
    (128, 256, 64, 8, 4, False),
    (128, 128, 64, 8, 4, True),
    (128, 128, 64, 4, 4, True),
    (128, 128, 64, 4, 4, False),
)
NUM_QUICK_OTHERS = 3


def cases() -> Iterator[Case]:
    for element in ("fp16", "bf16"):
        for is_transposed in (False, True):
            for size in SIZES:
                yield matmul(element, size, is_transposed)
    for size in LARGE:
        yield matmul_fp8(size)
    for size in LARGE:
        yield matmul_descriptors(size, False)
    yield matmul_descriptors(LARGE[-1], True)


def matmul(element: str, size: int, is_transposed: bool) -> Case:
    b_strides = (1, size) if is_transposed else (size, 1)
    return _case(
        f"matmul {'nt' if is_transposed else 'nn'} {size} {element}",
        "matmul",
        size,
        (f"*{element}",) * 3 + (size, size, size, size, 1, *b_strides, size, 1),
        tuple(_config("WRAP", " masks", True, *tile) for tile in TILES),
        NUM_QUICK,
        lambda: _make(element, size, is_transposed),
    )


def matmul_fp8(size: int) -> Case:
    """With a result in fp16, as cuBLAS gives one."""
    return _case(
        f"matmul nt {size} fp8e4nv",
        "matmul",
        size,
        ("*fp8e4nv", "*fp8e4nv", "*fp16", size, size, size, size, 1, 1, size, size, 1),
        tuple(_config("WRAP", " masks", True, *tile) for tile in FP8_TILES),
        NUM_QUICK_OTHERS,
        lambda: _make_fp8(size),
    )


def matmul_descriptors(size: int, are_made: bool) -> Case:
    """Descriptors that the host passes, or that the kernel makes. As many programs as multiprocessors."""
    shape = size, size
    passed = (
        Descriptor("fp16", shape, ("BLOCK_M", "BLOCK_K")),
        Descriptor("fp16", shape, ("BLOCK_N", "BLOCK_K")),
        Descriptor("fp16", shape, ("BLOCK_M", "BLOCK_N")),
    )
    return _case(
        f"matmul nt {size} {'made ' if are_made else ''}descriptors",
        "matmul_made_descriptors" if are_made else "matmul_descriptors",
        size,
        (("*fp16",) * 3 if are_made else passed) + (size, size, size),
        tuple(_config("FLATTEN", " flat", False, *tile) for tile in DESCRIPTOR_TILES),
        NUM_QUICK_OTHERS,
        lambda: _make("fp16", size, True),
        _num_multiprocessors,
    )


def _case(
    name: str,
    kernel: str,
    size: int,
    parameters: tuple[Any, ...],
    configs: tuple[Config, ...],
    num_quick: int,
    make: Callable[[], Problem],
    max_programs: Callable[[], int] | None = None,
) -> Case:
    def grid(meta: dict[str, Any]) -> tuple[int]:
        tiles = cdiv(size, meta["BLOCK_M"]) * cdiv(size, meta["BLOCK_N"])
        return (min(tiles, max_programs()) if max_programs else tiles,)

    return Case("matmul", name, kernel, parameters, configs, num_quick, grid, _operations(size), "TFLOP/s", make)


def _config(
    flag: str, mark: str, unmarked: bool, m: int, n: int, k: int, warps: int, stages: int, is_on: bool
) -> Config:
    constants = (("BLOCK_M", m), ("BLOCK_N", n), ("BLOCK_K", k), ("GROUP_M", GROUP_M), (flag, is_on))
    return Config(constants, warps, stages, f"{m}x{n}x{k} w{warps} s{stages}{'' if is_on == unmarked else mark}")


def _operations(size: int) -> float:
    return 2 * size**3 * 1e-12


def _num_multiprocessors() -> int:
    import torch  # deferred: --precompile needs none

    return torch.cuda.get_device_properties().multi_processor_count


def _make(element: str, size: int, is_transposed: bool) -> Problem:
    import torch  # deferred: as above

    dtype: Any = getattr(torch, TORCH_NAMES[element])
    a = torch.randn((size, size), device="cuda", dtype=dtype)
    stored = torch.randn((size, size), device="cuda", dtype=dtype)
    b = stored.T if is_transposed else stored
    out = torch.empty_like(a)
    library = torch.empty_like(a)
    vendor = Vendor("cuBLAS", lambda: torch.matmul(a, b, out=library), _operations(size))
    return Problem((a, stored, out), (Output(out, a.double() @ b.double()),), vendor)


def _make_fp8(size: int) -> Problem:
    import torch  # deferred: as above

    a, stored = (torch.randn((size, size), device="cuda").to(torch.float8_e4m3fn) for _ in range(2))
    out = torch.empty((size, size), device="cuda", dtype=torch.float16)
    one = torch.ones((), device="cuda")

    def library() -> Any:
        return torch._scaled_mm(a, stored.T, one, one, out_dtype=torch.float16, use_fast_accum=True)

    expected = a.float().double() @ stored.float().double().T
    return Problem((a, stored, out), (Output(out, expected),), Vendor("cuBLAS", library, _operations(size)))
