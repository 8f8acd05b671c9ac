"""Types: names, questions, equality; and their text in signatures."""

from __future__ import annotations

import copy
import pickle

import pytest

from deuteron import language as tl
from deuteron.errors import UsageError
from deuteron.language.signature import SCALARS, parse_type, type_text
from deuteron.language.types import ALL_BITS, get_int_dtype


def test_questions():
    assert tl.float16.is_floating() and tl.float16.is_fp16() and not tl.float16.is_int()
    assert tl.uint8.is_int() and tl.uint8.is_int_unsigned() and tl.uint8.is_uint8()
    assert tl.int1.is_bool() and tl.int1.is_int_unsigned()
    assert tl.float8e5.is_fp8() and not tl.float8e5.is_standard_floating()
    assert tl.pointer_type(tl.int32).is_ptr() and not tl.pointer_type(tl.int32).is_int()


def test_sizes():
    assert (tl.float16.primitive_bitwidth, tl.float16.itemsize, tl.float16.fp_mantissa_width) == (16, 2, 10)
    assert (tl.int8.get_int_min_value(), tl.int8.get_int_max_value()) == (-128, 127)
    assert (tl.uint16.get_int_min_value(), tl.uint16.get_int_max_value()) == (0, 65535)
    assert tl.block_type(tl.float64, (4, 8)).nbytes == 256


def test_kinds_are_ordered():
    kinds = [type.kind().value for type in (tl.int1, tl.uint8, tl.bfloat16)]
    assert kinds == sorted(set(kinds))


def test_equality_and_hash():
    assert tl.dtype("fp32") == tl.float32 and tl.float32 != tl.int32
    assert tl.pointer_type(tl.int8) == tl.pointer_type(tl.int8) != tl.pointer_type(tl.int8, const=True)
    assert len({tl.block_type(tl.int8, (4,)), tl.block_type(tl.int8, [4]), tl.block_type(tl.int8, (8,))}) == 2


def test_shape_and_scalar():
    tile = tl.block_type(tl.pointer_type(tl.float16), (64, 32))
    assert tile.scalar.element_ty == tl.float16
    assert tile.with_element_ty(tl.int8) == tl.block_type(tl.int8, (64, 32))
    assert str(tile) == "pointer<fp16>[64, 32]"
    package = __import__("deuteron")
    assert eval(repr(tl.bfloat16), {"deuteron": package, "triton": package}) == tl.bfloat16


def test_wrong_types_are_errors():
    with pytest.raises(ValueError, match="No such type: 'fp31'"):
        tl.dtype("fp31")
    with pytest.raises(TypeError, match="points to a dtype"):
        tl.pointer_type("fp32")
    assert get_int_dtype(16, signed=False) == tl.uint16


@pytest.mark.parametrize("text", [*SCALARS, "*fp16", "*ki8", "**i64"])
def test_text_round_trips(text: str):
    assert type_text(parse_type(text)) == text


def test_aliases():
    assert [parse_type(text) for text in ("f16", " f32", "f64 ", "*f32")] == [
        tl.float16,
        tl.float32,
        tl.float64,
        tl.pointer_type(tl.float32),
    ]


def test_unknown_type_names_the_nearest():
    with pytest.raises(UsageError, match=r"Unknown type 'fp31'\. Did you mean 'fp32'\? Types are i1, i8"):
        parse_type("*fp31")
    with pytest.raises(UsageError, match=r"Unknown type 'const float \*'\. Did you mean '\*fp32'\?"):
        parse_type("const float *")
    with pytest.raises(UsageError, match="Unknown type ''"):
        parse_type("*")


def test_an_element_type_is_one_object():
    for name in ALL_BITS:
        type = tl.dtype(name)
        assert type is tl.dtype(name) and type is copy.deepcopy(type) and type is pickle.loads(pickle.dumps(type))
    assert tl.float32 is tl.dtype("fp32") and tl.pointer_type(tl.int8).element_ty is tl.int8
    pointer = tl.pointer_type(tl.float16, const=True)
    assert copy.deepcopy(pointer) == pointer == pickle.loads(pickle.dumps(pointer))
