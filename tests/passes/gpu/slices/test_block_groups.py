"""Groups that are kept from one loop to the next are those that would be found anew, and most are kept."""

import numpy as np
import pytest
from backend.cuda.launching import compile_for

import deuteron
import deuteron.language as tl
from deuteron.passes.gpu.slices import block_groups
from deuteron.passes.gpu.slices.block_groups import BlockGroups
from deuteron.passes.gpu.slices.slice_tiles import SliceTiles

X = np.zeros(1 << 16, np.float32)


@deuteron.jit
def chain(x, y, out, N: tl.constexpr, STEPS: tl.constexpr):
    """Each product is a group of its own; so are loads and stores of one argument."""
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tile = tl.load(x + at)
    for step in tl.static_range(STEPS):
        other = tl.exp(tl.load(y + step * N * N + at)) + tl.sum(tile, 1)[:, None]
        tile = tl.dot(tile, other, input_precision="tf32") * 0.5
        tl.store(out + step * N * N + at, tile)


@deuteron.jit
def found_pointers(x, offsets, out, N: tl.constexpr, STEPS: tl.constexpr):
    """Addresses that go to memory: whoever accesses what is computed of them may access anything."""
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    places = x + tl.load(offsets + at)
    for step in tl.static_range(STEPS):
        places += tl.load(offsets + step + at)
        tl.store(out + step * N * N + at, tl.exp(tl.load(places)) + tl.sum(tl.load(places + step), 0)[None, :])


def contents(group):
    cuts = dict(group.axes), dict(group.needed)
    return list(group.ops), cuts, group.count(), group.saved, group.reads, group.writes


@pytest.fixture
def counts(monkeypatch):
    """How many groups were grown, and how many would have been."""
    grown, best, numbers = block_groups._grown, BlockGroups.best, {"grown": 0, "anew": 0}
    name = "grown"

    def counted(*args):
        numbers[name] += 1
        return grown(*args)

    def compared(self):
        nonlocal name
        group = best(self)
        name = "anew"
        anew = best(BlockGroups(self._block, self._most_held))
        name = "grown"
        assert (group and contents(group)) == (anew and contents(anew))
        return group

    monkeypatch.setattr(block_groups, "_grown", counted)
    monkeypatch.setattr(BlockGroups, "best", compared)
    for threshold in ("CROWDED_COST", "LEAST_IN_GROUP", "LEAST_WITH_DOT", "LEAST_IN_CROWD"):
        monkeypatch.setattr(f"deuteron.passes.gpu.slices.slice_tiles.{threshold}", 0)
    monkeypatch.setattr("deuteron.passes.gpu.SliceTiles", lambda: SliceTiles(least_cost=0))
    monkeypatch.setenv("DEUTERON_ALWAYS_COMPILE", "1")
    return numbers


def test_most_groups_are_kept(counts):
    kernel = compile_for("cuda:90", chain, X, X, X, N=64, STEPS=6, num_warps=1)
    assert kernel.asm["ttgir"].count("scf.for") > 12
    assert counts["grown"] * 2 < counts["anew"]


def test_what_depends_on_pointers_in_memory_is_grown_again(counts):
    kernel = compile_for("cuda:90", found_pointers, X, X.astype(np.int32), X, N=64, STEPS=4, num_warps=1)
    assert kernel.asm["ttgir"].count("scf.for") > 4
    assert counts["grown"] < counts["anew"]
