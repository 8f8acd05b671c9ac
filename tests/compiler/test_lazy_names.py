"""Packages whose names are imported when asked for: as if they were there, for programs and for type checkers."""

import ast
import importlib
import inspect
import subprocess
import sys

import pytest

PACKAGES = ("deuteron", "deuteron.testing", "deuteron.runtime")


def names_for_type_checkers(package):
    tree = ast.parse(inspect.getsource(package))
    guarded = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    found = (node for branch in guarded for node in branch.body)
    return {(node.module, alias.name) for node in found for alias in node.names}


@pytest.mark.parametrize("name", PACKAGES)
def test_what_type_checkers_see_is_there(name):
    package = importlib.import_module(name)
    for module, attribute in names_for_type_checkers(package):
        assert attribute in dir(package)
        whole = importlib.import_module(module)
        found = getattr(whole, attribute, None) or importlib.import_module(f"{module}.{attribute}")
        assert getattr(package, attribute) is found


@pytest.mark.parametrize("name", PACKAGES)
def test_type_checkers_see_all_names(name):
    package = importlib.import_module(name)
    listed = {attribute for text in package._NAMES.values() for attribute in text.split()}
    assert listed <= {attribute for _, attribute in names_for_type_checkers(package)}


@pytest.mark.parametrize("name", PACKAGES)
def test_what_is_not_there(name):
    package = importlib.import_module(name)
    assert not hasattr(package, "absent")
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'absent'"):
        _ = package.absent
    with pytest.raises(ImportError, match="cannot import name 'absent'"):
        exec(f"from {name} import absent")


@pytest.mark.parametrize(
    "statement",
    [
        "import deuteron; deuteron.runtime.driver.active, deuteron.testing.do_bench, deuteron.errors.DeuteronError",
        "from deuteron import jit, autotune, heuristics, testing; assert callable(heuristics)",
        "import deuteron.runtime.heuristics, deuteron.runtime.autotuning; assert callable(deuteron.runtime.heuristics)",
        "from deuteron.testing import do_bench, perf_report, Benchmark; import deuteron; deuteron.testing.do_bench",
        "import deuteron, pickle; assert pickle.loads(pickle.dumps(deuteron.Target('cpu', 'native'))).arch == 'native'",
        "from deuteron import *; import deuteron.language as tl",
    ],
)
def test_in_a_fresh_process(statement):
    found = subprocess.run([sys.executable, "-c", statement], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
