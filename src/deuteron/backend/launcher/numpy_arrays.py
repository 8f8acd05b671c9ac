"""NumPy's arrays, as the launcher's code reads them: is their memory laid out as it expects?

    is_array(x)          whether x is an array of NumPy, of no subclass, that the code can read
    class_address()      what the class of such an array is known by; 0 where they cannot be read

The layout of an array is part of NumPy's binary interface, on which every extension module relies that was compiled
with its headers. It is checked all the same, on arrays whose addresses, dtypes and flags Python tells.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

from deuteron.backend.launcher.object_layout import (
    NUMPY_DATA,
    NUMPY_DTYPE,
    NUMPY_FLAGS,
    NUMPY_NUM_AXES,
    NUMPY_SHAPE,
    NUMPY_STRIDES,
    NUMPY_WRITEABLE,
)


def is_array(array: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(array) is numpy.ndarray and _is_as_expected()


def class_address() -> int:
    return id(sys.modules["numpy"].ndarray) if _is_as_expected() else 0


@cache
def _is_as_expected() -> bool:
    import numpy  # there already

    base = numpy.zeros((3, 5))
    fixed = numpy.zeros(3, numpy.int8)
    fixed.flags.writeable = False
    probes = (base, base[1:, 2:], base.T[::-1], numpy.zeros(0), numpy.float16(2).reshape(1), fixed, numpy.zeros(()))
    return all(map(_is_probe_as_expected, probes))


def _is_probe_as_expected(array: Any) -> bool:
    data, dtype = (ctypes.c_uint64.from_address(id(array) + offset).value for offset in (NUMPY_DATA, NUMPY_DTYPE))
    flags = ctypes.c_uint32.from_address(id(array) + NUMPY_FLAGS).value
    is_writeable = bool(flags & NUMPY_WRITEABLE)
    told = array.__array_interface__["data"][0], id(array.dtype), array.flags.num
    return (data, dtype, flags) == told and is_writeable == array.flags.writeable and _tells_extents(array)


def _tells_extents(array: Any) -> bool:
    if ctypes.c_int32.from_address(id(array) + NUMPY_NUM_AXES).value != array.ndim:
        return False
    where = (ctypes.c_uint64.from_address(id(array) + offset).value for offset in (NUMPY_SHAPE, NUMPY_STRIDES))
    found = [tuple((ctypes.c_int64 * array.ndim).from_address(address)) if array.ndim else () for address in where]
    return found == [array.shape, array.strides]
