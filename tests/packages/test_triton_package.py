"""The package `triton` of packages/triton-deuteron, each in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import deuteron

PACKAGE = Path(__file__).parents[2] / "packages" / "triton-deuteron"
SOURCES = Path(deuteron.__file__).parents[1]


def python(code, *folders, **options):
    path = os.pathsep.join(map(str, [*folders, PACKAGE, SOURCES]))
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, **options)


@pytest.mark.parametrize(
    "code",
    [
        "import triton, deuteron; assert triton.jit is deuteron.jit",
        "import triton, deuteron.compat, sys; assert sys.modules['triton'] is triton",
        "import deuteron.compat, triton as a; import triton as b; assert a is b",
        "import triton.language as tl, deuteron.language; assert tl.load is deuteron.language.load",
        "from triton.runtime.jit import JITFunction; from triton.backends.compiler import GPUTarget",
        "import triton; assert triton.__version__.split('.')[0] == '3' and triton.__path__ and triton.__file__",
        "import triton, importlib.util as u; assert u.find_spec('triton') is triton.__spec__",
        "import importlib.util as u; assert u.find_spec('triton.language.core').loader",
        "import triton, sys, importlib as i; del sys.modules['triton']; assert i.import_module('triton') is triton",
    ],
)
def test_it_is_deuteron(code):
    done = python(code)
    assert done.returncode == 0, done.stderr


def test_a_name_that_is_missing():
    done = python("import triton; triton.jitt")
    assert "Deuteron has no 'triton.jitt'" in done.stderr and "Did you mean" not in done.stderr
    done = python("import triton.langage")
    assert "Deuteron has no module 'triton.langage'" in done.stderr


def test_triton_beside_it_is_said(tmp_path):
    """Python takes the folder before the module; `import deuteron.compat` is a choice, and goes before it."""
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "__init__.py").write_text("")
    done = python("import triton_deuteron, triton", tmp_path)
    assert f"Triton is installed in {tmp_path / 'triton'}" in done.stderr
    assert "pip uninstall triton" in done.stderr
    assert python("import triton_deuteron, deuteron.compat, triton; triton.jit", tmp_path).returncode == 0
    assert python("import triton_deuteron, triton; triton.jit").returncode == 0
    assert python("import triton_deuteron, math").returncode == 0


def test_the_versions_go_together():
    project = (PACKAGE / "pyproject.toml").read_text()
    assert f'version = "{deuteron.__version__}"' in project and f"deuteron=={deuteron.__version__}" in project
