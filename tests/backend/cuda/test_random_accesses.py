"""Random kernels give what the interpreter gives, however early or late what is asynchronous happens."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate_compiled
from backend.cuda.random_accesses import MARGIN, SIZE, source_of

NUM_KERNELS = 6


def kernel_of(source: str, folder: Path):
    path = folder / "random_kernel.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("random_kernel", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def draw(rng: np.random.Generator) -> list:
    arrays = [aligned(rng.integers(-100, 100, SIZE + MARGIN).astype(np.int32)) for _ in range(2)]
    return [*arrays, aligned(np.zeros(2 * SIZE, np.int32)), int(rng.integers(0, SIZE))]


def copied(args: list) -> list:
    return [aligned(arg) if isinstance(arg, np.ndarray) else arg for arg in args]


def check(given: list, expected: list, where: str) -> None:
    for name, one, other in zip(("a", "b", "out"), given, expected, strict=False):
        np.testing.assert_array_equal(one, other, err_msg=f"{name}: {where}")


@pytest.mark.parametrize("number", range(NUM_KERNELS))
def test_random_accesses(rng, monkeypatch, tmp_path, number):
    source, args = source_of(rng), draw(rng)
    print(source, args[-1])
    kernel, expected = kernel_of(source, tmp_path), copied(args)
    monkeypatch.setenv("DEUTERON_INTERPRET", "1")
    kernel[(1,)](*expected)
    monkeypatch.setenv("DEUTERON_INTERPRET", "0")
    monkeypatch.setenv("DEUTERON_TARGET", "cpu")
    given = copied(args)
    kernel[(1,)](*given)
    check(given, expected, "cpu")
    for target in ("cuda:80", "cuda:90"):
        num_warps = int(rng.choice([1, 2, 4, 8]))
        compiled = compile_for(target, kernel, *args, num_warps=num_warps, num_stages=int(rng.choice([1, 2, 4])))
        for asynchronous in ("early", "late", "random"):
            given = copied(args)
            emulate_compiled(compiled, *given, asynchronous=asynchronous)
            check(given, expected, f"{target}, {num_warps} warps, {asynchronous}")
