"""The process of which torch forks its compile workers imports what compiles, and no other one does."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from deuteron.compat.compile_workers import is_compile_worker

PROGRAM = """
import sys
from deuteron.compat.compile_workers import load_compiler
import deuteron
import deuteron.language as tl

@deuteron.jit
def scaled(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n)
    for _ in range(n):
        value = tl.exp(value) - tl.max(value)
    tl.store(x + i, value, mask=i < n)

load_compiler()
before = set(sys.modules)
source = deuteron.compiler.ASTSource(scaled, {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 128})
for target in ("cuda:90", "cpu"):
    deuteron.compile(source, target)
print(*sorted(name for name in set(sys.modules) - before))
"""


def test_after_that_a_compile_imports_nothing(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    found = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert (found.returncode, found.stdout.split()) == (0, []), found.stderr


@pytest.mark.parametrize(
    ("main", "expected"),
    [
        (SimpleNamespace(__file__="/site-packages/torch/_inductor/compile_worker/__main__.py"), True),
        (SimpleNamespace(__file__="train.py"), False),
        (SimpleNamespace(__file__=None), False),
        (SimpleNamespace(), False),
    ],
)
def test_which_process_that_is(monkeypatch, main, expected):
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert is_compile_worker() is expected
