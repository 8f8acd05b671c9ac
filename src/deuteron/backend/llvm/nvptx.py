"""From LLVM IR text to PTX.

    emit_ptx(llir, "sm_90a", 83)        text for ptxas or the driver, of PTX ISA 8.3
    check(llir)                         raises InternalError where LLVM does not accept the text

The mid-end is a short list of passes: LLVM's -O3 takes five times as long and gives the same registers. The second that
combines instructions finds bits that are counted by shifts and masks (`popc`). Of code generation three passes are left
out. Straight-line strength reduction compares all addresses with one another (LLVM 22: 16 s for 1,600 loads, 0.9 s
without), and ptxas makes of both texts as many instructions. The vectorizer of loads and stores compares each access of
a block with 64 others (4 of 6 s for 2,112 loads of 16 bits); lowering rules have made the vectors. Values are not
numbered over all blocks (by level 2), either: LLVM 22 looks through all numbers for each instruction that it removes, a
third of code generation of 51,000 lines, and of 100 kernels 99 had the same PTX with it. Pointers to shared memory have
32 bits.

LLVM ends the process on what it cannot select for NVPTX, though its verifier accepts it: `llvm.exp`, `llvm.sin`, a
masked load, letters in the constraints of assembly that NVPTX does not have. So only intrinsics that it was seen to
select for every type are let through, beside those of NVPTX itself; lowering rules expand the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import llvmlite.binding as llvm

from deuteron.backend.llvm.parse import parsed
from deuteron.backend.llvm.pass_managers import freed
from deuteron.backend.llvm.process_options import SINKING, STRENGTH_REDUCTION, changed
from deuteron.errors import InternalError

TRIPLE = "nvptx64-nvidia-cuda"
# A time and a size: else ptxas puts those of the file into the cubin, and equal sources give different bytes.
_FILE = re.compile(r'^\s*\.file\s+\d+ ".*"$', re.MULTILINE)
# LLVM counts the calls of all that a process compiles.
_NUMBER_OF_CALL = re.compile(r"(?<=// callseq) \d+(, \d+)?")

_INTRINSIC = re.compile(r"@llvm\.([\w.]+)\(")
_OVERLOADS = re.compile(r"(?:\.(?:v\d+)?(?:[ifp]\d+|bf16))+$")
_SELECTED = re.compile(
    "fabs|sqrt|floor|ceil|trunc|rint|nearbyint|round|roundeven|minnum|maxnum|minimum|maximum|copysign|fma|fmuladd|"
    "fpto[su]i.sat|abs|[su](min|max)|[su](add|sub).sat|fsh[lr]|ctpop|ctlz|cttz|bitreverse|bswap"
)
# What is rarely done. All that stands before the branch around it would sink beyond, as far as the kernel's end: 64
# cosines of a thread, each added to the one before, had 576 bytes of spills.
_COLD = re.compile(r"^define [^\n]*\bcold\b", re.MULTILINE)
_CONSTRAINTS = re.compile(r'asm (?:sideeffect )?"[^"]*", "([^"]*)"')
_KNOWN_CONSTRAINT = re.compile(r"=?&?[bcdfhlr]|\d+|~\{memory\}")

_LEVEL = 2  # of code generation: 3 would number values over all blocks

# Lines of LLVM IR; of those that `benchmarks/gpu` measures none has as many.
LONG = 20_000


def check(llir: str) -> None:
    """Raises InternalError on text that LLVM refuses, or would end the process on."""
    with _parsed(llir):
        pass


def emit_ptx(llir: str, cpu: str, ptx_version: int, strength_reduction: bool = True) -> str:
    machine = _target_machine(cpu, ptx_version)
    with _parsed(llir) as module:
        module.data_layout = str(machine.target_data)
        off = [*([] if strength_reduction else [STRENGTH_REDUCTION]), *([SINKING] if _COLD.search(llir) else [])]
        with changed(*off):
            _run_passes(module, machine)
            ptx = machine.emit_assembly(module)
    return _NUMBER_OF_CALL.sub("", _FILE.sub(r"\g<0>, 1, 1", ptx))


def is_long(llir: str) -> bool:
    return llir.count("\n") > LONG


@cache
def _target() -> llvm.Target:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for option in ("--nvptx-short-ptr", "--opt-disable=slsr", "--disable-nvptx-load-store-vectorizer"):
        llvm.set_option("deuteron", option)
    return llvm.Target.from_triple(TRIPLE)


@cache
def _target_machine(cpu: str, ptx_version: int) -> llvm.TargetMachine:
    return _target().create_target_machine(cpu=cpu, features=f"+ptx{ptx_version}", opt=_LEVEL)


@contextmanager
def _parsed(llir: str) -> Iterator[llvm.ModuleRef]:
    _target()
    with parsed(llir, TRIPLE) as module:
        _check_selection(llir)
        yield module


def _check_selection(llir: str) -> None:
    for name in sorted(set(_INTRINSIC.findall(llir))):
        if not name.startswith("nvvm.") and not _SELECTED.fullmatch(_OVERLOADS.sub("", name)):
            raise InternalError(f"LLVM may not select the intrinsic 'llvm.{name}' for NVPTX")
    for constraints in sorted(set(_CONSTRAINTS.findall(llir))):
        unknown = [part for part in constraints.split(",") if part and not _KNOWN_CONSTRAINT.fullmatch(part)]
        if unknown:
            raise InternalError(f"assembly for NVPTX has no constraint '{unknown[0]}', in '{constraints}'")


def _run_passes(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    with freed(llvm.create_new_function_pass_manager()) as passes:
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
        passes.add_aggressive_instcombine_pass()
        passes.add_simplify_cfg_pass()
        passes.add_dead_code_elimination_pass()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)
