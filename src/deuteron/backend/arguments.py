"""The arguments of a launch as a kernel reads them: one slot of 8 bytes each, little-endian.

    layout = ArgumentSlots("add", metadata.runtime_params)
    layout.pack([x.ctypes.data, 1000])            b"..." of 16 bytes
    layout.write(memory, [x.ctypes.data, 1000])   the same, into a buffer

Pointers are addresses, i1 is a byte of 0 or 1, and fp16 and bf16 are passed as float: the kernel converts. Numbers out
of range wrap or become infinite; what is no number is a LaunchError that names the argument.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

from deuteron.backend.metadata import Param
from deuteron.errors import LaunchError, counted

SLOT_BYTES = 8

_FORMATS = {
    "i1": "?7x",
    "i8": "b7x",
    "u8": "B7x",
    "i16": "h6x",
    "u16": "H6x",
    "i32": "i4x",
    "u32": "I4x",
    "i64": "q",
    "u64": "Q",
    "fp16": "f4x",
    "bf16": "f4x",
    "fp32": "f4x",
    "fp64": "d",
}
SCALAR_TYPES = frozenset(_FORMATS)
_NOT_AS_IT_IS = (struct.error, OverflowError, TypeError)


class ArgumentSlots:
    """How the arguments of one kernel are packed."""

    def __init__(self, kernel: str, params: Sequence[Param]):
        self._kernel = kernel
        self._params = tuple(params)
        self.count = len(self._params)
        slots = struct.Struct("<" + "".join(map(_format, self._params)))
        self._pack, self._pack_into = slots.pack, slots.pack_into
        self.unpack = slots.unpack

    def pack(self, values: Sequence[Any]) -> bytes:
        """The slots of all arguments; raises LaunchError."""
        try:
            return self._pack(*values)
        except _NOT_AS_IT_IS:
            return self._pack_each(values)

    def write(self, memory: Any, values: Sequence[Any]) -> None:
        """Pack into a writable buffer that has room for all slots; raises LaunchError."""
        try:
            self._pack_into(memory, 0, *values)
        except _NOT_AS_IT_IS:
            memoryview(memory).cast("B")[: SLOT_BYTES * len(self._params)] = self._pack_each(values)

    def _pack_each(self, values: Sequence[Any]) -> bytes:
        if len(values) != len(self._params):
            names = ", ".join(param.name for param in self._params)
            raise LaunchError(f"kernel '{self._kernel}' takes {names}, got {counted(len(values), 'argument')}")
        return b"".join(self._pack_one(param, value) for param, value in zip(self._params, values, strict=True))

    def _pack_one(self, param: Param, value: Any) -> bytes:
        slot = _format(param)
        try:
            if slot[0] in "fd?":
                return struct.pack("<" + slot, ctypes.c_float(value).value if slot[0] == "f" else value)
            bits = 8 * struct.calcsize(slot[0])
            return struct.pack("<Q", value & ((1 << bits) - 1))
        except (struct.error, TypeError, OverflowError):
            raise LaunchError(
                f"argument '{param.name}' of kernel '{self._kernel}': expected {param.type}, got {value!r}"
            ) from None


def _format(param: Param) -> str:
    return "Q" if param.kind == "pointer" else _FORMATS[param.type]
