"""Kernels emitted for CUDA with a text for a cubin, and programs that run on a libcuda.so.1 made for the test.

    gpu = FakeGpu(folder)                                     builds fake_libcuda.c
    gpu.emit("*fp32:16, fp32, i32, 128", "cdiv(n, BLOCK)", target="cuda:90")
    gpu.link()
    gpu.build(MAIN).run()                                     with the fake first on the library path

A main program is the body of `int main(void)` after `PROLOGUE`, which has the fake's own functions.
"""

from __future__ import annotations

import functools
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aot.workspace import ADD_ALPHA_PARAMS, C99, STRICT, Parameter, Program, Workspace

from deuteron.aot.compile import CompileRequest, plan_kernel
from deuteron.aot.emit import kernel_files
from deuteron.aot.grid import grid_scope, parse_grid
from deuteron.aot.link import link_kernels
from deuteron.aot.load import KernelSource
from deuteron.aot.naming import file_base
from deuteron.aot.output import write_files
from deuteron.aot.signature import parse_signature
from deuteron.aot.targets import select_target
from deuteron.aot.targets.target import KernelCode
from deuteron.backend.cuda.target import architecture
from deuteron.backend.metadata import KernelMetadata
from deuteron.backend.tensor_map import TensorMap
from deuteron.compiler import IRSource

SOURCE = Path(__file__).with_name("fake_libcuda.c")
SANITIZED = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover"]
BYTES = {"i1": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i64": 8, "u64": 8, "fp64": 8}

PROLOGUE = r"""
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "linked.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void *fake(const char *name) {
  static void *driver;
  void *found;
  if (!driver)
    driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  found = driver ? dlsym(driver, name) : NULL;
  if (!found)
    abort();
  return found;
}

#define FAKE(result, name, ...) ((result(*)(__VA_ARGS__))fake("fake_" name))
#define reset FAKE(void, "reset", void)
#define fail FAKE(void, "fail", const char *, int, int)
#define devices FAKE(void, "devices", const int *)
#define calls FAKE(const char *, "log", void)
#define launches FAKE(int64_t, "launches", void)
#define leaks FAKE(int, "leaks", void)
#define use_device FAKE(void, "use_device", int)
#define logging FAKE(void, "logging", int)
#define slow_launches FAKE(void, "slow_launches", int)
#define slow_loads FAKE(void, "slow_loads", int)

"""


@dataclass(frozen=True)
class FakeProgram(Program):
    """A program that finds the fake driver."""

    driver: Path

    def run(self, *args: str, **environment: str) -> str:
        return super().run(*args, **{"LD_LIBRARY_PATH": str(self.driver), **environment})


def build_driver(folder: Path, without: Sequence[str] = ()) -> Path:
    """Put the driver into a folder of its own, without some of its functions."""
    folder.mkdir(exist_ok=True)
    (folder / "libcuda.so.1").write_bytes(_driver(tuple(without)))
    return folder


@functools.cache
def _driver(without: Sequence[str]) -> bytes:
    """What the compiler makes of it: the same for each test."""
    hidden = "".join(f"{name};" for name in without)
    with tempfile.TemporaryDirectory() as made:
        script, library = Path(made, "exports"), Path(made, "libcuda.so.1")
        script.write_text("{ global: *; " + (f"local: {hidden} " if hidden else "") + "};\n")
        command = ["gcc", "-g", "-O1", "-shared", "-fPIC", *STRICT, f"-Wl,--version-script={script}"]
        subprocess.run([*command, SOURCE, "-o", library], check=True)
        return library.read_bytes()


class FakeGpu(Workspace):
    """A folder with emitted files, a main program and a driver."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.driver = folder / "driver"
        self.headers: list[Path] = []

    def emit_cuda(
        self,
        signature: str,
        grid: str,
        target: str = "cuda:90",
        params: Sequence[Parameter] = ADD_ALPHA_PARAMS,
        name: str = "add_alpha",
        shared: int = 0,
        num_warps: int = 4,
        num_ctas: int = 1,
        image: bytes | None = None,
        tensor_maps: Sequence[TensorMap] = (),
        options: Mapping[str, Any] | None = None,
        most_programs: int | None = None,
    ) -> Path:
        """Emit a kernel as C; returns its header."""
        parsed = parse_signature(signature, params, name)
        launched = {"num_warps": num_warps, "num_ctas": num_ctas}
        request = CompileRequest(
            Path(f"{name}.py"), name, signature, grid, target=target, options=options or {}, **launched
        )
        resolved = select_target(target)
        record = plan_kernel(request, KernelSource(name, parsed, IRSource.from_text("", "llir")), resolved)
        base = file_base(self.folder / name, record.hash, record.suffix)
        code = KernelCode(record, parse_grid(grid, grid_scope(parsed)), base)
        metadata = KernelMetadata(
            name,
            code.symbol,
            resolved,
            launched,
            (),
            shared=shared,
            tensor_maps=tuple(tensor_maps),
            most_programs=most_programs,
        )
        sizes = [8 if param.type.startswith("*") else BYTES.get(param.type, 4) for param in record.runtime_params]
        sizes += [128] * len(tensor_maps)
        known = architecture(resolved.arch)
        version = f"{known.capability // 10}.{known.capability % 10}{'a' if known.is_specific else ''}"
        text = " ".join([version, code.symbol, *map(str, sizes)])
        cubin = f"fake-cubin {text}\0".encode() if image is None else image
        asm = {"cubin": cubin, "ptx": f"fake-ptx {text}"}
        write_files(kernel_files(code.with_compiled(asm, metadata)))
        self.headers.append(base.with_name(f"{base.name}.h"))
        return self.headers[-1]

    def link(self) -> None:
        link_kernels(self.headers, self.folder / "linked")

    def program(self, body: str, compiler: Sequence[str] = C99, flags: Sequence[str] = ("-O1",)) -> FakeProgram:
        """Build `int main(void) { body }` with all emitted files and no library named."""
        if not (self.driver / "libcuda.so.1").exists():
            build_driver(self.driver)
        # dlsym gives an object pointer, which -pedantic does not let become a function
        relaxed = [flag for flag in compiler if flag != "-pedantic"]
        main = PROLOGUE + (body if "int main(" in body else f"int main(void) {{\n{body}\n  return 0;\n}}\n")
        return FakeProgram(self.build(main, relaxed, flags).path, self.driver)
