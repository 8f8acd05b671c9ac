"""C for NVIDIA GPUs: the kernel's cubin as bytes within the `.c`, and launching through libcuda, opened at run time.

    gcc main.c *.c        is all that a program needs: no CUDA header, no library, no GPU where it is built

A kernel is compiled for one architecture, `cuda:90`. A call on a device that does not run its code gives
DEUTERON_ERROR_UNSUPPORTED_DEVICE, so that of several linked kernels the one for the device is launched. With
`cuda:80+ptx` the kernel's PTX is in the file too, and the driver of a later device translates it.
"""

from __future__ import annotations

from deuteron.aot.c_types import launch_declaration
from deuteron.aot.grid import Grid, Number, Operation
from deuteron.aot.grid_code import MAX_PARTS, Variable, node_code
from deuteron.aot.metadata import KernelRecord
from deuteron.aot.symbols import plain_names
from deuteron.aot.targets.target import CTarget, KernelCode
from deuteron.aot.templates import render, runtime_source
from deuteron.aot.tensor_map_code import declaration_code, encoding_code
from deuteron.backend.cuda.target import WARP_SIZE, Architecture, architecture
from deuteron.errors import UsageError
from deuteron.options import Target

_RUNTIME_FILES = ("status.c", "grid.c", "cancel.c", "cuda_driver.c", "cuda_kernel.c")
_FILES_OF_TENSOR_MAPS = ("tensors.c", "cuda_tensor_maps.c")
_BYTES_PER_LINE = 28
_ATTRIBUTES = {"launch_cooperative_grid": "DEUTERON_LAUNCH_COOPERATIVE", "launch_pdl": "DEUTERON_LAUNCH_PDL"}


def resolve(target: Target) -> Target:
    """The target, if there is such an architecture; raises UsageError."""
    return Target("cuda", architecture(target.arch).capability, WARP_SIZE)


def check_ptx(target: Target) -> None:
    """Raise UsageError for an architecture whose PTX runs nowhere else."""
    known = architecture(target.arch)
    if known.is_specific:
        raise UsageError(
            f"PTX for '{target}' uses instructions of {known.name}, which no later GPU has: add a target such as "
            "'cuda:80+ptx', whose PTX every later GPU runs"
        )


def source(code: KernelCode) -> str:
    """The text of a kernel's `.c`."""
    record = code.record
    compiled_for = architecture(record.target.partition(":")[2])
    variables = {param.name: Variable(param.c_name, param.type) for param in record.runtime_params}
    grid = [node_code(node, variables) for node in _blocks(code.grid, record.num_ctas)]
    cubin, maps = code.asm["cubin"], [f"deuteron_map{index}" for index in range(len(record.tensor_maps))]
    return render(
        "cuda_kernel.c",
        title=f"kernel {record.function}",
        target=record.target,
        visibility=code.visibility,
        header=f"{code.file_base.name}.h",
        runtime=runtime_source(*_RUNTIME_FILES, *(_FILES_OF_TENSOR_MAPS if record.tensor_maps else ())),
        num_bytes=len(cubin),
        cubin=_byte_lines(cubin),
        ptx=_ptx_image(code, compiled_for) if record.has_ptx else "",
        otherwise="&deuteron_translated" if record.has_ptx else "NULL",
        symbol=code.symbol,
        function=record.function,
        plain_names=plain_names(record.functions, record.digest),
        launch=launch_declaration(record),
        num_threads=_num_threads(record),
        shared=record.shared,
        capability=compiled_for.capability,
        fits="DEUTERON_FITS_EXACTLY" if compiled_for.is_specific else "DEUTERON_FITS_MAJOR",
        attributes=_attributes(record),
        args=", ".join([*(f"&{param.c_name}" for param in record.arguments), *maps, "NULL"]),
        map_declarations=declaration_code(record.tensor_maps),
        map_encoding=encoding_code(record.tensor_maps, record.runtime_params),
        grid_x=grid[0],
        grid_y=grid[1],
        grid_z=grid[2],
        grid_limit=_grid_limit(record),
    )


def _ptx_image(code: KernelCode, compiled_for: Architecture) -> str:
    """The kernel's text, ended by a zero, and what is known of it in C."""
    text = code.asm["ptx"].encode() + b"\0"
    return render(
        "cuda_ptx.c",
        num_bytes=len(text),
        ptx=_byte_lines(text),
        symbol=code.symbol,
        num_threads=_num_threads(code.record),
        shared=code.record.shared,
        capability=compiled_for.capability,
        attributes=_attributes(code.record),
    )


def _num_threads(record: KernelRecord) -> int:
    return WARP_SIZE * (record.num_warps + record.extra_warps)


def _attributes(record: KernelRecord) -> str:
    return " | ".join(_ATTRIBUTES[name] for name in record.launch_attributes) or "0"


def _grid_limit(record: KernelRecord) -> str:
    """The statement that refuses a grid of more programs than the code is for."""
    if record.most_programs is None:
        return ""
    most = record.most_programs * record.num_ctas
    return (
        f"  if (deuteron_grid[0] > {most}u) /* numbers may overflow; with -O many_programs=True they may */\n"
        "    return DEUTERON_ERROR_INVALID_VALUE;\n"
    )


def _blocks(grid: Grid, num_ctas: int) -> Grid:
    """The blocks of a grid of programs."""
    x, y, z = grid
    return (Operation("*", x, Number(num_ctas)), y, z) if num_ctas > 1 else grid


def most_programs(record: KernelRecord) -> int:
    """How many programs a launch may have along x: blocks that a GPU numbers, and no more than the code is for."""
    most = MAX_PARTS[0] // record.num_ctas
    return min(most, record.most_programs or most)


def _byte_lines(image: bytes) -> str:
    lines = (image[start : start + _BYTES_PER_LINE] for start in range(0, len(image), _BYTES_PER_LINE))
    return "\n".join(f"    {','.join(map(str, line))}," for line in lines)


CUDA = CTarget(
    "cuda",
    ("cuda_types.h", "names.h", "status.h"),
    resolve,
    lambda target: int(target.arch),
    source,
    check_ptx,
    most_programs=most_programs,
)
