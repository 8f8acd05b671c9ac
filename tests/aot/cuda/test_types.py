"""The types in the headers: those of cuda.h, with it and without it, in either order, as C and as C++."""

import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest
from aot.cuda.fake_gpu import FakeGpu
from aot.workspace import ADD_ALPHA, C99, CXX17, STRICT

from deuteron.aot.link import link_kernels

SIGNATURE = "*fp32, fp32, i32, 128"
C11 = ["gcc", "-std=c11", *STRICT]
LANGUAGES = pytest.mark.parametrize("compiler", [C99, C11, CXX17], ids=["c99", "c11", "c++17"])

# A host program for CUDA alone, in words of cuda.h.
HOST = """
static CUresult launch(CUstream stream, CUdeviceptr x) {
  CUresult (*const function)(CUstream, CUdeviceptr, float, int32_t) = add_alpha_default;
  const CUresult status = function(stream, x, 0.5f, 5);
  return status == CUDA_SUCCESS ? load_add_alpha() : status;
}
int main(void) { return launch(0, 0) == DEUTERON_ERROR_NO_DRIVER && DEUTERON_TARGET_CUDA ? 0 : 1; }
"""


def find_cuda_header() -> Path | None:
    """The folder with NVIDIA's cuda.h, of a toolkit or of the wheels."""
    package = find_spec("nvidia")
    wheels = [Path(folder) for folder in package.submodule_search_locations] if package else []
    folders = [*Path("/usr/local").glob("cuda*/include"), *(f for wheel in wheels for f in wheel.glob("*/include"))]
    return next((folder for folder in folders if (folder / "cuda.h").is_file()), None)


needs_cuda_header = pytest.mark.skipif(find_cuda_header() is None, reason="there is no cuda.h")


def build(gpu: FakeGpu, main: str, compiler: Sequence[str], flags: Sequence[str] = ()) -> Path:
    gpu.emit_cuda(SIGNATURE, "1")
    gpu.link()
    return gpu.build(main, compiler, flags).path


@LANGUAGES
def test_without_cuda_h(gpu: FakeGpu, compiler: list[str]):
    subprocess.run([build(gpu, f'#include "linked.h"\n{HOST}', compiler)], check=True)


@needs_cuda_header
@LANGUAGES
@pytest.mark.parametrize("order", ["before", "after", "never"])
def test_with_cuda_h(gpu: FakeGpu, compiler: list[str], order: str):
    includes = {"before": ["<cuda.h>", '"linked.h"'], "after": ['"linked.h"', "<cuda.h>"], "never": ['"linked.h"']}
    main = "".join(f"#include {name}\n" for name in includes[order]) + HOST
    # as a system header, since cuda.h itself is no strict C99
    subprocess.run([build(gpu, main, compiler, ["-isystem", str(find_cuda_header())])], check=True)


@needs_cuda_header
@LANGUAGES
def test_a_folder_of_cuda_h_that_is_no_system_folder_gives_no_warning(gpu: FakeGpu, compiler: list[str]):
    build(gpu, f'#include "linked.h"\n{HOST}', compiler, ["-I", str(find_cuda_header())])


def test_a_cuda_h_of_another_kind_does_no_harm(gpu: FakeGpu):
    (gpu.folder / "cuda.h").write_text("/* not NVIDIA's */\n")
    build(gpu, f'#include "linked.h"\n{HOST}', C99, ["-I", str(gpu.folder)])


EITHER = """
static float memory[4];
static deuteron_status launch(float *x) {
  return add_alpha_default(static_cast<deuteron_stream>(nullptr), reinterpret_cast<deuteron_ptr>(x), 0.5f, 1);
}
int main() { return launch(memory) == EXPECTED ? 0 : 1; }
"""


@pytest.mark.parametrize(("target", "expected"), [("cpu", "SUCCESS"), ("cuda:90", "ERROR_NO_DRIVER")])
def test_one_cxx_source_for_either(gpu: FakeGpu, target: str, expected: str):
    if target == "cpu":
        gpu.headers.append(gpu.emit(ADD_ALPHA, SIGNATURE, "1"))
    else:
        gpu.emit_cuda(SIGNATURE, "1")
    gpu.link()
    program = gpu.build(f'#include "linked.h"\n{EITHER}', CXX17, [f"-DEXPECTED=DEUTERON_{expected}"])
    subprocess.run([program.path], check=True)


def test_headers_for_both_in_one_file_are_an_error(gpu: FakeGpu):
    names = [gpu.emit(ADD_ALPHA, SIGNATURE, "1").name, gpu.emit_cuda(SIGNATURE, "1").name]
    for order in (names, names[::-1]):
        text = "".join(f'#include "{name}"\n' for name in order)
        (gpu.folder / "both.c").write_text(text)
        done = subprocess.run(["gcc", "-fsyntax-only", gpu.folder / "both.c"], capture_output=True, text=True)
        assert "includes kernels for the CPU and for CUDA" in done.stderr


def test_programs_with_both_in_different_files(gpu: FakeGpu):
    """A name of a status of either is there, whichever file the linker takes the function from."""
    cpu = gpu.emit(ADD_ALPHA, SIGNATURE, "1", name="on_cpu")
    link_kernels([cpu], gpu.folder / "cpu_linked")
    gpu.emit_cuda(SIGNATURE, "1")
    gpu.link()
    (gpu.folder / "other.c").write_text(
        '#include "cpu_linked.h"\nint run(void);\nint run(void) { float x = 0; return on_cpu_default(0, &x, 0, 1); }\n'
    )
    main = """
#include "linked.h"
#include <stdio.h>
int run(void);
int main(void) {
  printf("%d, %s\\n", run(), deuteron_status_string(add_alpha_default(0, 0, 0, 1)));
  return 0;
}
"""
    assert gpu.build(main).run() == "0, no driver\n"


def test_the_cubin_is_in_the_file_byte_by_byte(gpu: FakeGpu):
    image = bytes(range(256)) * 5 + b'\0\n"\\'
    header = gpu.emit_cuda(SIGNATURE, "1", image=image)
    text = header.with_suffix(".c").read_text()
    start = text.index("deuteron_cubin[]")
    body = text[text.index("{\n", start) + 1 : text.index("};", start)]
    assert bytes(int(number) for number in body.replace("\n", " ").split(",") if number.strip()) == image
    assert f"{len(image)} bytes" in text
