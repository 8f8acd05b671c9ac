"""LLVM for this machine's own architecture.

native_target().create_target_machine(...)
"""

from __future__ import annotations

import llvmlite.binding as llvm

from deuteron.once import once


@once
def native_target() -> llvm.Target:
    """Made ready for code, assembly and objects."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    return llvm.Target.from_default_triple()
