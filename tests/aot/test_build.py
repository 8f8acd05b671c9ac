"""What is emitted builds without a warning as C99 and C++17, also with the sanitizers, and computes what it should."""

import ctypes
import re
import subprocess
from pathlib import Path

import pytest
from aot.workspace import ADD_ALPHA, C99, CXX17, Program, Workspace

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


def test_two_versions_of_the_runtime_in_one_program(tmp_path: Path):
    """Each has its own threads; all else that both define is the same."""
    one, two = (Workspace(tmp_path / name) for name in ("one", "two"))
    sources = []
    for workspace, name in ((one, "first"), (two, "second")):
        workspace.folder.mkdir()
        header = workspace.emit(ADD_ALPHA, "*fp32, fp32, i32, 128", "n", name=name)
        sources.append(header.with_suffix(".c"))
    sources[1].write_text(re.sub(r"(deuteron_(?:pool|launch|load|unload|stop))_v\d+", r"\1_v0", sources[1].read_text()))
    headers = "".join(f'#include "{source.with_suffix(".h")}"\n' for source in sources)
    functions = [source.with_suffix("").name.replace(".", "_") for source in sources]
    calls = " || ".join(f"{function}(0, x, 1.0f, 99)" for function in functions)
    main = f"{headers}int main(void) {{\n  static float x[99];\n  return {calls} || x[98] != 2;\n}}\n"
    (tmp_path / "main.c").write_text(main)
    command = [*C99, "-fsanitize=address,undefined", tmp_path / "main.c", *sources, "-o", tmp_path / "program"]
    subprocess.run(command, check=True)
    Program(tmp_path / "program").run()


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


# What a program and its libraries have in common.
PROGRAM_WIDE = ("deuteron_status_string", "deuteron_set_executor", "deuteron_executor_v1")


def test_a_shared_library_has_the_functions_and_hides_the_rest(workspace: Workspace):
    emit_two(workspace)
    library = share(workspace)
    names = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    exported = {line.split()[-1] for line in names.splitlines()}
    plain = {name for name in exported if not name.startswith("deuteron_")}
    assert {"add_alpha", "add_alpha_default", "load_add_alpha"} <= plain
    assert {re.sub("deuteron_[0-9a-f]{12}_", "", name) for name in exported - plain} == {
        *plain,
        *PROGRAM_WIDE,
    }
    values = (ctypes.c_float * 3)(1, 2, 3)
    status = ctypes.CDLL(str(library)).add_alpha_default(None, values, ctypes.c_float(0.5), 3)
    assert (status, list(values)) == (0, [1.5, 2.5, 3.5])


def test_a_shared_library_may_hide_everything(workspace: Workspace):
    emit_two(workspace)
    library = share(workspace, "-DDEUTERON_HIDDEN")
    names = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    assert [line.split()[-1] for line in names.splitlines()] in ([], sorted(PROGRAM_WIDE))


def share(workspace: Workspace, *flags: str) -> Path:
    """The emitted files, and whatever else is in the folder, as a shared library."""
    library = workspace.folder / f"lib{workspace.folder.name}.so"
    sources = sorted(map(str, workspace.folder.glob("*.c")))
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wl,-z,defs", *flags, *sources, "-o", library], check=True)
    return library


USER = """
#include "linked.h"

float run_NAME(void) {
  float x = 1.0f;
  return add_alpha_default(0, &x, 0.5f, 1) == DEUTERON_SUCCESS ? x : -1.0f;
}
"""
USERS = """
#include <stdio.h>

float run_first(void), run_second(void);

int main(void) {
  printf("%g %g\\n", run_first(), run_second());
  return 0;
}
"""


def emit_two_libraries(folder: Path) -> list[Workspace]:
    """Each has a kernel of the same name and signature, the second of another source, and a function that calls it."""
    found = []
    for name, llvm in (("first", ADD_ALPHA), ("second", ADD_ALPHA.replace("fadd float %old", "fsub float %old"))):
        (folder / name).mkdir()
        found.append(Workspace(folder / name))
        link_kernels([found[-1].emit(llvm, "*fp32, fp32, i32, 128", "n")], folder / name / "linked")
        (folder / name / "user.c").write_text(USER.replace("NAME", name))
    return found


@pytest.mark.parametrize("compile_flags", [[], ["-fPIC"], ["-fvisibility=hidden", "-DDEUTERON_PLAIN_NAMES"]])
def test_two_static_libraries_with_kernels_of_one_name(tmp_path: Path, compile_flags: list[str]):
    archives = []
    for workspace in emit_two_libraries(tmp_path):
        sources = sorted(map(str, workspace.folder.glob("*.c")))
        subprocess.run(["gcc", "-c", *compile_flags, *sources], cwd=workspace.folder, check=True)
        archives.append(workspace.folder / "kernels.a")
        subprocess.run(["ar", "rc", archives[-1], *workspace.folder.glob("*.o")], check=True)
    (tmp_path / "main.c").write_text(USERS)
    subprocess.run(["gcc", tmp_path / "main.c", *archives, "-o", tmp_path / "main"], check=True)
    assert Program(tmp_path / "main").run() == "1.5 0.5\n"


@pytest.mark.parametrize("flags", [(), ("-fvisibility=hidden", "-DVISIBLE"), ("-DDEUTERON_HIDDEN",)])
def test_two_shared_libraries_with_kernels_of_one_name(tmp_path: Path, flags: tuple[str, ...]):
    workspaces = emit_two_libraries(tmp_path)
    for workspace in workspaces:
        user = workspace.folder / "user.c"
        user.write_text(user.read_text().replace("float run", '__attribute__((visibility("default"))) float run'))
    libraries = [share(workspace, *flags) for workspace in workspaces]
    (tmp_path / "main.c").write_text(USERS)
    subprocess.run(["gcc", tmp_path / "main.c", *libraries, "-o", tmp_path / "main"], check=True)
    assert Program(tmp_path / "main").run() == "1.5 0.5\n"


def test_each_loaded_library_has_its_own_kernel_by_the_plain_name(tmp_path: Path):
    for workspace, expected in zip(emit_two_libraries(tmp_path), (1.5, 0.5), strict=True):
        loaded, value = ctypes.CDLL(str(share(workspace)), ctypes.RTLD_GLOBAL), ctypes.c_float(1)
        assert loaded.add_alpha_default(None, ctypes.byref(value), ctypes.c_float(0.5), 1) == 0
        assert value.value == expected


READ = r"""
#include "linked.h"
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  char line[80] = "";
  float x = 1.0f;
  FILE *file = fopen(argv[argc - 1], "r");
  setvbuf(file, NULL, _IONBF, 0);
  if (!fgets(line, sizeof line, file))
    return 1;
  printf("%d ", read(0, &x, 0.5f, 1, 0));
  printf("%d ", read_default(0, &x, 0.5f, 1));
  printf("%g %s\n", x, line);
  return 0;
}
"""


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_kernel_that_is_called_like_a_function_of_libc(workspace: Workspace, is_shared: bool):
    """`read` of the program stays libc's."""
    link_kernels([workspace.emit(ADD_ALPHA, "*fp32, fp32, i32, 128", "n", name="read")], workspace.folder / "linked")
    (workspace.folder / "text").write_text("text")
    if is_shared:
        library = share(workspace)
        (workspace.folder / "main.c").write_text(READ)
        command = ["gcc", workspace.folder / "main.c", library, "-o", workspace.folder / "main"]
        subprocess.run(command, check=True)
        program = Program(workspace.folder / "main")
    else:
        program = workspace.build(READ)
    assert program.run(str(workspace.folder / "text")) == "0 0 2 text\n"
