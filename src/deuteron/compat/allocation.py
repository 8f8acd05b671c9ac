"""`triton.set_allocator`: where kernels would get scratch memory of their own from.

Deuteron's kernels take none: descriptors that a kernel makes need none here. What is set is kept and never called.
"""

from __future__ import annotations

from typing import Any, NoReturn, Protocol


class Buffer(Protocol):
    """An array in the memory of a device."""

    def data_ptr(self) -> int: ...


class Allocator(Protocol):
    """`allocator(size, alignment, stream)` returns a Buffer."""

    def __call__(self, size: int, alignment: int, stream: int | None) -> Buffer: ...


class NullAllocator:
    """What is there until an allocator is set."""

    def __call__(self, size: int, alignment: int, stream: int | None) -> NoReturn:
        raise RuntimeError("no allocator was set: call triton.set_allocator")


_held: dict[str, Any] = {"kernel": NullAllocator(), "profile": NullAllocator()}


def set_allocator(allocator: Allocator) -> None:
    """Keep it; kernels of Deuteron do not ask for memory."""
    _held["kernel"] = allocator


def set_profile_allocator(allocator: Allocator | None) -> None:
    """Keep it; Deuteron has no profiler that asks for memory."""
    _held["profile"] = allocator or NullAllocator()


ALLOCATION_NAMES = {
    "Buffer": Buffer,
    "Allocator": Allocator,
    "NullAllocator": NullAllocator,
    "set_allocator": set_allocator,
    "set_profile_allocator": set_profile_allocator,
}
