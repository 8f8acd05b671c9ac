"""Kernels that nest deep: what follows an `if` that returns is inside of it."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest

import deuteron
from deuteron.compiler import depth
from deuteron.errors import CompilationError, InternalError
from deuteron.passes.tile.fold import Fold


@pytest.fixture
def returns_early(tmp_path):
    """A kernel that returns at so many places."""

    def make(count: int):
        path = tmp_path / "returns.py"
        body = "".join(f"    if n == {c}:\n        tl.store(x, {c * 7})\n        return\n" for c in range(count))
        head = "import deuteron as triton\nimport deuteron.language as tl\n\n\n@triton.jit\ndef k(x, n):\n"
        path.write_text(f"{head}{body}    tl.store(x, -1)\n")
        spec = importlib.util.spec_from_file_location("returns", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.k

    return make


def test_more_levels_than_python_calls_by_itself(returns_early):
    """At eight calls for each."""
    limit, kernel = sys.getrecursionlimit(), returns_early(130)
    for n in (0, 64, 129, 130):
        out = np.full(1, 77, np.int32)
        kernel[(1,)](out, np.int32(n))
        assert out[0] == (7 * n if n < 130 else -1)
    assert sys.getrecursionlimit() == limit


def test_too_many_are_refused(returns_early, monkeypatch):
    monkeypatch.setattr(depth, "MOST_CALLS", 1000)
    with pytest.raises(CompilationError, match="'k' nests too deep to be compiled") as caught:
        deuteron.compile(
            deuteron.compiler.ASTSource(fn=returns_early(200), signature={"x": "*i32", "n": "i32"}, constexprs={}),
            target="cpu",
        )
    assert caught.value.location.file.endswith("returns.py")


def test_a_pass_that_calls_itself_without_end_is_a_defect(returns_early, monkeypatch):
    def apply(self, ctx, op):
        apply(self, ctx, op)

    monkeypatch.setattr(Fold, "apply", apply)
    with pytest.raises(InternalError, match="RecursionError.*a defect of Deuteron, not of the kernel"):
        deuteron.compile(
            deuteron.compiler.ASTSource(fn=returns_early(3), signature={"x": "*i32", "n": "i32"}, constexprs={}),
            target="cpu",
        )
