"""Loads objects into this process.

    loaded = load_object(emit_object(llir, cpu, features), ["softmax_kernel"])
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(loaded.address("softmax_kernel"))

An address is valid while its LoadedObject is alive. Symbols that the object leaves undefined are looked for
in the process, where libc is. Linking takes about 0.5 ms.

It is LLVM's JITLink that links, since it takes one piece of memory for an object. The older RuntimeDyld takes one for
each section, and where they are more than 2 GiB apart, as in a process that maps much, it ends the process.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache

import llvmlite.binding as llvm

from deuteron.backend.llvm.compile import initialise
from deuteron.errors import InternalError

_numbers = itertools.count()


class LoadedObject:
    """Machine code in memory; unloaded when it is garbage collected."""

    def __init__(self, tracker: llvm.ResourceTracker):
        self._tracker = tracker

    def address(self, symbol: str) -> int:
        return self._tracker[symbol]


def load_object(data: bytes, symbols: Sequence[str]) -> LoadedObject:
    """Load an object; `symbols` are the functions whose addresses will be asked for."""
    library = llvm.JITLibraryBuilder().add_object_img(data).add_current_process()
    for symbol in symbols:
        library.export_symbol(symbol)
    try:
        return LoadedObject(library.link(_jit(), f"object{next(_numbers)}"))
    except RuntimeError as error:
        raise InternalError(f"the object of {', '.join(symbols)} cannot be loaded: {error}") from error


@cache
def _jit() -> llvm.LLJIT:
    initialise()
    machine = llvm.Target.from_default_triple().create_target_machine(reloc="pic", codemodel="default")
    return llvm.create_lljit_compiler(machine, use_jit_link=True)
