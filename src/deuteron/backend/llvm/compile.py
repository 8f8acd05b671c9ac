"""From LLVM IR text to optimised text, assembly and objects. The only module that runs LLVM's compiler.

    llir = optimise(llir, "x86-64-v3", "", opt_level=3)
    emit_assembly(llir, "x86-64-v3", "")        GNU assembly, position independent
    emit_object(llir, "x86-64-v3", "")          an ELF object
    emit_object_for("windows", llir, "x86-64-v3")    a COFF one
    external_symbols(assembly)                  {"printf"}: what a program that links the assembly must have

The architecture is that of the CPU, which need not be this machine's: `emit_assembly(llir, "cortex-a72")` gives
ELF for Linux on AArch64.

The LLVM in the wheel is a build with assertions: on IR that it cannot handle it ends the process. Text is therefore
parsed and verified first, and what fails there is an InternalError. These pass that and would still end the process,
so they are refused: a CPU without 64-bit mode (by `targets`), inline assembly (LLVM exits on a mistake in it), and
intrinsics that a CPU is not known to have (`intrinsics.py`). `frem`, `llvm.exp` and their like do
not, but become calls of libm, which `external_symbols` shows.

The body of an attention kernel, 930 lines, takes 2 ms to parse and verify, 26 ms in the passes and 22 ms to become
machine code. LLVM's -O1 takes 23 ms and -O3 28 ms for the same code; unrolling would make it 41 ms and 30 % more
code.

Passes over loops, and register allocation, take time by more than the length of a function: `pieces.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import llvmlite.binding as llvm

from deuteron.backend.llvm.intrinsics import EVERY_AARCH64, PROBES, Probe
from deuteron.backend.llvm.native import native_target
from deuteron.backend.llvm.parse import parsed
from deuteron.backend.llvm.pass_managers import freed
from deuteron.backend.llvm.process_options import as_usual
from deuteron.backend.llvm.targets import architecture_of, machine
from deuteron.errors import IRError

_ASSEMBLY = re.compile(r"^\s*module asm\b|^[^\"\n]*\bcall\b[^\"\n]*(?<![\w%@.])asm\b", re.MULTILINE)
_INTRINSIC = re.compile(r"@(llvm\.(?:aarch64|amdgcn|arm|nvvm|x86)\.[\w.]*)")

# The systems that objects are made for, by their triples.
SYSTEMS = {
    "linux": "{}-unknown-linux-gnu",
    "macos": "{}-apple-macosx11.0.0",
    "windows": "{}-pc-windows-msvc",
}


def optimise(llir: str, cpu: str, features: str = "", opt_level: int = 3) -> str:
    """The text after LLVM's mid-end passes; level 0 only parses and verifies."""
    with _parsed(llir, cpu) as module:
        if opt_level > 0:
            _check_intrinsics(llir, cpu, features)
            _run_passes(module, _target_machine(cpu, features, opt_level), opt_level)
        return str(module)


def emit_assembly(llir: str, cpu: str, features: str = "", opt_level: int = 3) -> str:
    _check_intrinsics(llir, cpu, features)
    with _parsed(llir, cpu) as module, as_usual():
        return _target_machine(cpu, features, opt_level).emit_assembly(module)


def emit_object(llir: str, cpu: str, features: str = "", opt_level: int = 3) -> bytes:
    _check_intrinsics(llir, cpu, features)
    with _parsed(llir, cpu) as module, as_usual():
        return _target_machine(cpu, features, opt_level).emit_object(module)


def emit_object_for(system: str, llir: str, cpu: str, features: str = "", opt_level: int = 3) -> bytes:
    """An object for one of SYSTEMS, whatever this machine's is: ELF, Mach-O or COFF."""
    target = _target_for(system, architecture_of(cpu))
    machine = target.create_target_machine(cpu, features, opt_level, reloc="pic", codemodel="default")
    with _parsed(llir, cpu) as module, as_usual():
        module.triple, module.data_layout = target.triple, str(machine.target_data)
        return machine.emit_object(module)


def external_symbols(assembly: str) -> frozenset[str]:
    """The symbols that assembly calls and does not define (x86-64 and AArch64)."""
    called = re.findall(r"^\s+(?:callq?|jmp|bl|b)\s+([A-Za-z_][\w.$]*)(?:@PLT)?$", assembly, re.MULTILINE)
    defined = re.findall(r"^([A-Za-z_][\w.$]*):", assembly, re.MULTILINE)
    return frozenset(called) - frozenset(defined)


@cache
def has_intrinsic(name: str, cpu: str, features: str) -> bool:
    """Whether code for a CPU may call an intrinsic of its family (`intrinsics.py`)."""
    if architecture_of(cpu) == "aarch64":
        return name in EVERY_AARCH64
    probe = PROBES.get(name)
    return probe is not None and _is_found(probe, cpu, features)


@cache
def _is_found(probe: Probe, cpu: str, features: str) -> bool:
    llir = optimise(probe.llir, cpu, features, 1) if probe.is_optimised else probe.llir
    return probe.instruction.search(emit_assembly(llir, cpu, features, 1)) is not None


@cache
def _target_of(architecture: str) -> llvm.Target:
    """This machine's own, or that of Linux on another architecture."""
    if architecture == machine():
        return native_target()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(f"{architecture}-unknown-linux-gnu")


@cache
def _target_for(system: str, architecture: str) -> llvm.Target:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(SYSTEMS[system].format(architecture))


@cache
def _target_machine(cpu: str, features: str, opt_level: int) -> llvm.TargetMachine:
    target = _target_of(architecture_of(cpu))
    return target.create_target_machine(cpu, features, opt_level, reloc="pic", codemodel="default")


@contextmanager
def _parsed(llir: str, cpu: str) -> Iterator[llvm.ModuleRef]:
    # Without the first question, a tenth of the compile of a matrix product: the pattern is tried at each call.
    if "asm" in llir and (assembly := _ASSEMBLY.search(llir)):
        raise IRError(f"inline assembly is not accepted: '{assembly[0].strip()}'")
    with parsed(llir, _target_of(architecture_of(cpu)).triple) as module:
        yield module


def _check_intrinsics(llir: str, cpu: str, features: str) -> None:
    for name in set(_INTRINSIC.findall(llir)):
        if not has_intrinsic(name, cpu, features):
            raise IRError(f"the intrinsic '{name}' is not accepted for the CPU '{cpu}'")


def _run_passes(module: llvm.ModuleRef, machine: llvm.TargetMachine, opt_level: int) -> None:
    """LLVM's own pipeline without its vectorisers and unroller: vectors and blocking are explicit in our IR."""
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=min(opt_level, 2))
    options.loop_vectorization = options.slp_vectorization = False
    options.loop_unrolling = options.loop_interleaving = False
    builder = llvm.create_pass_builder(machine, options)
    with freed(builder.getModulePassManager()) as passes:
        passes.run(module, builder)
