"""Types and constants as text: LLVM must read back exactly the number that was given."""

from __future__ import annotations

import ctypes
import math
import struct

import ml_dtypes
import numpy as np
import pytest

from deuteron.backend.llvm.compile import emit_object
from deuteron.backend.llvm.loader import load_object
from deuteron.backend.llvm.types import (
    Value,
    array_const,
    bit_width,
    byte_width,
    const,
    element,
    like,
    vector,
    vector_const,
    width,
)


@pytest.mark.parametrize(
    ("type", "scalar", "count", "bits"), [("<8 x float>", "float", 8, 32), ("i1", "i1", 1, 1), ("ptr", "ptr", 1, 64)]
)
def test_parts_of_a_type(type, scalar, count, bits):
    assert (element(type), width(type), bit_width(type)) == (scalar, count, bits)
    assert vector(scalar, count) == type


def test_vectors_of_one_element_are_scalars():
    assert vector("float", 1) == "float"
    assert vector_const("i32", [7]) == const("i32", 7)


def test_like_takes_the_width():
    assert like("<4 x double>", "i64") == "<4 x i64>"
    assert like("double", "i64") == "i64"


def test_a_bool_takes_a_byte():
    assert byte_width("i1") == 1


def bytes_of(constant: Value, size: int) -> bytes:
    """What LLVM makes of a constant, from a global that holds it."""
    text = f"@c = constant {constant}, align 1\ndefine ptr @f() {{\n  ret ptr @c\n}}\n"
    loaded = load_object(emit_object(text, "generic"), ["f"])
    return ctypes.string_at(ctypes.CFUNCTYPE(ctypes.c_void_p)(loaded.address("f"))(), size)


SPECIAL = [0.0, -0.0, 0.1, -1.5, math.inf, -math.inf, 1e-45, 1e300, -1e300, 65504.0, 65519.0, 65520.0, 1e-7, 3.4e38]


@pytest.mark.parametrize("number", SPECIAL)
@pytest.mark.parametrize(
    ("type", "dtype"),
    [("float", np.float32), ("double", np.float64), ("half", np.float16), ("bfloat", ml_dtypes.bfloat16)],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_floats_are_exact(type, dtype, number):
    expected = np.float32(number).astype(dtype) if type == "bfloat" else np.array(number, dtype)
    assert bytes_of(const(type, number), expected.itemsize) == expected.tobytes()


@pytest.mark.parametrize(("type", "size"), [("half", 2), ("bfloat", 2), ("float", 4), ("double", 8)])
def test_nan_stays_nan(type, size):
    data = bytes_of(const(type, math.nan), size)
    widened = data if type in ("double", "float") else None
    if widened is None:
        number = np.frombuffer(data, np.float16 if type == "half" else ml_dtypes.bfloat16)[0]
    else:
        number = struct.unpack("<f" if type == "float" else "<d", data)[0]
    assert np.isnan(np.float64(number))


@pytest.mark.parametrize(
    ("type", "number", "text"),
    [
        ("i8", 255, "-1"),
        ("i32", 2**31, str(-(2**31))),
        ("i64", -1, "-1"),
        ("i1", 5, "true"),
        ("i1", 0, "false"),
        ("ptr", 0, "null"),
    ],
)
def test_integers_wrap_to_their_type(type, number, text):
    assert const(type, number) == Value(type, text)


def test_vector_and_array_constants():
    numbers = [1, -2, 3, 300]
    expected = np.array(numbers, np.int16).tobytes()
    assert bytes_of(vector_const("i16", numbers), 8) == expected
    assert bytes_of(array_const("i16", numbers), 8) == expected
    assert bytes_of(const("<4 x i16>", -2), 8) == np.full(4, -2, np.int16).tobytes()
