"""Kernels compiled by workers: what they make is what a compile here makes; what fails, fails one kernel."""

import gc
import json
import threading
import warnings

import pytest

import deuteron
import deuteron.language as tl
from deuteron.backend import get_backend, parse_target
from deuteron.compiler import ASTSource, ahead
from deuteron.compiler.ahead import compile_ahead, is_worth_it
from deuteron.compiler.job import Job
from deuteron.errors import CompilationError, CompilerDied


@deuteron.jit
def scale(x_ptr, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK < 64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


def job(target: str, block: int) -> Job:
    target = parse_target(target)
    backend = get_backend(target)
    source = ASTSource(scale, {"x_ptr": "*fp32", "n": "i32"}, {"BLOCK": block}, {(0,): [["tt.divisibility", 16]]})
    return Job(backend, source, target, backend.make_options({"num_warps": 1}))


@pytest.fixture(autouse=True)
def own_cache(tmp_path, lasting_environment, monkeypatch):
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path))


def test_workers_make_what_a_compile_makes(monkeypatch):
    jobs = [job("cpu", 16), job("cuda:90", 16), job("cpu", 64)]
    outcomes = dict(compile_ahead(jobs, 1))
    assert outcomes[0] is outcomes[1] is None and isinstance(outcomes[2], CompilationError)
    assert [one.is_kept() for one in jobs] == [True, True, False]
    for one in jobs[:2]:
        compiled = [deuteron.compile(one.source, one.target, {"num_warps": 1})]
        monkeypatch.setenv("DEUTERON_ALWAYS_COMPILE", "1")
        compiled.append(deuteron.compile(one.source, one.target, {"num_warps": 1}))
        monkeypatch.delenv("DEUTERON_ALWAYS_COMPILE")
        texts = [{name: kernel.asm[name] for name in kernel.asm} for kernel in compiled]
        assert compiled[0].is_cached and not compiled[1].is_cached
        known, made = ({**json.loads(k.metadata.to_json()), "stage_times": None} for k in compiled)
        assert known == made
        drop = {"llir", "ptx"}  # their first line has the times
        assert {n: t for n, t in texts[0].items() if n not in drop} == {
            n: t for n, t in texts[1].items() if n not in drop
        }


def test_a_worker_that_dies(monkeypatch):
    monkeypatch.setattr(Job, "lower", lambda self: (Killer(), None))
    ((index, error),) = compile_ahead([job("cpu", 16)], 1)
    assert index == 0 and isinstance(error, CompilerDied) and "ended with status 7" in str(error)


class Killer:
    """Ends the process that reads it."""

    def __reduce__(self):
        import os

        return os._exit, (7,)


def test_where_no_worker_can_be_started_nothing_is_compiled(monkeypatch):
    monkeypatch.setattr(ahead.sys, "executable", "/nowhere/python")
    assert list(compile_ahead([job("cpu", 16)], 2)) == []


def test_when_workers_are_worth_their_start():
    assert not is_worth_it(0.05, 10, 2) and is_worth_it(0.5, 10, 2)
    assert not is_worth_it(5.0, 0, 8) and not is_worth_it(5.0, 10, 1)


def test_workers_leave_no_pipe_open():
    before = set(threading.enumerate())
    with warnings.catch_warnings(record=True) as noticed:
        warnings.simplefilter("always")
        list(compile_ahead([job("cpu", 16), job("cpu", 32)], 2))
        for thread in set(threading.enumerate()) - before:
            thread.join(10)
        gc.collect()
    assert not [str(one.message) for one in noticed]


def test_an_interpreter_that_is_no_python_is_no_worker(monkeypatch):
    monkeypatch.setattr(ahead.sys, "executable", "/bin/true")
    worker = ahead.Worker()
    assert worker.compile(("", None)) is worker.compile(("", None)) is None


def test_a_frozen_program_is_not_started_as_a_worker(tmp_path, monkeypatch):
    """It would be its own interpreter, and run from its beginning in each."""
    program, mark = tmp_path / "program", tmp_path / "mark"
    program.write_text(f"#!/bin/sh\ntouch {mark}\n")
    program.chmod(0o755)
    monkeypatch.setattr(ahead.sys, "executable", str(program))
    monkeypatch.setattr(ahead.sys, "frozen", True, raising=False)
    assert list(compile_ahead([job("cpu", 16)], 2)) == [] and not mark.exists()


def test_an_interrupt_ends_the_workers():
    outcomes = compile_ahead([job("cpu", 16), job("cpu", 32)], 1)
    assert next(outcomes)[1] is None
    outcomes.close()
