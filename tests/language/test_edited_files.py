"""A kernel is what its file said when it was defined: the file may be edited, or be gone, before the first launch."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

TEXT = """
import functools

import deuteron
import deuteron.language as tl


def plain(fn):
    @functools.wraps(fn)
    def wrapped(*args):
        return fn(*args)

    return wrapped


@deuteron.constexpr_function
def summand():
    return 1


@deuteron.jit
def fill(x_ptr, n: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, n), 10 + summand())


@deuteron.jit
@plain
def fill_wrapped(x_ptr, n: tl.constexpr):
\ttl.store(x_ptr + tl.arange(0, n), 10 + summand())  # by a tab
"""
EDITED = TEXT.replace("10 +", "20 +").replace("return 1", "return 5")
MOVED = TEXT.replace("import functools", "import functools\n\n\n\n\n\n")


@pytest.fixture
def module(tmp_path: Path, monkeypatch):
    (tmp_path / "edited_kernels.py").write_text(TEXT)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("edited_kernels")
    del sys.modules["edited_kernels"]


def filled(kernel) -> float:
    x = np.zeros(4, np.float32)
    kernel[(1,)](x, 4)
    return x[0]


@pytest.mark.parametrize("text", [EDITED, MOVED, "", None])
def test_the_file_is_edited_or_gone_before_the_first_launch(module, text):
    file = Path(module.__file__)
    file.write_text(text) if text is not None else file.unlink()
    assert filled(module.fill) == 11 and filled(module.fill_wrapped) == 11


def test_a_reloaded_module_is_what_the_file_says_then(module):
    assert filled(module.fill) == 11
    Path(module.__file__).write_text(EDITED)
    module = importlib.reload(module)
    assert filled(module.fill) == 25 and filled(module.fill_wrapped) == 25
