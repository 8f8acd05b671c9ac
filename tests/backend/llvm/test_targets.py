"""CPU names: those that LLVM generates 64-bit code for, and no others."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from deuteron.backend.llvm.targets import CPU, CPU_NAMES, machine, resolve_cpu
from deuteron.errors import UsageError

LIST_CPUS = """
import llvmlite.binding as llvm
llvm.initialize_native_target()
llvm.Target.from_default_triple().create_target_machine("help")
"""
COMPILE_FOR = """
import sys
from deuteron.backend.llvm.compile import emit_object
for name in sys.argv[1:]:
    emit_object("define i64 @f(i64 %x) {\\n  ret i64 %x\\n}", name)
"""


def run(program: str, *args: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", program, *args], capture_output=True, text=True)


def test_a_named_cpu_has_no_more_features():
    assert resolve_cpu("generic") == CPU("generic", "")


def test_native_is_a_known_cpu_with_features():
    cpu = resolve_cpu("native")
    assert cpu.name in CPU_NAMES[machine()]
    assert "+" in cpu.features


@pytest.mark.parametrize("name", ["x86-64v3", "i486", "", "help", "haswell "])
def test_an_unknown_cpu_is_an_error_that_lists_those_known(name):
    with pytest.raises(UsageError, match="unknown CPU") as caught:
        resolve_cpu(name)
    assert "generic" in caught.value.message


def test_a_close_name_is_suggested():
    with pytest.raises(UsageError, match=f"Did you mean {CPU_NAMES[machine()][0]}"):
        resolve_cpu(CPU_NAMES[machine()][0] + "x")


def test_the_list_is_llvms():
    """LLVM's names with `_` are aliases, and those missing here cannot be compiled for in 64 bits."""
    output = run(LIST_CPUS).stderr
    listed = set(re.findall(r"^  (\S+) +- ", output.split("Available features")[0], re.MULTILINE))
    known = set(CPU_NAMES[machine()])
    assert known <= listed
    old = {name for name in listed - known if "_" not in name}
    assert all("64" not in name and "v" not in name for name in old), old


def test_every_name_compiles():
    done = run(COMPILE_FOR, *CPU_NAMES[machine()])
    assert done.returncode == 0, done.stderr[-500:]
