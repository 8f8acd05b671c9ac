"""A kernel for the CPU as shared libraries, in the form that PyTorch's AOTInductor packs and its C++ runtime loads.

    kernel_library(kernel.asm, kernel.metadata)     bytes of kernel.so: data of the kernel's name describe it
    launcher_library(kernel.asm, kernel.metadata)   bytes of launcher.so: `run_from_nativert`, for every kernel

The launcher is the same for all kernels, so that a process has one pool of threads for them. What goes wrong, a failed
`tl.device_assert` too, is a C++ exception, which AOTInductor's callers see as an error. Both are built by a C++
compiler, which AOTInductor needs anyway.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from deuteron.aot.assembly import assembly_block
from deuteron.aot.c_text import c_string
from deuteron.aot.templates import render, runtime_source
from deuteron.backend.cpu.launch.control import SIZE as CONTROL_SIZE
from deuteron.backend.metadata import KernelMetadata
from deuteron.errors import UsageError
from deuteron.settings import get_variable

if TYPE_CHECKING:
    from deuteron.aot.targets.cpu_features import Feature
    from deuteron.backend.assertion import Assertion

_TYPES = ("cpu_types.h", "status.h", "executor.h", "cpu_features.c", "nativert.h")
_FLAGS = ("-std=c++17", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,--build-id=none")
_KINDS = {"constexpr": 0, "pointer": 1, "scalar": 2}


def kernel_library(asm: Mapping[str, str | bytes], metadata: KernelMetadata) -> bytes:
    """The library with the code of a kernel; raises UsageError where it cannot be built."""
    from deuteron.aot.targets.cpu_features import required_features  # deferred: brings LLVM

    _check_passable(metadata)
    features = required_features(str(metadata.target.arch))
    programs = f"{metadata.symbol}_programs"
    source = render(
        "nativert_kernel.cpp",
        name=metadata.name,
        programs=programs,
        types=runtime_source(*_TYPES),
        assembly=assembly_block(asm["asm"], metadata.symbol, programs),
        kinds=", ".join(str(_KINDS[param.kind]) for param in metadata.params),
        num_params=len(metadata.params),
        scratch_bytes=metadata.scratch_bytes,
        features="".join(f"    {_feature_code(feature)},\n" for feature in features),
        num_features=len(features),
        waits="true" if metadata.waiting_line else "false",
        assertions="".join(f"    {c_string(_describe(assertion))},\n" for assertion in metadata.assertions),
    )
    return _build(source, "kernel")


def _check_passable(metadata: KernelMetadata) -> None:
    """Raise UsageError for a parameter of which AOTInductor's C++ passes the address of a number of another type."""
    for param in metadata.runtime_params:
        if param.kind == "scalar" and param.type == "fp64":
            raise UsageError(
                f"AOTInductor passes '{param.name}' of kernel '{metadata.name}', compiled as fp64, as a float: "
                "set torch._inductor.config._use_fp64_for_unbacked_floats = False, so that it is compiled as fp32"
            )


def launcher_library(asm: Mapping[str, str | bytes], metadata: KernelMetadata) -> bytes:
    """The library that launches the kernel, the same for every kernel; raises UsageError where it cannot be built."""
    return _launcher()


@cache
def _launcher() -> bytes:
    runtime = runtime_source(*_TYPES, "status.c", "executor.c", "control.h", "cancel.c", "cpu_pool.c", "cpu_together.c")
    return _build(render("nativert_launcher.cpp", runtime=runtime, control_bytes=CONTROL_SIZE), "launcher")


def _feature_code(feature: Feature) -> str:
    return f"{{{feature.leaf:#x}, {feature.subleaf}, {feature.reg}, {feature.bit}, {feature.state:#x}}}"


def _describe(assertion: Assertion) -> str:
    place = f"{assertion.place}: " if assertion.place else ""
    return f"{place}Assertion failed: {assertion.message}"


def _build(source: str, name: str) -> bytes:
    """Equal sources give equal bytes: the files are called alike wherever they are."""
    with tempfile.TemporaryDirectory(prefix="deuteron-") as folder:
        Path(folder, f"{name}.cpp").write_text(source)
        command = [_compiler(), *_FLAGS, f"{name}.cpp", "-o", f"{name}.so"]
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if result.returncode:
            raise UsageError(f"a shared library of a kernel could not be built by '{command[0]}': {result.stderr}")
        return Path(folder, f"{name}.so").read_bytes()


def _compiler() -> str:
    """CXX, or the first of the usual ones."""
    names = (get_variable("CXX"), "c++", "g++", "clang++")
    found = next((path for name in names if name and (path := shutil.which(name))), None)
    if found is None:
        raise UsageError("AOTInductor's libraries of kernels take a C++ compiler: install g++, or name one in CXX")
    return found
