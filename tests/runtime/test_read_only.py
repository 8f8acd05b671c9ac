"""Arrays that say they are read-only are for kernels that do not write to them, on every executor."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.compiler import ASTSource
from deuteron.errors import DeuteronError, LaunchError
from deuteron.testing import assert_close
from deuteron.tools.tensor_descriptor import TensorDescriptor

EXECUTORS = {"cpu": {}, "interpreter": {"DEUTERON_INTERPRET": "1"}, "emulator": {"DEUTERON_EMULATE": "1"}}


@pytest.fixture(params=EXECUTORS, autouse=True)
def executor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("DEUTERON_TARGET", "cuda:90" if request.param == "emulator" else "cpu")
    for name, value in EXECUTORS[request.param].items():
        monkeypatch.setenv(name, value)
    return request.param


@deuteron.jit
def double(x, out, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.load(x + offsets) * 2)


@deuteron.jit
def swap(a, b, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    source, target = a, b
    for _ in range(n):
        tl.store(target + offsets, tl.load(source + offsets) * 2)
        source, target = target, source


@deuteron.jit
def count(x, out, BLOCK: tl.constexpr):
    tl.atomic_add(out + tl.load(x + tl.arange(0, BLOCK)), 1)


@deuteron.jit
def through_a_table(table, x, BLOCK: tl.constexpr):
    pointer = tl.load(table).to(tl.pointer_type(tl.float32))
    tl.store(pointer + tl.arange(0, BLOCK), tl.load(x + tl.arange(0, BLOCK)))


@deuteron.jit
def copy_rows(source, target):
    target.store([0, 0], source.load([0, 0]))


def read_only(values: np.ndarray) -> np.ndarray:
    values.flags.writeable = False
    return values


def from_bytes() -> np.ndarray:
    return np.frombuffer(bytes(np.ones(16, np.float32).tobytes()), np.float32)


def from_file(folder: Path) -> np.ndarray:
    (folder / "values").write_bytes(np.ones(16, np.float32).tobytes())
    with open(folder / "values", "rb") as file:
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.float32)


class Interface:
    """An array of another library: a read-only one says so in its interface."""

    def __init__(self, base: np.ndarray):
        self.base = base

    @property
    def __array_interface__(self) -> dict:
        return self.base.__array_interface__


class Capsule:
    """One that has DLPack only."""

    def __init__(self, base: np.ndarray):
        self.base = base

    def __dlpack__(self, **keywords: object) -> object:
        return self.base.__dlpack__(**keywords)

    def __dlpack_device__(self) -> object:
        return self.base.__dlpack_device__()


def test_is_read(tmp_path: Path):
    for x in (from_bytes(), from_file(tmp_path), read_only(np.ones(16, np.float32))):
        out = np.zeros(16, np.float32)
        double[(1,)](x, out, BLOCK=16)
        assert_close(out, 2 * np.ones(16))


def test_is_not_written(tmp_path: Path):
    x = np.ones(16, np.float32)
    for out in (from_bytes(), from_file(tmp_path), read_only(np.ones(16, np.float32))):
        for _ in range(2):  # the second launch is one that was compiled before
            with pytest.raises(DeuteronError, match="(?is)out.*read-only|read-only.*out"):
                double[(1,)](x, out, BLOCK=16)
        assert_close(out, np.ones(16))
    double[(1,)](x, x, BLOCK=16)


def test_every_pointer_that_may_be_it():
    a, b = np.ones(16, np.float32), read_only(np.ones(16, np.float32))
    with pytest.raises(DeuteronError, match="(?i)read-only"):
        swap[(1,)](a, b, 3, BLOCK=16)
    with pytest.raises(DeuteronError, match="(?i)read-only"):
        swap[(1,)](b, a, 3, BLOCK=16)
    assert_close(b, np.ones(16))


def test_atomics_write():
    x, out = np.arange(16, dtype=np.int32), read_only(np.zeros(16, np.int32))
    with pytest.raises(DeuteronError, match="(?i)read-only"):
        count[(1,)](x, out, BLOCK=16)
    assert not out.any()


def test_descriptors():
    source, target = read_only(np.ones((16, 16), np.float32)), np.zeros((16, 16), np.float32)
    copy_rows[(1,)](TensorDescriptor.from_tensor(source, [16, 16]), TensorDescriptor.from_tensor(target, [16, 16]))
    assert_close(target, source)
    with pytest.raises(DeuteronError, match="(?i)read-only"):
        copy_rows[(1,)](TensorDescriptor.from_tensor(target, [16, 16]), TensorDescriptor.from_tensor(source, [16, 16]))


@deuteron.jit
def double_into(x, outs, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(outs[1] + offsets, tl.load(x + offsets) + tl.load(outs[0] + offsets))


def test_items_of_tuples():
    x, out, fixed = np.ones(16, np.float32), np.zeros(16, np.float32), read_only(np.ones(16, np.float32))
    double_into[(1,)](x, (fixed, out), BLOCK=16)
    assert_close(out, 2 * np.ones(16))
    with pytest.raises(DeuteronError, match="(?i)read-only"):
        double_into[(1,)](x, (out, fixed), BLOCK=16)
    assert_close(fixed, np.ones(16))


@pytest.mark.parametrize("executor", ["cpu"], indirect=True)
def test_prepared_launches():
    x, out = np.ones(16, np.float32), np.zeros(16, np.float32)
    prepared = double.prepare(x, out, BLOCK=16, grid=(1,))
    with pytest.raises(LaunchError, match="argument 'out' of kernel 'double' is !"):
        prepared.launch(x, read_only(np.zeros(16, np.float32)))
    with pytest.raises(LaunchError, match="'out' of kernel 'double': it is read-only"):
        double.prepare(x, read_only(np.zeros(16, np.float32)), BLOCK=16, grid=(1,))


@pytest.mark.parametrize("executor", ["cpu"], indirect=True)  # the others know which memory a launch may touch
def test_what_may_be_written_anywhere_writes_every_array():
    target, x = np.zeros(16, np.float32), np.ones(16, np.float32)
    table = np.array([target.ctypes.data], np.uint64)
    through_a_table[(1,)](table, x, BLOCK=16)
    assert_close(target, x)
    with pytest.raises(LaunchError, match="'x' of kernel 'through_a_table': it is read-only, and the kernel writes"):
        through_a_table[(1,)](table, read_only(x), BLOCK=16)


@pytest.mark.parametrize("executor", ["cpu"], indirect=True)  # the others take NumPy's view of an array
@pytest.mark.parametrize("wrap", [Interface, Capsule])
def test_arrays_of_other_libraries(wrap: type):
    x, out = np.ones(16, np.float32), read_only(np.ones(16, np.float32))
    double[(1,)](wrap(out), wrap(x), BLOCK=16)
    assert_close(x, 2 * np.ones(16))
    with pytest.raises(LaunchError, match="'out' of kernel 'double': it is read-only"):
        double[(1,)](wrap(x), wrap(out), BLOCK=16)


@pytest.mark.parametrize("executor", ["cpu"], indirect=True)
def test_a_compiled_kernel():
    compiled = deuteron.compile(ASTSource(double, {"x": "*fp32", "out": "*fp32"}, {"BLOCK": 16}), "cpu")
    assert compiled.metadata.written == ("out",)
    x = read_only(np.ones(16, np.float32))
    with pytest.raises(LaunchError, match="argument 'out' of kernel 'double': it is read-only"):
        compiled[(1,)](x, x)
