"""The libraries that AOTInductor loads: what its generated C++ does with them, without torch."""

from __future__ import annotations

import inspect
import pickle
import subprocess
from pathlib import Path

import pytest
from aot.workspace import CXX17

import deuteron as triton
import deuteron.language as tl
from deuteron.aot.c_text import c_string
from deuteron.compat.old_spellings import compile as triton_compile
from deuteron.compiler import ASTSource
from deuteron.errors import UsageError


@triton.jit
def add_scaled(x_ptr, ONE: tl.constexpr, out_ptr, n, alpha, negate, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.device_assert(x != 77, 'no "77"?')
    scaled = (x + ONE) * alpha
    tl.store(out_ptr + i, tl.where(negate, -scaled, scaled), mask=i < n)


TYPES = {
    "x_ptr": "*fp32",
    "ONE": "constexpr",
    "out_ptr": "*fp32",
    "n": "i32",
    "alpha": "fp16",
    "negate": "i1",
    "BLOCK": "constexpr",
}

PROGRAM = r"""
#include <cstdint>
#include <cstdio>
#include <dlfcn.h>
#include <exception>

using Launcher = void (*)(uint32_t, uint32_t, uint32_t, int, void **, void *);

int main(int, char **argv) {
  void *kernel = dlsym(dlopen(argv[1], RTLD_NOW | RTLD_LOCAL), "add_scaled");
  auto run = reinterpret_cast<Launcher>(dlsym(dlopen(argv[2], RTLD_NOW | RTLD_LOCAL), "run_from_nativert"));
  float x[100], y[100], alpha = 2;
  int64_t n = 100;
  bool negate = true;
  void *args[] = {x, nullptr, y, &n, &alpha, &negate, nullptr};
  for (int bad = 100; bad >= 98; bad -= 2) {
    for (int i = 0; i < 100; i++)
      x[i] = i == bad ? 77 : i == 77 ? 0 : static_cast<float>(i);
    try {
      run(4, 1, 1, 1, args, kernel);
      int wrong = 0;
      for (int i = 0; i < 100; i++)
        wrong += y[i] != -2 * (x[i] + 1);
      std::printf("%d wrong\n", wrong);
    } catch (const std::exception &error) {
      std::printf("%s\n", error.what());
    }
    run(0, 1, 1, 1, args, kernel);
  }
}
"""


@pytest.fixture(scope="module")
def kernel():
    source = ASTSource(add_scaled, TYPES, {"ONE": 1, "BLOCK": 32})
    return triton_compile(source, target="cpu", options={"debug": True})


def test_run_and_failed_assertion(kernel, tmp_path: Path):
    libraries = [tmp_path / "kernel.so", tmp_path / "launcher.so"]
    for path, name in zip(libraries, ("so", "launcher.so"), strict=True):
        path.write_bytes(kernel.asm[name])
    (tmp_path / "main.cpp").write_text(PROGRAM)
    program = tmp_path / "program"
    subprocess.run([*CXX17, tmp_path / "main.cpp", "-ldl", "-o", program], check=True)
    result = subprocess.run([program, *libraries], capture_output=True, text=True, check=True)
    right, failed = result.stdout.splitlines()
    assert right == "0 wrong"
    assert failed.startswith("kernel 'add_scaled': ")
    assert failed.endswith('Assertion failed: no "77"? (program (3, 0, 0), lane 2)')
    line = inspect.getsourcelines(add_scaled.fn)[1] + 4
    assert f"test_nativert.py:{line}:" in failed


def test_bytes_are_the_same_in_another_process(kernel):
    """One launcher for all kernels, of which a process then has one pool of threads."""
    copy = pickle.loads(pickle.dumps(kernel))
    assert list(copy.asm) == list(kernel.asm)
    assert copy.asm["so"] == kernel.asm["so"]


def test_a_double_is_refused():
    """Torch 2.13 compiles a Python float as fp64, and its C++ passes the address of a float."""
    source = ASTSource(add_scaled, {**TYPES, "alpha": "fp64"}, {"ONE": 1, "BLOCK": 32})
    with pytest.raises(UsageError, match="'alpha' of kernel 'add_scaled'.*_use_fp64_for_unbacked_floats = False"):
        triton_compile(source, target="cpu").asm["so"]


def test_kernels_for_other_targets_have_none():
    source = ASTSource(add_scaled, TYPES, {"ONE": 1, "BLOCK": 32})
    assert "so" not in triton_compile(source, target="cuda:80").asm


def test_literals():
    assert c_string('a"\\?é\n') == '"a\\042\\134\\077\\303\\251\\012"'
