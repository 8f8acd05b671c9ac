"""A library from its declaration to a program: what is built, what is built anew, and what stays after a failure."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from library.project import NORMS, STANDARDS, Project, check_warnings, write_project

from deuteron.backend.llvm.targets import machine
from deuteron.errors import UsageError
from deuteron.tools.main import main

CXX = r"""
#include "norms.hpp"
#include <cmath>
#include <cstdio>
#include <vector>

int main() {
  const int n = 100, rows = 3;
  std::vector<float> x(n * rows), y(n * rows, -1.0f);
  for (std::size_t i = 0; i < x.size(); i++)
    x[i] = static_cast<float>(i % 13) - 6;
  const float *input = x.data();
  acme::checked::rms_norm(acme::cpu, input, y.data(), n, rows, acme::rms_norm_fp32_BLOCK_128_eps_1em05_warps1_stages3);
  double wrong = 0;
  for (int r = 0; r < rows; r++) {
    double sum = 0;
    for (int i = r * n; i < (r + 1) * n; i++)
      sum += x[static_cast<std::size_t>(i)] * x[static_cast<std::size_t>(i)];
    for (std::size_t i = static_cast<std::size_t>(r * n); i < static_cast<std::size_t>((r + 1) * n); i++)
      wrong = std::fmax(wrong, std::fabs(y[i] - x[i] / std::sqrt(sum / n + 1e-5)));
  }
  if (acme::scale(nullptr, y.data(), 0.0f, n) != DEUTERON_SUCCESS)
    return 1;
  std::vector<std::uint16_t> h(n + 1, 0x3c00);
  const deuteron_status unfit = acme::rms_norm(acme::cpu, h.data() + 1, h.data(), n, 1);
  std::printf("%d %g %s\n", wrong < 1e-5, std::fabs(static_cast<double>(y[5])), deuteron_status_string(unfit));
  const auto said = [](auto &&call) {
    try {
      call();
    } catch (const deuteron::error &error) {
      std::printf("%s %d\n", error.what(), error.status());
    }
  };
  said([&] { acme::checked::rms_norm(reinterpret_cast<CUstream_st *>(0x1000), input, y.data(), n, rows); });
  said([&] { acme::checked::rms_norm(acme::cpu, h.data() + 1, h.data(), n, 1); });
  said([&] { acme::checked::rms_norm(acme::cpu, input, y.data(), n, rows, 7); });
  said([&] { acme::checked::rms_norm_fp32(acme::cpu, input, y.data(), n, 0x7fffffff, -5); });
}
"""
C = r"""
#include "norms.h"
#include <stdio.h>

int main(void) {
  float x[70];
  int i;
  for (i = 0; i < 70; i++)
    x[i] = 2;
  if (load_scale(DEUTERON_CPU) || scale_default(DEUTERON_CPU, x, 1.5f, 69) || unload_scale(DEUTERON_CPU))
    return 1;
  printf("%g %g %d %d\n", (double)x[68], (double)x[69], rms_norm_fp16_get_num_algos(), scale(NULL, x, 1, 1, 1));
  return 0;
}
"""


def test_a_program_in_cxx(built: Project):
    said = built.run(CXX, str(built.out / "libnorms.a"))
    assert said == (
        "1 0 invalid value\nthere is no kernel for this device 209\nX is not divisible by 16 1\n"
        "there is no algorithm of this number 1\nthere is no algorithm of this number 1\n"
    )


def test_a_program_in_c(built: Project):
    assert built.run(C, str(built.out / "libnorms.a"), compiler="gcc") == "3 2 2 1\n"


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("std", STANDARDS)
def test_the_sources_compile_without_a_warning(built: Project, compiler: str, std: str):
    check_warnings(built, compiler, std)


def test_a_static_library_has_no_name_without_a_prefix(built: Project):
    names = subprocess.run(["nm", "-g", "--defined-only", built.out / "libnorms.a"], capture_output=True, text=True)
    defined = [line.split()[-1] for line in names.stdout.splitlines() if len(line.split()) == 3]
    assert len(defined) > 20
    assert [name for name in defined if not name.startswith("deuteron_")] == []


def test_only_the_functions_of_the_library_are_there(project: Project):
    project.edit("deuteron.toml", 'namespace = "acme"', 'namespace = "acme"\nshared = true')
    assert project.build().compiled == 0
    flags = [f"-L{project.out}", "-lnorms", f"-Wl,-rpath,{project.out}"]
    assert project.run(C, *flags, compiler="gcc") == "3 2 2 1\n"
    exported = exported_by(project.out / "libnorms.so")
    plain = {name for name in exported if not name.startswith("deuteron_")}
    functions = ("rms_norm_fp16", "rms_norm_fp32", "scale")
    asked = ("", "_default", "_get_num_algos", "_select", "_supports")
    expected = {f"{name}{verb}" for name in functions for verb in asked}
    assert plain == expected | {f"{verb}_{name}" for name in functions for verb in ("load", "unload")}
    assert not [name for name in exported if "kernel" in name]
    assert exported >= {"deuteron_status_string", "deuteron_set_executor"}
    hidden = project.folder / "libhidden.so"
    sources = [project.out / "norms.c", *project.out.glob("kernels/*.c")]
    subprocess.run(["gcc", "-shared", "-fPIC", "-fvisibility=hidden", *sources, "-o", hidden], check=True)
    assert exported_by(hidden) == exported


def exported_by(library: Path) -> set[str]:
    names = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in names.stdout.splitlines()}


IN_PYTHON = f"""\
x has elements of type float64: the kernel was compiled for float32
x has elements of type >f4: the kernel was compiled for float32
x is an array on a GPU, and the kernel would run on the processor: say stream=...
x is an address or an array, got 'x'
n is 2147483648: the kernel was compiled for i32
n is a whole number (i32), got 1.5
factor is a number, got 'a'
x is read-only, and the kernel writes to it
x is an address or an array, got {np.float32(1)!r}
x is an address or an array, got True
x is an address or an array, got [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, ...]
there is no algorithm of this number
no algorithm has these values
BLOCK is a whole number, got '64'
stream is CPU, None or a stream's address (of torch's, its cuda_stream), got 'cpu'
"""


def test_a_program_in_python(project: Project):
    project.edit("deuteron.toml", 'namespace = "acme"', 'namespace = "acme"\nshared = true')
    project.build()
    program = (
        "import numpy as np, norms\n"
        "x = np.arange(70, dtype=np.float32)\n"
        "norms.scale(x, 2.0, 69)\n"
        "print(x[68], x[69], norms.rms_norm_fp16_BLOCK_128_eps_1em05_warps1_stages3)\n"
        "try:\n    norms.scale(x, 2.0, 69, algo_id=-1)\n"
        "except norms.Error as error:\n    print(error, error.status)\n"
        "try:\n    norms.rms_norm_fp16(x.view(np.int16)[1:], x.view(np.int16), 8, 2)\n"
        "except norms.Error as error:\n    print(error, error.status)\n"
        "class OnGpu:\n    dtype, __cuda_array_interface__ = 'float32', {'data': (0, False)}\n"
        "for wrong in ((x.astype(np.float64), 2.0, 9), (x.astype('>f4'), 2.0, 9), (OnGpu(), 2.0, 9), ('x', 2.0, 9),\n"
        "              (x, 2.0, 1 << 31), (x, 2.0, 1.5), (x, 'a', 9), (np.broadcast_to(x[:1], 70), 2.0, 70),\n"
        "              (np.float32(1), 2.0, 0), (True, 2.0, 0), ([0.0] * 70, 2.0, 70)):\n"
        "    try:\n        norms.scale(*wrong)\n"
        "    except (TypeError, OverflowError, ValueError) as error:\n        print(error)\n"
        "try:\n    norms.scale(x, 2.0, 69, algo_id=1 << 32)\nexcept norms.Error as error:\n    print(error)\n"
        "try:\n    norms.scale_select(BLOCK=(1 << 64) + 64)\nexcept LookupError as error:\n    print(error)\n"
        "for wrong in (lambda: norms.scale_select(BLOCK='64'), lambda: norms.scale(x, 2.0, 69, stream='cpu')):\n"
        "    try:\n        wrong()\n    except TypeError as error:\n        print(error)\n"
        "half = x.astype(np.float16)\nhalf.flags.writeable = False\n"
        "norms.rms_norm_fp16(half, x.view(np.int16), np.int32(8), np.int64(2))\n"
        "norms.scale(x.ctypes.data, 2.0, 1)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(project.out)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, cwd=project.folder, capture_output=True, text=True)
    assert (
        done.stdout == "136.0 69.0 1\nthere is no algorithm of this number 1\nX is not divisible by 16 1\n" + IN_PYTHON
    ), done.stderr


def test_a_warning_is_one_line(project: Project, tmp_path: Path):
    """Of all the processes and variants that have it; one about a file of the project's says which line."""
    project.edit("kernels/norms.py", "row = ", "row: tl.constexpr = ")
    project.edit("kernels/scale.py", "import triton\n", "import triton\nimport warnings\nwarnings.warn('old')\n")
    (tmp_path / "file").touch()
    environment = {**os.environ, "DEUTERON_CACHE_DIR": str(tmp_path / "file" / "cache")}
    command = [sys.executable, "-m", "deuteron", "build", "--sources-only", "-j", "2"]
    done = subprocess.run(command, cwd=project.folder, env=environment, capture_output=True, text=True)
    *warned, last = done.stderr.splitlines()
    assert last == "norms: compiled 5 of 5 kernels into 'build/norms', its sources only"
    cache, place = tmp_path / "file" / "cache", project.folder / "kernels"
    assert sorted(warned) == sorted(
        [
            f"warning: compiled kernels are not kept in the cache folder '{cache}': File exists",
            f"warning: {place / 'norms.py'}:8:5: 'row' is annotated as constexpr, got int32, which is known only at "
            "run time. The annotation is ignored.",
            f"warning: {place / 'scale.py'}:4: old",
        ]
    )


def test_sources_that_are_links_to_where_they_are_kept(project: Project, tmp_path: Path):
    """As Bazel and others lay them out: what is written is the same, and so are the names in the depfile."""
    kept, linked = tmp_path / "kept", Project(tmp_path / "linked")
    kept.mkdir()
    for i, path in enumerate([project.file, *project.folder.glob("kernels/*.py")]):
        link = linked.folder / path.relative_to(project.folder)
        link.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, kept / str(i))
        link.symlink_to(kept / str(i))
    shutil.copytree(project.out, linked.out)
    depfile = tmp_path / "norms.d"
    result = invoke(linked, "--check", "--depfile", str(depfile))
    assert result.exit_code == 0, result.output
    assert f"{linked.folder}/kernels/parts.py" in depfile.read_text() and "kept" not in depfile.read_text()


def test_a_name_that_is_no_utf8(project: Project, tmp_path: Path):
    """As of what was unpacked where names were in another encoding: hashing such a name was an error."""
    source = os.fsdecode(b"k\xe9.py")
    (tmp_path / source).write_text(NORMS)
    (declaring := project.folder / "libraries.py").write_text(
        "from deuteron.library import Kernel, Library\n"
        f"names = {{'name': 'rms_norm', 'source': {str(tmp_path / source)!r}}}\n"
        "types = {'X': '*fp32', 'Y': '*fp32', 'n': 'i32'}\n"
        "norm = Kernel(**names, grid='1', types=types, constexprs={'BLOCK': 64})\n"
        "library = Library('one', ['cpu'], [norm])\n"
    )
    depfile = tmp_path / "one.d"
    result = invoke(project, "-f", str(declaring), "--sources-only", "--depfile", str(depfile))
    assert result.exit_code == 0, result.output
    assert os.fsencode(tmp_path / source) in depfile.read_bytes()
    assert invoke(project, "-f", str(declaring), "--check").exit_code == 0


def test_a_temporary_folder_with_a_name_too_long_for_a_socket(project: Project, tmp_path: Path):
    project.edit("kernels/scale.py", "tl.store", "tl.debug_barrier()\n    tl.store")
    folder = tmp_path / ("long" * 20)
    folder.mkdir()
    command = [sys.executable, "-m", "deuteron", "build", "--sources-only", "-j", "1"]
    environment = {**os.environ, "TMPDIR": str(folder)}
    done = subprocess.run(command, cwd=project.folder, env=environment, capture_output=True, text=True)
    assert done.stderr == "norms: compiled 1 of 5 kernels into 'build/norms', its sources only\n"


def with_compiler(project: Project, command: str) -> str:
    """What a build says that uses another C compiler."""
    environment = {**os.environ, "CC": command}
    build = [sys.executable, "-m", "deuteron", "build"]
    return subprocess.run(build, cwd=project.folder, env=environment, capture_output=True, text=True).stderr


def test_a_compiler_for_another_processor(project: Project, tmp_path: Path):
    compiler = tmp_path / "cc"
    compiler.write_text('#!/bin/sh\ntest "$1" = -dumpmachine && exec echo sparc64-linux-gnu\nexec cc "$@"\n')
    compiler.chmod(0o755)
    warned, last = with_compiler(project, str(compiler)).splitlines()
    assert warned == (
        f"warning: library 'norms' has kernels for {machine()}, and `{compiler}` makes objects for sparc64: "
        "no call will find a kernel for its processor. Say `--architecture sparc64`"
    )
    assert last == "norms: compiled 0 of 5 kernels into 'build/norms'"


@pytest.mark.parametrize(
    ("command", "said"),
    [("'cc", 'error: CC is no command: No closing quotation, in "\'cc"\n'), (" ", "norms: up to date\n")],
)
def test_a_compiler_that_is_none(project: Project, command: str, said: str):
    assert with_compiler(project, command) == said


def test_two_builds_at_a_time(project: Project):
    project.edit("kernels/norms.py", "1e-5", "1e-6")
    command = [sys.executable, "-m", "deuteron", "build", "-j", "1"]
    processes = [subprocess.Popen(command, cwd=project.folder, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = sorted(process.communicate()[1] for process in processes)
    assert said == ["norms: compiled 4 of 5 kernels into 'build/norms'\n", "norms: up to date\n"]
    project.build(check=True)


SCRIPT = """
from pathlib import Path
from deuteron.library import Kernel, Library, build_library

types = {"X": "*fp32", "Y": "*fp32", "n": "i32"}
kernel = Kernel(name="rms_norm", source="SOURCE", grid="n", types=types, constexprs={"BLOCK": [32, 64]})
build_library(Library("norms", ["cpu"], [kernel]), Path("build/norms"))
print("built")
"""


def test_a_script_that_builds_whenever_it_is_executed(project: Project):
    """Processes that compile do not execute it, unless its kernels are in it, which is an error then."""
    script = project.folder / "kernels" / "script.py"
    script.write_text(SCRIPT.replace("SOURCE", "norms.py"))
    command = [sys.executable, "script.py"]
    assert subprocess.check_output(command, cwd=script.parent, text=True, timeout=100) == "built\n"
    script.write_text("import deuteron.compat\n" + NORMS + SCRIPT.replace("SOURCE", "script.py"))
    failed = subprocess.run(command, cwd=script.parent, capture_output=True, text=True, timeout=100)
    assert failed.returncode == 1
    assert (
        "imports script.py to compile" in failed.stderr
        and 'let it do so under `if __name__ == "__main__":`' in failed.stderr
    )


FROZEN = """#!{python}
import multiprocessing, os, sys
with open("starts", "a+") as starts:
    if starts.write("x") and starts.tell() > 3:
        os._exit(1)
sys.frozen, sys.executable = True, __file__
multiprocessing.set_executable(__file__)

from pathlib import Path
from deuteron.library import build_library, read_project

if __name__ == "__main__":
    build_library(read_project(Path("deuteron.toml"))["norms"], Path("build/norms"))
"""


def test_a_frozen_program_is_not_started_again(project: Project):
    """It is its own `sys.executable`: what starts that to compile would start the program, and that another."""
    project.edit("kernels/parts.py", "x * factor", "factor * x")
    before = project.contents()
    program = project.folder / "program"
    program.write_text(FROZEN.format(python=sys.executable))
    program.chmod(0o755)
    subprocess.run([program], cwd=project.folder, check=True, timeout=60)
    assert (project.folder / "starts").read_text() == "x" and project.contents() != before


def test_nothing_to_do(project: Project):
    before = project.times()
    built = project.build()
    assert (built.compiled, built.changed) == (0, False)
    project.build(check=True)
    assert project.times() == before


@pytest.mark.parametrize("file, functions", [("parts", {"scale"}), ("norms", {"rms_norm_fp16", "rms_norm_fp32"})])
def test_an_edit_compiles_just_what_it_changes(project: Project, file: str, functions: set[str]):
    before = project.times()
    old, new = ("x * factor", "x * factor * 1.0") if file == "parts" else ("1e-5", "1e-6")
    project.edit(f"kernels/{file}.py", old, new)
    with pytest.raises(UsageError, match="is stale: (scale|rms_norm_fp16) .*Run `deuteron build norms`"):
        project.build(check=True)
    assert project.build().compiled == (1 if file == "parts" else 4)
    after = project.times()
    changed = {name for name, at in after.items() if before.get(name) != at and name.startswith("objects/")}
    assert {name.removeprefix("objects/").partition(".")[0] for name in changed} == functions | {"norms", "state"}


def test_nothing_to_do_imports_little(project: Project):
    """Neither the compiler nor what writes C."""
    project.build()
    program = (
        "import sys\nfrom deuteron.tools.main import main\nmain(standalone_mode=False)\n"
        "print(*{'llvmlite', 'xdsl', 'numpy', 'deuteron.runtime', 'deuteron.aot.dispatch'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", program, "build", "-f", str(project.file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == "norms: up to date\n" and done.stdout == "\n"


def test_a_comment_changes_the_manifest_alone(project: Project):
    before = project.times()
    project.edit("deuteron.toml", 'grid = "n_rows"', 'grid = "n_rows"  # one program a row')
    (project.folder / "kernels" / "unrelated.py").write_text("x = 1\n")
    assert project.build().compiled == 0
    assert {name for name, at in project.times().items() if before.get(name) != at} == {"norms.json"}


def test_what_is_taken_out_of_the_declaration_goes(project: Project):
    project.edit("deuteron.toml", '["*fp16:16", "*fp32"]', '["*fp32"]')
    (project.out / "notes.txt").write_text("mine")
    assert project.build().compiled == 0
    assert not [name for name in project.contents() if "fp16" in name]
    assert (project.out / "notes.txt").read_text() == "mine"


def test_files_that_were_changed_or_lost_are_made_again(project: Project):
    before = project.contents()
    header = next(project.out.glob("kernels/scale.*.h"))
    header.unlink()
    (project.out / "norms.h").write_text("")
    (project.out / "libnorms.a").unlink()
    with pytest.raises(UsageError, match="is stale"):
        project.build(check=True)
    assert project.build().compiled == 1
    assert project.contents() == before


def test_the_same_bytes_in_another_folder(built: Project, tmp_path: Path):
    other = write_project(tmp_path / "some where" / "else")
    other.build()
    assert other.contents() == built.contents()
    assert not [name for name, text in built.contents().items() if bytes(built.folder) in text]


FAILURES = [
    (
        "deuteron.toml",
        "[[library.norms.kernel]]\nmodule",
        '[[library.norms.kernel]]\nmodule = "kernels.scale"\nname = "scale"\ngrid = "1"\n'
        'types = { x = "*fp64", factor = "fp32", n = "i32" }\nconstexprs = { BLOCK = 32 }\n'
        "[[library.norms.kernel]]\nmodule",
        "deuteron.toml:26:1",
        "scale (BLOCK = 32) for cpu and scale (BLOCK = 64) for cpu take (*fp64 x, fp32 factor, i32 n) and",
    ),
    (
        "kernels/norms.py",
        "tl.rsqrt(",
        "tl.rsqt(",
        "norms.py:11:35",
        "in rms_norm_fp16 (BLOCK = 64) for cpu; rms_norm_fp16 (BLOCK = 128) for cpu and 2 more",
    ),
    (
        "deuteron.toml",
        "BLOCK = [64, 128]",
        "BLOK = [64]",
        "deuteron.toml:16:1",
        "has no parameter 'BLOK'. Did you mean",
    ),
    (
        "deuteron.toml",
        'n = "i32"\n[',
        "[",
        "deuteron.toml:8:1",
        "nothing is said of parameter 'n' of kernel 'rms_norm': give it a type under types",
    ),
    (
        "deuteron.toml",
        "BLOCK = [64, 128]",
        "",
        "deuteron.toml:8:1",
        "nothing is said of parameter 'BLOCK' of kernel 'rms_norm': give it a value under constexprs",
    ),
    (
        "deuteron.toml",
        'n = "i32"\n[',
        'n = "i32"\nBLOCK = "fp16"\n[',
        "deuteron.toml:17:1",
        "'BLOCK' is among the types and the constexprs",
    ),
    (
        "deuteron.toml",
        'n = "i32" }\nconstexprs = { BLOCK = 64 }',
        'n = "i32", BLOCK = "i32" }',
        "deuteron.toml:22:52",
        "'BLOCK' is a tl.constexpr: give its value under constexprs",
    ),
    ("deuteron.toml", 'n = "i32"\n[', 'n = "i33"\n[', "deuteron.toml:14:1", "Unknown type 'i33'"),
    ("deuteron.toml", '"n_rows"', '"rows"', "deuteron.toml:9:1", "unknown name 'rows'"),
    ("deuteron.toml", '"kernels/norms.py"', '"norms.py"', "deuteron.toml:7:1", "the file 'norms.py' does not exist"),
    ("deuteron.toml", '"rms_norm"', '"rms"', "deuteron.toml:8:1", "has no kernel 'rms'"),
    (
        "deuteron.toml",
        'name = "scale"\n',
        'name = "scale"\noptions = { num_warp = 4 }\n',
        ":21:13",
        "unknown option 'num_warp'",
    ),
    ("deuteron.toml", 'name = "scale"\n', 'name = "scale"\nnum_warps = 4\n', ":21:1", "options = { num_warps = ... }"),
    ("deuteron.toml", 'n = "i32"\n[', 'n = "int*"\n[', ":14:1", "Unknown type 'int*'. Did you mean '*i32'?"),
    ("deuteron.toml", 'name = "scale"\n', 'name = "scale"\noptions.num_warps = 3\n', ":21:1", "must be a power of two"),
    ("deuteron.toml", 'name = "scale"\n', 'name = "scale"\noptions.launch_pdl = "no"\n', ":21:1", "is True or False"),
    ("deuteron.toml", '{ n_rows = "i32" }', '{ n_rows = "fp32" }', ":10:21", "host parameter 'n_rows' is 'fp32'"),
    (
        "deuteron.toml",
        '{ n_rows = "i32" }',
        '{ n_rows = "i32", n = "i32" }',
        ":8:1",
        "'n' is a parameter of the kernel",
    ),
    ("deuteron.toml", '"acme"', '"scale"', "deuteron.toml:4:1", "the namespace 'scale' is called as a function"),
]


@pytest.mark.parametrize(("file", "old", "new", "place", "message"), FAILURES, ids=[f[4][:20] for f in FAILURES])
def test_a_failure_leaves_what_was_there(project: Project, file: str, old: str, new: str, place: str, message: str):
    before = project.contents()
    project.edit(file, old, new)
    with pytest.raises(UsageError) as raised:
        project.build()
    assert place in str(raised.value) and message in str(raised.value)
    assert project.contents() == before
    assert [path.name for path in (project.folder / "build").iterdir()] == ["norms"]


def test_a_kill_leaves_what_was_there(project: Project):
    before = project.contents()
    project.edit("kernels/norms.py", "1e-5", "1e-6")
    command = [sys.executable, "-m", "deuteron", "build", "-j", "1"]
    environment = {**os.environ, "CC": f"{sys.executable} {project.folder / 'slow_cc.py'}"}
    (project.folder / "slow_cc.py").write_text(
        "import os, pathlib, sys, time\n"
        "if '-c' in sys.argv:\n    pathlib.Path(os.environ['MARK']).touch()\n    time.sleep(60)\nprint('slow')\n"
    )
    mark = project.folder / "mark"
    process = subprocess.Popen(command, cwd=project.folder, env={**environment, "MARK": str(mark)})
    deadline = time.monotonic() + 60
    while not mark.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert mark.exists() and project.contents() == before
    assert project.build().compiled == 4
    assert [path.name for path in (project.folder / "build").iterdir()] == ["norms"]


AMONG_THE_FIRST = "import os, signal, sys\nif 'forkserver' in ' '.join(sys.orig_argv):\n    os.kill(0, signal.SIGINT)\n"


def interrupted(project: Project, **environment: str) -> subprocess.CompletedProcess:
    """What a build says to a Ctrl-C, which all processes of a terminal hear."""
    command = [sys.executable, "-m", "deuteron", "build", "-j", "1"]
    options = {"capture_output": True, "text": True, "start_new_session": True, "timeout": 120}
    return subprocess.run(command, cwd=project.folder, env={**os.environ, **environment}, **options)


def test_an_interrupt_while_the_processes_start(tmp_path: Path):
    """The first of them is interrupted as it starts, long before it has imported the compiler."""
    project = write_project(tmp_path / "project")
    (tmp_path / "sitecustomize.py").write_text(AMONG_THE_FIRST)
    folders = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = interrupted(project, PYTHONPATH=folders)
    assert (done.returncode, done.stdout, done.stderr.split()) == (130, "", ["interrupted"])


def test_an_interrupt_while_a_kernel_compiles(tmp_path: Path):
    project = write_project(tmp_path / "project")
    project.edit("kernels/parts.py", "import triton\n", "import triton, os, signal\nos.kill(0, signal.SIGINT)\n")
    done = interrupted(project)
    assert (done.returncode, done.stdout, done.stderr.split()) == (130, "", ["interrupted"])


def test_without_a_compiler_there_are_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    project = write_project(tmp_path / "project")
    monkeypatch.setattr("deuteron.library.objects.shutil.which", lambda name: None)
    monkeypatch.setattr("deuteron.library.objects.find_spec", lambda name: None)
    for variable in ("CC", "CXX", "AR"):
        monkeypatch.delenv(variable, raising=False)
    built = project.build()
    assert not built.has_objects
    assert {"norms.c", "norms.h", "norms.hpp", "norms.json"} < set(project.contents())
    assert not (project.out / "libnorms.a").exists()


def invoke(project: Project, *arguments: str):
    declared = [] if "-f" in arguments else ["-f", str(project.file)]
    return CliRunner().invoke(main, ["build", *declared, *arguments])


def test_the_command(project: Project):
    result = invoke(project, "--report", "--depfile", str(project.folder / "norms.d"))
    assert (result.exit_code, result.stderr) == (0, "norms: up to date\n")
    columns = [line.split("  ")[:3] for line in result.stdout.splitlines()]
    assert ["rms_norm_fp16", "BLOCK = 128, eps = 1e-05, 1 warp, 3 stages", "X:16, Y:16"] in columns
    named = (project.folder / "norms.d").read_text().replace("\\\n", " ").splitlines()[0].partition(":")[2].split()
    assert {Path(name).name for name in named} == {"deuteron.toml", "__init__.py", "norms.py", "scale.py", "parts.py"}
    rows = json.loads(invoke(project, "norms", "--report=json").stdout)
    assert [row["function"] for row in rows] == ["rms_norm_fp16"] * 2 + ["rms_norm_fp32"] * 2 + ["scale"]
    assert [row["hints"] for row in rows] == ["X:16, Y:16"] * 2 + [""] * 3
    assert all(row["code_bytes"] > 0 and row["target"] == "cpu:x86-64-v3" for row in rows)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["norm"], "declares no library 'norm'. Did you mean 'norms'? It has norms"),
        (["--werror=spills"], "--werror does not know 'spills'. There are spill: a thread keeps registers"),
        (["--executor", "slurm:3"], "error: --executor 'slurm:3': it is processes:4 or dask://HOST:PORT"),
        (["-t", "cpu", "-t", "gpu"], "error: --target: unknown target 'gpu': expected 'cpu'"),
        (["--depfile-target", "norms.a"], "name the file with --depfile"),
        (["-f", "."], "'.' is no file: it declares the libraries that are built"),
        (["-f", "absent.toml"], "there is no 'absent.toml': it declares the libraries that are built"),
    ],
)
def test_mistakes_of_the_command(built: Project, arguments: list[str], message: str):
    result = invoke(built, *arguments)
    assert result.exit_code == 1 and message in result.stderr


def test_a_manifest_of_another_version_is_built_anew(project: Project):
    manifest = project.out / "norms.json"
    manifest.write_text(manifest.read_text().replace('"version": 1,', '"version": 99,', 1))
    with pytest.raises(UsageError, match="has manifest version 99, this Deuteron reads version 1"):
        project.build(check=True)
    shutil.rmtree(project.out / "kernels")
    (project.out / "kernels").mkdir()
    (project.out / "kernels" / "of_another_version.c").write_text("")
    assert project.build().compiled == 5
    assert not (project.out / "kernels" / "of_another_version.c").exists()
