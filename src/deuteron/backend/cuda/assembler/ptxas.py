"""PTX to cubin, by ptxas: that of the wheel `nvidia-cuda-nvcc`, else the one on PATH.

    assemble(ptx, "sm_90a")   Cubin(b"\\x7fELF...", Resources(registers=26, shared_bytes=512, ...), messages=())

Neither a GPU, a driver nor a CUDA toolkit is needed. What ptxas reports of the kernel is read from its verbose output;
what is not in every such output (`(C7510) Potential Performance Loss: ...`) is a message.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from deuteron.backend.cuda.assembler.ptxas_process import TEMPORARY_FOLDER, AssemblerProcess
from deuteron.backend.cuda.assembler.toolkit import find_tool
from deuteron.errors import AssemblerError, CompilationError, Location, OutOfResources, UsageError
from deuteron.settings import settings
from deuteron.trusted_files import kept

_RESOURCES = {
    "registers": re.compile(r"Used (\d+) registers"),
    "barriers": re.compile(r"used (\d+) barriers"),
    "shared_bytes": re.compile(r"(\d+) bytes smem"),
    "stack_bytes": re.compile(r"(\d+) bytes stack frame"),
    "spill_stores": re.compile(r"(\d+) bytes spill stores"),
    "spill_loads": re.compile(r"(\d+) bytes spill loads"),
}
_ROUTINE = re.compile(
    r"\d+ bytes gmem|Compiling entry function|Function properties for|bytes stack frame|: Used \d+|Compile time ="
)
# After the accumulators come the registers of the left operand, where another has its descriptor.
_WGMMA_OF_REGISTERS = re.compile(r"wgmma\.mma_async\S*\s*\{[^}]*\},\s*\{")


_NO_MEMORY = "Memory allocation failure"
_NO_OUTPUT = re.compile(r"fatal\s*: (.*(?:writing file|could not be opened).*)")
_WAY_OUT = "Where memory is short, take smaller tiles or more warps: a thread then has fewer elements."
_ERROR = re.compile(r"line (\d+); (?:error|fatal)\s*: (.*)")
_MARKS = ("// begin inline asm", "// end inline asm")
_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)")
_FILE = re.compile(r'\s*\.file\s+(\d+)\s+(".*)')
_VERSION = re.compile(r"^\.version [\d.]+", re.MULTILINE)
# What `maxnreg`, or the number of threads, leaves of registers, and how many one instruction takes.
_FEW_REGISTERS = re.compile(r"Insufficient registers \((\d+)\) to compile.*register target of (\d+)")
_NEWER_VERSION = re.compile(r"requires PTX ISA \.version (\d+)\.(\d+) or later")


@dataclass(frozen=True)
class Resources:
    """What a kernel uses: registers, stack and bytes spilled by a thread; named barriers and static shared memory."""

    registers: int = 0
    barriers: int = 0
    shared_bytes: int = 0
    stack_bytes: int = 0
    spill_stores: int = 0
    spill_loads: int = 0

    @property
    def spill_bytes(self) -> int:
        return self.spill_stores + self.spill_loads


@dataclass(frozen=True)
class Cubin:
    """A kernel's machine code, what it uses, and what ptxas said besides."""

    image: bytes
    resources: Resources
    messages: tuple[str, ...]


def find_ptxas() -> Path:
    """The assembler; raises UsageError, naming the extra to install, where there is none."""
    found = _ptxas()
    if found is None:
        raise UsageError("ptxas was not found: install it with `pip install 'deuteron[cuda]'`, or put it on PATH")
    return found


def has_ptxas() -> bool:
    return _ptxas() is not None


def _ptxas() -> Path | None:
    return Path(settings.ptxas) if settings.ptxas else find_tool("ptxas")


def ptxas_version() -> str:
    """The release that `find_ptxas` gives, such as `13.5`; part of the key of a compiled kernel."""
    return _version_of(find_ptxas())


@cache
def _version_of(ptxas: Path) -> str:
    """What the program says of itself, which is kept on disk for as long as its file is the same."""
    status = ptxas.resolve().stat()
    identity = repr((str(ptxas.resolve()), status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev))
    key = hashlib.sha256(f"version of ptxas {identity}".encode()).hexdigest()
    return kept(settings.cache_dir, key, lambda: _said_version(ptxas).encode()).decode()


def _said_version(ptxas: Path) -> str:
    text = subprocess.run([ptxas, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"release ([\d.]+)", text)
    return found.group(1) if found else text.strip()


def start_assembler(name: str, fp_fusion: bool = True) -> AssemblerProcess:
    """A process that `assemble` may be given, for the architecture `name` (sm_80, sm_90a, ...)."""
    flags = ["-v", "-lineinfo", *([] if fp_fusion else ["--fmad=false"])]
    return AssemblerProcess([find_ptxas(), f"--gpu-name={name}", *flags])


def assemble(ptx: str, name: str, fp_fusion: bool = True, process: AssemblerProcess | None = None) -> Cubin:
    """The cubin of a PTX text, by a process that was started with the same arguments, or by a new one.

    The text says the oldest version of PTX that has its architecture. Where the kernel's own assembly has instructions
    of a newer one, that version is taken.
    """
    done = (process or start_assembler(name, fp_fusion)).finish(ptx)
    how_it_ended = f"was ended by signal {-done.status}" if done.status < 0 else "found no memory"
    if done.status < 0 or _NO_MEMORY in done.report:
        size = f"{ptx.count(chr(10)):,} lines of PTX for {name}"
        raise UsageError(f"ptxas {how_it_ended}, at {size}. {_WAY_OUT}")
    if unwritten := _NO_OUTPUT.search(done.report):
        raise UsageError(f"what ptxas writes cannot be written: {unwritten[1]}. {TEMPORARY_FOLDER}")
    newer = [(int(major), int(minor)) for major, minor in _NEWER_VERSION.findall(done.report)]
    if newer:
        return assemble(_VERSION.sub(".version {}.{}".format(*max(newer)), ptx, count=1), name, fp_fusion)
    few = [(int(limit), int(needed)) for limit, needed in _FEW_REGISTERS.findall(done.report)]
    if few:
        raise OutOfResources(max(needed for _, needed in few), few[0][0], "registers per thread")
    if done.status != 0 or done.image is None:
        _refuse_assembly(ptx, name, done.report)
        raise AssemblerError(f"ptxas does not accept the PTX for {name}: {_errors(done.report)}")
    return _cubin(done.image, done.report, known_defects(ptx, ptxas_version()))


def known_defects(ptx: str, version: str) -> tuple[str, ...]:
    """What this release of ptxas is known to get wrong of such a PTX text (triton-lang/triton#9433)."""
    release = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if release >= (13, 3) or not _WGMMA_OF_REGISTERS.search(ptx):
        return ()
    return (
        f"ptxas {version} may write an operand of a wgmma that is in flight: take 13.3 or newer, with "
        "`pip install 'deuteron[cuda]'`",
    )


def _refuse_assembly(ptx: str, name: str, report: str) -> None:
    """Raise CompilationError, at the line of the kernel, where what ptxas does not accept is the kernel's assembly."""
    lines = ptx.splitlines()
    for match in _ERROR.finditer(report):
        before = lines[: int(match[1])]
        begins, ends = (max((n for n, line in enumerate(before) if mark in line), default=-1) for mark in _MARKS)
        if begins > ends and any("{ " in line for line in lines[begins : begins + 2]):
            shown = before[-1].strip()
            message = f"ptxas does not accept this assembly for {name}: {match[2]}, in '{shown}'. Mend the template."
            raise CompilationError(message, _location(lines, before))


def _location(lines: list[str], before: list[str]) -> Location | None:
    """The place in the source that the last `.loc` names."""
    found = next((match for line in reversed(before) if (match := _LOC.match(line))), None)
    files = (match for line in lines if (match := _FILE.match(line)))
    paths = {match[1]: "/".join(re.findall(r'"([^"]*)"', match[2])) for match in files}
    return Location(paths.get(found[1], "?"), int(found[2]), max(int(found[3]), 1)) if found else None


def _errors(report: str) -> str:
    lines = [line for line in report.splitlines() if "error" in line or "fatal" in line]
    return "; ".join(lines[:3]) or report.strip()[-500:] or "it ended without a message"


def _cubin(image: bytes, report: str, defects: tuple[str, ...]) -> Cubin:
    found = {name: pattern.search(report) for name, pattern in _RESOURCES.items()}
    counts = {name: int(match.group(1)) for name, match in found.items() if match}
    messages = (line.strip() for line in report.splitlines() if line.strip() and not _ROUTINE.search(line))
    return Cubin(image, Resources(**counts), (*messages, *defects))
