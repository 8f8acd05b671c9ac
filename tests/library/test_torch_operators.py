"""A library as operators of torch, built against torch's stable ABI: called, refused, and in a compiled graph."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from library.project import Project, write_project

from deuteron.library import read_project
from deuteron.runtime.autotuning.tuned_file import Choice, Outcome, merge_into

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")]


GRID, TUNED = 'host_parameters = { n_rows = "i32" }', 'tuned = "tuned.json"'


def timings() -> Choice:
    """Those of float32 with rows of 100: a block of 128 is the fastest, algorithm 1."""
    launch = {"num_warps": 1, "num_stages": 3, "num_ctas": 1}
    outcomes = {json.dumps({"BLOCK": block, **launch}): Outcome(time) for block, time in ((64, 2.0), (128, 1.0))}
    return Choice("cpu:znver3", "s", "c", {"n": 100}, {"X": "fp32", "Y": "fp32"}, outcomes)


@pytest.fixture(scope="module")
def operators(tmp_path_factory: pytest.TempPathFactory) -> object:
    """`torch.ops.norms`."""
    project = write_project(tmp_path_factory.mktemp("torch"))
    project.edit("deuteron.toml", 'namespace = "acme"', 'namespace = "acme"\ntorch = true')
    project.edit("deuteron.toml", GRID, f"{GRID}\n{TUNED}")
    merge_into(project.folder / "tuned.json", "norms.rms_norm", [timings()])
    project.build()
    folder, made = Path(torch.__file__).parent, project.out / "norms_torch.so"
    strict = ["-Wall", "-Wextra", "-Werror", "-std=c++20", "-DTORCH_TARGET_VERSION=0x020a000000000000"]
    command = ["g++", *strict, "-shared", "-fPIC", "-isystem", folder / "include", project.out / "norms_torch.cpp"]
    libraries = [project.out / "libnorms.a", f"-L{folder / 'lib'}", "-ltorch", "-ltorch_cpu", "-lc10"]
    subprocess.run([*command, *libraries, "-o", made], check=True)
    torch.ops.load_library(made)
    return torch.ops.norms


def expected(x: "torch.Tensor") -> "torch.Tensor":
    wide = x.double()
    return wide * torch.rsqrt((wide * wide).mean(1, keepdim=True) + 1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_it_computes(operators, dtype: torch.dtype):
    x, y = torch.randn(7, 50).to(dtype), torch.full((8, 50), torch.nan, dtype=dtype)
    operator = operators.rms_norm_fp16 if dtype == torch.float16 else operators.rms_norm_fp32
    assert operator(x, y, 50, 7) is None
    torch.testing.assert_close(y[:7], expected(x).to(dtype))
    assert y[7].isnan().all()


def test_the_schema_says_what_is_written(operators):
    schema = "norms::rms_norm_fp32(Tensor X, Tensor(a!) Y, int n, int n_rows, int? algo_id=None) -> ()"
    assert str(operators.rms_norm_fp32.default._schema) == schema


def test_the_default_is_the_one_that_was_measured(operators):
    """A row of 100 ones in a block of 64, algorithm 0, is summed in part."""
    x = torch.ones(2, 100)
    for algorithm, first in (({}, 1.0), ({"algo_id": None}, 1.0), ({"algo_id": 1}, 1.0), ({"algo_id": 0}, 1.25)):
        y = torch.empty_like(x)
        operators.rms_norm_fp32(x, y, 100, 2, **algorithm)
        torch.testing.assert_close(y[0, 0].item(), first, rtol=1e-4, atol=0)


def test_what_is_refused(operators):
    x = torch.ones(3, 50)
    for arguments, message in (
        ((x.half(), x, 50, 3), "X has another type"),
        ((x, x.double(), 50, 3), "Y has another type"),
        ((x, x, 2**40, 3), "n is 1099511627776"),
        ((x, x, 50, 3, 99), "there is no algorithm of this number"),
        ((x, x, 50, 3, -1), "there is no algorithm of this number"),
        ((x, x, 50, 3, 2**32), "algo_id is 4294967296"),
    ):
        with pytest.raises(RuntimeError, match=message):
            operators.rms_norm_fp32(*arguments)


def test_in_a_compiled_graph(operators):
    def normed(x: "torch.Tensor") -> "torch.Tensor":
        y = torch.empty_like(x)
        operators.rms_norm_fp32(x, y, 50, 3)
        return y + 1

    x = torch.randn(3, 50)
    made = torch.compile(normed, backend="aot_eager", fullgraph=True)(x)
    torch.testing.assert_close(made, expected(x).float() + 1)


def test_without_it_there_is_none(tmp_path: Path):
    project: Project = write_project(tmp_path / "project")
    project.build(with_objects=False)
    assert not read_project(project.file)["norms"].torch
    assert not (project.out / "norms_torch.cpp").exists()
