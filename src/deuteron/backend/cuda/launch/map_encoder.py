"""Encodes a kernel's tensor maps for a launch, by the driver's cuTensorMapEncodeTiled.

    encoder = MapEncoder("matmul", metadata.tensor_maps)
    encoder.encoded([address, 4096, 4096])       one `bytes` of 128 for each map

What has been encoded is kept by the arguments that it depends on: encoding takes some microseconds for each map. The
driver is called through ctypes, for the memory of a map is aligned to 64 bytes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from deuteron.backend.cuda.launch.libcuda import LIBRARY
from deuteron.backend.tensor_map import (
    ALIGNMENT,
    DATA_TYPES,
    SIZE,
    SWIZZLES,
    UNUSABLE,
    Expression,
    MapValues,
    TensorMap,
)
from deuteron.errors import LaunchError

MAX_KEPT = 1024  # maps of 128 bytes: a bound on memory, not measured
NO_INTERLEAVE, PROMOTION_128B = 0, 2  # CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_128B
FILLS = {"zero": 0, "nan": 1}

Encode = Callable[[TensorMap, MapValues], bytes]


class MapEncoder:
    """The maps of one kernel; `encode` is the driver's part."""

    def __init__(self, kernel: str, maps: Sequence[TensorMap], encode: Encode | None = None):
        self._kernel = kernel
        self._maps = tuple(maps)
        self._encode = encode or encode_tiled
        self._arguments = sorted({index for found in maps for index in _arguments_of(found)})
        self._kept: dict[tuple, tuple[bytes, ...]] = {}

    def encoded(self, values: Sequence[Any]) -> tuple[bytes, ...]:
        """The maps for the values of the kernel's arguments; raises LaunchError."""
        key = tuple([values[index] for index in self._arguments])
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= MAX_KEPT:
                self._kept.clear()
            found = self._kept[key] = tuple(self._encoded(described, values) for described in self._maps)
        return found

    def _encoded(self, described: TensorMap, values: Sequence[Any]) -> bytes:
        try:
            return self._encode(described, described.of_arguments(values))
        except LaunchError as error:
            if described.is_conditional:
                return UNUSABLE
            raise type(error)(f"kernel '{self._kernel}': {error.message}") from None


def _arguments_of(described: TensorMap) -> set[int]:
    found: set[int] = set()
    pending: list[Expression] = [described.base, *described.sizes, *described.strides]
    while pending:
        name, *parts = pending.pop()
        if name == "argument":
            found.add(parts[0])
        pending += [part for part in parts if isinstance(part, tuple)]
    return found


def encode_tiled(described: TensorMap, values: MapValues) -> bytes:
    """The 128 bytes of a map; raises LaunchError where the driver refuses."""
    rank = len(described.box)
    raw = ctypes.create_string_buffer(SIZE + ALIGNMENT)
    start = -ctypes.addressof(raw) % ALIGNMENT
    dims = (ctypes.c_uint64 * rank)(*reversed(values.sizes))
    strides = (ctypes.c_uint64 * max(rank - 1, 1))(*reversed(values.strides))
    box = (ctypes.c_uint32 * rank)(*reversed(described.box))
    steps = (ctypes.c_uint32 * rank)(*[1] * rank)
    status = _function()(
        ctypes.c_void_p(ctypes.addressof(raw) + start),
        DATA_TYPES[described.element][1],
        ctypes.c_uint32(rank),
        ctypes.c_void_p(values.address),
        dims,
        strides,
        box,
        steps,
        NO_INTERLEAVE,
        SWIZZLES[described.swizzle][1],
        PROMOTION_128B,
        FILLS[described.padding],
    )
    if status != 0:
        raise described.refusal(f"cuTensorMapEncodeTiled failed with {status} for {described} of {values}")
    return raw.raw[start : start + SIZE]


@cache
def _function() -> Any:
    return ctypes.CDLL(LIBRARY).cuTensorMapEncodeTiled
