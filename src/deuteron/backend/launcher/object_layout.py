"""How this interpreter lays out its objects, as far as the launcher's code reads them.

The class of an object is the last word of a PyObject, whatever comes before it; an array of NumPy follows it.
"""

from __future__ import annotations

import ctypes
import sys

from deuteron.backend.launcher.records import WORD

OBJECT_BYTES = object.__basicsize__
IS_FREE_THREADED = "free-threading" in sys.version

# What code differs in for interpreters of one version.
LAYOUT = f"objects of {OBJECT_BYTES} bytes, {'free-threaded' if IS_FREE_THREADED else 'with a lock'}"

# Of NumPy's array object, after what every object has: data, dimensions, shape, strides, base, dtype, flags. It is part
# of NumPy's binary interface; `numpy_arrays.py` looks whether it is so.
NUMPY_DATA, NUMPY_DTYPE, NUMPY_FLAGS = OBJECT_BYTES, OBJECT_BYTES + 40, OBJECT_BYTES + 48
NUMPY_NUM_AXES, NUMPY_SHAPE, NUMPY_STRIDES = OBJECT_BYTES + 8, OBJECT_BYTES + 16, OBJECT_BYTES + 24
NUMPY_WRITEABLE = 0x0400
NUMPY_UNUSUAL = 0x2000 | 1 << 31  # to be written back elsewhere; warns when it is written to


def check_layout() -> bool:
    """Whether that is so."""
    probes = (object(), 5, "text", 1.5, (), None, type)
    return all(_word_at(id(probe) + OBJECT_BYTES - WORD) == id(type(probe)) for probe in probes)


def _word_at(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value
