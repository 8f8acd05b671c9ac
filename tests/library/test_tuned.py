"""A library whose kernels were tuned: the default by the file, algorithms by value, reasons; in C++ and Python."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from library.project import Project

from deuteron import Config, autotune
from deuteron.aot.load import kernel_of, load_module
from deuteron.errors import UsageError
from deuteron.runtime.autotuning.tuned_file import Choice, Outcome, merge_into
from deuteron.tools.main import main

TUNED = 'host_parameters = { n_rows = "i32" }\ntuned = "tuned/rms_norm.json"'
MAIN = r"""
#include "norms.hpp"
#include <cstdio>

alignas(16) static float x[256], y[256];

int main() {
  const char *reason = nullptr;
  const int small = acme::rms_norm_fp32_select(64), large = acme::rms_norm_fp32_select(128);
  std::printf("%d %d %d ", small, large, acme::rms_norm_fp32_select(deuteron::any, 1e-5, 8));
  for (float &value : x)
    value = 1;
  acme::checked::rms_norm(acme::cpu, x, y, 100, 2);
  std::printf("%.3f %.3f ", static_cast<double>(y[99]), static_cast<double>(y[200]));
  const deuteron_status first = acme::rms_norm_supports(nullptr, x, y, 100, 2, large, &reason);
  std::printf("%d '%s' ", first, reason);
  const deuteron_status second = acme::rms_norm_fp32_supports(nullptr, x, y, 100, 2, 9);
  std::printf("%d %d\n", second, acme::rms_norm(acme::cpu, x, y, 100, 2, small));
}
"""


def choice(n: int, fastest: int, type: str = "fp32") -> Choice:
    launch = {"num_warps": 1, "num_stages": 3, "num_ctas": 1}
    outcomes = {json.dumps({"BLOCK": b, **launch}): Outcome(1.0 if b == fastest else 2.0) for b in (64, 128)}
    return Choice("cpu:znver3", "s", "c", {"n": n}, {"X": type, "Y": type}, outcomes)


@pytest.fixture
def tuned(project: Project) -> Project:
    """Its float32 kernel was tuned: of 64 numbers a block of 64 is the fastest, of 100 one of 128."""
    merge_into(project.folder / "tuned" / "rms_norm.json", "norms.rms_norm", [choice(64, 64), choice(100, 128)])
    project.edit("deuteron.toml", 'host_parameters = { n_rows = "i32" }', TUNED)
    return project


def test_the_default_is_by_the_file(tuned: Project):
    assert tuned.build().compiled == 0
    printed = tuned.run(MAIN, f"{tuned.out}/libnorms.a")
    # A row of 100 ones in a block of 64 would be summed in part: 1.25 and not 1.
    assert printed == "0 1 -1 1.000 0.000 0 '' 1 0\n"
    assert not tuned.build().changed


def test_another_file_makes_the_library_stale(tuned: Project):
    tuned.build()
    header = (tuned.out / "norms.h").read_bytes()
    merge_into(tuned.folder / "tuned" / "rms_norm.json", "norms.rms_norm", [choice(256, 64)])
    with pytest.raises(UsageError, match="is stale: its own files"):
        tuned.build(check=True)
    built = tuned.build()
    assert built.compiled == 0 and built.changed and (tuned.out / "norms.h").read_bytes() == header
    assert "tuned/rms_norm.json" in json.loads((tuned.out / "norms.json").read_text())["declared"]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ("tuned/none.json", "the timings .*none.json': No such file or directory. `deuteron tune norms` measures them"),
        ("tuned/other.json", "the timings of norms.rms_norm, with X: fp64, Y: fp64, are not for the types of"),
    ],
)
def test_files_that_say_nothing(tuned: Project, edit: str, message: str):
    merge_into(tuned.folder / "tuned" / "other.json", "norms.rms_norm", [choice(64, 64, "fp64")])
    tuned.edit("deuteron.toml", "tuned/rms_norm.json", edit)
    with pytest.raises(UsageError, match=re.compile(message, re.DOTALL)) as caught:
        tuned.build()
    assert str(caught.value).startswith(f"{tuned.file}:11:") or "deuteron.toml:11:" in str(caught.value)


def test_what_an_autotuner_has_written(project: Project):
    """Tuned when launched from Python, chosen by in C: by the first key one algorithm, by the second the other."""
    kernel = kernel_of(load_module(project.folder / "kernels" / "norms.py"), Path("norms.py"), "rms_norm")
    times = iter([1.0, 2.0, 2.0, 1.0])
    configs = [Config({"BLOCK": block}, num_warps=1) for block in (64, 128)]
    path = project.folder / "tuned" / "rms_norm.json"
    bench = {"do_bench": lambda fn, quantiles: (fn(), next(times))[1], "cache_results": path}
    tuned = autotune(configs, ["n"], **bench)(kernel)
    for n in (64, 100):
        tuned[(2,)](np.ones((2, n), np.float32), np.zeros((2, n), np.float32), n)
    project.edit("deuteron.toml", 'host_parameters = { n_rows = "i32" }', TUNED)
    project.build()
    rows = re.search(
        r"deuteron_tuned_rms_norm_fp32\[\]\[4\] = {(.*?)};", (project.out / "norms.c").read_text(), re.DOTALL
    )
    found = [[int(n) for n in re.findall(r"INT64_C\((\d+)\)", row)] for row in rows[1].split("},")]
    assert [(algo_id, n) for _, algo_id, n, _ in found] == [(0, 64), (1, 100)]


def test_a_build_tool_is_told_of_the_file(tuned: Project):
    depfile = tuned.folder / "norms.d"
    command = ["build", "-f", str(tuned.file), "--sources-only", "--depfile", str(depfile)]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0 and "tuned/rms_norm.json" in depfile.read_text(), result.output


def test_the_same_in_python(tuned: Project):
    tuned.edit("deuteron.toml", 'namespace = "acme"', 'namespace = "acme"\nshared = true')
    tuned.build()
    program = f"""
import sys
sys.path.insert(0, {str(tuned.out)!r})
import numpy as np, norms
x, y = np.ones((2, 100), np.float32), np.zeros((2, 100), np.float32)
norms.rms_norm_fp32(x, y, 100, 2)
assert np.allclose(y, 1, atol=1e-3), y
assert norms.rms_norm_fp32_select(BLOCK=128) == norms.rms_norm_fp32_BLOCK_128_eps_1em05_warps1_stages3 == 1
assert norms.rms_norm_fp32_supports(x, y, 100, 2) == ""
assert norms.rms_norm_fp16_supports(x.ctypes.data + 2, y.ctypes.data, 100, 2, algo_id=0) == "X is not divisible by 16"
try:
    norms.rms_norm_fp32_select(BLOCK=1)
except LookupError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=dict(os.environ))
    assert (found.returncode, found.stdout) == (0, "no algorithm has these values\n"), found.stderr
