"""Every public name of the language compiles and runs on every target; docs/language.md says what is refused."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from language.test_names import NAMES
from language.usages import USAGES

from deuteron.errors import DeuteronError
from deuteron.runtime.jit import JITFunction

GPUS = ("cuda:80", "cuda:90")
EXECUTORS = ("interpreter", "cpu", *GPUS)
BY_LOT = [pytest.param(gpu, marks=pytest.mark.lot(number, len(GPUS))) for number, gpu in enumerate(GPUS)]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "language.md"

# What is refused where, and why; all else works. The table of the page is made of it.
REFUSED: dict[str, dict[str, str]] = {}

KERNEL = """
import deuteron as triton
import deuteron.language as tl

FP32 = tl.constexpr(tl.str_to_ty("fp32", None))

@triton.aggregate
class Pair:
    first: tl.tensor
    second: tl.tensor

@triton.jit
def larger(a, b):
    return a if a > b else b

@triton.jit
def kernel(x_ptr: tl.const, i_ptr, out_ptr, n):
    i = tl.arange(0, 16)
    x = tl.load(x_ptr + i)
    c = x > 0
"""
OUT = re.compile(r"^(\s*)out\((.*)\)$")


def source_of(usage: str) -> str:
    """Whatever is stored goes as 32-bit words or floats, one after the other."""
    lines = []
    for line in usage.splitlines():
        found = OUT.match(line)
        lines.append(f"{found[1]}value = {found[2]}\n{found[1]}{STORE}" if found else line)
    body = "\n".join(lines)
    return KERNEL + "".join(f"    {line}\n" for line in body.splitlines())


STORE = "tl.store(out_ptr + tl.arange(0, value.numel.value), tl.ravel(value).to(tl.float32))"


def kernel_of(name: str, folder: Path) -> JITFunction:
    path = folder / f"use_of_{name}.py"
    path.write_text(source_of(USAGES[name]))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module.kernel


def test_every_name_is_used():
    assert set(NAMES.split()) == set(USAGES)


@pytest.mark.parametrize("executor", ["interpreter", "cpu", *BY_LOT])
@pytest.mark.parametrize("name", USAGES)
def test_usage(name: str, executor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator):
    is_gpu = executor.startswith("cuda")
    monkeypatch.setenv("DEUTERON_INTERPRET", str(int(executor == "interpreter")))
    monkeypatch.setenv("DEUTERON_EMULATE", str(int(is_gpu)))
    monkeypatch.setenv("DEUTERON_TARGET", executor if is_gpu else "cpu")
    kernel = kernel_of(name, tmp_path)
    x, i, out = rng.standard_normal(16).astype(np.float32), np.zeros(16, np.int32), np.empty(256, np.float32)
    if executor in REFUSED.get(name, {}):
        with pytest.raises(DeuteronError):
            kernel[(1,)](x, i, out, 3, num_warps=1)
    else:
        kernel[(1,)](x, i, out, 3, num_warps=1)


def test_the_page_has_the_table():
    """python -m language.test_usages prints it."""
    assert table() in PAGE.read_text()


def table() -> str:
    def cell(name: str, executor: str) -> str:
        return REFUSED.get(name, {}).get(executor, "works")

    targets = {"interpreter": "interpreter", "cpu": "CPU", "cuda:80": "CUDA, sm_80", "cuda:90": "CUDA, sm_90"}
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in sorted(USAGES, key=str.lower):
        groups.setdefault(tuple(cell(name, executor) for executor in EXECUTORS), []).append(f"`{name}`")
    lines = [f"| {' | '.join(['names', *targets.values()])} |", "|---" * 5 + "|"]
    lines += [f"| {' '.join(names)} | {' | '.join(cells)} |" for cells, names in groups.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
