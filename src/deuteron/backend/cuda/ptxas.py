"""PTX to cubin, by ptxas: that of the wheel `nvidia-cuda-nvcc`, else the one on PATH.

    assemble(ptx, "sm_90a")   Cubin(image=b"\\x7fELF...", registers=26, spill_bytes=0, shared_bytes=512, warnings=())

Neither a GPU, a driver nor a CUDA toolkit is needed. What ptxas reports of the kernel is read from its verbose output.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from deuteron.errors import InternalError, UsageError

_RESOURCES = {
    "registers": re.compile(r"Used (\d+) registers"),
    "shared_bytes": re.compile(r"(\d+) bytes smem"),
    "spill_stores": re.compile(r"(\d+) bytes spill stores"),
    "spill_loads": re.compile(r"(\d+) bytes spill loads"),
}


@dataclass(frozen=True)
class Cubin:
    """A kernel's machine code and what it uses: registers a thread, bytes spilled a thread, static shared memory."""

    image: bytes
    registers: int
    spill_bytes: int
    shared_bytes: int
    warnings: tuple[str, ...]


@cache
def find_ptxas() -> Path:
    """The assembler; raises UsageError, naming the extra to install, where there is none."""
    package = find_spec("nvidia")
    for folder in package.submodule_search_locations if package else ():
        for found in sorted(Path(folder).glob("*/bin/ptxas*"), reverse=True):
            return found
    on_path = shutil.which("ptxas")
    if on_path is None:
        raise UsageError("ptxas was not found: install it with `pip install 'deuteron[cuda]'`, or put it on PATH")
    return Path(on_path)


@cache
def ptxas_version() -> str:
    """The release that `find_ptxas` gives, such as `13.5`; part of the key of a compiled kernel."""
    text = subprocess.run([find_ptxas(), "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"release ([\d.]+)", text)
    return found.group(1) if found else text.strip()


def assemble(ptx: str, name: str, fp_fusion: bool = True, debug: bool = False) -> Cubin:
    """The cubin of a PTX text for the architecture `name` (sm_80, sm_90a, ...)."""
    with tempfile.TemporaryDirectory(prefix="deuteron-") as folder:
        source, target = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx)
        flags = ["-v", "-lineinfo", *([] if fp_fusion else ["--fmad=false"]), *(["-O0", "-g"] if debug else [])]
        command = [find_ptxas(), f"--gpu-name={name}", *flags, source, "-o", target]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0 or not target.exists():
            raise InternalError(f"ptxas does not accept our PTX for {name}: {_errors(done.stderr)}")
        return _cubin(target.read_bytes(), done.stderr)


def _errors(report: str) -> str:
    lines = [line for line in report.splitlines() if "error" in line or "fatal" in line]
    return "; ".join(lines[:3]) or report.strip()[-500:] or "it ended without a message"


def _cubin(image: bytes, report: str) -> Cubin:
    found = {name: pattern.search(report) for name, pattern in _RESOURCES.items()}
    counts = {name: int(match.group(1)) if match else 0 for name, match in found.items()}
    warnings = tuple(line.strip() for line in report.splitlines() if "warning" in line or "C75" in line)
    spills = counts["spill_stores"] + counts["spill_loads"]
    return Cubin(image, counts["registers"], spills, counts["shared_bytes"], warnings)
