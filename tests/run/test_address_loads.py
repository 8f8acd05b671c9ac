"""Loops in which loads give other loads their addresses and masks: rows and pages by number, chains, lists.

Index arrays have no element more than iterations need, so that one that is loaded too far ahead is found.
"""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl

ROWS, COLUMNS = 16, 32  # of a page
PAGES, LINKS = 5, 7


@triton.jit
def gather(
    index_ptr,
    link_ptr,
    length_ptr,
    pages_ptr,
    out_ptr,
    seen_ptr,
    begin,
    end,
    CASE: tl.constexpr,
    DOT: tl.constexpr,
    STAGES: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Sums of pages, or of their products; seen_ptr has room for what the loop itself stores."""
    i, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    at = i[:, None] * COLUMNS + j[None, :]
    acc = tl.zeros((ROWS, ROWS if DOT else COLUMNS), tl.float32)
    page = tl.load(index_ptr + begin, mask=begin < end, other=0)
    seen = page * 0
    for k in tl.range(begin, end, num_stages=STAGES):
        mask = at >= 0
        if CASE == "by hand":
            tile = pages_ptr + page * (ROWS * COLUMNS) + at
        elif CASE == "rows":
            row = tl.load(index_ptr + k * ROWS + i)
            tile = pages_ptr + row[:, None] * COLUMNS + j[None, :]
        elif CASE == "list":
            tile = pages_ptr + page * (ROWS * COLUMNS) + at
            page = tl.load(link_ptr + page)
        else:
            page = tl.load(index_ptr + k)
            if CASE == "chain":
                page = tl.load(link_ptr + tl.load(link_ptr + page))
            if CASE == "mask":
                mask = at < tl.load(length_ptr + page)
            if CASE == "used":
                seen += page
            if CASE == "scaled":
                seen += page // tl.load(length_ptr + page)
            tile = pages_ptr + page * (ROWS * COLUMNS) + at
        if DOT:
            x = tl.load(tile, mask=mask, other=0.0)
            acc = tl.dot(x, tl.trans(x), acc)
        else:
            acc += tl.load(tile, mask=mask, other=0.0)
        if CASE == "by hand":
            page = tl.load(index_ptr + k + 1, mask=k + 1 < end, other=0)
        if CASE == "stores":
            tl.store(index_ptr + k + 1, (page + k) % 5)
            tl.debug_barrier()
        if CASE == "stores elsewhere":
            tl.store(seen_ptr + k, page)
        if CASE == "adds":
            tl.atomic_add(link_ptr + k, page, sem="relaxed")
    columns = tl.arange(0, ROWS if DOT else COLUMNS)
    tl.store(out_ptr + i[:, None] * (ROWS if DOT else COLUMNS) + columns[None, :], acc)
    if CASE == "used" or CASE == "scaled":
        tl.store(seen_ptr, seen)


def pages_of(case, index, link, begin, end):
    """The numbers of the pages that iterations read, and what the loop stores."""
    found, page = [], index[begin] if begin < end else 0
    for k in range(begin, end):
        if case == "list":
            found.append(page)
            page = link[page]
            continue
        page = index[k]
        found.append(link[link[page]] if case == "chain" else page)
        if case == "stores":
            index[k + 1] = (page + k) % PAGES
        if case == "adds":
            link[k] += page
    return found


CASES = ["rows", "chain", "mask", "by hand", "list", "used", "scaled", "stores", "stores elsewhere", "adds"]


@pytest.mark.share(4)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("dot", "stages"), [(True, 3), (False, None), (False, 2)])
def test_loads_by_loaded_numbers(case, dot, stages, rng, draw, poisoned, executor):
    pages = draw("float16", (PAGES * ROWS, COLUMNS), -1, 1)
    length = rng.integers(1, ROWS * COLUMNS, PAGES).astype(np.int32)
    width = ROWS if dot else COLUMNS
    for begin, end in ((0, 0), (0, 1), (1, 3), (2, 7)) if executor.startswith("cuda") else ((2, 7),):
        link = rng.integers(0, PAGES, LINKS).astype(np.int32)
        index = rng.integers(0, PAGES, end + (case == "stores")).astype(np.int32)
        if case == "rows":
            index = rng.integers(0, PAGES * ROWS, end * ROWS).astype(np.int32)
        expected = np.zeros((ROWS, width))
        given, stored = [x.copy() for x in (index, link)], [x.copy() for x in (index, link)]
        numbers = [] if case == "rows" else pages_of(case, *stored, begin, end)
        tiles = [pages[n * ROWS : (n + 1) * ROWS] for n in numbers]
        if case == "rows":
            tiles = list(pages[index.reshape(-1, ROWS)][begin:])
        for number, tile in zip(numbers or range(len(tiles)), tiles, strict=True):
            x = tile.astype(np.float64)
            if case == "mask":
                x = np.where(np.arange(x.size) < length[number], x.ravel(), 0).reshape(x.shape)
            expected += x @ x.T if dot else x
        out, seen = poisoned("float32", (ROWS, width)), poisoned("int32", LINKS)
        gather[(1,)](*given, length, pages, out, seen, begin, end, case, dot, stages, ROWS, COLUMNS)
        np.testing.assert_allclose(out, expected, rtol=1e-2 if dot else 1e-5, atol=1e-2 if dot else 1e-5)
        for got, wanted in zip(given, stored, strict=True):
            np.testing.assert_array_equal(got, wanted)
        if case in ("used", "scaled"):
            assert seen[0] == sum(n // length[n] if case == "scaled" else n for n in numbers)
        if case == "stores elsewhere":
            np.testing.assert_array_equal(seen[begin:end], numbers)
