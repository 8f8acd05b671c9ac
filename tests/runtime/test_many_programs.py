"""Grids of more programs than those in which nothing overflows that the code takes not to."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.compiler.kernel import CompiledKernel
from deuteron.errors import LaunchError


@deuteron.jit
def pairs(out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i % 4096, 1.0, mask=i // 8 % 2 == 0)


def compiled(**options):
    source = deuteron.ASTSource(pairs, {"out": "*fp32"}, {"BLOCK": 1024}, {(0,): [["tt.divisibility", 16]]})
    return deuteron.compile(source, "cuda:90", options)


def test_what_kernels_rely_on():
    assert compiled().metadata.most_programs == 2**21
    assert compiled(many_programs=True).metadata.most_programs is None
    assert "st.global.v4" in compiled().asm["ptx"]
    assert "st.global.v4" not in compiled(many_programs=True).asm["ptx"]


def test_a_larger_grid_is_launched_with_a_kernel_that_does_not_rely_on_it(monkeypatch):
    monkeypatch.setattr(CompiledKernel, "launch", property(lambda kernel: kernel.metadata))
    kernel = compiled()
    larger = kernel._launch_of_more(2**21 + 1)
    assert larger.options["many_programs"] and larger.most_programs is None
    assert kernel._launch_of_more(2**23) is larger


def test_a_text_that_relies_on_it(tmp_path):
    text = tmp_path / "pairs.ttgir"
    text.write_text(compiled().asm["ttgir"])
    kernel = deuteron.compile(str(text), "cuda:90")
    assert kernel.metadata.most_programs == 2**21
    with pytest.raises(LaunchError, match="the text that it was compiled of relies on that"):
        kernel._launch_of_more(2**21 + 1)


@deuteron.jit
def tiles_in_groups(x, out, num_tiles_ptr, n, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    """A grid of more programs than tiles, as that of experts: those beyond them divide by what is negative."""
    pid, i = tl.program_id(0), tl.arange(0, BLOCK)
    num_tiles = tl.load(num_tiles_ptr)
    first = pid // (GROUP * 2) * GROUP
    size = min(num_tiles - first, GROUP)
    row, column = first + (pid % (GROUP * 2)) % size, (pid % (GROUP * 2)) // size
    if row >= num_tiles:
        return
    columns = (column * BLOCK + i) % n
    tl.store(out + row * n + columns, tl.load(x + columns) + row)


@pytest.mark.parametrize("target", ["cpu", "cuda:90"])
def test_programs_beyond_the_last_tile_divide_by_negative_numbers(monkeypatch, target):
    monkeypatch.setenv("DEUTERON_TARGET", target)
    monkeypatch.setenv("DEUTERON_EMULATE", "1" if target != "cpu" else "0")
    x, out = np.arange(96, dtype=np.float32), np.zeros((6, 96), np.float32)
    tiles_in_groups[(40,)](x, out, np.array([5], np.int32), 96, GROUP=2, BLOCK=64)
    expected = x + np.arange(6, dtype=np.float32)[:, None]
    expected[5] = 0
    np.testing.assert_array_equal(out, expected)
