"""The executors `aot` and `aot:CPU`: a case in C, compiled ahead of time, called by a program of C.

    arrays = run_in_c(case, "aot")                  by gcc, or what $CC says
    arrays = run_in_c(case, "aot:aarch64")          by $DEUTERON_FUZZ_CROSS_CC and $DEUTERON_FUZZ_EMULATOR; by default
                                                    `aarch64-linux-gnu-gcc -static` and `qemu-aarch64`

The program reads all arguments from a file, with the guards of arrays, and writes them back.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from deuteron.aot.compile import CompileRequest, EmittedKernel, emit_kernel
from deuteron.backend.llvm.targets import architecture_of, machine
from tests.fuzz.case import HEADER, MANTISSA, Argument, Case

ALIGNMENT = 64
SECONDS = 300
LAUNCH_OPTIONS = ("num_warps", "num_stages", "num_ctas")
MAIN = """#include "kernel.h"
#include <stdio.h>

static _Alignas({alignment}) unsigned char memory[{size}];

int main(int argc, char **argv) {{
  FILE *file = fopen(argv[argc - 1], "r+b");
  deuteron_status status;
  if (!file || fread(memory, 1, sizeof memory, file) != sizeof memory)
    return 2;
  status = {function}(NULL, {arguments});
  if (status != DEUTERON_SUCCESS) {{
    fprintf(stderr, "%s\\n", deuteron_status_string(status));
    return 1;
  }}
  rewind(file);
  return fwrite(memory, 1, sizeof memory, file) != sizeof memory || fclose(file);
}}
"""


class ProgramFailed(Exception):
    """A program of C that could not be built, or did not end well."""


def run_in_c(case: Case, signature: str, executor: str) -> list[np.ndarray]:
    """The arrays of a case after its kernel ran in a program of C."""
    _, _, cpu = executor.partition(":")
    with tempfile.TemporaryDirectory(prefix="fuzzed_") as name:
        folder = Path(name)
        (folder / "case.py").write_text(HEADER + case.source)
        request = CompileRequest(
            folder / "case.py",
            "kernel",
            signature,
            ",".join(map(str, case.grid)),
            folder / "kernel",
            target=f"cpu:{cpu}" if cpu else "cpu",
            num_warps=case.options.get("num_warps", 1),
            num_stages=case.options.get("num_stages", 3),
            options={key: value for key, value in case.options.items() if key not in LAUNCH_OPTIONS},
            is_library=True,
        )
        return _run(case, emit_kernel(request), folder)


def _run(case: Case, emitted: EmittedKernel, folder: Path) -> list[np.ndarray]:
    for path, text in emitted.files.items():
        path.write_text(text)
    values = case.values()
    memory = _Memory(case, values)
    text = MAIN.format(
        alignment=ALIGNMENT,
        size=len(memory.content),
        function=emitted.record.function,
        arguments=", ".join(memory.arguments),
    )
    (folder / "main.c").write_text(text)
    (folder / "memory").write_bytes(memory.content)
    is_own = architecture_of(emitted.target.arch) == machine()
    compiler, emulator = (os.environ.get("CC", "gcc"), "") if is_own else _cross_tools()
    program = str(folder / "program")
    _done([*shlex.split(compiler), "-O1", *map(str, folder.glob("*.c")), "-o", program, "-lm", "-lpthread"])
    _done([*shlex.split(emulator), program, str(folder / "memory")])
    memory.read(bytearray((folder / "memory").read_bytes()))
    return [value for value in values if isinstance(value, np.ndarray)]


def _cross_tools() -> tuple[str, str]:
    compiler = os.environ.get("DEUTERON_FUZZ_CROSS_CC", "aarch64-linux-gnu-gcc -static")
    return compiler, os.environ.get("DEUTERON_FUZZ_EMULATOR", "qemu-aarch64")


def _done(command: list[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    if result.returncode:
        raise ProgramFailed(f"{Path(command[0]).name} ended with {result.returncode}: {result.stderr[-1500:]}")


class _Memory:
    """The arguments one after the other: `content`, and how C says each."""

    def __init__(self, case: Case, values: list[Any]):
        self.content, self.arguments, self._owners = bytearray(), [], []
        for argument, value in zip(case.arguments, values, strict=True):
            if isinstance(value, np.ndarray):
                self._add_array(value)
            else:
                self.arguments.append(_number(argument))

    def read(self, content: bytearray) -> None:
        for begin, owner in self._owners:
            owner[:] = np.frombuffer(content, np.uint8, len(owner), begin)

    def _add_array(self, array: np.ndarray) -> None:
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        before = array.ctypes.data - owner.ctypes.data
        self.content += bytes(-(len(self.content) + before) % ALIGNMENT)
        self._owners.append((len(self.content), owner))
        self.arguments.append(f"(void *)(memory + {len(self.content) + before})")
        self.content += owner.tobytes()


def _number(argument: Argument) -> str:
    if argument.dtype in MANTISSA:
        return float(argument.fill).hex() if np.isfinite(argument.fill) else _no_finite(argument.fill)
    return f"{int(argument.fill) & (1 << 64) - 1}ull"


def _no_finite(number: float) -> str:
    name = 'nan("")' if np.isnan(number) else "inf()"
    return f"-__builtin_{name}" if np.signbit(number) else f"__builtin_{name}"
