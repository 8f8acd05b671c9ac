"""What TMA copies of what a kernel loads through pointers, in launches in which it can; others take the pointers."""

from __future__ import annotations

import numpy as np
import pytest
from backend.cuda.launching import aligned

import deuteron
import deuteron.language as tl
from deuteron.compiler.kernel import CompiledKernel
from deuteron.errors import LaunchError

SIGNATURE = {"x": "*fp16", "y": "*fp16", "out": "*fp32", "first": "i32", "heads": "i32", "n": "i32"}
HINTED = {(index,): [["tt.divisibility", 16]] for index in range(4)}


@deuteron.jit
def of_heads(x, y, out, first, heads, n):
    """The sum of products of rows of x, one of each `heads`, 64 at a time."""
    rows, columns = tl.arange(0, 64), tl.arange(0, 64)
    total = tl.zeros((64, 64), tl.float32)
    for k in range(0, n, 64):
        left = tl.load(x + first * 64 + (k + rows[:, None]) * (heads * 64) + columns[None, :])
        total = tl.dot(left, tl.load(y + (k + rows[:, None]) * 64 + columns[None, :]), total)
    tl.store(out + rows[:, None] * 64 + columns[None, :], total)


def compiled(**options):
    return deuteron.compile(deuteron.ASTSource(of_heads, SIGNATURE, {}, HINTED), "cuda:90", options)


def test_what_a_launch_looks_at():
    assert [one.is_inferred for one in compiled().metadata.tensor_maps] == [True, True]
    assert not compiled(plain_loads=True).metadata.tensor_maps


@pytest.mark.parametrize(("first", "heads"), [(0, 3), (16, 1), (16, 0), (384, -3), (208, -1)])
def test_rows_that_go_either_way(rng, monkeypatch, first, heads):
    monkeypatch.setenv("DEUTERON_TARGET", "cuda:90")
    monkeypatch.setenv("DEUTERON_EMULATE", "1")
    x = aligned(rng.standard_normal((400, 64)).astype(np.float16))
    y, out = (aligned(rng.standard_normal((128, 64)).astype(kind)) for kind in (np.float16, np.float32))
    kernel = of_heads[(1,)](x, y, out, first, heads, 128)
    rows = x[first + heads * np.arange(128)].astype(np.float64)
    expected = rows[:64] @ y[:64].astype(np.float64) + rows[64:] @ y[64:].astype(np.float64)
    np.testing.assert_allclose(out[:64], expected, rtol=1e-3, atol=1e-2)
    assert len(kernel.metadata.tensor_maps) == (2 if heads >= 0 else 0)
    assert kernel.metadata.options["plain_loads"] == (heads < 0)


def test_the_kernel_of_a_launch_that_cannot_copy(monkeypatch):
    monkeypatch.setattr(CompiledKernel, "launch", property(lambda kernel: kernel.metadata))
    kernel = compiled()
    other = kernel._otherwise("plain_loads", "a stride is -64 bytes")
    assert other.metadata.options["plain_loads"] and kernel._otherwise("plain_loads", "") is other


def test_a_text_that_relies_on_it(tmp_path):
    text = tmp_path / "of_heads.ttgir"
    text.write_text(compiled().asm["ttgir"])
    kernel = deuteron.compile(str(text), "cuda:90")
    assert [one.is_inferred for one in kernel.metadata.tensor_maps] == [True, True]
    with pytest.raises(LaunchError, match="a stride is -64 bytes; the text that it was compiled of relies on that"):
        kernel._otherwise("plain_loads", "a stride is -64 bytes")
