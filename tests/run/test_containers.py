"""Lists and dictionaries that kernels are given, or have from outside: loops, unpacking, and what would change them."""

import numpy as np
import pytest

import deuteron
import deuteron.language as tl

LENGTHS = tl.constexpr([1, 2, 3])


@deuteron.jit
def sum_of(first, *others):
    for other in others:
        first += other
    return first


@deuteron.jit
def lists_kernel(out_ptr, PAIRS: tl.constexpr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = offsets
    for left, right in PAIRS:
        x += left * right
    for place, (left, _) in enumerate(PAIRS):
        x += place * left
    for length in LENGTHS:
        x += length
    first, *rest = LENGTHS
    tl.static_assert(len(PAIRS) == 2 and [*LENGTHS, 4][3] == 4)
    tl.store(out_ptr + offsets, x + sum_of(*LENGTHS) + first * rest[-1] + sum([2 * each for each in LENGTHS]))


@deuteron.jit
def dictionary_kernel(out_ptr, SIZES: tl.constexpr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = offsets
    for name, size in SIZES.items():
        x += size if name == "rows" else 10 * size
    for size in SIZES.values():
        x += size
    for name in SIZES:
        x += SIZES[name]
    tl.store(out_ptr + offsets, x)


def test_lists(poisoned, check):
    out = poisoned("int32", 8)
    lists_kernel[(1,)](out, PAIRS=[[1, 2], (2, 4)], N=8)
    check(out, np.arange(8) + (2 + 8) + 2 + 6 + 6 + 3 + 12)


def test_dictionaries(poisoned, check):
    out = poisoned("int32", 8)
    dictionary_kernel[(1,)](out, SIZES={"rows": 3, "columns": 4}, N=8)
    check(out, np.arange(8) + 43 + 7 + 7)


@deuteron.jit
def changing_kernel(out_ptr, SIZES: tl.constexpr):
    SIZES.update(rows=4)
    tl.store(out_ptr, SIZES["rows"])


@deuteron.jit
def longer_kernel(out_ptr, SIZES: tl.constexpr):
    SIZES.append(4)
    tl.store(out_ptr, len(SIZES))


def test_what_would_change_them(poisoned):
    """It would once, while the kernel is compiled, and not when it is found."""
    sizes, lengths = {"rows": 3}, [1]
    with pytest.raises(deuteron.CompilationError, match="'update' would change a dict of the program, when the kernel"):
        changing_kernel[(1,)](poisoned("int32", 1), SIZES=sizes)
    with pytest.raises(deuteron.CompilationError, match="A list is a tuple in a kernel and has no 'append'"):
        longer_kernel[(1,)](poisoned("int32", 1), SIZES=lengths)
    assert sizes == {"rows": 3} and lengths == [1]
