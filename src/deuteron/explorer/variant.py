"""The same kernel in another configuration, to be compared.

variant(kernel, {"num_warps": 4, "BLOCK_M": 64, "target": "cuda:80"})
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from deuteron.backend import get_backend
from deuteron.compiler.driver import compile as compile_source
from deuteron.compiler.driver import resolve_target
from deuteron.compiler.kernel import CompiledKernel
from deuteron.compiler.source import ASTSource
from deuteron.errors import UsageError, suggest


def variant(kernel: CompiledKernel, changes: Mapping[str, Any]) -> CompiledKernel:
    """The kernel compiled with other options, constexprs or another target; raises UsageError for what it has not."""
    source, metadata = kernel.src, kernel.metadata
    target = resolve_target(str(changes.get("target", metadata.target)))
    options = {field.name for field in fields(get_backend(target).options_class)}
    constants = dict(source.constexprs) if isinstance(source, ASTSource) else {}
    for name in changes:
        if name not in (*options, *constants, "target"):
            known = (*options, *constants, "target")
            raise UsageError(f"kernel '{kernel.name}' has no option or constexpr '{name}'.{suggest(name, known)}")
    asked = {name: value for name, value in {**metadata.options, **changes}.items() if name in options}
    if isinstance(source, ASTSource):
        constants |= {name: value for name, value in changes.items() if name in constants}
        source = ASTSource(source.fn, source.signature, constants, source.attrs)
    return compile_source(source, target, asked)
