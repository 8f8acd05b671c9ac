"""Launching: which programs run, with which arguments and scratch memory; from many threads and from forks."""

from __future__ import annotations

import multiprocessing
import threading

import numpy as np
import pytest

from deuteron.backend.cpu.launch.driver import load_kernel
from deuteron.backend.cpu.target import cpu_target
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.compile import emit_object, optimise
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.targets import resolve_cpu
from deuteron.backend.llvm.types import Value, const
from deuteron.backend.metadata import KernelMetadata, make_param
from deuteron.errors import LaunchError
from deuteron.options import Target

PARAMETERS = [("ptr", "args"), ("ptr", "grid"), ("i64", "begin"), ("i64", "end"), ("ptr", "scratch")]


def argument(b: Builder, index: int, type: str) -> Value:
    address = b.load("ptr", b.gep("ptr", b.parameters[0], const("i64", index)))
    return b.load(type, address)


def build_kernel(emit_program, params: dict[str, str], scratch_bytes: int = 0):
    """A kernel whose every program is `emit_program(builder, linear index)`."""
    module = Module("kernel")
    b = module.function("kernel", "void", PARAMETERS, linkage="external")
    with b.loop(b.parameters[2], b.parameters[3], const("i64", 1)) as loop:
        emit_program(b, loop.index)
    b.ret()
    cpu = cpu_target(*resolve_cpu("native"))
    obj = emit_object(optimise(module.text(), cpu.cpu, cpu.features), cpu.cpu, cpu.features)
    named = tuple(make_param(name, type) for name, type in params.items())
    return load_kernel(
        obj, KernelMetadata("k", "kernel", Target("cpu", "native", 1), {}, named, scratch_bytes=scratch_bytes)
    )


def count_visits(b: Builder, index: Value) -> None:
    """visits[p] += 1, not atomically: no program may run twice."""
    place = b.gep("i64", argument(b, 0, "ptr"), index)
    b.store(b.add(b.load("i64", place), const("i64", 1)), place)


@pytest.fixture(scope="module")
def counting():
    return build_kernel(count_visits, {"visits": "*i64"})


@pytest.mark.parametrize("threads", ["1", "2", "7"])
@pytest.mark.parametrize("grid", [(1, 1, 1), (5, 1, 1), (3, 4, 5), (1, 1, 97), (100003, 1, 1)])
def test_every_program_runs_once(counting, monkeypatch, grid, threads):
    monkeypatch.setenv("DEUTERON_NUM_THREADS", threads)
    visits = np.zeros(np.prod(grid) + 1, np.int64)
    counting(grid, [visits.ctypes.data])
    assert np.all(visits[:-1] == 1)
    assert visits[-1] == 0


def test_a_thread_alone_runs_all_programs_in_one_call(monkeypatch):
    """What one of them has packed the others find, once it is known how long they take."""
    monkeypatch.setenv("DEUTERON_NUM_THREADS", "1")
    kernel = build_kernel(
        lambda b, index: b.store(b.parameters[2], b.gep("i64", argument(b, 0, "ptr"), index)), {"first": "*i64"}
    )
    first = np.zeros(100, np.int64)
    kernel((100, 1, 1), [first.ctypes.data])
    kernel((100, 1, 1), [first.ctypes.data])
    assert not first.any()


@pytest.mark.parametrize("grid", [(0, 1, 1), (5, 0, 3), (0, 0, 0)])
def test_an_empty_grid_runs_nothing(counting, grid):
    counting(grid, [0])  # would write to address 0


@pytest.mark.parametrize("grid", [(-1, 1, 1), (1, 2**31, 1), (2**31 - 1,) * 3])
def test_an_impossible_grid_is_an_error(counting, grid):
    with pytest.raises(LaunchError, match="grid of kernel 'k'"):
        counting(grid, [0])


def test_the_kernel_reads_the_grid():
    def emit(b, index):
        extent = b.load("i32", b.gep("i32", b.parameters[1], index))
        b.store(extent, b.gep("i32", argument(b, 0, "ptr"), index))

    kernel = build_kernel(emit, {"out": "*i32"})
    out = np.full(3, -1, np.int32)
    kernel((1, 3, 1), [out.ctypes.data])
    assert out.tolist() == [1, 3, 1]


SCALARS = [
    ("i1", "i8", True, 1),
    ("i8", "i8", -5, -5),
    ("u8", "i8", 200, 200 - 256),
    ("i16", "i16", -30000, -30000),
    ("i32", "i32", -(2**31), -(2**31)),
    ("u32", "i32", 2**32 - 1, -1),
    ("i32", "i32", 2**32 + 7, 7),
    ("i64", "i64", -(2**63), -(2**63)),
    ("u64", "i64", 2**64 - 1, -1),
    ("u64", "i64", -2, -2),
    ("fp32", "float", 0.1, np.float32(0.1)),
    ("fp32", "float", 1e300, np.inf),
    ("fp16", "float", 0.125, 0.125),
    ("bf16", "float", -3, -3.0),
    ("fp64", "double", 0.1, 0.1),
]


@pytest.mark.parametrize(("type", "llvm_type", "given", "arrives"), SCALARS)
def test_scalars_arrive(type, llvm_type, given, arrives):
    kernel = build_kernel(
        lambda b, index: b.store(argument(b, 1, llvm_type), argument(b, 0, "ptr")), {"out": "*i8", "s": type}
    )
    dtype = {"i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "float": "f4", "double": "f8"}[llvm_type]
    out = np.full(1, 99, dtype)
    kernel((1, 1, 1), [out.ctypes.data, given])
    assert out[0] == arrives


@pytest.mark.parametrize(
    ("values", "message"), [([0], "takes p, n, got 1"), ([0, "x"], "argument 'n' .* expected i32, got 'x'")]
)
def test_wrong_arguments_are_named(values, message):
    kernel = build_kernel(lambda b, index: None, {"p": "*i8", "n": "i32"})
    with pytest.raises(LaunchError, match=message):
        kernel((1, 1, 1), values)


def fill_and_check_scratch(b: Builder, index: Value) -> None:
    """Fill 1000 words of scratch with the program's index, then write their sum, and the address modulo 64."""
    scratch, size = b.parameters[4], const("i64", 1000)
    zero, one = const("i64", 0), const("i64", 1)
    with b.loop(zero, size, one) as loop:
        b.fence("seq_cst")
        b.store(index, b.gep("i64", scratch, loop.index))
    with b.loop(zero, size, one, carried=[zero]) as loop:
        b.fence("seq_cst")
        loop.next(b.add(loop.carried[0], b.load("i64", b.gep("i64", scratch, loop.index))))
    misaligned = b.and_(b.ptrtoint(scratch), const("i64", 63))
    b.store(b.add(loop.results[0], misaligned), b.gep("i64", argument(b, 0, "ptr"), index))


def test_scratch_is_aligned_and_private(monkeypatch):
    monkeypatch.setenv("DEUTERON_NUM_THREADS", "4")
    kernel = build_kernel(fill_and_check_scratch, {"out": "*i64"}, scratch_bytes=8000)
    out = np.full(501, -1)
    kernel((501, 1, 1), [out.ctypes.data])
    np.testing.assert_array_equal(out, 1000 * np.arange(501))


def test_many_threads_launch_at_once(monkeypatch):
    monkeypatch.setenv("DEUTERON_NUM_THREADS", "3")
    kernel = build_kernel(fill_and_check_scratch, {"out": "*i64"}, scratch_bytes=8000)
    outs = [np.full(65, -1) for _ in range(16)]

    def launch(out: np.ndarray) -> None:
        for _ in range(5):
            out[:] = -1
            kernel((65, 1, 1), [out.ctypes.data])

    threads = [threading.Thread(target=launch, args=(out,)) for out in outs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for out in outs:
        np.testing.assert_array_equal(out, 1000 * np.arange(65))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_launches(counting, monkeypatch):
    monkeypatch.setenv("DEUTERON_NUM_THREADS", "4")
    counting((50, 1, 1), [np.zeros(50, np.int64).ctypes.data])  # starts the helpers

    def child(connection) -> None:
        visits = np.zeros(1000, np.int64)
        counting((1000, 1, 1), [visits.ctypes.data])
        connection.send(bool(np.all(visits == 1)))

    receiver, sender = multiprocessing.get_context("fork").Pipe(False)
    process = multiprocessing.get_context("fork").Process(target=child, args=(sender,))
    process.start()
    assert receiver.poll(20)
    assert receiver.recv()
    process.join()
