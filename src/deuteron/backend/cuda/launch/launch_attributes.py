"""What a launch asks of the driver that cuLaunchKernel has no parameter for.

    attributes = launch_attributes({"launch_pdl": True, ...}, arch=90)    (6,): each id is asked for with the value 1
    cuLaunchKernelEx(make_config(api, attributes, grid, block, shared, stream), function, addresses, 0)

`attribute_words` are the same as an array of CUlaunchAttribute, and CONFIG is a CUlaunchConfig, for machine code.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

_COOPERATIVE = 2  # CU_LAUNCH_ATTRIBUTE_COOPERATIVE
_PDL = 6  # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
_PDL_ARCH = 90  # before it kernels of a stream follow one another, which is what such a launch allows as well
_ATTRIBUTE = "<i4xi60x"  # CUlaunchAttribute: the id, and a union of 64 bytes, which begins with an int here

# Offsets in a CUlaunchConfig: extents of the grid and of a block (3 numbers of 4 bytes each), then these.
SHARED, STREAM, ATTRIBUTES, NUM_ATTRIBUTES, CONFIG_BYTES = 24, 32, 40, 48, 56


def launch_attributes(options: Mapping[str, Any], arch: int) -> tuple[int, ...]:
    """The ids of the attributes that a kernel's options ask for."""
    asked = {
        _COOPERATIVE: options.get("launch_cooperative_grid"),
        _PDL: options.get("launch_pdl") and arch >= _PDL_ARCH,
    }
    return tuple(number for number, is_asked in asked.items() if is_asked)


def attribute_words(attributes: Sequence[int]) -> tuple[int, ...]:
    """Words of 8 bytes."""
    packed = b"".join(struct.pack(_ATTRIBUTE, number, 1) for number in attributes)
    return struct.unpack(f"<{len(packed) // 8}Q", packed)


def make_config(
    api: Any, attributes: Sequence[int], grid: Sequence[int], num_threads: int, shared: int, stream: Any
) -> Any:
    """A CUlaunchConfig of the package `cuda-bindings`."""
    config = api.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = grid
    config.blockDimX, config.blockDimY, config.blockDimZ = num_threads, 1, 1
    config.sharedMemBytes, config.hStream = shared, stream
    config.attrs = [_attribute(api, number) for number in attributes]
    config.numAttrs = len(attributes)
    return config


def _attribute(api: Any, number: int) -> Any:
    attribute = api.CUlaunchAttribute()
    attribute.id, value = api.CUlaunchAttributeID(number), api.CUlaunchAttributeValue()
    if number == _COOPERATIVE:
        value.cooperative = 1
    else:
        value.programmaticStreamSerializationAllowed = 1
    attribute.value = value
    return attribute
