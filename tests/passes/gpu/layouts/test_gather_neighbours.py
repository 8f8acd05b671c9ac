"""Scans of elements in many places of a thread, which become neighbours: in a few shuffles, and right."""

import numpy as np
import pytest
from backend.cuda.launching import emulate, instructions_with

import deuteron
import deuteron.language as tl
from deuteron.layout.distributed import gather_along
from deuteron.layout.linear import LinearLayout


@deuteron.jit
def joined(flag, x, other_flag, y):
    return flag | other_flag, tl.where(other_flag != 0, y, x + y)


@deuteron.jit
def prefixes(x, flags, out, rows, columns, M: tl.constexpr, N: tl.constexpr, REVERSE: tl.constexpr, FN: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    mask = (i < rows) & (j < columns)
    tile = tl.load(x + i * columns + j, mask=mask, other=0.0)
    if FN == "sum":
        tile = tl.cumsum(tile, 1, reverse=REVERSE)
    else:
        flag = tl.load(flags + i * columns + j, mask=mask, other=0)
        _, tile = tl.associative_scan((flag, tile), 1, joined, reverse=REVERSE)
    tl.store(out + i * columns + j, tile, mask=mask)


def expected(x, flags, is_reverse):
    """Sums that begin anew at flags, in float64."""
    sums, total = np.empty(x.shape), np.zeros(len(x))
    for j in range(x.shape[1])[:: -1 if is_reverse else 1]:
        total = np.where(flags[:, j] != 0, 0, total) + x[:, j]
        sums[:, j] = total
    return sums


CASES = [("sum", 2, 512, 301, False, 1), ("parts", 4, 512, 301, False, 4), ("parts", 2, 1024, 1023, True, 2)]


@pytest.mark.parametrize(("function", "rows", "size", "columns", "is_reverse", "num_warps"), CASES)
def test_elements_of_many_places_are_gathered(function, rows, size, columns, is_reverse, num_warps, monkeypatch):
    rng = np.random.default_rng(3)
    x = rng.standard_normal((rows, columns)).astype(np.float32)
    flags = (rng.random(x.shape) < 0.05).astype(np.int32) * (function == "parts")
    out, kept = np.full_like(x, np.nan), np.full_like(x, np.nan)
    options = {"M": rows, "N": size, "REVERSE": is_reverse, "FN": function, "num_warps": num_warps}
    gathered = emulate(prefixes, x, flags, out, rows, columns, **options)
    monkeypatch.setenv("DEUTERON_DISABLE_PASSES", "gather-neighbours")
    plain = emulate(prefixes, x, flags, kept, rows, columns, **options)
    for found in (out, kept):
        np.testing.assert_allclose(found, expected(x, flags, is_reverse), rtol=1e-4, atol=1e-4)
    assert len(instructions_with(gathered, "shfl")) * 2 < len(instructions_with(plain, "shfl"))


def test_registers_take_the_lowest_places_of_an_axis():
    bases = {"register": [(0, 8), (1, 0), (0, 16)], "lane": [(0, 1), (0, 2), (0, 4)], "warp": [(0, 0)], "block": []}
    layout = gather_along(LinearLayout.make(bases, {"dim0": 2, "dim1": 32}), 1)
    assert layout.of("register") == ((0, 1), (1, 0), (0, 2))
    assert layout.of("lane") == ((0, 4), (0, 8), (0, 16))
    assert layout.of("warp") == ((0, 0),)
