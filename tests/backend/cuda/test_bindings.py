"""Through the real package `cuda-bindings` into a libcuda.so.1 made for the test: it takes what we give it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from aot.cuda.fake_gpu import build_driver

pytest.importorskip("cuda.bindings", reason="needs the extra `cuda`")

LAUNCH = """
import ctypes
from deuteron.backend.cuda.launch.driver import load_kernel
from deuteron.backend.devices import machine_target
from deuteron.backend.metadata import KernelMetadata, make_param
from deuteron.errors import LaunchError

target = machine_target()
params = (make_param("x", "*fp32"), make_param("n", "i32"))
metadata = KernelMetadata("k", "k_symbol", target, {"num_warps": 8}, params, shared=100000)
launch = load_kernel(b"fake-cubin 9.0a k_symbol 8 4\\0", metadata)
fake = ctypes.CDLL("libcuda.so.1")
fake.fake_reset()
launch((3, 2, 1), [0x7000, -1])
fake.fake_log.restype = ctypes.c_char_p
print(target, fake.fake_log().decode())
fake.fake_fail(b"cuLaunchKernel", 1, 719)
try:
    launch((1, 1, 1), [0, 0])
except LaunchError as error:
    print(error)
try:
    load_kernel(b"no cubin", metadata)
except LaunchError as error:
    print(error)
"""


def test_a_launch_through_the_bindings(tmp_path: Path):
    environment = {**os.environ, "LD_LIBRARY_PATH": str(build_driver(tmp_path / "driver")), "DEUTERON_TARGET": ""}
    done = subprocess.run([sys.executable, "-c", LAUNCH], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    launched, failed, refused = done.stdout.splitlines()
    assert launched.startswith("cuda:90 ")
    assert "cuKernelSetAttribute 100000@0" in launched
    assert "k_symbol grid=3,2,1 block=256,1,1 shared=100000 stream=(nil) device=0 args=7000,ffffffff," in launched
    assert "cuLaunchKernel failed with CUDA_ERROR_LAUNCH_FAILED (719)" in failed
    assert "kernel 'k' for cuda:90 cannot be loaded: cuLibraryLoadData failed with CUDA_ERROR_INVALID_IMAGE" in refused
