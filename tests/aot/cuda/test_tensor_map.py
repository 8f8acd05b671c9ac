"""Tensor maps in emitted C: evaluated as the kernel would, encoded before the launch, refused where TMA cannot."""

import shutil
import subprocess
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from aot.cuda.fake_gpu import FakeGpu
from aot.workspace import C99, CXX17, Parameter
from backend.cuda.launching import aligned, compile_for
from click.testing import CliRunner

import deuteron
import deuteron.language as tl
from deuteron.aot.templates import runtime_source
from deuteron.backend.tensor_map import DIVISIBILITY, MOST_SIZE, STRIDES_END, TensorMap
from deuteron.errors import LaunchError
from deuteron.tools.main import main

needs_ptxas = pytest.mark.skipif(not (shutil.which("ptxas") or find_spec("nvidia")), reason="there is no ptxas")

PARAMS = [Parameter("x"), Parameter("rows"), Parameter("columns"), Parameter("wide")]
X, ROWS, COLUMNS, WIDE = ("argument", 0, 64), ("argument", 1, 32), ("argument", 2, 32), ("argument", 3, 64)
MAPS = [
    TensorMap("fp16", (128, 64), 128, "nan", X, (ROWS, COLUMNS), (("mul", 64, COLUMNS, ("constant", 2)),), "k.py:3"),
    TensorMap("fp32", (4,), 0, "zero", ("add", 64, X, ("mul", 64, ("constant", 16), WIDE)), (ROWS,), (), "k.py:4"),
]
IN_A_BRANCH = TensorMap("fp32", (4,), 0, "zero", X, (("min", 64, WIDE, ("constant", 7)),), (), "k.py:5", True)


@pytest.mark.parametrize("compiler", [C99, CXX17], ids=["c99", "c++17"])
def test_maps_are_encoded_before_the_launch(gpu: FakeGpu, compiler: list[str]):
    gpu.emit_cuda("*fp16, i32, u32, i64", "rows", params=PARAMS, tensor_maps=MAPS)
    gpu.link()
    body = """
  use_device(0);
  printf("%d\\n", (int)add_alpha_default(NULL, 0x7000, 100, 40, -3));
  printf("%s\\n", calls());
  printf("%d\\n", (int)add_alpha_default(NULL, 0x7000, 100, 41, 0));
  printf("%d\\n", (int)add_alpha_default(NULL, 0x7008, 100, 40, 0));
  printf("%d\\n", (int)add_alpha_default(NULL, 0x7000, 100, 4294967256u, 0));
  printf("%d\\n", (int)add_alpha_default(NULL, 0x7000, 0, 40, 0));
"""
    status, log, *refused = gpu.program(body, compiler).run().splitlines()
    assert status == "0"
    assert "args=7000,64,28,fffffffffffffffd," in log
    assert "[0x7000 type=6 swizzle=3 fill=1 40/64*160 100/128][0x6fd0 type=7 swizzle=0 fill=0 100/4]" in log
    assert refused == ["1", "1", "1", "0"], "a stride, an address, a size; an empty grid needs no map"


@pytest.mark.parametrize(
    ("is_inferred", "way_out"),
    [(False, ""), (True, "; compiled with plain_loads=True the kernel loads it through pointers")],
)
def test_why_tensors_are_not_copied(gpu: FakeGpu, is_inferred: bool, way_out: str):
    """What is said of the arguments is what comes of the launch."""
    maps = [replace(one, is_inferred=is_inferred) for one in MAPS]
    gpu.emit_cuda("*fp16, i32, u32, i64", "rows", params=PARAMS, tensor_maps=[*maps, IN_A_BRANCH])
    gpu.link()
    body = """
  static const uint64_t x[] = {0x7000, 0x7000, 0x7008, 0x7000, 0x7000, 0x7000};
  static const int rows[] = {100, 100, 100, 100, 0, 100};
  static const uint32_t columns[] = {40, 41, 40, 4294967256u, 41, 40};
  static const int64_t wide[] = {7, 7, 7, 7, 7, 0};
  int i;
  use_device(0);
  for (i = 0; i < 6; i++) {
    const char *why;
    const int asked = (int)add_alpha_supports(NULL, x[i], rows[i], columns[i], wide[i], 0, &why);
    printf("%d %d %s\\n", asked, (int)add_alpha_default(NULL, x[i], rows[i], columns[i], wide[i]), why);
  }
"""
    assert gpu.program(body, C99).run().splitlines() == [
        "0 0 ",
        f"1001 1 stride 0 of x is not a multiple of 16 bytes from 0 to 2**40{way_out}",
        "1001 1 x is not divisible by 16",
        "1001 1 size 1 of x is not from 1 to 2**32",
        "0 0 ",
        "0 0 ",
    ]


def test_c_and_python_refuse_the_same(tmp_path):
    """A launch from Python, and its machine code, have the numbers of backend/tensor_map.py."""
    numbers = [
        one + add for one in (0, DIVISIBILITY, MOST_SIZE, STRIDES_END, 1 << 62) for add in (-16, -8, -1, 0, 1, 16)
    ]
    asked = "".join(
        f'printf("%d%d%d ", deuteron_is_address((uint64_t){n}), deuteron_is_size({n}), deuteron_is_stride({n}));'
        for n in numbers
    )
    text = f"#include <stdio.h>\n{runtime_source('tensors.c')}int main(void) {{ {asked} return 0; }}"
    (tmp_path / "tensors.c").write_text(text)
    subprocess.run(["gcc", "-Wall", "-Werror", "tensors.c", "-o", "tensors"], cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "tensors"], capture_output=True, text=True, check=True).stdout.split()
    assert said == [f"{_takes(n, 1, 0):d}{_takes(0, n, 0):d}{_takes(0, 1, n):d}" for n in numbers]


def _takes(address: int, size: int, stride: int) -> bool:
    number = [("constant", part) for part in (address, size, stride)]
    try:
        TensorMap("i8", (16, 16), 0, "zero", number[0], (number[1], number[1]), (number[2],)).of_arguments([])
    except LaunchError:
        return False
    return True


OFTEN = r"""
static int encoded(void) {
  const char *found = calls();
  int count = 0;
  for (; (found = strstr(found, "cuTensorMapEncodeTiled ")); found++)
    count++;
  return count;
}

static int launch(uint64_t x, unsigned columns) {
  reset();
  if (add_alpha_default(NULL, x, 100, columns, 0) != DEUTERON_SUCCESS)
    return -1;
  printf("%d %s\n", encoded(), strstr(calls(), "cuLaunchKernel"));
  return 0;
}

static void *caller(void *argument) {
  use_device(0);
  launch(0x7000, 40);
  return argument;
}

int main(void) {
  pthread_t thread;
  int i;
  use_device(0);
  launch(0x7000, 40);
  launch(0x7000, 40);
  launch(0x7000, 48);
  launch(0x9000, 48);
  launch(0x9000, 48);
  pthread_create(&thread, NULL, caller, NULL);
  pthread_join(thread, NULL);
  for (i = 1; i < 300; i++) { /* more than are kept */
    reset();
    add_alpha_default(NULL, 0x7000 + 16 * (unsigned)i, 100, 40, 0);
    if (strstr(calls(), "[0x7000 "))
      printf("of another launch\n");
  }
  return launch(0x7010, 40);
}
"""


@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_a_map_is_encoded_once_for_equal_arguments(gpu: FakeGpu, sanitizer: str):
    """Each thread keeps what it has encoded lately, by the box, the address, the sizes and the strides."""
    gpu.emit_cuda("*fp16, i32, u32, i64", "rows", params=PARAMS, tensor_maps=MAPS)
    gpu.link()
    program = gpu.program(OFTEN, C99, ["-g", "-O1", f"-fsanitize={sanitizer}"])
    first, again, columns, address, second, other, last = (line.split(" ", 1) for line in program.run().splitlines())
    assert [line[0] for line in (first, again, columns, address, second, other)] == ["2", "0", "1", "2", "0", "2"]
    assert first[1] == again[1] == other[1] and "48/64*192" in columns[1] and address[1] == second[1]
    assert "[0x7010 type=6 swizzle=3 fill=1 40/64*160 100/128][0x7010 type=7" in last[1]


def test_a_map_of_a_branch_may_be_none(gpu: FakeGpu):
    gpu.emit_cuda("*fp16, i32, u32, i64", "rows", params=PARAMS, tensor_maps=[IN_A_BRANCH])
    gpu.link()
    body = """
  use_device(0);
  printf("%d\\n", (int)add_alpha_default(NULL, 0x7000, 100, 40, -3));
  printf("%s\\n", calls());
  reset();
  printf("%d\\n", (int)add_alpha_default(NULL, 0x7000, 100, 40, 9));
  printf("%s\\n", calls());
"""
    first, log, second, other = gpu.program(body, C99).run().splitlines()
    assert (first, second) == ("0", "0")
    assert "swizzle" not in log
    assert "[0x7000 type=7 swizzle=0 fill=0 7/4]" in other


KERNEL = """
import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(a.load([row, k]), b.load([k, column]), total)
    c.store([row, column], total.to(tl.float16))
"""

PROGRAM = """
#include "linked.h"
#include <cstdio>

int main() {
  const CUdeviceptr a = 0x10000, b = 0x20000, c = 0x30000;
  std::puts(deuteron_status_string(matmul_default(nullptr, a, 256, 96, 96, b, 96, 512, 512, c, 256, 512, 96)));
}
"""


@needs_ptxas
def test_a_kernel_with_descriptors(gpu: FakeGpu):
    """The fake driver does not take a real cubin for one of its own: the maps come before it is asked to load it."""
    folder: Path = gpu.folder
    (folder / "matmul.py").write_text(KERNEL)
    signature = "tensordesc<fp16[128,64]>, tensordesc<fp16[64,128]>, *fp16:16, i32, i32:16, i32, 128, 128, 64"
    options = ["-n", "matmul", "-s", signature, "-g", "cdiv(M, BM), cdiv(N, BN)", "-w", "8", "-t", "cuda:90"]
    for arguments in (
        ["compile", str(folder / "matmul.py"), *options, "-o", str(folder / "aot" / "matmul")],
        ["link", "HEADERS", "-o", str(folder / "aot" / "linked")],
    ):
        headers = sorted(map(str, folder.glob("aot/*.h")))
        given = [part for argument in arguments for part in (headers if argument == "HEADERS" else [argument])]
        result = CliRunner().invoke(main, given)
        assert result.exit_code == 0, result.output
    for path in folder.glob("aot/*.c"):
        path.rename(folder / path.name)
    program = gpu.program(PROGRAM, CXX17, ["-O1", f"-I{folder}", f"-I{folder / 'aot'}"])
    assert program.run() == "invalid device image\\n" or "invalid" in program.run()


@deuteron.jit
def matmul(a, b, c, M, N, K, lda, ldb, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rows[:, None] * lda + (k + ks), (rows < M)[:, None] & (k + ks < K), 0.0)
        y = tl.load(b + (k + ks)[:, None] * ldb + columns, (k + ks < K)[:, None] & (columns < N), 0.0)
        total = tl.dot(x, y, total)
    tl.store(c + rows[:, None] * N + columns, total, (rows < M)[:, None] & (columns < N))


CALLS = """
  use_device(0);
  printf("%d\\n%s\\n", (int)matmul_default(NULL, 0x1000, 0x2000, 0x3000, 100, 90, 0, 96, 112), calls());
  reset();
  printf("%d\\n%s\\n", (int)matmul_default(NULL, 0x1000, 0x2000, 0x3000, 100, 90, 70, -96, 112), calls());
"""


@needs_ptxas
@pytest.mark.parametrize("compiler", [C99, CXX17], ids=["c99", "c++17"])
@pytest.mark.parametrize("also_without", [False, True])
def test_a_kernel_of_pointers(gpu: FakeGpu, compiler: list[str], also_without: bool):
    """What it loads by TMA it has maps of; a negative stride goes to the kernel without the hint, if there is one."""
    x, out = aligned(np.zeros(16, np.float16)), aligned(np.zeros(16, np.float32))
    maps = compile_for("cuda:90", matmul, x, x, out, 5, 5, 5, 16, 16, BM=64, BN=64, BK=64).metadata.tensor_maps
    assert len(maps) == 2
    params = [Parameter(name) for name in matmul.arg_names]
    types = "*fp16:16, *fp16:16, *fp32:16, i32, i32, i32, {0}, {0}, 64, 64, 64"
    gpu.emit_cuda(types.format("i32:16"), "cdiv(M, 64)", params=params, name="matmul", tensor_maps=maps)
    if also_without:
        gpu.emit_cuda(types.format("i32"), "cdiv(M, 64)", params=params, name="matmul")
    gpu.link()
    status, log, negative, further = gpu.program(CALLS, compiler).run().splitlines()
    assert (status, negative) == ("0", "0" if also_without else "1")
    assert "[0x1000 type=6 swizzle=3 fill=0 1/64*192 100/64]" in log, "K is 0: the map is of one element"
    assert "[0x2000 type=6 swizzle=3 fill=0 90/64*224 1/64]" in log
    assert "swizzle" not in further and ("cuLaunchKernel" in further) == also_without
