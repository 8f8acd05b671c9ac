"""Functions of Python that are machine code.

    definition = Definition(b"run", address, METH_FASTCALL, b"Launch the kernel.")
    run = new_function(definition, own)         `own` is the first argument of the code

A definition has to live as long as the functions that are made of it.
"""

from __future__ import annotations

import ctypes
from typing import Any

METH_KEYWORDS, METH_O, METH_FASTCALL = 0x2, 0x8, 0x80


class Definition(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)


def new_function(definition: Definition, own: Any) -> Any:
    return _new(ctypes.addressof(definition), own, None)
