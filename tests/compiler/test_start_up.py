"""What is imported when: the compiler only when a kernel is compiled, xDSL not for one that is in the cache.

What takes long to import, of Python's library too, is not imported before it is needed.
"""

import subprocess
import sys

import pytest

HEAVY = ("xdsl", "llvmlite", "numpy", "click", "rich", "matplotlib", "pandas", "torch")
# Of Python's library, and of Deuteron: what a program that defines kernels and launches one out of the cache needs not.
NEEDLESS = (
    *("platformdirs", "tempfile", "shutil", "subprocess", "statistics", "difflib", "csv", "secrets", "hmac", "zlib"),
    *("uuid", "platform"),
    *("deuteron.testing.bench", "deuteron.backend.cuda.backend", "deuteron.backend.cuda.target", "deuteron.machine"),
    *("deuteron.backend.llvm.builder", "deuteron.backend.llvm.compile", "deuteron.backend.launcher.call"),
    *("deuteron.passes", "deuteron.frontend", "deuteron.ir", "deuteron.runtime.autotuning", "deuteron.backend.report"),
)
KERNEL = """
import sys
import deuteron
import deuteron.language as tl

@deuteron.jit
def double(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, 2 * tl.load(x_ptr + i))
"""
LAUNCH = """
import numpy as np
x = np.arange(16, dtype=np.float32)
double[(1,)](x, BLOCK=16)
assert x[5] == 10
"""
SAY = "print(*sorted({name.partition('.')[0] for name in sys.modules} & {'xdsl', 'llvmlite'}))"


def run(path, source):
    path.write_text(source)
    found = subprocess.run([sys.executable, path], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


@pytest.mark.parametrize("statement", ["import deuteron", "import deuteron.compat", "import deuteron.compat, triton"])
def test_importing_brings_nothing_heavy(tmp_path, statement):
    names = run(tmp_path / "a.py", f"import sys\n{statement}\nprint(*{{n.partition('.')[0] for n in sys.modules}})")
    assert not set(names.split()) & set(HEAVY)


def test_importing_alone_brings_nothing(tmp_path):
    names = run(tmp_path / "a.py", "import sys\nimport deuteron\nprint(*[n for n in sys.modules if 'deuteron' in n])")
    assert set(names.split()) == {"deuteron", "deuteron.lazy"}


def test_imports_for_programs_of_triton_do_without_the_library_of_distributions(tmp_path):
    names = run(tmp_path / "a.py", "import sys\nimport deuteron.compat\nprint(*sys.modules)").split()
    assert not {"importlib.metadata", "email", "zipfile"} & set(names)


def test_defining_a_kernel_brings_nothing_heavy(tmp_path):
    names = run(tmp_path / "a.py", f"{KERNEL}\nprint(*sys.modules)").split()
    assert not set(names) & {*HEAVY, *NEEDLESS}
    assert len([name for name in names if name.startswith("deuteron")]) <= 126


def test_a_kernel_out_of_the_cache_is_launched_without_xdsl(tmp_path):
    assert run(tmp_path / "a.py", KERNEL + LAUNCH + SAY) == "llvmlite xdsl"
    assert run(tmp_path / "a.py", KERNEL + LAUNCH + SAY) == "llvmlite"


# What a kernel without constants to fold, assembly or functions of libdevice needs not: a fifth of the start.
NEEDLESS_TO_COMPILE = (
    *("numpy", "deuteron.interpreter", "deuteron.ptx.module", "deuteron.backend.math.extern.gamma"),
    "deuteron.backend.report",
)


@pytest.mark.parametrize("target", ["cpu", "cuda:90"])
def test_a_first_compile_brings_neither_numpy_nor_the_interpreter(tmp_path, target):
    source = "deuteron.compiler.ASTSource(double, {'x_ptr': '*fp32', 'BLOCK': 'constexpr'}, {'BLOCK': 16})"
    compiled = f"deuteron.compile({source}, target='{target}')\nprint(*sys.modules)"
    names = set(run(tmp_path / "a.py", KERNEL + compiled).split())
    assert "llvmlite" in names and not names & set(NEEDLESS_TO_COMPILE)


def test_folding_what_is_exact_brings_no_numpy(tmp_path):
    kernel = KERNEL.replace("tl.load(x_ptr + i)", "tl.load(x_ptr + i + (BLOCK - 1), mask=i < BLOCK // 2, other=0.0)")
    source = "deuteron.compiler.ASTSource(double, {'x_ptr': '*fp16', 'BLOCK': 'constexpr'}, {'BLOCK': 16})"
    compiled = f"text = deuteron.compile({source}, target='cpu').asm['ttir']\n"
    assert run(tmp_path / "a.py", f"{kernel}{compiled}print('truncf' in text, 'numpy' in sys.modules)") == "False False"


def test_xdsl_parses_its_assembly_formats_when_they_are_used(tmp_path):
    source = """
import deuteron.ir.dialects
from xdsl.dialects import arith, builtin, math
print("xdsl.irdl.declarative_assembly_format_parser" in sys.modules)
module = builtin.ModuleOp([one := arith.ConstantOp(builtin.FloatAttr(1.0, 32)), math.ExpOp(one.result)])
print(str(module).splitlines()[2].strip())
"""
    said = run(tmp_path / "a.py", "import sys" + source).splitlines()
    assert said == ["False", "%1 = math.exp %0 : f32"]


def test_what_a_compile_imports_is_not_looked_at_as_young_garbage(tmp_path):
    young = "import gc\nprint(len(gc.get_objects(0)) + len(gc.get_objects(1)))"
    assert int(run(tmp_path / "a.py", f"{KERNEL}{LAUNCH}{young}")) < 30_000


def test_what_a_program_has_frozen_stays_frozen(tmp_path):
    freeze = "import gc\ngc.freeze()\nfrozen = gc.get_freeze_count()"
    assert run(tmp_path / "a.py", f"{KERNEL}{freeze}{LAUNCH}print(gc.get_freeze_count() >= frozen // 2 > 0)") == "True"
