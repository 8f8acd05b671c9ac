"""Compiles elsewhere: as they would be here, or a mistake; on a Dask cluster where Dask is."""

import sys
from pathlib import Path
from types import ModuleType

import pytest
from library.project import Project, write_project

from deuteron.errors import UsageError
from deuteron.library import read_project
from deuteron.library.executors import executor_of
from deuteron.library.remote import compile_share, expected_versions, packed
from deuteron.library.variants import variants_of
from deuteron.library.worker import Compiled, Mistake, compile_variant


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return write_project(tmp_path / "project")


def is_of_kernels(name: str, module: ModuleType) -> bool:
    """Whether a module is in a folder `kernels`, or is such a folder."""
    return name == "kernels" or Path(getattr(module, "__file__", None) or "").parent.name == "kernels"


def test_a_share_is_compiled_as_here(project: Project, monkeypatch: pytest.MonkeyPatch):
    variants = [v for v in variants_of(read_project(project.file)["norms"]) if v.function == "scale"]
    variants += [v for v in variants_of(read_project(project.file)["norms"]) if v.function == "rms_norm_fp32"][:1]
    outcomes = compile_share(variants, packed(project.folder), expected_versions(variants))
    monkeypatch.chdir(project.folder)
    monkeypatch.syspath_prepend(project.folder)
    for name in [name for name, module in sys.modules.items() if is_of_kernels(name, module)]:
        monkeypatch.delitem(sys.modules, name)  # those of other tests
    for variant, outcome in zip(variants, outcomes, strict=True):
        here = compile_variant(variant, project.folder)
        assert (outcome.files, outcome.record, outcome.sources) == (here.files, here.record, here.sources)


def test_mistakes_keep_the_names_of_files(project: Project):
    project.edit("kernels/scale.py", "multiplied(tl", "multiplied(tl.sqrt(tl.float16), tl")
    variants = [v for v in variants_of(read_project(project.file)["norms"]) if v.function == "scale"]
    (outcome,) = compile_share(variants, packed(project.folder), expected_versions(variants))
    assert isinstance(outcome, Mistake) and outcome.message.startswith("kernels/scale.py:11:")


def test_a_process_that_ends_at_a_kernel(project: Project):
    """The others are compiled all the same."""
    project.edit("kernels/norms.py", "import triton\n", "import os\nos._exit(7)\n")
    variants = variants_of(read_project(project.file)["norms"])
    variants = [variants[0], variants[-1]]
    first, second = compile_share(variants, packed(project.folder), expected_versions(variants))
    assert isinstance(first, Mistake) and first.message.startswith("the compiler ended with status 7 on ")
    assert isinstance(second, Compiled)


def test_other_versions_are_refused(project: Project):
    variants = variants_of(read_project(project.file)["norms"])[:2]
    outcomes = compile_share(variants, b"", {"cpu": ("another",)})
    assert len(outcomes) == 2
    assert "other versions of Deuteron, Python or its tools for cpu" in outcomes[0].message


def test_equal_projects_are_packed_alike(project: Project, tmp_path: Path):
    other = write_project(tmp_path / "other")
    (other.folder / ".hidden").mkdir()
    (other.folder / ".hidden" / "x.py").write_text("x = 1")
    (other.folder / "notes.txt").write_text("no kernel")
    assert packed(other.folder) == packed(project.folder)


@pytest.mark.parametrize("text", ["", "processes", "processes:0", "processes:x", "dask://", "threads:4"])
def test_texts_that_name_no_executor(text: str):
    with pytest.raises(UsageError, match="it is processes:4 or dask://HOST:PORT"):
        executor_of(text)


def test_without_dask(project: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match="pip install 'deuteron\\[dask\\]'"):
        project.build(with_objects=False, executor="dask://127.0.0.1:1")


def test_without_a_scheduler(project: Project, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("deuteron.library.executors._CONNECT_SECONDS", 1)
    with pytest.raises(UsageError, match="there is no Dask scheduler at tcp://127.0.0.1:1"):
        project.build(with_objects=False, executor="dask://127.0.0.1:1")


def test_a_dask_cluster(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The same bytes as by processes of this machine; an edit compiles what it changes."""
    distributed = pytest.importorskip("distributed")
    by_processes = write_project(tmp_path / "here")
    by_processes.build(with_objects=False)
    monkeypatch.setenv("DASK_DISTRIBUTED__ADMIN__TICK__LIMIT", "60s")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=tmp_path / "dask"
    ) as cluster:
        executor = cluster.scheduler_address.replace("tcp://", "dask://")
        assert project.build(with_objects=False, executor=executor).compiled == 5
        assert project.contents() == by_processes.contents()
        project.edit("deuteron.toml", "BLOCK = [64, 128]", "BLOCK = [64, 128, 256]")
        assert project.build(with_objects=False, executor=executor).compiled == 2


def test_machines_with_a_cache_in_common(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A build takes what another machine has compiled, from the same sources in another folder."""
    pytest.importorskip("fsspec")
    shared = tmp_path / "shared"
    monkeypatch.setenv("DEUTERON_REMOTE_CACHE", f"file://{shared}")
    monkeypatch.setenv("DEUTERON_CACHE_KEY", "a secret of these machines")
    builds, times = [], []
    for machine in ("first", "second"):
        monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path / f"cache-{machine}"))
        project = write_project(tmp_path / machine)
        assert project.build(with_objects=False).compiled == 5
        builds.append(project.contents())
        times.append({path.name: path.stat().st_mtime_ns for path in shared.rglob("*.kernel")})
    assert builds[0] == builds[1]
    assert times[0] == times[1] and len(times[0]) == 5, "what is compiled is written there"
