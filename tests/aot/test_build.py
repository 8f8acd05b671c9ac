"""What is emitted builds without a warning as C99 and C++17, also with the sanitizers, and computes what it should."""

import ctypes
import subprocess

import pytest
from aot.workspace import ADD_ALPHA, C99, CXX17, Workspace

from deuteron.aot.link import link_kernels

MAIN = r"""
#include "linked.h"
#include <stdio.h>

int main(void) {
  float x[1000];
  int i, wrong = 0;
  for (i = 0; i < 1000; i++)
    x[i] = i < 997 ? (float)i : -1.0f;
  printf("%s,", deuteron_status_string(load_add_alpha()));
  printf("%s,", deuteron_status_string(add_alpha_default(0, x, 0.125f, 997)));
  printf("%s,", deuteron_status_string(add_alpha(0, x, 0.125f, 997, 1)));
  printf("%s,", deuteron_status_string(unload_add_alpha()));
  for (i = 0; i < 1000; i++)
    wrong += x[i] != (i < 997 ? (float)i + 0.25f : -1.0f);
  printf("%d,%d\n", wrong, add_alpha_get_num_algos());
  return 0;
}
"""

FLAGS = {
    "O0": ["-O0"],
    "O2": ["-O2"],
    "lto": ["-O2", "-flto"],
    "debug": ["-g", "-O0"],
    "pie": ["-fpie", "-pie"],
    "address-undefined": ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover"],
    "thread": ["-g", "-fsanitize=thread"],
}


def emit_two(workspace: Workspace) -> None:
    headers = [
        workspace.emit(ADD_ALPHA, "*fp32, fp32, i32, 128", "n", scratch_bytes=100),
        workspace.emit(ADD_ALPHA, "*fp32, fp32, i32, 256", "n"),
    ]
    link_kernels(headers, workspace.folder / "linked")


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
@pytest.mark.parametrize("compiler", [C99, CXX17], ids=["c99", "c++17"])
def test_builds_and_runs(workspace: Workspace, compiler: list[str], flags: list[str]):
    emit_two(workspace)
    program = workspace.build(MAIN, compiler, flags)
    assert program.run(DEUTERON_NUM_THREADS="4") == "success,success,success,success,0,2\n"


def test_plain_gcc_with_no_flag_is_enough(workspace: Workspace):
    emit_two(workspace)
    assert workspace.build(MAIN, ["gcc"], []).run().endswith("0,2\n")


def test_c_objects_link_into_a_cxx_program(workspace: Workspace):
    """The headers say extern "C" themselves."""
    emit_two(workspace)
    main = MAIN.replace("float x[1000];", "float x[1000]; auto launch = &add_alpha_default; (void)launch;")
    objects = []
    for source in workspace.folder.glob("*.c"):
        subprocess.run(["gcc", "-c", source, "-o", f"{source}.o"], check=True)
        objects.append(f"{source}.o")
    (workspace.folder / "main.cpp").write_text(main)
    program = workspace.folder / "program"
    subprocess.run(["g++", "-std=c++17", workspace.folder / "main.cpp", *objects, "-o", program], check=True)
    assert subprocess.run([program], capture_output=True, text=True).stdout.endswith("0,2\n")


@pytest.mark.parametrize("std", ["-std=c99", "-std=c11", "-std=gnu17", "-std=c2x"])
def test_headers_alone_in_every_c(workspace: Workspace, std: str):
    header = workspace.emit(ADD_ALPHA, "*fp32, fp32, i32, 128", "n")
    main = f'#include "{header.name}"\n#include "{header.name}"\nint main(void) {{ return DEUTERON_SUCCESS; }}\n'
    workspace.build(main, ["gcc", std, *C99[2:]]).run()


def test_a_shared_library_has_the_functions_and_hides_the_rest(workspace: Workspace):
    emit_two(workspace)
    library = workspace.folder / "libadd.so"
    sources = sorted(map(str, workspace.folder.glob("*.c")))
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wl,-z,defs", *sources, "-o", library], check=True)
    names = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    exported = {line.split()[-1] for line in names.splitlines()}
    assert not [name for name in exported if name.startswith("deuteron_") and name != "deuteron_status_string"]
    assert {"add_alpha", "load_add_alpha", "deuteron_status_string"} <= exported
    values = (ctypes.c_float * 3)(1, 2, 3)
    status = ctypes.CDLL(str(library)).add_alpha_default(None, values, ctypes.c_float(0.5), 3)
    assert (status, list(values)) == (0, [1.5, 2.5, 3.5])
