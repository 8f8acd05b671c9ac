"""Kernels written in LLVM IR, emitted as C, and C programs built with them: no frontend is needed to test the output.

base = emit(ADD_ALPHA, "*fp32:16, fp32, i32, 128", "cdiv(n, BLOCK)")     writes add_alpha.<hash>_<suffix>.{c,h,json}
program = build("main.c", C99)                                          with every emitted file of the folder
program.run()
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deuteron.aot.compile import CompileRequest, plan_kernel
from deuteron.aot.emit import kernel_files
from deuteron.aot.grid import grid_scope, parse_grid
from deuteron.aot.load import KernelSource
from deuteron.aot.naming import file_base
from deuteron.aot.output import write_files
from deuteron.aot.signature import parse_signature
from deuteron.aot.targets import select_target
from deuteron.aot.targets.target import KernelCode
from deuteron.backend.llvm.compile import emit_assembly
from deuteron.backend.metadata import KernelMetadata
from deuteron.compiler import IRSource

STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
C99 = ["gcc", "-std=c99", *STRICT]
CXX17 = ["g++", "-x", "c++", "-std=c++17", *STRICT]

# x[p] += alpha for every program p; the call of a local function and the constant are there for their labels.
ADD_ALPHA = r"""
define internal float @twice(float %x) noinline {
  %y = fmul float %x, 2.0
  ret float %y
}
define hidden void @SYMBOL(ptr %args, ptr %grid, i64 %begin, i64 %end, ptr %scratch) {
entry:
  %xp = load ptr, ptr %args
  %x = load ptr, ptr %xp
  %alpha_arg = getelementptr ptr, ptr %args, i64 1
  %alphap = load ptr, ptr %alpha_arg
  %alpha = load float, ptr %alphap
  %twice = call float @twice(float %alpha)
  %half = fmul float %twice, 0.5
  br label %loop
loop:
  %p = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %place = getelementptr float, ptr %x, i64 %p
  %old = load float, ptr %place
  %new = fadd float %old, %half
  store float %new, ptr %place
  %next = add i64 %p, 1
  %more = icmp ult i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


@dataclass(frozen=True)
class Parameter:
    name: str
    is_constexpr: bool = False


ADD_ALPHA_PARAMS = (Parameter("x"), Parameter("alpha"), Parameter("n"), Parameter("BLOCK", True))


@dataclass(frozen=True)
class Program:
    """An executable and the environment it runs in."""

    path: Path

    def run(self, *args: str, **environment: str) -> str:
        """What it prints; fails with its stderr unless it exits with 0."""
        result = subprocess.run(
            [self.path, *args], capture_output=True, text=True, env={**os.environ, **environment}, timeout=120
        )
        assert result.returncode == 0, f"exit status {result.returncode}\n{result.stdout}\n{result.stderr}"
        return result.stdout


class Workspace:
    """A folder with emitted files and a main program."""

    def __init__(self, folder: Path):
        self.folder = folder

    def emit(
        self,
        llvm: str,
        signature: str,
        grid: str,
        params: Sequence[Parameter] = ADD_ALPHA_PARAMS,
        name: str = "add_alpha",
        scratch_bytes: int = 0,
        target: str | None = None,
        uses_tiles: bool = False,
    ) -> Path:
        """Emit a kernel as C; returns its header."""
        parsed = parse_signature(signature, params, name)
        request = CompileRequest(Path(f"{name}.py"), name, signature, grid, target=target)
        resolved = select_target(target)
        record = plan_kernel(request, KernelSource(name, parsed, IRSource.from_text(llvm, "llir")), resolved)
        base = file_base(self.folder / name, record.hash, record.suffix)
        code = KernelCode(record, parse_grid(grid, grid_scope(parsed)), base)
        metadata = KernelMetadata(
            name, code.symbol, resolved, {}, (), scratch_bytes=scratch_bytes, uses_tiles=uses_tiles
        )
        cpu = str(resolved.arch) if resolved.arch != "native" else "x86-64"
        assembly = emit_assembly(llvm.replace("SYMBOL", code.symbol), cpu)
        write_files(kernel_files(code.with_compiled({"asm": assembly}, metadata)))
        return base.with_name(f"{base.name}.h")

    def build(self, main: str, compiler: Sequence[str] = C99, flags: Sequence[str] = ("-O1",)) -> Program:
        """Compile a main program and all emitted files together, without any library named."""
        (self.folder / "main.c").write_text(main)
        path = self.folder / "program"
        command = [*compiler, *flags, *sorted(map(str, self.folder.glob("*.c"))), "-o", str(path)]
        result = subprocess.run(command, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        return Program(path)
