"""C++ programs of several libraries, without exceptions, and with warnings that strict projects ask for."""

import subprocess
from pathlib import Path

import pytest
from library.project import write_project

from deuteron.library import BuildOptions, build_library, read_project

OTHER = """
[library.other]
targets = ["cpu"]
namespace = "acme"

[[library.other.kernel]]
module = "kernels.scale"
name = "scale"
grid = "cdiv(n, BLOCK)"
types = { x = "*fp32", factor = "fp32", n = "i32" }
constexprs = { BLOCK = 128 }
"""
STRICT = ["-Wall", "-Wextra", "-Wold-style-cast", "-Wuseless-cast", "-Wzero-as-null-pointer-constant", "-Werror"]
IN_ONE_FILE = r"""
#include "norms.hpp"
#include "other.hpp"
#include <cstdio>

int main() {
  float x[70] = {1};
  if (norms::load_scale(norms::cpu) != DEUTERON_SUCCESS)
    return 1;
  const deuteron::stream processor(DEUTERON_CPU);
  const deuteron_status first = norms::scale(processor, x, 3, 70, norms::scale_BLOCK_64_warps1_stages3);
  const deuteron_status second = acme::scale(acme::cpu, x, 2, 70, acme::scale_BLOCK_128_warps1_stages3);
  const deuteron_status none = acme::scale(nullptr, x, 2, 70, acme::scale_get_num_algos());
  std::printf("%d %d %d %g %d\n", first, second, none, static_cast<double>(x[0]), norms::unload_scale(norms::cpu));
}
"""
FIRST_FILE = '#include "norms.hpp"\ndeuteron_status first(float *x) { return acme::scale(acme::cpu, x, 3, 1); }\n'
SECOND_FILE = r"""
#include "other.hpp"
#include <cstdio>

deuteron_status first(float *x);
int main() {
  float x[1] = {1};
  const deuteron_status status = first(x) + acme::scale(acme::cpu, x, 2, 1);
  std::printf("%d %g\n", status, static_cast<double>(x[0]));
}
"""
# What `select` says where there is none is no algorithm, and above all not that any may be taken.
NO_ALGORITHM = r"""
#include "norms.hpp"
#include <cstdio>

int main() {
  float x[70] = {1};
  const char *why = "";
  const int algo = acme::scale_select(4096);
  const deuteron_status called = acme::scale(acme::cpu, x, 3, 70, algo);
  const deuteron_status asked = acme::scale_supports(acme::cpu, x, 3, 70, algo, &why);
  std::printf("%d %d %d %g %s\n", algo, called, asked, static_cast<double>(x[0]), why);
  try {
    acme::checked::scale(acme::cpu, x, 3, 70, algo);
  } catch (const deuteron::error &error) {
    std::printf("%s\n", error.what());
  }
  acme::checked::scale(acme::cpu, x, 3, 70);
  std::printf("%g\n", static_cast<double>(x[0]));
}
"""
# Of every type, small and large, whose numbers an int32_t has or not.
NUMBERS = r"""
#include "norms.hpp"
#include <cstdio>
#include <vector>

enum Count { few = 3 };
struct Seventy {
  constexpr operator int() const { return 70; }
};

int main() {
  std::vector<float> x(70, 1.0F);
  const std::size_t size = x.size(), many = 5000000000U;
  const long long above = 2147483648LL, below = -2147483649LL;
  const unsigned short narrow = 70;
  const char *why = "";
  float *const p = x.data();
  const deuteron_status had[] = {acme::scale(acme::cpu, p, 2, size), acme::scale(acme::cpu, p, 2, narrow),
                                 acme::scale(acme::cpu, p, 2, few),  acme::scale(acme::cpu, p, 2, Seventy{}),
                                 acme::scale(acme::cpu, p, 2, true), acme::scale(acme::cpu, p, 2, -1LL)};
  for (const deuteron_status status : had)
    std::printf("%d ", status);
  std::printf("%g %g %g\n", static_cast<double>(x[0]), static_cast<double>(x[2]), static_cast<double>(x[69]));
  std::printf("%d %d %d %d ", acme::scale(acme::cpu, p, 2, many), acme::scale(acme::cpu, p, 2, above),
              acme::scale(acme::cpu, p, 2, below), acme::scale(acme::cpu, p, 2, 4294967295U));
  const deuteron_status asked = acme::scale_supports(acme::cpu, p, 2, many, 0, &why);
  std::printf("%d %s\n", asked, why);
  try {
    acme::checked::scale(acme::cpu, p, 2, many);
  } catch (const deuteron::error &error) {
    std::printf("%s %g\n", error.what(), static_cast<double>(x[0]));
  }
}
"""
SIZES = r"""
#include "other.hpp"
#include <cstdio>

int main() {
  float x[70] = {1};
  const std::int64_t many = 70;
  const std::size_t size = 70;
  const deuteron_status had[] = {acme::scale(acme::cpu, x, 2, 70), acme::scale(acme::cpu, x, 2, many),
                                 acme::scale_i32(acme::cpu, x, 2, size), acme::scale_i64(acme::cpu, x, 2, size)};
  const deuteron_status none = acme::scale_i32(acme::cpu, x, 2, many << 32);
  std::printf("%d %d %d %d %d %g\n", had[0], had[1], had[2], had[3], none, static_cast<double>(x[0]));
}
"""


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`norms` and `other`, of one namespace, with a function of one name that multiplies, there, and adds, here."""
    project = write_project(tmp_path_factory.mktemp("two"))
    project.build()
    project.file.write_text(OTHER)
    project.edit("kernels/parts.py", "x * factor", "x + factor")
    build_library(read_project(project.file)["other"], project.folder / "build" / "other", BuildOptions(processes=1))
    return project.folder / "build"


def run(folder: Path, where: Path, *files: str, flags: tuple[str, ...] = ()) -> str:
    for index, text in enumerate(files):
        (where / f"{index}.cpp").write_text(text)
    sources = [where / f"{index}.cpp" for index in range(len(files))]
    libraries = [folder / name / f"lib{name}.a" for name in ("norms", "other")]
    includes = [f"-I{folder / name}" for name in ("norms", "other")]
    command = ["g++", "-std=c++17", *STRICT, *includes, *flags, *sources, *libraries, "-lpthread", "-ldl"]
    subprocess.run([*command, "-o", where / "main"], check=True)
    return subprocess.run([where / "main"], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("flags", [(), ("-fno-exceptions", "-fno-rtti")], ids=["", "no exceptions"])
def test_functions_of_one_name_in_one_file(two: Path, tmp_path: Path, flags: tuple[str, ...]):
    text = IN_ONE_FILE.replace('#include "norms.hpp"', "#define acme norms\n#include NORMS\n#undef acme")
    assert run(two, tmp_path, text, flags=(*flags, '-DNORMS="norms.hpp"')) == "0 0 1 5 0\n"


def test_functions_of_one_name_and_namespace_in_two_files(two: Path, tmp_path: Path):
    assert run(two, tmp_path, FIRST_FILE, SECOND_FILE) == "0 5\n"


def test_headers_of_c_with_one_name_are_refused_with_the_way_out(two: Path, tmp_path: Path):
    source = tmp_path / "both.c"
    source.write_text('#include "norms/norms.h"\n#include "other/other.h"\n')
    tried = subprocess.run(["gcc", f"-I{two}", "-c", source], capture_output=True, text=True, cwd=tmp_path)
    assert tried.returncode and "declares scale: include one of them in a file, or, in C++, the .hpp" in tried.stderr


@pytest.mark.parametrize("language", ["c", "c++"])
def test_older_languages_are_told_which_header_is_theirs(two: Path, tmp_path: Path, language: str):
    std = {"c": "c99", "c++": "c++14"}[language]
    command = ["gcc", "-x", language, f"-std={std}", "-fsyntax-only", two / "norms" / "norms.hpp"]
    tried = subprocess.run(command, capture_output=True, text=True)
    errors = [line for line in tried.stderr.splitlines() if "error" in line]
    assert tried.returncode and "norms.hpp needs C++17" in errors[0] and "include norms.h" in errors[0]


def test_declarations_break_between_parameters(two: Path):
    declared = (two / "norms" / "norms.hpp").read_text().split("DEUTERON_API\n")[1:]
    heads = [text.partition(";")[0].splitlines() for text in declared]
    assert any(len(lines) > 1 for lines in heads)
    assert [line for lines in heads for line in lines if "  " in line.strip() or len(line) > 110] == []
    assert [line for lines in heads for line in lines[:-1] if not line.endswith(",")] == []


def test_what_select_does_not_find_is_not_launched(two: Path, tmp_path: Path):
    none = "there is no algorithm of this number"
    assert run(two, tmp_path, NO_ALGORITHM).splitlines() == [f"-1 1 1 1 {none}", none, "3"]


@pytest.mark.parametrize("flags", [(), ("-Wconversion", "-Wsign-conversion", "-std=c++20")], ids=["", "strict"])
def test_numbers_that_a_parameter_does_not_have(two: Path, tmp_path: Path, flags: tuple[str, ...]):
    """2**32 + 70 elements were 70, without a word."""
    told = "n: int32_t does not have this number"
    lines = run(two, tmp_path, NUMBERS, flags=flags).splitlines()
    assert lines == ["0 0 0 0 0 0 32 16 8", f"1 1 1 1 1 {told}", f"{told} 32"]


def test_overloads_that_numbers_tell_apart(two: Path, tmp_path: Path):
    """By their own types, as without conversions: both take the same pointers."""
    project = write_project(tmp_path)
    project.file.write_text(OTHER.replace('n = "i32"', 'n = ["i32", "i64"]'))
    build_library(read_project(project.file)["other"], tmp_path / "build" / "other", BuildOptions(processes=1))
    (tmp_path / "build" / "norms").symlink_to(two / "norms")
    assert run(tmp_path / "build", tmp_path, SIZES) == "0 0 0 0 1 16\n"
