"""What emitting C for a target needs to have: one value of this for each, in a table.

CPU = CTarget("cpu", types_files=("cpu_types.h", "status.h"), resolve=..., device_rank=..., source=...)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from deuteron.aot.grid import Grid
from deuteron.aot.grid_code import MAX_PARTS
from deuteron.aot.metadata import KernelRecord
from deuteron.aot.symbols import symbol
from deuteron.options import Target

if TYPE_CHECKING:
    from deuteron.backend.metadata import KernelMetadata
    from deuteron.compiler import CompiledKernel


@dataclass(frozen=True)
class KernelCode:
    """A kernel on its way into C. `file_base` is the path of its files less their suffixes, `asm` its stages' texts.

    With `is_library` its functions have the types of a library, which are those of no target. `checked` is the same
    kernel compiled so that it checks what it accesses.
    """

    record: KernelRecord
    grid: Grid
    file_base: Path
    is_library: bool = False
    asm: Mapping[str, str | bytes] = field(default_factory=dict)
    checked: CompiledKernel | None = None

    @property
    def symbol(self) -> str:
        """What the kernel is called in object code: nothing else in a program is called that."""
        return symbol(self.record.digest, f"kernel_{self.record.function}")

    @property
    def checked_symbol(self) -> str:
        return symbol(self.record.digest, f"checked_{self.record.function}")

    @property
    def visibility(self) -> str:
        """What the file begins with: the kernels of a library are called by the library alone."""
        return "#define DEUTERON_HIDDEN 1\n" if self.is_library else ""

    def with_compiled(self, asm: Mapping[str, str | bytes], metadata: KernelMetadata) -> KernelCode:
        """The kernel with what the compiler made of it."""
        return replace(self, record=replace(self.record, **metadata.facts), asm=asm)


LIBRARY_TYPES = ("library_types.h", "names.h", "status.h", "executor.h")


@dataclass(frozen=True)
class CTarget:
    """A target that kernels are emitted for as C.

    `types_files` in runtime/ define deuteron_status, deuteron_ptr and deuteron_stream, and the statuses. `resolve`
    completes what the user named and raises UsageError for what does not exist. `device_rank` orders kernels that
    differ in their target: the highest is tried first. `source` makes the text of a kernel's `.c`. `check_ptx` raises
    UsageError unless later devices run a target's text in the place of its code. `can_check` says that kernels may be
    compiled so that they check what they access. `most_programs` is how many a launch of a kernel may have along x.
    `libraries` names the shared libraries that AOTInductor loads, each with what makes it of a kernel's texts and
    metadata.
    """

    name: str
    types_files: tuple[str, ...]
    resolve: Callable[[Target], Target]
    device_rank: Callable[[Target], int]
    source: Callable[[KernelCode], str]
    check_ptx: Callable[[Target], None]
    can_check: bool = False
    most_programs: Callable[[KernelRecord], int] = lambda _record: MAX_PARTS[0]
    libraries: Mapping[str, Callable[[Mapping[str, str | bytes], KernelMetadata], bytes]] = field(default_factory=dict)
