"""What the caller of a kernel passes: values for its parameters, and the buffers that it may access.

numpy array, __array_interface__    its address; from its lowest to its highest byte may be accessed
Buffer                              its pointer and range (this is how torch tensors come, with their storage)
int, None                           an address on its own, 0: what is there belongs to other arguments
number                              for a scalar parameter, wrapped or rounded to its type
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from xdsl.ir import Attribute, SSAValue

from deuteron.errors import UsageError, counted
from deuteron.interpreter.allocation import Buffer, buffer_of_array
from deuteron.interpreter.values import value_of
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.types import byte_width_of, is_float, is_pointer, pointee_of


def bind_arguments(kernel: FuncOp, args: Sequence[object]) -> tuple[list, dict[SSAValue, Buffer]]:
    """The values of the parameters, and the buffer of each that came with one."""
    if len(args) != len(kernel.args):
        wanted, given = counted(len(kernel.args), "parameter"), counted(len(args), "argument")
        raise UsageError(f"{kernel.sym_name.data} has {wanted}, got {given}.")
    values, buffers = [], {}
    for index, (parameter, arg) in enumerate(zip(kernel.args, args, strict=True)):
        name = parameter.name_hint or f"argument {index}"
        if not is_pointer(parameter.type):
            values.append(_scalar(arg, parameter.type, name))
            continue
        address, buffer = _pointer(arg, parameter.type, name)
        values.append(np.int64(address))
        if buffer is not None:
            buffers[parameter] = buffer
    return values, buffers


def _pointer(arg: object, type: Attribute, name: str) -> tuple[int, Buffer | None]:
    if arg is None or isinstance(arg, (int, np.integer)):
        return int(arg or 0), None
    if isinstance(arg, Buffer):
        return arg.address if arg.pointer is None else arg.pointer, replace(arg, name=name)
    if not hasattr(arg, "__array_interface__"):
        raise UsageError(f"Expected an array or an address for {name}, a pointer, got {arg!r}.")
    array = np.asarray(arg)
    size = byte_width_of(pointee_of(type))
    if array.dtype != np.uint8 and array.itemsize != size:
        raise UsageError(
            f"{name} points to elements of {size} bytes, got an array of {array.dtype}. Convert it, "
            "or pass its bytes (uint8)."
        )
    return array.__array_interface__["data"][0], buffer_of_array(array, name)


def _scalar(arg: object, type: Attribute, name: str) -> np.ndarray:
    try:
        if not is_float(type) and int(arg) != arg:
            raise ValueError("not an integer")
        return value_of(arg, type)
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"Expected a number of type {type} for {name}, got {arg!r}.") from error
