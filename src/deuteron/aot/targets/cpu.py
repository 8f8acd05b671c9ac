"""C for the CPU: the kernel's assembly within the `.c`, and a thread pool that runs its grid.

    gcc main.c *.c        is all that a program needs

A kernel is compiled for a named processor, and a call on one that has less gives DEUTERON_ERROR_UNSUPPORTED_DEVICE.
Where none is named, or only an architecture (`cpu:aarch64`), it is x86-64-v3 or neoverse-n1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deuteron.aot.apart_code import apart_code
from deuteron.aot.assembly import assembly_block
from deuteron.aot.c_text import c_string
from deuteron.aot.c_types import checked_declaration, launch_declaration
from deuteron.aot.checked_code import access_code, shape_code, span_code
from deuteron.aot.checked_params import checked_params, pointers
from deuteron.aot.grid_code import Variable, node_code
from deuteron.aot.nativert import kernel_library, launcher_library
from deuteron.aot.symbols import plain_names
from deuteron.aot.targets.target import CTarget, KernelCode
from deuteron.aot.templates import render, runtime_source
from deuteron.backend.cpu.launch.control import SIZE as CONTROL_SIZE
from deuteron.errors import UsageError
from deuteron.options import Target

if TYPE_CHECKING:
    from deuteron.aot.metadata import KernelRecord
    from deuteron.aot.targets.cpu_features import Feature
    from deuteron.compiler import CompiledKernel

_DEFAULT_ARCH = {"x86_64": "x86-64-v3", "aarch64": "neoverse-n1"}
_ABI = "defined(__ELF__) && defined(__LP64__) && !defined(__AARCH64EB__)"  # not x32, ILP32, big-endian
_RUNTIME_FILES = ("status.c", "grid.c", "cpu_features.c", "executor.c", "control.h", "cancel.c", "cpu_pool.c")


def resolve(target: Target) -> Target:
    """The target with a processor that LLVM knows: `native` stays, as in `cpu:native`; none is the default, of this
    machine's architecture or the one that is named."""
    from deuteron.backend.llvm.targets import architecture_called, machine, resolve_cpu  # deferred: brings LLVM

    arch = str(target.arch) or (machine() if machine() in _DEFAULT_ARCH else "generic")
    arch = _DEFAULT_ARCH.get(architecture_called(arch), arch)
    resolve_cpu(arch)
    return Target("cpu", arch, 1)


def cpu_of(architecture: str) -> str:
    """The name of the target for the usual processor of an architecture: `cpu:aarch64`. Raises UsageError."""
    from deuteron.backend.llvm.targets import architecture_called  # deferred, as above

    if architecture_called(architecture) not in _DEFAULT_ARCH:
        known = " and ".join(sorted(_DEFAULT_ARCH))
        raise UsageError(
            f"Deuteron has no code for '{architecture}' processors, for {known}: leave the target cpu away"
        )
    return f"cpu:{architecture_called(architecture)}"


def check_ptx(target: Target) -> None:
    raise UsageError(f"a kernel for '{target.backend}' has no PTX: leave '+ptx' away")


def _features(target: Target) -> tuple[Feature, ...]:
    from deuteron.aot.targets.cpu_features import required_features  # deferred: brings LLVM

    return required_features(str(target.arch))


def _tile_features(record: KernelRecord) -> tuple[Feature, ...]:
    from deuteron.aot.targets.cpu_features import TILE_FEATURES  # deferred: brings LLVM

    return TILE_FEATURES if record.uses_tiles else ()


def source(code: KernelCode) -> str:
    """The text of a kernel's `.c`."""
    from deuteron.backend.llvm.targets import architecture_of  # deferred: brings LLVM

    record = code.record
    arch = record.target.partition(":")[2]
    features = _features(Target("cpu", arch)) + _tile_features(record)
    architecture = f"defined(__{architecture_of(arch)}__) && {_ABI}"
    grid = _grid_code(code)
    return render(
        "cpu_kernel.c",
        title=f"kernel {record.function}",
        target=record.target,
        visibility=code.visibility,
        header=f"{code.file_base.name}.h",
        runtime=runtime_source(*_runtime_files(code)),
        architecture=architecture,
        assembly=assembly_block(code.asm["asm"], code.symbol),
        symbol=code.symbol,
        function=record.function,
        plain_names=plain_names(record.functions, record.digest),
        launch=launch_declaration(record),
        features="".join(f"      {_feature_code(feature)}\n" for feature in features),
        num_features=len(features),
        args=", ".join([*(f"&{param.c_name}" for param in record.arguments), "&deuteron_told"]),
        **grid,
        run_grid=_run_grid(record, code.symbol, record.scratch_bytes, "&deuteron_told"),
        checked=_checked_source(code, code.checked, architecture, grid) if code.checked else "",
        control_bytes=CONTROL_SIZE,
    )


def _runtime_files(code: KernelCode) -> tuple[str, ...]:
    together = ("cpu_together.c",) if code.record.waiting_line else ()
    return (*_RUNTIME_FILES, *together, *(["checked.c"] if code.checked else []))


def _run_grid(record: KernelRecord, symbol: str, scratch_bytes: int, told: str) -> str:
    """The call that runs all programs; where they wait for one another, as many at the same time as it takes."""
    given = f"{symbol}, deuteron_args, deuteron_grid, {scratch_bytes}"
    return f"deuteron_launch_together({given}, {told})" if record.waiting_line else f"deuteron_launch_v2({given})"


def _grid_code(code: KernelCode) -> dict[str, str]:
    variables = {param.name: Variable(param.c_name, param.type) for param in code.record.runtime_params}
    return {f"grid_{axis}": node_code(node, variables) for axis, node in zip("xyz", code.grid, strict=True)}


def _checked_source(code: KernelCode, checked: CompiledKernel, architecture: str, grid: dict[str, str]) -> str:
    """The function that launches the kernel which checks what it accesses."""
    record, metadata = code.record, checked.metadata
    more = checked_params(record.c_params)
    names = [param.name for param in pointers(record.arguments)]
    return render(
        "cpu_checked.c",
        architecture=architecture,
        symbol=code.checked_symbol,
        assembly=assembly_block(checked.asm["asm"], code.checked_symbol),
        launch=checked_declaration(record),
        kernel=record.kernel,
        num_spans=len(names),
        names="".join(f"{c_string(name)}, " for name in names),
        shapes=shape_code(metadata.assertions),
        accesses=access_code(metadata.assertions),
        args=", ".join([*(f"&{param.c_name}" for param in record.arguments), "&deuteron_block"]),
        **grid,
        spans=span_code(record.arguments, more.sizes),
        apart=apart_code(
            record.kernel,
            (*record.apart, *metadata.apart),
            record.arguments,
            more.message,
            more.message_size,
        ),
        message=more.message,
        message_size=more.message_size,
        run_grid=_run_grid(record, code.checked_symbol, metadata.scratch_bytes, "&deuteron_block.told"),
    )


def _feature_code(feature: Feature) -> str:
    numbers = f"{feature.leaf:#x}, {feature.subleaf}, {feature.reg}, {feature.bit}, {feature.state:#x}"
    return f"{{{numbers}}}, /* {feature.name} */"


CPU = CTarget(
    "cpu",
    ("cpu_types.h", "names.h", "status.h", "executor.h"),
    resolve,
    lambda target: len(_features(target)),
    source,
    check_ptx,
    can_check=True,
    libraries={"so": kernel_library, "launcher.so": launcher_library},
)
