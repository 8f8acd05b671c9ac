"""Linked kernels: the first whose hints hold is called, a processor that lacks something passes the call on."""

import shutil
import subprocess

import pytest
from aot.workspace import ADD_ALPHA, CXX17, Workspace

from deuteron.aot.link import link_kernels
from deuteron.backend.llvm.targets import machine
from deuteron.backend.llvm.tile_permission import may_use_tiles

# Adds a constant to x[0], so that the caller sees which kernel ran.
MARK = r"""
define hidden void @SYMBOL(ptr %args, ptr %grid, i64 %begin, i64 %end, ptr %scratch) {
  %xp = load ptr, ptr %args
  %x = load ptr, ptr %xp
  %old = load float, ptr %x
  %new = fadd float %old, MARK
  store float %new, ptr %x
  ret void
}
"""

MAIN = r"""
#include "linked.h"
#include <cstdio>

static float memory[8] __attribute__((aligned(16)));

static int which(float *x, int32_t n, int algo_id) {
  x[0] = 0;
  deuteron_status status = add_alpha(nullptr, x, 0.0f, n, algo_id);
  return status == DEUTERON_SUCCESS ? (int)x[0] : -(int)status;
}

int main() {
  std::printf("%d %d %d %d %d", which(memory, 32, 0), which(memory, 1, 0), which(memory + 1, 1, 0),
              which(memory + 1, 16, 0), which(memory, 3, 0));
  std::printf(" | %d %d %d\n", which(memory, 3, 1), which(memory, 3, 2), which(memory, 3, -1));
}
"""


def mark(number: int) -> str:
    return MARK.replace("MARK", f"{number}.0")


def emit(workspace: Workspace, signatures: list[str], target: str | None = None) -> None:
    headers = [workspace.emit(mark(i + 1), signature, "1", target=target) for i, signature in enumerate(signatures)]
    link_kernels(headers, workspace.folder / "linked")


def test_the_most_specialised_kernel_whose_hints_hold(workspace: Workspace):
    signatures = [
        "*fp32:16, fp32, i32, 128",
        "*fp32:16, fp32, i32:16, 128",
        "*fp32:16, fp32, i32:1, 128",
        "*fp32, fp32, i32:1, 128",
        "*fp32, fp32, i32, 256",
    ]
    emit(workspace, signatures)
    program = workspace.build(MAIN, CXX17)
    assert program.run() == "2 3 4 -1 1 | 5 -1 -1\n"


def test_a_processor_without_what_a_kernel_needs_gets_the_next(workspace: Workspace):
    headers = [
        workspace.emit(mark(1), "*fp32, fp32, i32, 128", "1", target="cpu:x86-64"),
        workspace.emit(mark(2), "*fp32, fp32, i32, 128", "1", target="cpu:diamondrapids"),
        workspace.emit(mark(3), "*fp32, fp32, i32, 256", "1", target="cpu:diamondrapids"),
    ]
    for header in headers[1:]:  # a table that no processor satisfies, whatever the machine of the test
        source = header.with_suffix(".c")
        source.write_text(source.read_text().replace("{0x7, 0, 1, 5, 0x6}", "{0x7, 0, 1, 5, 0x80000000}"))
    link_kernels(headers, workspace.folder / "linked")
    assert workspace.build(MAIN, CXX17).run() == "1 1 1 1 1 | -209 -1 -1\n"


def test_a_kernel_that_uses_tiles_is_called_where_the_system_gives_them(workspace: Workspace):
    """Processors with AMX have AVX-512 as well, so that the kernel that uses tiles comes first."""
    headers = [
        workspace.emit(mark(1), "*fp32, fp32, i32, 128", "1", target="cpu:x86-64"),
        workspace.emit(mark(2), "*fp32, fp32, i32, 128", "1", target="cpu:x86-64-v2", uses_tiles=True),
    ]
    link_kernels(headers, workspace.folder / "linked")
    expected = "2" if may_use_tiles() else "1"
    assert workspace.build(MAIN, CXX17).run().split()[:5] == [expected] * 5


EMULATOR = "qemu-x86_64"


@pytest.mark.skipif(not shutil.which(EMULATOR) or machine() != "x86_64", reason=f"needs {EMULATOR}, on x86-64")
def test_each_processor_gets_the_highest_level_that_it_has(workspace: Workspace):
    """The emulator executes nothing that the processor it stands for lacks; it has none with AVX-512."""
    levels = {"cpu:x86-64": 1, "cpu:x86-64-v2": 2, "cpu:x86-64-v3": 3, "cpu:x86-64-v4": 4}
    headers = [workspace.emit(mark(k), "*fp32, fp32, i32, 128", "1", target=level) for level, k in levels.items()]
    link_kernels(headers, workspace.folder / "linked")
    program = workspace.build(MAIN, CXX17)
    taken = {}
    for processor in ("qemu64,-sse4.1", "Nehalem", "Haswell", "Haswell,-fma", "Haswell,-xsave"):
        command = [EMULATOR, "-cpu", processor, program.path]
        taken[processor] = subprocess.run(command, capture_output=True, text=True, check=True).stdout[0]
    assert list(taken.values()) == ["1", "2", "3", "2", "2"], taken


def test_the_processor_of_the_test_has_what_native_needs(workspace: Workspace):
    emit(workspace, ["*fp32, fp32, i32, 128"], target="cpu:native")
    assert workspace.build(MAIN, CXX17).run().startswith("1 1 1 1 1 |")


@pytest.mark.parametrize("n, status", [(0, 0), (-5, 0), (7, 0), (65536, 1)])
def test_grids_that_are_empty_or_too_large(workspace: Workspace, n: int, status: int):
    header = workspace.emit(ADD_ALPHA, "*fp32, fp32, i32, 128", "1, n")
    link_kernels([header], workspace.folder / "linked")
    main = f"""
#include "linked.h"
int main(void) {{
  float x[7] = {{0}};
  const deuteron_status status = add_alpha_default(0, {"x" if n == 7 else "(void *)1"}, 2.0f, {n});
  return status != {status} || x[0] != {2 if n == 7 else 0};
}}
"""
    workspace.build(main).run()


def test_a_division_by_zero_is_a_status(workspace: Workspace):
    header = workspace.emit(ADD_ALPHA, "*fp32, fp32, i32, 128", "100 // n, cdiv(1, n)")
    link_kernels([header], workspace.folder / "linked")
    main = (
        '#include "linked.h"\nint main(void) { return add_alpha_default(0, 0, 0, 0) != DEUTERON_ERROR_INVALID_VALUE; }'
    )
    workspace.build(main, flags=["-fsanitize=undefined", "-fno-sanitize-recover"]).run()
