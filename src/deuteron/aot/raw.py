"""A kernel's machine code as files of its own, for programs that call or launch it themselves, without a C compiler.

    raw_files(code, ["linux", "windows"])      {"linux-x86_64/add.2a9b.o": ELF, "windows-x86_64/add.2a9b.o": COFF}
    raw_files(code, ["linux"])                 {"cuda/add.2a9b.cubin": ..., "cuda/add.2a9b.ptx": ...} for a GPU

An object has one symbol, the kernel's, which is a function of C. It is made from the kernel's LLVM IR anew for each
system: calling convention, names and relocations are the system's, the code is the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from deuteron.aot.targets.target import KernelCode


def raw_files(code: KernelCode, systems: Sequence[str]) -> dict[str, bytes]:
    """The files by their names; none where no system is named."""
    stem = code.file_base.name
    if not systems:
        return {}
    if code.record.backend != "cpu":
        return {f"cuda/{stem}.cubin": code.asm["cubin"], f"cuda/{stem}.ptx": code.asm["ptx"].encode()}
    return {f"{folder_of(system, code.record.target)}/{stem}.o": _object(code, system) for system in systems}


def folder_of(system: str, target: str) -> str:
    """`linux-x86_64`: a folder has what one linker reads."""
    from deuteron.backend.llvm.targets import architecture_of  # deferred: brings LLVM

    return f"{system}-{architecture_of(target.partition(':')[2])}"


def _object(code: KernelCode, system: str) -> bytes:
    from deuteron.backend.llvm.compile import emit_object_for  # deferred: brings LLVM
    from deuteron.backend.llvm.targets import resolve_cpu

    return emit_object_for(system, code.asm["llir"], *resolve_cpu(code.record.target.partition(":")[2]))
