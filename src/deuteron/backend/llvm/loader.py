"""Loads objects into this process.

    loaded = load_object(emit_object(llir, cpu, features), ["softmax_kernel"])
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(loaded.address("softmax_kernel"))
    load_kept("name", make_text, ["run"])   what belongs to no kernel: compiled once, and kept in the cache folder

An address is valid while its LoadedObject is alive. Symbols that the object leaves undefined are looked for
in the process, where libc is. Linking takes about 0.5 ms.

It is LLVM's JITLink that links, since it takes one piece of memory for an object. The older RuntimeDyld takes one for
each section, and where they are more than 2 GiB apart, as in a process that maps much, it ends the process.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import weakref
from collections.abc import Callable, Sequence

import llvmlite.binding as llvm

from deuteron.backend.llvm.debuggers import announce
from deuteron.backend.llvm.native import native_target
from deuteron.backend.llvm.targets import machine
from deuteron.errors import InternalError
from deuteron.once import once
from deuteron.settings import settings
from deuteron.toolchain import toolchain
from deuteron.trusted_files import kept

_numbers = itertools.count()


class LoadedObject:
    """Machine code in memory; unloaded when it is garbage collected."""

    def __init__(self, tracker: llvm.ResourceTracker):
        self._tracker = tracker

    def address(self, symbol: str) -> int:
        return self._tracker[symbol]


def load_object(data: bytes, symbols: Sequence[str], is_announced: bool = False) -> LoadedObject:
    """Load an object; `symbols` are the functions whose addresses will be asked for.

    Of one that `is_announced` gdb and perf are told (`debuggers.py`).
    """
    library = llvm.JITLibraryBuilder().add_object_img(data).add_current_process()
    for symbol in symbols:
        library.export_symbol(symbol)
    try:
        loaded = LoadedObject(library.link(_jit(), f"object{next(_numbers)}"))
    except RuntimeError as error:
        raise InternalError(f"the object of {', '.join(symbols)} cannot be loaded: {error}") from error
    announced = announce(data, symbols[0], loaded.address(symbols[0])) if is_announced else None
    if announced:
        weakref.finalize(loaded, announced.withdraw).atexit = False
    return loaded


def is_in_process(symbol: str) -> bool:
    """Whether an object that calls it can be loaded."""
    return llvm.address_of_symbol(symbol) is not None


def load_kept(name: str, make_text: Callable[[], str], symbols: Sequence[str]) -> LoadedObject:
    """Load LLVM IR of ours, for any CPU of this architecture.

    Its object is kept on disk: to make it takes longer than the start of a cached kernel takes for all else, even the
    text alone, with what it imports.
    """

    def make() -> bytes:
        from deuteron.backend.llvm.compile import emit_object, optimise  # deferred: see above

        return emit_object(optimise(make_text(), "generic", "", 2), "generic", "", 2)

    key = hashlib.sha256("\0".join((name, machine(), *toolchain())).encode()).hexdigest()
    return load_object(kept(settings.cache_dir, key, make), symbols)


def keep_loaded(loaded: LoadedObject) -> None:
    """Never unload it, not even while the interpreter ends."""
    for each in (loaded, loaded._tracker, _jit()):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))


@once
def _jit() -> llvm.LLJIT:
    machine = native_target().create_target_machine(reloc="pic", codemodel="default")
    return llvm.create_lljit_compiler(machine, use_jit_link=True)
