"""Each call of Python's C API that the launcher makes fails in turn: an error is raised, or Python does the launch.

The code is compiled with functions of its own in front of those that can fail: they count, and one of them raises. So
does each function of Python that notes a launch.
"""

from __future__ import annotations

import ctypes
import gc
import re
import sys
import threading
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.backend.launcher import loaded, plain_loaded
from deuteron.backend.launcher.call import launcher_module
from deuteron.backend.launcher.plain_call import plain_module
from deuteron.backend.llvm.compile import emit_object
from deuteron.backend.llvm.loader import load_object
from deuteron.backend.metadata import Apart, Param
from deuteron.backend.native_launch import PYTHON_LAUNCHES
from deuteron.errors import LaunchError
from deuteron.once import once
from deuteron.runtime import fast_launch, launch_records
from tests.runtime.conftest import Loaded

FACTOR = tl.constexpr(2)


class Settings:
    WIDTH = tl.constexpr(4)


@deuteron.jit
def kernel(a, b, c=7, B: tl.constexpr = "text"):
    return a * FACTOR * Settings.WIDTH


@deuteron.jit
def copying(a, b):
    return a


KERNELS = (kernel, copying)
APART = {"copying": (Apart("a", "b", False),)}

# What the functions give when they raise. Of others the arguments are such that they cannot, or they cannot ever.
_FAILED = {
    "PyCFunction_NewEx": "null",
    "PyDict_GetItemRef": "-1",
    "PyDict_GetItemWithError": "null",
    "PyDict_Copy": "null",
    "PyDict_New": "null",
    "PyDict_SetItem": "-1",
    "PyBytes_FromStringAndSize": "null",
    "PyLong_FromLongLong": "null",
    "PyLong_FromUnsignedLongLong": "null",
    "PyObject_Call": "null",
    "PyObject_CallOneArg": "null",
    "PyObject_GetAttr": "null",
    "PyObject_GetItem": "null",
    "PyObject_IsTrue": "-1",
    "PyObject_SetAttr": "-1",
    "PyTuple_New": "null",
}


class Counter(ctypes.Structure):
    """How many calls are left until one fails, with which exception, and the calls that were made."""

    _fields_ = [("left", ctypes.c_int64), ("exception", ctypes.c_void_p)]

    def fail(self, number, kind=MemoryError):
        self.left, self.exception = number, id(kind)

    def stop(self):
        """Whether one has failed."""
        has_failed, self.left = self.left < 0, -1
        return has_failed


def with_failures(text, counter):
    """The module with every call of a function that can fail through one that counts."""
    for name, failed in _FAILED.items():
        declared = re.search(rf"^declare (\w+) @{name}\((.*)\)$", text, re.MULTILINE)
        if declared is None:
            continue
        result, types = declared[1], declared[2].split(", ") if declared[2] else []
        names = [f"{kind} %a{index}" for index, kind in enumerate(types)]
        text = text.replace(f"@{name}(", f"@counted.{name}(").replace(declared[0].replace(name, f"counted.{name}"), "")
        text += f"""
declare {result} @{name}({", ".join(types)})
define internal {result} @counted.{name}({", ".join(names)}) {{
  %left = load i64, ptr inttoptr (i64 {ctypes.addressof(counter)} to ptr)
  %next = sub i64 %left, 1
  store i64 %next, ptr inttoptr (i64 {ctypes.addressof(counter)} to ptr)
  %fails = icmp eq i64 %left, 0
  br i1 %fails, label %fail, label %go
fail:
  %kind = load ptr, ptr inttoptr (i64 {ctypes.addressof(counter) + 8} to ptr)
  call void @PyErr_SetNone(ptr %kind)
  {"store ptr null, ptr %a2" if name == "PyDict_GetItemRef" else ""}
  ret {result} {failed}
go:
  %result = call {result} @{name}({", ".join(names)})
  ret {result} %result
}}
"""
    return text + "declare void @PyErr_SetNone(ptr)\n"


def load_counting(text, name, make_text, symbols):
    return load_object(emit_object(text, "generic"), symbols)


@pytest.fixture(scope="module")
def counter():
    return Counter(-1, id(MemoryError))


@pytest.fixture(scope="module")
def counting(counter):
    """The launcher whose calls are counted."""
    text = with_failures(launcher_module().text(), counter)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loaded, "load_kept", partial(load_counting, text))
        yield loaded.load_launcher(launch_records.numbers)


@pytest.fixture
def launches(log, slow, counting, monkeypatch):
    """The log; launches of `kernel` are by the counting code."""
    monkeypatch.setattr(fast_launch, "the_launcher", lambda: counting)
    return log


class Tensor:
    """An array that the specialiser is called for."""

    def __init__(self):
        self.dtype, self.device = "torch.float16", None

    def data_ptr(self):
        return 4096


class Strided(Tensor):
    """One that tells where its elements are, between those of another one."""

    def __init__(self, array):
        super().__init__()
        self.array, self.shape = array, (4,)

    def data_ptr(self):
        return self.array.ctypes.data + 4

    def stride(self):
        return (4,)

    def element_size(self):
        return 2


other = np.zeros(64, np.float32)
x, tensor, pair, text = np.zeros(64, np.float32), Tensor(), (5, 0.25), "".join(["te", "xt"])
WATCHED = x, tensor, pair, text


def _prepared():
    prepared = kernel.prepare(x, tensor, 5, grid=(2,))
    return lambda: prepared.launch(x, tensor, 5)


def _wrong():
    kernel[(2,)](x, 5)
    return lambda: kernel[lambda meta: 1 / 0](x, 5)


def _tuned():
    configs = [deuteron.Config({"B": 3}, num_warps=8)]
    tuner = deuteron.autotune(configs=configs, key=["b"])(kernel)
    return lambda: tuner[(2,)](x, 5, c=tensor)


MANY = 1 << 30
CASES = {
    "plain": lambda: lambda: kernel[(2,)](x, 5, B=3),
    "options": lambda: lambda: kernel[(2, 3)](x, 2**40, num_warps=8, B=[1, 2]),
    "called": lambda: lambda: kernel[7](tensor, pair, c=np.float32(2), B=text),
    "function": lambda: lambda: kernel[lambda meta: (meta["b"],)](x, 5),
    "list": lambda: lambda: kernel[[8, 9]](x, 5),
    "wrong": _wrong,
    "new": lambda: lambda: kernel[(2,)](x, 5, B=object()),
    "empty": lambda: lambda: kernel[(0,)](x, 5),
    "prepared": _prepared,
    "apart": lambda: lambda: copying[(2,)](x, other),
    "overlapping": lambda: lambda: copying[(2,)](x, x[4:]),
    "measured": lambda: lambda: copying[(2,)](x, Strided(x)),
    "nobody knows": lambda: lambda: copying[(2,)](x, tensor),
    "tuned": _tuned,
}


def outcome(launch, log):
    """The classes of what is raised and of what that is for, and what was launched."""
    before = len(log)
    error = None
    try:
        launch()
    except BaseException as raised:
        error = raised
    kinds = [] if error is None else [type(error), type(error.__cause__)]
    return kinds, [(grid, packed) for _, grid, packed in log[before:]]


@pytest.mark.parametrize("case", CASES)
def test_each_call_fails_in_turn(launches, counter, case):
    every_call_fails_in_turn(CASES[case](), launches, counter)


def every_call_fails_in_turn(launch, log, counter):
    for _ in range(3):
        expected = outcome(launch, log)
    counter.fail(MANY)
    outcome(launch, log)
    made = MANY - counter.left
    assert made > 0
    gc.collect()
    counts = [sys.getrefcount(value) for value in WATCHED]
    for kind in (MemoryError, KeyboardInterrupt):
        for number in range(made):
            counter.fail(number, kind)
            error, launched = outcome(launch, log)
            assert counter.stop(), number
            assert error == expected[0] or kind in error, number
            assert launched == expected[1] or not launched and kind in error, number
            assert outcome(launch, log) == expected
    gc.collect()
    assert [sys.getrefcount(value) for value in WATCHED] == counts


def test_each_call_of_a_plain_launch_fails_in_turn(counter, monkeypatch):
    """The launches of `kernel.run`, whose code is another one."""
    text = with_failures(plain_module().text(), counter)
    monkeypatch.setattr(plain_loaded, "load_kept", partial(load_counting, text))
    log = []
    params = [*(Param(name, "*fp32", "pointer") for name in "ab"), Param("f", "fp32", "scalar")]
    loaded_kernel = Loaded("kernel", params, log, True)
    apart = SimpleNamespace(params=params, runtime_params=params, apart=(Apart("a", "b", False),))
    overlapping = SimpleNamespace(params=params, runtime_params=params, apart=())

    def in_python(x, y, z, *rest):
        if loaded_kernel.status > 0:
            refuse(loaded_kernel.status, (x, y, z))
        loaded_kernel((x, y, z), [int(rest[-3]), int(rest[-2]), rest[-1]])

    class Hook:
        def __bool__(self):
            return False

    for status in (0, PYTHON_LAUNCHES, 700):
        loaded_kernel.status = status
        native = loaded_kernel.native_launch()._replace(fail=refuse)
        plain = plain_loaded.load_plain_launcher()
        other = ctypes.py_object(plain.function(overlapping, native, in_python, ctypes.py_object()))
        run = plain.function(apart, native, in_python, other)

        def launch(run=run):
            run(2, 1, 1, 0, None, None, None, Hook(), None, 4096, 4096, 0.5)

        every_call_fails_in_turn(launch, log, counter)


def refuse(number, extents):
    raise LaunchError(f"{number} for {extents}")


class Interrupts:
    """Raises in the n-th call of a function of Python that is made while a launch is noted."""

    def __init__(self, number, kind):
        self.left, self.kind, self.depth = number, kind, 0

    def __call__(self, frame, event, arg):
        if frame.f_code is fast_launch.FastLaunches.note.__code__ and event in ("call", "return"):
            self.depth += 1 if event == "call" else -1
        if self.depth and event in ("call", "c_call"):
            self.left -= 1
            if self.left == -1:
                raise self.kind("injected")


@pytest.mark.parametrize("kind", [MemoryError, KeyboardInterrupt])
def test_each_step_of_noting_fails_in_turn(launches, counter, kind):
    """The launch was made, the error is heard unless launches stay in Python for it, and the next launch is right."""
    number, is_done = 0, False
    while not is_done:
        kernel.fast.__init__(kernel)
        launch = CASES["called"]()
        interrupts = Interrupts(number, kind)
        sys.setprofile(interrupts)
        try:
            failed = outcome(launch, launches)
        finally:
            sys.setprofile(None)
        is_done = interrupts.left >= 0
        expected = outcome(launch, launches)
        assert expected[0] == [] and len(expected[1]) == 1
        assert failed[1] == expected[1]
        assert failed[0] == [kind, type(None)] or failed == expected and (is_done or kind is MemoryError), number
        assert outcome(launch, launches) == expected
        number += 1
    assert number > 20


def test_threads_that_ask_at_once_are_given_the_same_launcher(monkeypatch):
    """One that was dropped would take the code with it that kernels launch by."""
    monkeypatch.setattr(fast_launch, "the_launcher", once(fast_launch.the_launcher.__wrapped__))
    barrier, found = threading.Barrier(4), []

    def ask():
        barrier.wait()
        found.append(fast_launch.the_launcher())

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and len(set(map(id, found))) == 1
