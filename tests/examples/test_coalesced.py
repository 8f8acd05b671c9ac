"""Global memory transactions of the examples on a GPU: where rows start on a sector, no more than their bytes need."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import deuteron.compat  # noqa: F401  (some examples say `import triton`)
import deuteron.emulator
from deuteron.emulator import profile
from deuteron.emulator.kernels import with_tensor_maps

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def aligned(shape, dtype) -> np.ndarray:
    """Memory that starts on 256 bytes, as allocations on a GPU do."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape))
    memory = np.zeros(count * dtype.itemsize + 256, np.uint8)
    start = -memory.ctypes.data % 256
    return memory[start : start + count * dtype.itemsize].view(dtype).reshape(shape)


class AlignedNumPy:
    """NumPy, but `empty` and `empty_like` give aligned memory."""

    def __getattr__(self, name: str) -> object:
        return getattr(np, name)

    @staticmethod
    def empty(shape, dtype=np.float64):
        return aligned(shape, dtype)

    @staticmethod
    def empty_like(array, dtype=None):
        return aligned(array.shape, dtype or array.dtype)


def _calls(module, draw):
    square = (128, 128)
    return {
        "vector_add": lambda: module.add(draw(4096, "float32"), draw(4096, "float32")),
        "softmax": lambda: module.softmax(draw((3, 1024), "float32")),
        "layer_norm": lambda: module.layer_norm(
            draw((3, 1024), "float32"), draw(1024, "float32"), draw(1024, "float32")
        ),
        "matmul": lambda: module.matmul(draw(square, "float32"), draw(square, "float32")),
        "matmul_grouped": lambda: module.matmul_grouped(draw(square, "float16"), draw(square, "float16")),
        "attention": lambda: module.attention(*(draw((2, 128, 64), "float16") for _ in range(3))),
    }


@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
@pytest.mark.parametrize("name", _calls(None, None))
def test_no_access_takes_more_sectors_than_its_bytes(monkeypatch, rng, name, target):
    reports = []

    def profiled(ptx, metadata, grid, args):
        block = metadata.num_threads
        given = with_tensor_maps(metadata, args)
        reports.append(profile(ptx, metadata.symbol, grid, block, metadata.shared, given))

    monkeypatch.setattr(deuteron.emulator, "run_kernel", profiled)
    monkeypatch.setenv("DEUTERON_EMULATE", "1")
    monkeypatch.setenv("DEUTERON_TARGET", target)
    spec = importlib.util.spec_from_file_location(f"coalesced_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.np = AlignedNumPy()

    def draw(shape, dtype):
        array = aligned(shape, dtype)
        array[...] = rng.standard_normal(shape)
        return array

    _calls(module, draw)[name]()
    lines = [counts for report in reports for counts in report.lines().values() if counts.sectors]
    assert lines
    wasteful = {
        place: counts
        for report in reports
        for place, counts in report.lines().items()
        if counts.sectors > counts.ideal_sectors
    }
    assert not wasteful, wasteful
