"""A machine with AMX for tests: this one where it has AMX, else one whose instructions trap and are done in C.

    with amx_machine(monkeypatch) as machine:   where it cannot be had the test is skipped, and says so
        machine.cpu                             CPU("znver5", "+avx512f,...,+amx-tile,+amx-bf16,+amx-int8")
        with machine.used(): ...                fails where no instruction of AMX was done

`amx_instructions.c` does what the manual says of each instruction, of as many threads as there are.
"""

from __future__ import annotations

import atexit
import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from deuteron.backend.cpu.target import cpu_target
from deuteron.backend.llvm import targets
from deuteron.backend.llvm.compile import has_intrinsic
from deuteron.backend.llvm.intrinsics import TDPBF16PS, TDPBSSD
from deuteron.backend.llvm.targets import CPU, machine, resolve_cpu

SOURCE = Path(__file__).with_name("amx_instructions.c")
FEATURES = "+amx-tile,+amx-bf16,+amx-int8"


@dataclass(frozen=True)
class AMXMachine:
    """Its processor, and how many instructions have been done in its place; None where it does them itself."""

    cpu: CPU
    instructions_done: Callable[[], int] | None = None

    @contextmanager
    def used(self) -> Iterator[None]:
        """Fails where tiles were not used, as far as that can be told."""
        before = self.instructions_done() if self.instructions_done else -1
        yield
        assert self.instructions_done is None or self.instructions_done() > before


@contextmanager
def amx_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[AMXMachine]:
    """Make `native` a processor with AMX; skips the test where that cannot be."""
    host = resolve_cpu("native")
    if all(has_intrinsic(name, *host) for name in (TDPBF16PS, TDPBSSD)):
        yield AMXMachine(host)
        return
    compiler = shutil.which("gcc")
    if machine() != "x86_64" or compiler is None or cpu_target(*host).vector_bits < 512:
        pytest.skip("not run: it takes a processor with AMX, or with AVX-512 and gcc")
    library = ctypes.CDLL(_built(compiler))
    library.amx_instructions_done.restype = ctypes.c_ulong
    features = ",".join(feature for feature in host.features.split(",") if feature[1:4] != "amx")
    cpu = CPU(host.name, f"{features},{FEATURES}")
    monkeypatch.setattr(targets, "_host_cpu", lambda: cpu)
    resolve_cpu.cache_clear()
    assert library.amx_install() == 0
    try:
        yield AMXMachine(cpu, library.amx_instructions_done)
    finally:
        library.amx_remove()
        monkeypatch.undo()
        resolve_cpu.cache_clear()


@cache
def _built(compiler: str) -> str:
    """The path of the library, which is made once in a process."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    library = f"{folder.name}/amx.so"
    flags = ["-O3", "-mavx2", "-mfma", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, "-o", library, str(SOURCE), "-lm"], check=True)
    return library
