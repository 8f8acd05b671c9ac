"""A kernel as the text of a stage, `add.ttir` or `add.ttgir`: its name and parameters are those of the text.

    kernel = load_text(Path("add.ttir"), Target("cpu", "native"))
    kernel.name, kernel.signature, kernel.source
    kernel.fingerprint                                   "text=2a9b77f0": texts of one signature may differ

Integers in a text have no sign: they are `i32` in C. What the text promises to be divisible by 16 is hinted so.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from deuteron.aot.load import KernelSource
from deuteron.aot.signature import parse_signature
from deuteron.backend import get_backend
from deuteron.backend.metadata import Param
from deuteron.compiler import IRSource
from deuteron.compiler.stages import find_stage
from deuteron.errors import UsageError
from deuteron.options import Target

SUFFIXES = (".ttir", ".ttgir", ".llir", ".ptx")


@dataclass(frozen=True)
class _Parameter:
    """A parameter of a text; what was a constexpr is compiled in."""

    name: str
    is_constexpr: bool = False


def is_text(path: Path) -> bool:
    return path.suffix in SUFFIXES


def load_text(path: Path, target: Target) -> KernelSource:
    """The kernel in a file; raises UsageError or IRError where there is none."""
    source = IRSource(path)
    stage = find_stage(get_backend(target).stages, source.stage)
    if stage.describe is None:
        raise UsageError(f"'{path}': C is made from .ttir or .ttgir, where the kernel can still be given its name in C")
    name, params = stage.describe(stage.parse(source.text, source.file))
    signature = parse_signature(", ".join(map(_element, params)), [_Parameter(param.name) for param in params], name)
    digest = hashlib.sha256(source.text.encode()).hexdigest()[:8]
    return KernelSource(name, signature, source, (f"text={digest}",), (path,))


def _element(param: Param) -> str:
    return f"{param.type}:16" if param.divisibility == 16 else param.type
