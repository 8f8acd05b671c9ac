"""`triton.tools.disasm`, and where NVIDIA's driver is.

get_sass(kernel.asm["cubin"])      the machine code as text
extract("kernel.cubin", None)      the same of a file
libcuda_dirs()                     ["/usr/lib/x86_64-linux-gnu"]
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from deuteron.backend.cuda.assembler.nvdisasm import disassemble, has_disassembler
from deuteron.errors import UsageError


def get_sass(cubin: bytes, fun: str | None = None) -> str:
    """The machine code of a cubin, or of one function in it; raises UsageError without nvdisasm."""
    if not has_disassembler():
        raise UsageError("nvdisasm was not found: install a CUDA toolkit, or put it on PATH")
    text = disassemble(cubin)
    if fun is None:
        return text
    sections = re.split(r"(?m)^(?=//-+ \.text\.|\.section\s+\.text\.)", text)
    return "".join(section for section in sections if f".text.{fun}" in section)


def extract(file_path: str, fun: str | None = None) -> str:
    """The machine code of a file."""
    return get_sass(Path(file_path).read_bytes(), fun)


def libcuda_dirs() -> list[str]:
    """The folders in which the system's linker finds NVIDIA's driver."""
    ldconfig = shutil.which("ldconfig") or "/sbin/ldconfig"
    try:
        listed = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    paths = (line.rpartition("=> ")[2] for line in listed.splitlines() if "libcuda.so.1" in line)
    return sorted({str(Path(path).parent) for path in paths})


DISASSEMBLY_NAMES = {"get_sass": get_sass, "extract": extract}
