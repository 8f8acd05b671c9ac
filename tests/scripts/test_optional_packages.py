"""A script without a package that it needs says in one line what to install."""

import importlib.machinery
import runpy
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


def run(name: str, *arguments: str) -> str:
    """What a script ends with."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", [name, *arguments])
        patch.setenv("TRITON_DEFAULT_FP_FUSION", "1")  # which one of them sets
        runpy.run_path(str(SCRIPTS / name), run_name="__main__")
    return str(ended.value)


@pytest.mark.parametrize(
    ("name", "package"), [("fit_math.py", "mpmath"), ("fit_pieces.py", "mpmath"), ("triton_ttir.py", "triton")]
)
def test_a_package_that_is_not_there(name: str, package: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, package, None)
    ending = run(name, "serve")
    assert f"pip install {package}" in ending and "\n" not in ending


@pytest.mark.parametrize("packages", [None, importlib.machinery.ModuleSpec("nvidia", None, is_package=True)])
def test_a_library_that_is_not_there(packages: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: packages)
    assert (
        run("compare_assemblers.py", str(tmp_path / "out.json")) == "this needs nvJitLink: pip install nvidia-nvjitlink"
    )
