"""Timelines: nothing is read before it has arrived, nothing is overwritten while it is read; what overlaps."""

from itertools import pairwise

import pytest
from explorer.conftest import compiled, explored

from deuteron.explorer import explore

SPECIALIZED = """
import deuteron as triton
import deuteron.language as tl

@triton.jit
def product(a, b, c, K, S: tl.constexpr):
    rows, ks = tl.arange(0, 128), tl.arange(0, 64)
    total = tl.zeros((128, 128), tl.float32)
    for k in tl.range(0, K, 64, warp_specialize=S):
        x = tl.load(a + rows[:, None] * K + (k + ks)[None, :])
        y = tl.load(b + rows[None, :] * K + (k + ks)[:, None])
        total = tl.dot(x, y, total)
    tl.store(c + rows[:, None] * 128 + rows[None, :], total)
"""
TYPES = "*fp16:16, *fp16:16, *fp32:16, i32:16"


def by_row(pipeline, *kinds):
    """The bars of these kinds in the slots of rings, row by row, in order."""
    for number, row in enumerate(pipeline.rows):
        if row.kind == "slot":
            bars = [bar for bar in pipeline.bars if bar.row == number and bar.kind in kinds]
            yield sorted(bars, key=lambda bar: (bar.begin, bar.end))


def check(pipeline) -> None:
    """Each slot is filled, read, and filled again; what is read is what was filled last."""
    for bars in by_row(pipeline, "copy", "read"):
        assert bars[0].kind == "copy"
        for before, after in pairwise(bars):
            assert before.end <= after.begin + 0.02, (before, after)
            if after.kind == "read":
                assert after.bundle == before.bundle
    for row in {one.row for one in pipeline.iterations}:
        assert [one.number for one in pipeline.iterations if one.row == row][:6] == list(range(6))


@pytest.mark.parametrize(("name", "target"), [("matmul", "cuda:90"), ("matmul", "cuda:80"), ("attention", "cuda:90")])
def test_slots_are_filled_and_read_in_turn(name, target):
    pipeline = explored(name, target).exploration.pipeline
    check(pipeline)
    dots = [bar for bar in pipeline.bars if bar.kind == "dot"]
    copies = [bar for bar in pipeline.bars if bar.kind == "copy"]
    assert any(copy.begin < dot.begin < copy.end for copy in copies for dot in dots), "copies go on while dots run"
    assert {bar.bundle for bar in dots} >= set(range(6))


def test_chained_dots_are_of_two_iterations():
    """The second dot of an iteration multiplies what the first one, an iteration before, gave."""
    pipeline = explored("attention", "cuda:90").exploration.pipeline
    row = next(number for number, row in enumerate(pipeline.rows) if row.kind == "tensor cores")
    dots = [bar.bundle for bar in pipeline.bars if bar.row == row]
    assert dots[:7] == [0, 1, 0, 2, 1, 3, 2]


@pytest.mark.parametrize("is_specialized", [False, True])
def test_warps_that_copy(tmp_path, is_specialized):
    kernel = compiled(tmp_path / "product.py", SPECIALIZED, "product", f"{TYPES}, {is_specialized}", "cuda:90")
    found = explore(kernel).exploration
    check(found.pipeline)
    assert found.pipeline.is_specialized == is_specialized
    names = [row.name for row in found.pipeline.rows if row.kind == "warps"]
    assert names == ["4 warps", *(["1 warp that copies"] if is_specialized else [])]


def test_a_kernel_without_loops_has_none(tmp_path):
    text = "import deuteron as t\nimport deuteron.language as tl\n@t.jit\ndef copy(x, y):\n    i = tl.arange(0, 64)\n"
    text += "    tl.store(y + i, tl.load(x + i))\n"
    kernel = compiled(tmp_path / "copy.py", text, "copy", "*fp32, *fp32", "cuda:80")
    assert explore(kernel).exploration.pipeline is None
