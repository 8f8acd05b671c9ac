"""Threads wait before they touch global memory that others of them touched, and nowhere else."""

import numpy as np
import pytest
from backend.cuda.launching import compile_for, emulate
from ir_text import generic_asm

import deuteron
import deuteron.language as tl

X = np.zeros(1 << 14, np.float32)
PLACES = np.zeros(1 << 14, np.int32)


def barriers(kernel, *args, **options):
    """How many barriers there are, and the op after each."""
    lines = generic_asm(compile_for("cuda:90", kernel, *args, **options), "ttgir").splitlines()
    following = [lines[i + 1] for i, line in enumerate(lines) if '"ttg.barrier"' in line]
    return [line.split('"')[1] for line in following]


@deuteron.jit
def in_place(x, KIND: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    if KIND == "same":
        tl.store(x + i, v * 2)
    elif KIND == "same, computed again":
        tl.store(x + (tl.arange(0, N) * 3 + i) // 4 * 0 + i, v * 2)
    elif KIND == "reversed":
        tl.store(x + N - 1 - i, v * 2)
    elif KIND == "behind":
        tl.store(x + N + i, v * 2)
    elif KIND == "overlapping":
        tl.store(x + N - 1 + i, v * 2)


@pytest.mark.parametrize(
    ("kind", "size", "needed"),
    [
        ("same", 1024, []),
        ("same", 128, []),
        ("same", 64, ["tt.store"]),  # half of the threads only load
        ("reversed", 1024, ["tt.store"]),
        ("behind", 1024, []),
        ("overlapping", 1024, ["tt.store"]),
    ],
)
def test_a_tile_in_place(kind, size, needed):
    assert barriers(in_place, X, KIND=kind, N=size, num_warps=4) == needed


@deuteron.jit
def halves_in_place(x, WIDTH: tl.constexpr):
    """Rows of WIDTH turned, 64 elements beside the 64 that follow, as rotary embeddings are."""
    first = x + tl.arange(0, 16)[:, None] * WIDTH + tl.arange(0, 64)[None, :]
    a, b = tl.load(first), tl.load(first + 64)
    tl.store(first, a - b)
    tl.store(first + 64, a + b)


@pytest.mark.parametrize(("width", "needed"), [(128, []), (200, []), (127, ["tt.store"] * 2)])
def test_halves_of_rows(width, needed):
    assert barriers(halves_in_place, X, WIDTH=width) == needed


@deuteron.jit
def columns_in_place(x, stride, STRIDE: tl.constexpr):
    i = tl.arange(0, 16)[:, None] * (stride if STRIDE is None else STRIDE) + tl.arange(0, 64)[None, :]
    tl.store(x + i, tl.load(x + i) + 1)


@pytest.mark.parametrize(("stride", "needed"), [(64, []), (100, []), (63, ["tt.store"]), (0, ["tt.store"])])
def test_rows_that_may_overlap(stride, needed):
    assert barriers(columns_in_place, X, 64, STRIDE=stride) == needed
    assert barriers(columns_in_place, X, 96, STRIDE=None) == ["tt.store"]


@deuteron.jit
def scalars(x, KIND: tl.constexpr):
    v = tl.load(x)
    tl.store(x, v + 1)
    if KIND == "read again":
        tl.store(x + 100, tl.load(x))
    elif KIND == "written again":
        tl.store(x, v + 2)


@pytest.mark.parametrize(("kind", "more"), [("", []), ("read again", ["tt.load"]), ("written again", [])])
def test_scalars_that_one_thread_stores(kind, more):
    assert barriers(scalars, X, KIND=kind) == ["tt.store", *more]


@deuteron.jit
def programs_in_turn(x, n, TILE: tl.constexpr, LOOP: tl.constexpr):
    i = tl.arange(0, 1024)
    begin, step = tl.program_id(0) * TILE, tl.num_programs(0) * TILE
    if LOOP == "for":
        for k in range(begin, n, step):
            tl.store(x + k + i, tl.load(x + k + i) * 2)
    elif LOOP == "while":
        while begin < n:
            tl.store(x + begin + i, tl.load(x + begin + i) * 2)
            begin += step
    elif LOOP == "nested":
        while begin < n:
            for k in range(0, n, step):
                tl.store(x + begin + k + i, tl.load(x + begin + k + i) * 2)
            begin += 2048
    elif LOOP == "doubled":
        while begin < n:
            tl.store(x + begin + i, tl.load(x + begin + i) * 2)
            begin = 2 * begin + TILE
    elif LOOP == "changing":
        while begin < n:
            tl.store(x + begin + i, tl.load(x + begin + i) * 2)
            begin += step
            step += 1


@pytest.mark.parametrize("loop", ["for", "while", "nested"])
@pytest.mark.parametrize(("tile", "needed"), [(1024, False), (3072, False), (1536, True), (512, True), (768, True)])
def test_steps_of_the_number_of_programs(loop, tile, needed):
    """Whatever it is, steps are multiples of a tile, or not, also where they wrap around: 1536 * n may be 512."""
    assert ("tt.load" in barriers(programs_in_turn, X, 5000, TILE=tile, LOOP=loop)) == needed


@pytest.mark.parametrize("loop", ["doubled", "changing"])
def test_what_is_not_stepped_by_one_number(loop):
    assert barriers(programs_in_turn, X, 5000, TILE=1024, LOOP=loop) == ["tt.load"]


@deuteron.jit
def columns_of_rows(x, n, m, KIND: tl.constexpr):
    r = tl.program_id(0) * 8 + tl.arange(0, 8)[:, None]
    i = tl.arange(0, 128)[None, :]
    for k in range(0, n, 64 if KIND == "half a tile further" else 128):
        c = k + i
        if KIND == "no mask":
            tl.store(x + r * n + c, 1.0)
        elif KIND == "in place":
            tl.store(x + r * n + c, tl.load(x + r * n + c, mask=c < n) * 2, mask=c < n)
        elif KIND == "rows and columns":
            tl.store(x + r * n + c, 1.0, mask=(r < m) & (c < n))
        elif KIND == "another width":
            tl.store(x + r * n + c, 1.0, mask=c < m)
        elif KIND == "less than no column":
            tl.store(x + r * n + c - 64, 1.0, mask=c - 64 < n)
        elif KIND == "twice the width":
            tl.store(x + r * n + c, 1.0, mask=c < 2 * n)
        elif KIND == "half a tile further":
            tl.store(x + r * n + c, 1.0, mask=c < n)
        elif KIND == "rows that are one":
            tl.store(x + r // 2 * n + c, 1.0, mask=c < n)
        elif KIND == "rows in turn":
            tl.store(x + (r + k) * n + i, 1.0, mask=i < n)
        elif KIND == "backwards":
            tl.store(x + r * n + c, tl.load(x + r * n + n - 1 - c, mask=c < n), mask=c < n)


@pytest.mark.parametrize(
    ("kind", "needed"),
    [
        ("no mask", True),
        ("in place", False),
        ("rows and columns", False),
        ("another width", True),
        ("less than no column", True),
        ("twice the width", True),
        ("half a tile further", True),
        ("rows that are one", True),
        ("rows in turn", True),
        ("backwards", True),
    ],
)
def test_columns_within_rows(kind, needed):
    assert bool(barriers(columns_of_rows, X, 1000, 1001, KIND=kind)) == needed


@deuteron.jit
def middle_axis(x, ROWS: tl.constexpr, WIDTH: tl.constexpr, PITCH: tl.constexpr, KIND: tl.constexpr, R: tl.constexpr):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)[:, None]
    if KIND == "negative":
        i -= 32
    for k in tl.range(0, ROWS, R):
        r = k + tl.arange(0, R)[None, :]
        at = i % WIDTH + WIDTH * r + PITCH * (i // WIDTH)
        if KIND == "64 bits":
            at = i.to(tl.int64) % WIDTH + WIDTH * r + PITCH * (i.to(tl.int64) // WIDTH)
        elif KIND == "three parts":
            at = i % 4 + WIDTH * r + 4 * (i // 4 % (WIDTH // 4)) + PITCH * (i // WIDTH)
        tl.store(x + at + 4096, (i + 100 * r).to(tl.float32), r < (ROWS + R if KIND == "no mask" else ROWS))


@pytest.mark.parametrize(
    ("rows", "width", "pitch", "kind", "needed"),
    [
        (64, 48, 64 * 48, "", []),
        (60, 48, 60 * 48, "", []),
        (60, 48, 60 * 48, "64 bits", []),
        (60, 48, 60 * 48, "three parts", []),
        (60, 48, 60 * 48, "no mask", ["tt.store"]),
        (60, 48, 60 * 48 - 1, "", ["tt.store"]),
        (60, 48, 48, "", ["tt.store"]),
        (60, 48, 60 * 48, "negative", ["tt.store"]),
        (60, 0, 60, "", ["tt.store"]),
    ],
)
def test_a_middle_axis(rows, width, pitch, kind, needed):
    """Tiles of quotients and remainders: the store in each iteration waits where they may meet."""
    constants = {"ROWS": rows, "WIDTH": width, "PITCH": pitch, "KIND": kind, "R": 8}
    assert barriers(middle_axis, X, **constants) == needed
    if width:
        out = np.zeros(1 << 14, np.float32)
        emulate(middle_axis, out, **constants)
        expected, is_certain = _stored_in_order(**constants)
        np.testing.assert_array_equal(out[is_certain], expected[is_certain])


def _stored_in_order(ROWS, WIDTH, PITCH, KIND, R):
    """What is left, and where it is not up to the order of one tile's elements."""
    expected, is_certain = np.zeros(1 << 14, np.float32), np.ones(1 << 14, bool)
    for k in range(0, ROWS, R):
        i = np.arange(64)[:, None] - 32 * (KIND == "negative")
        r = k + np.arange(R)[None, :]
        limit = ROWS + R if KIND == "no mask" else ROWS
        quotient = np.trunc(i / WIDTH).astype(int)
        at = (i - WIDTH * quotient + WIDTH * r + PITCH * quotient + 4096)[np.broadcast_to(r, (64, R)) < limit]
        expected[at] = (i + 100 * r)[np.broadcast_to(r, (64, R)) < limit]
        places, counts = np.unique(at, return_counts=True)
        is_certain[places[counts > 1]] = False
    return expected, is_certain


@deuteron.jit
def loops(x, n, KIND: tl.constexpr):
    i = tl.arange(0, 1024)
    if KIND == "apart":
        for k in range(0, n, 1024):
            tl.store(x + k + i, tl.load(x + k + i) * 2)
    elif KIND == "pointers, apart":
        p = x + i
        for _ in range(n):
            tl.store(p, tl.load(p) * 2)
            p += 1024
    elif KIND == "backwards":
        for k in range(n, 0, -1024):
            tl.store(x + k + i, tl.load(x + k + i) * 2)
    elif KIND == "half a tile further":
        for k in range(0, n, 512):
            tl.store(x + k + i, tl.load(x + k + i) * 2)
    elif KIND == "the same":
        for _ in range(n):
            tl.store(x + i, tl.load(x + i) * 2)
    elif KIND == "after all":
        total = tl.zeros((1024,), tl.float32)
        for k in tl.range(0, n, 1024, loop_unroll_factor=1):
            total += tl.load(x + k + i)
        tl.store(x + i, total)
    elif KIND == "reversed after all":
        total = tl.zeros((1024,), tl.float32)
        for k in tl.range(0, n, 1024, loop_unroll_factor=1):
            total += tl.load(x + k + i)
        tl.store(x + 1023 - i, total)
    elif KIND == "reversed before all":
        tl.store(x + 1023 - i, i)
        total = tl.zeros((1024,), tl.float32)
        for k in tl.range(0, n, 1024, loop_unroll_factor=1):
            total += tl.load(x + k + i)
        tl.store(x + 4096 + i, total)
    elif KIND == "one store, an element further":
        for k in range(n):
            tl.store(x + k + i, i + k)
    elif KIND == "one store, a tile further":
        for k in range(n):
            tl.store(x + k * 1024 + i, i + k)
    elif KIND == "sums":
        for k in range(0, n, 512):
            tl.atomic_add(x + k + i, 1.0)


@pytest.mark.parametrize(
    ("kind", "needed"),
    [
        ("apart", []),
        ("pointers, apart", []),
        ("backwards", []),
        ("half a tile further", ["tt.load"]),
        ("the same", []),
        ("after all", []),
        ("reversed after all", []),  # what is stored goes through shared memory, where all wait
        ("reversed before all", ["tt.load"]),
        ("one store, an element further", ["tt.store"]),
        ("one store, a tile further", []),
        ("sums", []),
    ],
)
def test_loops(kind, needed):
    assert barriers(loops, X, 4096, KIND=kind) == needed


@deuteron.jit
def branches(x, n):
    i = tl.arange(0, 1024)
    v = tl.load(x + i)
    if n > 3:
        tl.store(x + 1023 - i, v)
    tl.store(x + 4096 + i, tl.load(x + i))


def test_a_branch_counts_whether_it_is_taken_or_not():
    assert barriers(branches, X, 4) == ["tt.store", "tt.load"]


@deuteron.jit
def indirect(x, where):
    w = tl.load(where + tl.arange(0, 1024))
    tl.store(x + w, tl.load(x + w) + 1)


def test_addresses_that_are_loaded_may_be_equal():
    assert barriers(indirect, X, PLACES) == ["tt.store"]


@deuteron.jit
def summed(x, out):
    i = tl.arange(0, 1024)
    v = tl.load(x + i)
    tl.store(out, tl.sum(v))
    tl.store(x + 1023 - i, v)


def test_a_sum_over_warps_is_waited_for_anyway():
    assert barriers(summed, X, X[:1].copy()) == []


@deuteron.jit
def exchanged(x):
    i = tl.arange(0, 256)
    tl.atomic_xchg(x + i, 1.0, sem="relaxed")
    tl.atomic_xchg(x + 255 - i, 2.0, sem="relaxed")
    tl.atomic_add(x + 1024 + i, 1.0, sem="relaxed")
    tl.atomic_add(x + 1279 - i, 2.0, sem="relaxed")


def test_atomics_whose_order_can_be_told():
    assert barriers(exchanged, X) == ["tt.atomic_rmw"]


@deuteron.jit
def turned(x, y):
    i = tl.arange(0, 1024)
    tl.store(y + 1023 - i, tl.load(x + i))


def test_arguments_that_overlap():
    assert barriers(turned, X, X.copy()) == []
    assert barriers(turned, X, X.copy(), may_alias=True) == ["tt.store"]


@deuteron.jit
def through_null(N: tl.constexpr):
    p = tl.full((N,), 0, tl.int64).to(tl.pointer_type(tl.int32))
    tl.store(p, 1)
    tl.store(p, 2)


def test_nobody_waits_for_what_is_stored_through_null():
    assert barriers(through_null, N=128) == []


@deuteron.jit
def asked_before(x, n, KIND: tl.constexpr, N: tl.constexpr):
    """What a condition of a loop loads, and a barrier at the end of its iterations; then a store to the same place."""
    i, left = tl.arange(0, N), n
    while (tl.load(x + 29) > left) & (left > 0):
        left -= 1
        tl.debug_barrier()
    if KIND == "atomics":
        tl.atomic_xor(x + (i * 5 + 3) % N, left)
    elif KIND == "other":
        tl.store(x + N + i, left)
    else:
        tl.store(x + i, left)


@pytest.mark.parametrize(("kind", "needed"), [("stores", ["tt.store"]), ("atomics", ["tt.atomic_rmw"]), ("other", [])])
def test_what_the_condition_of_a_loop_loads_is_pending_after_it(kind, needed):
    assert barriers(asked_before, PLACES, 3, KIND=kind, N=256, num_warps=4)[1:] == needed
