"""Arrays between pages that fault: as much of them is there as is accessed, and not one byte more."""

from __future__ import annotations

import ctypes
import multiprocessing
import signal

import numpy as np
import pytest

from tests.fuzz.case import Argument, Case
from tests.fuzz.executors import _lower, run_case, source_of
from tests.fuzz.pages import Pages, touched_bytes

MASKED = """@triton.jit
def kernel(x, out, n):
    i = tl.arange(0, 64)
    tl.store(out + i, tl.load(x + i, mask=(i >= 5) & (i < n), other=0))
"""
CASE = Case(
    2,
    MASKED,
    (Argument("x", "int32", 64, "normal"), Argument("out", "int32", 64, "poison"), Argument("n", "int32", None, 43)),
    (1,),
    {},
)


def test_what_is_accessed():
    assert touched_bytes(CASE, _lower(source_of(CASE))) == {0: range(20, 172), 1: range(256)}


@pytest.mark.parametrize("seed", range(4))
def test_a_program_that_is_right(seed):
    outcomes = list(run_case(CASE.with_(seed=seed), ["cpu/pages"], lambda place: None))
    assert [outcome.kind for outcome in outcomes] == ["ok", "ok"]


GATHERED = """@triton.jit
def kernel(x, i, out):
    at = tl.arange(0, 64)
    tl.store(out + at, tl.load(x + tl.load(i + at)))
"""


def test_elements_in_two_words():
    arguments = (
        Argument("x", "float16", 64, "normal"),
        Argument("i", "int32", 64, "index", 1, 64),
        Argument("out", "float16", 64, "poison"),
    )
    outcomes = list(run_case(Case(3, GATHERED, arguments, (1,)), ["cpu/pages"], lambda place: None))
    assert [outcome.kind for outcome in outcomes] == ["ok", "ok"]
    assert all(Pages(np.zeros(64, np.float16), range(128), end, gap=1).pointer % 2 for end in (0, 1))


def read(place: int, alignment: int) -> None:
    pages = Pages(np.arange(64, dtype=np.int32), range(20, 172), alignment)
    ctypes.string_at(pages.pointer + place, 1)


@pytest.mark.parametrize(
    ("place", "alignment", "is_there"),
    [(20, 1, True), (171, 1, True), (172, 1, False), (176, 16, False), (171, 16, True), (20, 0, True), (3, 0, False)],
)
def test_a_byte_beside_what_is_accessed_ends_the_process(place, alignment, is_there):
    process = multiprocessing.get_context("spawn").Process(target=read, args=(place, alignment))
    process.start()
    process.join()
    assert process.exitcode == (0 if is_there else -signal.SIGSEGV)


def test_what_was_stored_beside_it_is_seen():
    array = np.arange(64, dtype=np.int32)
    pages = Pages(array, range(20, 172), 0)
    ctypes.memset(pages.pointer + 20, 0, 4)
    ctypes.memset(pages.pointer + 172, 0, 1)
    with pytest.raises(AssertionError, match="memory beside x was written"):
        pages.take_back("x")
    assert array[:7].tolist() == [0, 1, 2, 3, 4, 0, 6]
