"""A project with two kernels and a module that one of them imports, and its library, built once."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from library.project import Project, write_project


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The project with its library built; not to be changed."""
    project = write_project(tmp_path_factory.mktemp("built"))
    project.build()
    return project


@pytest.fixture
def project(built: Project, tmp_path: Path) -> Project:
    """A copy of it that a test may change."""
    shutil.copytree(built.folder, tmp_path / "project")
    return Project(tmp_path / "project")


@pytest.fixture
def declared(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a deuteron.toml."""

    def write(text: str) -> Path:
        (tmp_path / "deuteron.toml").write_text(text)
        return tmp_path / "deuteron.toml"

    return write
