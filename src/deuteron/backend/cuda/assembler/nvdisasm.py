"""Cubin to the text of its machine code, with source lines: `sass`, where nvdisasm is found.

disassemble(cubin)     '//## File "k.py", line 20 ... S2UR UR6, SR_CTAID.X ;'
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from deuteron.backend.cuda.assembler.toolkit import find_tool
from deuteron.errors import InternalError


def has_disassembler() -> bool:
    return find_tool("nvdisasm") is not None


def disassemble(cubin: bytes) -> str:
    """The machine code as text."""
    with tempfile.NamedTemporaryFile(prefix="deuteron-", suffix=".cubin") as file:
        Path(file.name).write_bytes(cubin)
        command = [find_tool("nvdisasm"), "--print-code", "--print-line-info", file.name]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise InternalError(f"nvdisasm does not accept our cubin: {done.stderr.strip()[-500:]}")
    return done.stdout
