"""From LLVM IR text to PTX.

    emit_ptx(llir, "sm_90a", 83)        text for ptxas or the driver, of PTX ISA 8.3
    check(llir)                         raises InternalError where LLVM does not accept the text

The mid-end is a short list of passes: LLVM's -O3 takes five times as long and gives the same registers. What LLVM
cannot select for NVPTX ends the process (`llvm.exp`, `llvm.sin`, a masked load): lowering rules expand it. Pointers to
shared memory have 32 bits.
"""

from __future__ import annotations

import re
from functools import cache

import llvmlite.binding as llvm

from deuteron.errors import InternalError

TRIPLE = "nvptx64-nvidia-cuda"
# A time and a size: else ptxas puts those of the file into the cubin, and equal sources give different bytes.
_FILE = re.compile(r'^\s*\.file\s+\d+ ".*"$', re.MULTILINE)


def check(llir: str) -> None:
    _parse(llir)


def emit_ptx(llir: str, cpu: str, ptx_version: int) -> str:
    machine, module = _target_machine(cpu, ptx_version), _parse(llir)
    module.data_layout = str(machine.target_data)
    _run_passes(module, machine)
    return _FILE.sub(r"\g<0>, 1, 1", machine.emit_assembly(module))


@cache
def _target() -> llvm.Target:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.set_option("deuteron", "--nvptx-short-ptr")
    return llvm.Target.from_triple(TRIPLE)


@cache
def _target_machine(cpu: str, ptx_version: int) -> llvm.TargetMachine:
    return _target().create_target_machine(cpu=cpu, features=f"+ptx{ptx_version}", opt=3)


def _parse(llir: str) -> llvm.ModuleRef:
    """A verified module in a context of its own, so that what a compile allocates is freed after it."""
    _target()
    try:
        module = llvm.parse_assembly(llir, llvm.create_context())
        module.triple = TRIPLE
        module.verify()
    except RuntimeError as error:
        raise InternalError(f"LLVM does not accept the generated IR: {error}") from error
    return module


def _run_passes(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_dead_code_elimination_pass()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)
