"""The compiled launcher on a libcuda.so.1 made for the test: what the driver is told, devices, contexts, errors."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from aot.cuda.fake_gpu import build_driver

pytest.importorskip("cuda.bindings", reason="needs the extra `cuda`")

PROLOGUE = """
import ctypes, sys
from types import SimpleNamespace
import deuteron
from deuteron.backend.cuda.launch.driver import load_kernel
from deuteron.backend.metadata import KernelMetadata
from deuteron.errors import LaunchError
from deuteron.options import Target
from deuteron.runtime import fast_launch, jit

fast_launch.FEW = fast_launch.MANY = 0
fake = ctypes.CDLL("libcuda.so.1")
fake.fake_log.restype = ctypes.c_char_p

class Tensor:
    def __init__(self, address, device=0):
        self.dtype, self.address = "torch.float32", address
        self.device = SimpleNamespace(type="cuda", index=device)
    def __hash__(self): return 1
    def data_ptr(self): return self.address

class Device(SimpleNamespace):
    __hash__ = lambda self: self.index
    __eq__ = lambda self, other: self.index == other.index

SHAPE = dict(shared=100000)
OPTIONS = dict(num_warps=8)

def compile_with(backend, source, target, options):
    params = [param for param in source.params if param.kind != "constexpr"]
    sizes = " ".join("8" if param.type[0] == "*" or param.type == "fp64" else "4" for param in params)
    sizes += " 128" * len(SHAPE.get("tensor_maps", ()))
    metadata = KernelMetadata("k", "k_symbol", Target("cuda", 90), OPTIONS, source.params, **SHAPE)
    launch = load_kernel(f"fake-cubin 9.0a k_symbol {sizes}".encode() + bytes(1), metadata)
    return SimpleNamespace(name="k", metadata=metadata, launch=launch, load=launch.prepare, is_cached=True)

jit.compile_with = compile_with
slow = []
run = deuteron.JITFunction.run_noted
deuteron.JITFunction.run_noted = lambda *args: (slow.append(1), run(*args))[1]

def calls():
    found = fake.fake_log().decode().strip()
    fake.fake_reset()
    return found

def attempt(launch):
    try:
        launch()
    except LaunchError as error:
        return str(error)

def device(index):
    return Device(type="cuda", index=index)

x, y = Tensor(0x7000), Tensor(0x7004)
x.device = y.device = device(0)

def kernel(x, y, n, scale, BLOCK: deuteron.language.constexpr):
    pass

kernel = deuteron.jit(kernel)
"""


def run(tmp_path: Path, body: str) -> list[str]:
    environment = {**os.environ, "LD_LIBRARY_PATH": str(build_driver(tmp_path / "driver")), "DEUTERON_TARGET": ""}
    script = tmp_path / "launches.py"
    script.write_text(PROLOGUE + body)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_what_the_driver_is_told(tmp_path):
    body = """
for number in range(3):
    kernel[(3, 2)](x, y, 16 * number + 5, 0.5, BLOCK=64)
    print(calls())
kernel[(0, 2)](x, y, 5, 0.5, BLOCK=64)
kernel[lambda meta: (meta["BLOCK"],)](y, x, 2**40, 0.5, BLOCK=64)
kernel[lambda meta: (meta["BLOCK"],)](y, x, 2**40, 0.25, BLOCK=64)
print(calls())
print(len(slow))
"""
    first, second, third, last, num_slow = run(tmp_path, body)
    told = "cuLaunchKernel k_symbol grid=3,2,1 block=256,1,1 shared=100000 stream=(nil) device=0 args="
    assert first.endswith(f"{told}7000,7004,5,3f000000,")
    assert second == f"{told}7000,7004,15,3f000000,"
    assert third == f"{told}7000,7004,25,3f000000,"
    assert last.endswith("args=7004,7000,0,3e800000,")
    assert num_slow == "2"


def test_errors_of_the_driver_are_those_of_a_launch_in_python(tmp_path):
    body = """
for _ in range(2):
    kernel[(3, 2)](x, y, 5, 0.5, BLOCK=64)
for launch in (lambda: kernel[(3, 2)](x, y, 5, 0.5, BLOCK=64), lambda: kernel.run(x, y, 5, 0.5, BLOCK=64, grid=(3, 2))):
    fake.fake_fail(b"cuLaunchKernel", 1, 719)
    print(attempt(launch))
print(attempt(lambda: kernel[(3, 70000)](x, y, 5, 0.5, BLOCK=64)))
print(len(slow))
"""
    native, python, grid, num_slow = run(tmp_path, body)
    assert native == python
    assert "kernel 'k' for cuda:90, grid (3, 2, 1), 256 threads, 100000 bytes of shared memory: cuLaunch" in native
    assert "the grid of kernel 'k' is (3, 70000, 1)" in grid
    assert num_slow == "1"


def test_a_prepared_launch(tmp_path):
    body = """
handle = kernel.prepare(x, y, 5, 0.5, 64, grid=(3, 2))
print(calls())
handle.launch(x, y, 7, 0.25)
print(calls())
torch = sys.modules["torch"] = SimpleNamespace()
torch.cuda = SimpleNamespace(_initialized=True, current_device=lambda: 0, is_initialized=lambda: True)
torch._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda device: 0x5000 + device)
handle.launch(x, y, 7, 0.25)
print(calls())
"""
    made, launched, on_stream = run(tmp_path, body)
    assert "cuKernelGetFunction" in made and "cuLaunchKernel" not in made
    told = "cuLaunchKernel k_symbol grid=3,2,1 block=256,1,1 shared=100000 stream={} device=0 args={}"
    assert launched.endswith(told.format("(nil)", "7000,7004,7,3e800000,"))
    assert on_stream == told.format("0x5000", "7000,7004,7,3e800000,")


MAPS = """
from deuteron.backend.tensor_map import TensorMap
rows = ("argument", 2, 32)
wide = ("max", 64, ("mul", 64, rows, ("constant", 8)), ("sub", 64, ("constant", 4), ("argument", 2, 32)))
base = ("add", 64, ("argument", 0, 64), ("constant", 32))
one = TensorMap("fp16", (1, 128, 64), 128, "zero", base, (rows, wide, ("constant", 99)), (wide, wide), "k.py:1")
two = TensorMap("fp32", (32,), 0, "nan", ("argument", 1, 64), (("min", 32, rows, ("constant", 1000)),), (), "k.py:2")
SHAPE["tensor_maps"] = (one, two)
y.address = 0x7040

def told():
    found = calls()
    return found[found.index("k_symbol"):]

"""


def test_tensor_maps(tmp_path):
    body = """
for n in (16, 48, 4096):
    for _ in range(2):
        kernel[(1,)](x, y, n, 0.5, BLOCK=64)
        native = told()
    kernel.run(x, y, n, 0.5, BLOCK=64, grid=(1,))
    print(native == told(), native.count("/"), len(slow))
"""
    assert run(tmp_path, MAPS + body) == ["True 4 1"] * 3


def test_a_tensor_that_cannot_be_copied_by_tma(tmp_path):
    body = """
for _ in range(2):
    kernel[(1,)](x, y, 16, 0.5, BLOCK=64)
for n in (0, -16, 2**31 - 16, 2**62):
    print(attempt(lambda: kernel[(1,)](x, y, n, 0.5, BLOCK=64)))
    print(attempt(lambda: kernel.run(x, y, n, 0.5, BLOCK=64, grid=(1,))))
fake.fake_fail(b"cuTensorMapEncodeTiled", 1, 1)
print(attempt(lambda: kernel[(1,)](x, y, 32, 0.5, BLOCK=64)), len(slow))
"""
    *errors, refused = run(tmp_path, MAPS + body)
    assert errors[::2] == errors[1::2]
    assert "the tensor descriptor in k.py:1 cannot be copied by TMA: a size of it is 0" in errors[0]
    assert refused.startswith("None")  # and then Python asks the driver again


def test_a_thread_that_has_no_context(tmp_path):
    body = """
import threading
for _ in range(2):
    kernel[(1,)](x, y, 5, 0.5, BLOCK=64)
calls()
thread = threading.Thread(target=lambda: kernel[(1,)](x, y, 7, 0.5, BLOCK=64))
thread.start()
thread.join()
print(calls())
print(len(slow))
"""
    told, num_slow = run(tmp_path, body)
    assert told.startswith("cuLaunchKernel ") and "cuCtxSetCurrent" in told and "args=7000,7004,7,3f000000," in told
    assert num_slow == "1"


def test_two_devices(tmp_path):
    body = """
fake.fake_devices((ctypes.c_int * 3)(90, 90, 0))
u, v = Tensor(0x8000), Tensor(0x8004)
u.device = v.device = device(1)
for _ in range(2):
    for arrays in ((x, y), (u, v)):
        kernel[(1,)](*arrays, 5, 0.5, BLOCK=64)
        told = calls()
        print(told[told.index("k_symbol"):])
print(len(slow))
"""
    *launched, num_slow = run(tmp_path, body)
    assert ["device=0" in line for line in launched] == [True, False, True, False]
    assert ["args=7000,7004" in line for line in launched] == [True, False, True, False]
    assert num_slow == "2"


def test_the_stream_is_that_of_the_array_library(tmp_path):
    body = """
torch = sys.modules["torch"] = SimpleNamespace()
torch.cuda = SimpleNamespace(_initialized=False, current_device=lambda: 0)
torch.cuda.is_initialized = lambda: torch.cuda._initialized
torch._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda device: 0x5000 + device)

def stream(kernel=kernel):
    for _ in range(2):
        kernel[(1,)](x, y, 5, 0.5, BLOCK=64)
    told = calls()
    return told[told.index("stream="):].split()[0]

print(stream(), len(slow))
torch.cuda._initialized = True
print(stream(), len(slow))
torch._C._cuda_getCurrentRawStream = lambda device: 0
sys.modules["cupy"] = SimpleNamespace(cuda=SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=0x6000)))
print(stream(), len(slow))
"""
    assert run(tmp_path, body) == ["stream=(nil) 1", "stream=0x5000 2", "stream=0x6000 3"]


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({"launch_pdl": True}, "attribute 6=1 "),
        ({"launch_pdl": True, "launch_cooperative_grid": True}, "attribute 2=1 attribute 6=1 "),
        ({"launch_pdl": False}, None),
    ],
)
def test_what_a_launch_asks_for_besides(tmp_path, options, asked):
    body = (
        f"OPTIONS.update({options})"
        + """
for number in range(3):
    kernel[(3, 2)](x, y, 16 * number + 5, 0.5, BLOCK=64, **OPTIONS)
    print(calls().splitlines()[-1])
fake.fake_fail(b"cuLaunchKernelEx", 1, 720)
print(attempt(lambda: kernel[(3, 2)](x, y, 5, 0.5, BLOCK=64, **OPTIONS)))
print(len(slow))
"""
    )
    *launches, failure, num_slow = run(tmp_path, body)
    function = f"cuLaunchKernelEx {asked}k_symbol" if asked else "cuLaunchKernel k_symbol"
    for launched, n in zip(launches, ("5", "15", "25"), strict=True):
        told = f"{function} grid=3,2,1 block=256,1,1 shared=100000 stream=(nil) device=0 args=7000,7004,{n},3f000000,"
        assert launched.endswith(told)
    assert ("cuLaunchKernelEx failed with CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE (720)" in failure) == bool(asked)
    assert num_slow == "1"
