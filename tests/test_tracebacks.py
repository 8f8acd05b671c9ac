"""What a user sees above the message of an error: his own frames."""

import subprocess
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.errors import CompilationError, DeuteronError, InternalError, LaunchError, UsageError
from deuteron.library import Kernel, Library, build_library
from deuteron.testing import Benchmark, do_bench, perf_report
from deuteron.tools.tensor_descriptor import TensorDescriptor
from deuteron.tracebacks import api_boundary

X = np.zeros(64, np.int32)


@deuteron.jit
def wrong(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, undefined_name)  # noqa: F821


@deuteron.jit
def right(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, i)


tuned = deuteron.autotune([deuteron.Config({"BLOCK": 16}), deuteron.Config({"BLOCK": 32})], key=["n"])(wrong)
with_heuristics = deuteron.heuristics({"BLOCK": lambda args: 16})(wrong)


def grid_that_fails(meta):
    right[(1,)](X, "no number", BLOCK=16)


def grid_with_a_bug(meta):
    return meta["NO_SUCH"]


def in_async_mode():
    with ThreadPoolExecutor(1) as pool, deuteron.AsyncCompileMode(pool):
        wrong.warmup(X, 64, BLOCK=16, grid=(1,))


def from_a_pool():
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: wrong[(1,)](X, 64, BLOCK=16)).result()


def repeated():
    for _ in range(6):  # the last ones by machine code
        right[(1,)](X, 64, BLOCK=16)
    right[(1,)](X, "no number", BLOCK=16)


MISTAKES = {
    "launch": lambda: wrong[(1,)](X, 64, BLOCK=16),
    "launch by machine code": repeated,
    "run": lambda: wrong.run(X, 64, BLOCK=16, grid=(1,)),
    "warmup": lambda: wrong.warmup(X, 64, BLOCK=16, grid=(1,)),
    "prepare": lambda: wrong.prepare(X, 64, BLOCK=16, grid=(1,)),
    "prepared": lambda: right.prepare(X, 64, BLOCK=16, grid=(1,)).launch(X, 1.5),
    "grid": lambda: right[(-1,)](X, 64, BLOCK=16),
    "grid function": lambda: right[grid_with_a_bug](X, 64, BLOCK=16),
    "autotune": lambda: tuned[(1,)](X, 64),
    "heuristics": lambda: with_heuristics[(1,)](X, 64),
    "compile": lambda: deuteron.compile(deuteron.ASTSource(wrong, {"x_ptr": "*i32", "n": "i32"}, {"BLOCK": 16}), "cpu"),
    "source": lambda: deuteron.ASTSource(right, {"x_ptr": "*i32"}),
    "compiled": lambda: deuteron.compile(
        deuteron.ASTSource(right, {"x_ptr": "*i32", "n": "i32"}, {"BLOCK": 16}), "cpu"
    )[(1,)](X),
    "call": lambda: right(X, 64, 16),
    "decorator": lambda: deuteron.jit(no_such_option=1)(right.fn),
    "autotuner": lambda: deuteron.autotune([deuteron.Config({})], key=["m"], prune_configs_by=1)(right),
    "descriptor": lambda: TensorDescriptor.from_tensor(X, [16], padding="none"),
    "async": in_async_mode,
    "pool": from_a_pool,
    "manifest": lambda: deuteron.warm_up(["no_such_file.json"]),
    "configuration": lambda: deuteron.Config({}, num_wraps=4),
    "declared kernel": lambda: Kernel(name="norm", grid="1"),
    "declared library": lambda: Library("norms", ["cuda:91"], [Kernel(name="norm", grid="1", source="norm.py")]),
    "benchmark": lambda: Benchmark(["n"], [1], "by", ["a"], [], "copies", {}),
    "report": lambda: perf_report(Benchmark(["n", "m"], [(1,)], "by", [], [], "copies", {}))(max).run(),
    "timing": lambda: do_bench(int, warmup=0, rep=0, quantiles=[2]),
    "language": lambda: tl.arange(0, 16),
}


def frames_of(error: BaseException) -> list[str]:
    return [Path(frame.filename).name for frame in traceback.extract_tb(error.__traceback__)]


@pytest.mark.parametrize("name", MISTAKES)
def test_frames_of_deuteron_are_not_shown(name):
    with pytest.raises(DeuteronError) as caught:
        MISTAKES[name]()
    error = caught.value
    theirs = {Path(__file__).name, "thread.py", "_base.py"}  # a pool of the program's own is his
    while error is not None:
        assert set(frames_of(error)) <= theirs, frames_of(error)
        error = error.__cause__ or error.__context__


def test_a_library_that_cannot_be_built(tmp_path):
    types = {"x_ptr": "*i32", "n": "i32"}
    kernel = Kernel(name="wrong", grid="1", source=__file__, types=types, constexprs={"BLOCK": 16})
    with pytest.raises(DeuteronError) as caught:
        build_library(Library("broken", ["cpu"], [kernel]), tmp_path / "out")
    assert frames_of(caught.value) == [Path(__file__).name]


def test_in_the_interpreter(monkeypatch):
    monkeypatch.setenv("DEUTERON_INTERPRET", "1")
    with pytest.raises(CompilationError) as caught:
        wrong[(1,)](X, 64, BLOCK=16)
    assert frames_of(caught.value) == [Path(__file__).name]


def test_frames_between_ours_are_the_programs():
    with pytest.raises(LaunchError) as caught:
        right[grid_that_fails](X, 64, BLOCK=16)
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names == ["test_frames_between_ours_are_the_programs", "grid_that_fails"]


@pytest.mark.parametrize("variable", ("DEUTERON_FRONT_END_DEBUGGING", "TRITON_FRONT_END_DEBUGGING"))
def test_all_are_shown_where_that_is_asked_for(variable, monkeypatch):
    monkeypatch.setenv(variable, "1")
    with pytest.raises(CompilationError) as caught:
        wrong[(1,)](X, 64, BLOCK=16)
    assert len(frames_of(caught.value)) > 10


def test_a_defect_and_other_errors_are_shown_whole():
    @api_boundary
    def fails(error):
        raise error

    for kind in (InternalError, ValueError):
        with pytest.raises(kind) as caught:
            fails(kind("x"))
        assert "tracebacks.py" in frames_of(caught.value)


def test_a_defect_that_led_to_an_error_is_shown_whole():
    defect = InternalError("a defect")
    try:
        api_boundary(lambda: (_ for _ in ()).throw(defect))()
    except InternalError:
        whole = frames_of(defect)
    with pytest.raises(UsageError) as caught, api_boundary:
        raise UsageError("asked") from defect
    assert caught.value.__cause__ is defect and frames_of(defect) == whole


PROGRAM = """
import sys
import threading
import numpy as np
import deuteron
import deuteron.language as tl

@deuteron.jit
def kernel(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), missing)

def main():
    kernel[(1,)](np.zeros(16, np.int32), BLOCK=16)

if "thread" in sys.argv:
    thread = threading.Thread(target=main)
    thread.start()
    thread.join()
else:
    main()
"""


@pytest.mark.parametrize(("args", "frames"), (((), 2), (("thread",), 3)))
def test_what_python_prints(args, frames, tmp_path):
    """In a thread it is a frame of `main`, and two of `threading`, which called it."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run([sys.executable, program, *args], capture_output=True, text=True)
    assert "'missing'" in done.stderr
    assert done.stderr.count('  File "') == frames, done.stderr


def test_threads_that_raise_the_same_error_at_once():
    found: list[list[str]] = []

    def launch():
        try:
            wrong[(1,)](X, 64, BLOCK=16)
        except CompilationError as error:
            found.append(frames_of(error))

    threads = [threading.Thread(target=launch) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[Path(__file__).name]] * 4
