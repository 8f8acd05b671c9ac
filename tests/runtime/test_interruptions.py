"""Handlers of signals that launch kernels in the middle of a launch, also of the first one of a process."""

import functools
import os
import pkgutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron import knobs
from deuteron.backend.cpu import lowering
from deuteron.backend.cpu.launch.thread_pool import ThreadPool
from deuteron.backend.cpu.rules.table import RULES
from deuteron.errors import InternalError
from deuteron.runtime.launch_records import numbers

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="there are no such signals")


@deuteron.jit
def add_one(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) + 1)


def launch_and_check(fn):
    x, out = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    fn[(1,)](x, out, BLOCK=16)
    np.testing.assert_array_equal(out, x + 1)


@pytest.fixture
def handled():
    """Signals launch what is in the list, once each."""
    waiting, done = [], []

    def handler(*_):
        if waiting:
            fn = waiting.pop()
            launch_and_check(fn)
            done.append(fn)

    before = signal.signal(signal.SIGUSR1, handler)
    yield waiting, done
    signal.signal(signal.SIGUSR1, before)


def interrupt():
    os.kill(os.getpid(), signal.SIGUSR1)
    time.sleep(0)  # handlers run between two steps


def test_the_kernel_that_is_being_compiled(handled, monkeypatch):
    waiting, done = handled
    own = deuteron.jit(add_one.fn)
    waiting.append(own)
    monkeypatch.setattr(knobs.runtime, "jit_cache_hook", lambda **_: interrupt())
    launch_and_check(own)
    assert done == [own]
    launch_and_check(own)
    assert len(own.cache[0]) == 1


def test_what_a_launch_without_python_is_told(handled):
    """While the number of a token is given."""
    waiting, done = handled
    own = deuteron.jit(add_one.fn)
    waiting.append(own)
    with numbers._lock.here():
        interrupt()
    assert done == [own]


def test_helpers_that_are_being_started(monkeypatch):
    """A handler launches with those that there are."""
    pool, begun = ThreadPool(), []
    start = ThreadPool._start_worker

    def interrupted(self):
        if not begun:
            begun.append(self.num_workers)
            self.start(4)  # what a handler does
            begun.append(self.num_workers)
        start(self)

    monkeypatch.setattr(ThreadPool, "_start_worker", interrupted)
    pool.start(2)
    assert begun == [0, 0] and pool.num_workers == 2
    pool.start(3)
    assert pool.num_workers == 3


class Handler:
    def __call__(self, *_):
        raise TimeoutError("soon") from ValueError("why")


@pytest.mark.parametrize("handler", [Handler(), Handler().__call__, functools.partial(Handler.__call__, None)])
@pytest.mark.parametrize("where", ["plan_function", "arith.addf"])
def test_what_a_handler_raises_in_the_middle_of_a_compile(monkeypatch, handler, where):
    """It is no defect of the compiler's, not even in a rule, where one is told of with the op that the rule is for."""

    def interrupted(function):
        def run(*args):
            signal.raise_signal(signal.SIGUSR1)
            return function(*args)

        return run

    own = deuteron.jit(add_one.fn)
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with monkeypatch.context() as patch, pytest.raises(TimeoutError, match="soon") as raised:
            if where == "plan_function":
                patch.setattr(lowering, where, interrupted(lowering.plan_function))
            else:
                patch.setitem(RULES, where, interrupted(RULES[where]))
            own[(1,)](np.ones(16, np.float32), np.ones(16, np.float32), BLOCK=16, opt_level=2)
        assert isinstance(raised.value.__cause__, ValueError)
        launch_and_check(own)
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize(
    ("mode", "where"),
    [
        ("DEUTERON_INTERPRET", "deuteron.frontend.semantics.memory.LoadOp.__init__"),
        ("DEUTERON_INTERPRET", "deuteron.interpreter.memory.gather"),
        ("DEUTERON_EMULATE", "deuteron.emulator.machine.global_memory.GlobalMemory.store"),
    ],
)
def test_what_a_handler_raises_where_no_processor_runs_the_kernel(monkeypatch, mode, where):
    """In the middle of a rule of the frontend and of the interpreter, and of an instruction of the emulator."""
    function = pkgutil.resolve_name(where)

    def interrupted(*args, **kwargs):
        signal.raise_signal(signal.SIGUSR1)
        return function(*args, **kwargs)

    monkeypatch.setenv(mode, "1")
    own = deuteron.jit(add_one.fn)
    before = signal.signal(signal.SIGUSR1, Handler())
    try:
        with monkeypatch.context() as patch, pytest.raises(TimeoutError, match="soon") as raised:
            patch.setattr(where, interrupted)
            launch_and_check(own)
        assert isinstance(raised.value.__cause__, ValueError)
        launch_and_check(own)
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize(
    "where", ["deuteron.frontend.semantics.memory.LoadOp.__init__", "deuteron.backend.cpu.lowering.plan_function"]
)
def test_a_compile_without_memory(monkeypatch, where):
    """It is no defect of the compiler's: no InternalError says that one is to be reported."""

    def fail(*_, **__):
        raise MemoryError("none left")

    own = deuteron.jit(add_one.fn)
    with monkeypatch.context() as patch, pytest.raises(MemoryError, match="none left"):
        patch.setattr(where, fail)
        own[(1,)](np.ones(16, np.float32), np.ones(16, np.float32), BLOCK=16, opt_level=1)
    launch_and_check(own)


def test_what_a_compile_raises_by_itself_is_wrapped(monkeypatch):
    monkeypatch.setattr(lowering, "plan_function", lambda *_: 1 / 0)
    with pytest.raises(InternalError, match="ZeroDivisionError"):
        deuteron.jit(add_one.fn)[(1,)](np.ones(16, np.float32), np.ones(16, np.float32), BLOCK=16, opt_level=1)


PROGRAM = """
import os, signal, sys
import numpy as np
import deuteron
from {module} import add_one, launch_and_check

class Interrupts:
    names = ["deuteron.backend.cpu.backend", "llvmlite.binding.targets", "deuteron.backend.launcher.loaded"]

    def find_spec(self, name, path=None, target=None):
        if name in self.names:
            self.names.remove(name)
            os.kill(os.getpid(), signal.SIGUSR1)

done = []
signal.signal(signal.SIGUSR1, lambda *_: (launch_and_check(add_one), done.append(1)))
sys.meta_path.insert(0, Interrupts())
for _ in range(5):
    launch_and_check(add_one)
assert len(done) == 3 - len(Interrupts.names) > 1, Interrupts.names
"""


def test_modules_that_are_being_imported():
    """A handler finds none of those half made that a launch needs whose kernel is in the cache."""
    launch_and_check(add_one)
    text = PROGRAM.replace("{module}", __name__)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", text], check=True, timeout=300, env=environment)
