"""Which accesses of blocks TMA does."""

from __future__ import annotations

import pytest

import deuteron
import deuteron.language as tl
from deuteron.analysis.addresses.tma_accesses import OVERLAPS, tma_obstacles
from deuteron.frontend import lower_function
from deuteron.ir.tt.function import FuncOp


def names(kernel, max_bytes: int = 128 * 1024, **constants) -> list[str]:
    """The accesses, in order, that TMA does."""
    signature = {"p": "*fp16", "q": "*fp16", "n": "i32", "m": "i32", **dict.fromkeys(constants, "constexpr")}
    attrs = {name: (("tt.divisibility", 16),) for name in ("p", "q", "n")}
    module = lower_function(kernel, signature, constants, attrs)
    (func,) = (op for op in module.walk() if isinstance(op, FuncOp))
    obstacles = tma_obstacles(func, max_bytes)
    return [op.name.removeprefix("tt.descriptor_") for op in func.walk() if obstacles.get(op, OVERLAPS) is None]


@deuteron.jit
def copy(p, q, n, m, COLUMN: tl.constexpr, SIZE: tl.constexpr, PADDING: tl.constexpr):
    a = tl.make_tensor_descriptor(p, [m, n], [n, 1], [16, 32], PADDING)
    b = tl.make_tensor_descriptor(q, [m, n if SIZE == "n" else m], [n, 1], [16, 32])
    column = m if COLUMN == "m" else COLUMN
    b.store([m, column], a.load([m, column]))


@pytest.mark.parametrize(
    ("constants", "expected"),
    [
        ({"COLUMN": 8, "SIZE": "n"}, ["load", "store"]),
        ({"COLUMN": 4, "SIZE": "n"}, []),
        ({"COLUMN": "m", "SIZE": "n"}, []),
        ({"COLUMN": 8, "SIZE": "m"}, ["load"]),
    ],
    ids=["whole chunks", "half a chunk", "an unknown offset", "rows that end within a chunk"],
)
def test_chunks_of_16_bytes(constants: dict, expected: list[str]):
    assert names(copy, PADDING="zero", **constants) == expected


@deuteron.jit
def shifted(p, q, n, m):
    a = tl.make_tensor_descriptor(p + tl.program_id(0) * n, [m, n], [n, 1], [16, 32])
    b = tl.make_tensor_descriptor(q + 8 * n, [m, n], [n, 1], [16, 32])
    b.store([0, 0], a.load([0, 0]))


def test_a_base_that_depends_on_the_program():
    assert names(shifted) == ["store"]


@pytest.mark.parametrize(("max_bytes", "expected"), [(1024, ["load", "store"]), (1023, [])])
def test_blocks_fit_shared_memory(max_bytes: int, expected: list[str]):
    assert names(copy, max_bytes, COLUMN=8, SIZE="n", PADDING="zero") == expected


@deuteron.jit
def partly(p, q, n, m, COLUMN: tl.constexpr):
    a = tl.make_tensor_descriptor(p, [m, n], [n, 1], [16, 32])
    a.store([0, COLUMN], a.load([0, 0]))


def test_what_goes_through_pointers_after_all_counts_as_such():
    assert names(partly, COLUMN=8) == ["load", "store"]
    assert names(partly, COLUMN=2) == []


@deuteron.jit
def mixed(p, q, n, m, READS: tl.constexpr, WRITES: tl.constexpr, WAITS: tl.constexpr):
    a = tl.make_tensor_descriptor(p, [m, n], [n, 1], [16, 32])
    if WRITES:
        a.store([0, 0], tl.zeros((16, 32), tl.float16))
    if WAITS:
        tl.debug_barrier()
    b = a.load([0, 0])
    if READS:
        tl.store(q, tl.load(p))
    tl.store(q + tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :], b)


@pytest.mark.parametrize(
    ("reads", "writes", "waits", "expected"),
    [
        (False, False, False, ["load"]),
        (True, False, False, ["load"]),
        (False, True, False, ["store", "load"]),
        (True, True, False, []),
        (False, True, True, []),
        (False, False, True, ["load"]),
    ],
)
def test_an_array_that_is_written_is_accessed_in_one_way(reads, writes, waits, expected):
    assert names(mixed, READS=reads, WRITES=writes, WAITS=waits) == expected
