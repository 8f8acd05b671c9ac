"""Compiles by an executor: what is waited for, when, and what becomes of errors."""

from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.errors import CompilationError
from deuteron.runtime.async_compile import AsyncCompileMode, active_mode


class Later:
    """An executor that compiles when it is told to."""

    def __init__(self):
        self.waiting = []

    def submit(self, compile):
        self.waiting.append((future := Future(), compile))
        return future

    def run(self, count=None):
        for _ in range(len(self.waiting) if count is None else count):
            future, compile = self.waiting.pop(0)
            try:
                future.set_result(compile())
            except Exception as error:
                future.set_exception(error)


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch, tmp_path):
    monkeypatch.setenv("DEUTERON_TARGET", "cpu")
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path))
    for name in ("DEUTERON_INTERPRET", "DEUTERON_EMULATE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def fill():
    @deuteron.jit
    def fill(x, VALUE: tl.constexpr):
        tl.static_assert(VALUE < 100)
        tl.store(x + tl.arange(0, 16), VALUE)

    return fill


def zeros():
    return np.zeros(16, dtype=np.float32)


def test_a_warmup_returns_at_once_and_is_done_once(fill):
    pool = Later()
    with AsyncCompileMode(pool):
        first = fill.warmup(zeros(), 1, grid=(1,))
        fill.warmup(zeros(), 2, grid=(1,))
        assert fill.warmup(zeros(), 1, grid=(1,)) is first
        assert (len(pool.waiting), len(fill.device_caches[0][0])) == (2, 2)
        pool.run(1)
        assert (first.metadata.name, "llir" in first.asm, len(pool.waiting)) == ("fill", True, 1)
        fill[(1,)](x := zeros(), 1)
        assert x.tolist() == [1] * 16 and len(pool.waiting) == 1
        pool.run()
    assert [kernel.name for kernel in fill.device_caches[0][0].values()] == ["fill", "fill"]


def test_a_launch_waits_for_its_kernel_and_compiles_what_nobody_asked_for(fill):
    with ThreadPoolExecutor(2) as pool, deuteron.AsyncCompileMode(pool):
        for value in (1, 2):
            fill.warmup(zeros(), value, grid=(1,))
        for value in (2, 1, 3):
            fill[(1,)](x := zeros(), value)
            assert x.tolist() == [value] * 16
    assert len(fill.device_caches[0][0]) == 3


def test_what_was_compiled_before_is_no_future(fill):
    kernel = fill.warmup(zeros(), 1, grid=(1,))
    with AsyncCompileMode(Later()):
        assert fill.warmup(zeros(), 1, grid=(1,)) is kernel


def test_an_error_is_raised_at_the_end_of_the_block_and_a_launch_compiles_anew(fill):
    with pytest.raises(CompilationError, match="VALUE < 100"), ThreadPoolExecutor(2) as pool, AsyncCompileMode(pool):
        fill.warmup(zeros(), 100, grid=(1,))
        fill.warmup(zeros(), 1, grid=(1,))
    assert active_mode.get() is None
    assert len(fill.device_caches[0][0]) == 1, "the other one is kept"
    with pytest.raises(CompilationError, match="VALUE < 100"):
        fill[(1,)](zeros(), 100)


def test_an_error_goes_to_whoever_waits(fill):
    with ThreadPoolExecutor(1) as pool, AsyncCompileMode(pool, ignore_errors=True):
        kernel = fill.warmup(zeros(), 100, grid=(1,))
        for _ in range(2):
            with pytest.raises(CompilationError, match="VALUE < 100"):
                kernel.result()
        assert kernel.result(ignore_errors=True) is None
    assert not fill.device_caches[0][0]


def test_an_error_of_the_block_itself_goes_first(fill):
    with pytest.raises(KeyError), ThreadPoolExecutor(1) as pool, AsyncCompileMode(pool):
        fill.warmup(zeros(), 100, grid=(1,))
        raise KeyError("of the block")
    assert active_mode.get() is None


def test_hooks_are_told_when_the_kernel_is_there(fill, monkeypatch):
    told = []
    monkeypatch.setattr(deuteron.knobs.runtime, "jit_post_compile_hook", lambda **what: told.append(what["key"]))
    pool = Later()
    with AsyncCompileMode(pool):
        fill.warmup(zeros(), 1, grid=(1,))
        pool.run()
        assert told == []
    assert len(told) == 1


def test_modes_are_not_nested():
    with AsyncCompileMode(Later()), pytest.raises(RuntimeError, match="active already"):
        AsyncCompileMode(Later()).__enter__()
