"""LLVM's pass managers, freed after their run.

    with freed(builder.getModulePassManager()) as passes:
        passes.run(module, builder)

llvmlite frees none: the empty `_dispose` of its ObjectRef comes before that of its NewPassManager in the order of their
classes (0.50). What stayed was 160 KB for each kernel that a process compiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from llvmlite.binding.newpassmanagers import FunctionPassManager, ModulePassManager, NewPassManager

Passes = TypeVar("Passes", FunctionPassManager, ModulePassManager)


@contextmanager
def freed(passes: Passes) -> Iterator[Passes]:
    """The pass manager, which is freed at the end of the block, once also where llvmlite comes to do it."""
    try:
        yield passes
    finally:
        NewPassManager._dispose(passes)
        passes.detach()
