"""What the function of a kernel is called in object code where nobody asks for a name.

    symbol_of("softmax")     "softmax", as debuggers and profilers show it
    symbol_of("memcpy")      "memcpy_kernel": LLVM calls `memcpy` for copies of its own
    symbol_of("WARP_SZ")     "WARP_SZ_kernel": a constant in PTX

Functions that a module has for itself have a dot in their names, which no kernel has.
"""

from __future__ import annotations

_CALLED_BY_LLVM = frozenset(["bcmp", "memchr", "memcmp", "memcpy", "memmove", "memset", "strlen"])
_OF_CUDA = frozenset(["printf", "vprintf", "free", "malloc"])
_OF_LLVM = frozenset(["llvm"])  # `llvm.program` would be an intrinsic
_OF_PTX = frozenset(["_", "WARP_SZ"])
_OF_KERNELS = frozenset(["shared"])  # their dynamic shared memory
_TAKEN = _CALLED_BY_LLVM | _OF_CUDA | _OF_LLVM | _OF_PTX | _OF_KERNELS


def symbol_of(kernel: str) -> str:
    """The symbol of a kernel: its name, unless object code means something else by it."""
    return f"{kernel}_kernel" if kernel in _TAKEN or kernel.startswith("__") else kernel
