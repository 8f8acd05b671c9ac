"""The hook by which PyInstaller takes along what Deuteron needs; PyInstaller itself is not needed."""

import runpy
import sys
import tomllib
from pathlib import Path
from types import ModuleType

from deuteron.pyinstaller import hook_dirs


def test_the_hook_takes_all_along(monkeypatch):
    hooks = ModuleType("PyInstaller.utils.hooks")
    hooks.collect_submodules = lambda package: [package, f"{package}.pyinstaller.hook-{package}"]
    hooks.collect_data_files = lambda package: [(f"{package}.txt", package)]
    hooks.copy_metadata = lambda package: [(f"{package}.dist-info", ".")]
    monkeypatch.setitem(sys.modules, hooks.__name__, hooks)
    for name in ("PyInstaller", "PyInstaller.utils"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    (folder,) = hook_dirs()
    found = runpy.run_path(str(Path(folder) / "hook-deuteron.py"))
    assert found["hiddenimports"] == ["deuteron", "xdsl"]
    assert [name for name, _ in found["datas"]][1:] == [
        f"{name}.dist-info" for name in ("deuteron", "xdsl", "llvmlite")
    ]
    assert found["module_collection_mode"] == {"deuteron": "py"}


def test_pyinstaller_is_told_of_it():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pyinstaller40"] == {"hook-dirs": "deuteron.pyinstaller:hook_dirs"}
