"""Cooperative launches, and kernels that may begin before the one that was launched before has ended."""

import json

import pytest
from aot.cuda.fake_gpu import SANITIZED, FakeGpu
from aot.workspace import C99, CXX17

COOPERATIVE, PDL = "attribute 2=1 ", "attribute 6=1 "


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({"launch_cooperative_grid": True}, COOPERATIVE),
        ({"launch_pdl": True}, PDL),
        ({"launch_pdl": True, "launch_cooperative_grid": True}, COOPERATIVE + PDL),
        ({"launch_pdl": False}, None),
    ],
)
@pytest.mark.parametrize("compiler", [C99, CXX17], ids=["c99", "c++17"])
def test_what_the_driver_is_asked_for(gpu: FakeGpu, options: dict[str, bool], asked: str | None, compiler: list[str]):
    header = gpu.emit_cuda("*fp32, fp32, i32, 128", "n, 2, 3", options=options, shared=1000, num_warps=2)
    gpu.link()
    body = """
  use_device(0);
  printf("%d ", (int)add_alpha_default((CUstream)(uintptr_t)0x40, 0x10, 1.0f, 5));
  puts(calls());
"""
    printed = gpu.program(body, compiler, SANITIZED).run()
    call = f"cuLaunchKernelEx {asked}" if asked else "cuLaunchKernel "
    assert printed.startswith("0 ") and call in printed
    assert "grid=5,2,3 block=64,1,1 shared=1000 stream=0x40 device=0 args=10,3f800000,5," in printed
    record = json.loads(header.with_suffix(".json").read_text())
    assert set(record["launch_attributes"]) == {name for name, value in options.items() if value}


def test_a_launch_that_fails(gpu: FakeGpu):
    gpu.emit_cuda("*fp32, fp32, i32, 128", "n", options={"launch_cooperative_grid": True})
    gpu.link()
    body = """
  use_device(0);
  fail("cuLaunchKernelEx", 1, 720);
  puts(deuteron_status_string(add_alpha_default(NULL, 0, 0, 5)));
  puts(deuteron_status_string(add_alpha_default(NULL, 0, 0, 5)));
"""
    assert gpu.program(body, flags=SANITIZED).run() == "cooperative launch too large\nsuccess\n"
