"""Tokens: type and hints of scalars, constexprs, and what parameters do not specialise on."""

from typing import NamedTuple

import ml_dtypes
import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.errors import LaunchError
from deuteron.language.functions.function import Parameter
from deuteron.runtime.specialise import constexpr_token, decode, parameter_specialiser, specialise


@pytest.mark.parametrize(
    ("value", "token"),
    [
        (True, "i1"),
        (False, "i1"),
        (1, "i32:1"),
        (0, "i32:16"),
        (16, "i32:16"),
        (-32, "i32"),
        (17, "i32"),
        (2**31 - 1, "i32"),
        (2**31, "i64:16"),
        (-(2**31) - 1, "i64"),
        (2**63 - 1, "i64"),
        (2**63, "u64:16"),
        (2**64 - 1, "u64"),
        (0.5, "fp32"),
        (1.0, "fp32"),
        (np.float64(1.5), "fp64"),
        (np.float32(1.5), "fp32"),
        (np.float16(1.5), "fp16"),
        (ml_dtypes.bfloat16(1.5), "bf16"),
        (np.int64(5), "i64"),
        (np.int8(1), "i8:1"),
        (np.uint32(48), "u32:16"),
        (np.bool_(True), "i1"),
    ],
)
def test_scalars(value, token):
    assert specialise(value) == (token, value)


def test_numpy_scalars_are_passed_as_python_numbers():
    assert type(specialise(np.int16(7))[1]) is int
    assert type(specialise(np.float32(7))[1]) is float


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1])
def test_integers_beyond_64_bits(value):
    with pytest.raises(LaunchError, match="at most 64 bits"):
        specialise(value)
    with pytest.raises(OverflowError):
        specialise(value)


@pytest.mark.parametrize("value", ["text", ("text",), object(), 1j, np.complex64(1)])
def test_values_that_only_a_constexpr_can_have(value):
    with pytest.raises(LaunchError, match="constexpr|cannot be given"):
        specialise(value)


def test_none_and_functions_are_constexprs():
    @deuteron.jit
    def helper(x):
        return x

    assert specialise(None) == (("constexpr", type(None), None), None)
    assert specialise(helper)[0][0] == "constexpr"


def test_constexpr_tokens_tell_types_apart():
    values = [1, True, 1.0, "1", (1,), (True,), (1.0,), None, 0.0, -0.0, tl.float16, tl.float32, int]
    assert len({constexpr_token(value)[0] for value in values}) == len(values)


def test_a_wrapped_constexpr_is_its_value():
    assert constexpr_token(tl.constexpr(5)) == constexpr_token(5)


def test_a_constexpr_that_cannot_be_hashed():
    with pytest.raises(LaunchError, match="must be hashable"):
        constexpr_token(bytearray(b"1"))


def test_dictionaries_and_sets_are_constexprs():
    values = [{"a": 1}, {"a": True}, {"b": 1}, {1, 2}, {1, True + 2}, {"a": {"b": [1]}}]
    assert len({constexpr_token(value)[0] for value in values}) == len(values)
    assert constexpr_token({"a": {1}})[0] == constexpr_token({"a": {1}})[0]


def test_nan_has_one_token():
    assert constexpr_token(float("nan"))[0] == constexpr_token(float("nan"))[0]


@pytest.mark.parametrize(
    ("flags", "tokens"),
    [
        ({}, ["i32:1", "i32:16", "i32", "*fp32:16"]),
        ({"do_not_specialize": True}, ["i32", "i32", "i32", "*fp32"]),
        ({"do_not_specialize_on_alignment": True}, ["i32:1", "i32", "i32", "*fp32"]),
    ],
)
def test_parameters_that_do_not_specialise(flags, tokens):
    aligned = np.zeros(64, np.float32)
    aligned = aligned[(-aligned.ctypes.data % 16) // 4 :]
    find = parameter_specialiser(Parameter(0, "x", "", None, **flags))
    assert [find(value)[0] for value in (1, 32, 7, aligned)] == tokens


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        ("tl.int64", 5, ("i64", 5)),
        ("tl.int64", 1, ("i64:1", 1)),
        ("i64", 32, ("i64:16", 32)),
        ("tl.float64", 0.5, ("fp64", 0.5)),
        ("tl.float16", 2, ("fp16", 2)),
        ("tl.uint8", True, ("u8:1", 1)),
        ("tl.int1", 1, ("i1", 1)),
    ],
)
def test_an_annotation_gives_the_type(annotation, value, expected):
    assert parameter_specialiser(Parameter(0, "x", annotation, None))(value) == expected


def test_an_annotated_number_must_be_one():
    with pytest.raises(LaunchError, match="a number is expected for a parameter annotated 'i64'"):
        parameter_specialiser(Parameter(0, "x", "tl.int64", None))("5")
    with pytest.raises(LaunchError, match=r"for a parameter annotated 'i64', got an array of shape \(64,\)"):
        parameter_specialiser(Parameter(0, "x", "tl.int64", None))(np.zeros(64))


@pytest.mark.parametrize("number", [1.5, np.float32(1.5), float("nan"), float("inf")])
def test_a_number_that_is_no_integer_is_refused_where_one_is_annotated(number):
    find = parameter_specialiser(Parameter(0, "x", "tl.int32", None))
    with pytest.raises(LaunchError, match="an integer is expected for a parameter annotated 'i32', got"):
        find(number)
    assert find(2.0) == ("i32", 2)


@pytest.mark.parametrize(
    "annotation, number, expected",
    [
        ("tl.uint8", -1, ("u8", 255)),
        ("tl.int8", 255, ("i8", -1)),
        ("tl.int32", 2**32 - 16, ("i32", -16)),  # negative, so that it has no hint
        ("tl.uint64", -16, ("u64:16", 2**64 - 16)),
        ("tl.int1", 2, ("i1", 1)),
    ],
)
def test_an_annotated_integer_is_what_its_bits_are_in_that_type(annotation, number, expected):
    assert parameter_specialiser(Parameter(0, "x", annotation, None))(number) == expected


@pytest.mark.parametrize("annotation, number", [("tl.int32", 2**32), ("tl.uint32", -(2**31) - 1), ("tl.int8", 1e3)])
def test_an_integer_of_more_bits_than_are_annotated_is_refused(annotation, number):
    """Not cut off, which made an index of another element of it."""
    with pytest.raises(OverflowError, match="bits is expected for a parameter annotated"):
        parameter_specialiser(Parameter(0, "x", annotation, None))(number)


@pytest.mark.parametrize("first", [True, 1.0, np.int64(1), np.float32(1)])
def test_what_is_equal_to_one_is_folded_as_the_integer(first):
    """Kernels are found by tokens: what was compiled for the first argument is launched for all that have its token."""
    param = Parameter(0, "x", "tl.int32", None)
    token, _ = parameter_specialiser(param)(first)
    _, constants, _ = decode((param,), (token,), [first])
    assert token == "i32:1" and type(constants["x"]) is int and constants == {"x": 1}


def test_a_pointer_annotated_const_is_one_in_the_signature():
    params = (Parameter(0, "x", "tl.const", None), Parameter(1, "n", "tl.const", None))
    assert decode(params, ("*fp32", "i32"), [0, 7])[0] == {"x": "*kfp32", "n": "i32"}


def test_decoding_folds_ones_and_keeps_hints():
    params = tuple(Parameter(i, name, "", None) for i, name in enumerate(("x", "n", "one", "BLOCK")))
    tokens = ("*fp32:16", "i32", "i32:1", ("constexpr", int, 64))
    signature, constexprs, attrs = decode(params, tokens, [object(), 7, 1, 64])
    assert signature == {"x": "*fp32", "n": "i32", "one": "constexpr", "BLOCK": "constexpr"}
    assert constexprs == {"one": 1, "BLOCK": 64}
    assert attrs == {"x": [["tt.divisibility", 16]]}


def test_a_number_of_fp8_is_refused():
    """Not a KeyError: no launch passes one."""

    @deuteron.jit
    def kernel(out, x: tl.float8e5):
        tl.store(out, x.to(tl.float32))

    with pytest.raises(LaunchError, match="argument 'x' of kernel 'kernel': a number of type fp8e5 cannot be passed"):
        kernel[(1,)](np.zeros(1, np.float32), 0.5)


class Sizes(NamedTuple):
    rows: int
    columns: int


def test_tuples_have_the_tokens_of_their_items():
    x = np.zeros(16, np.float32)
    token, passed = specialise((x, 1, (None, 48), Sizes(3, 1)))
    pointer = specialise(x)[0]
    inner = ("tuple", tuple, ("constexpr", type(None), None), "i32:16")
    assert token == ("tuple", tuple, pointer, "i32:1", inner, ("tuple", Sizes, "i32", "i32:1"))
    assert passed == (x.ctypes.data, 48, 3)


def test_tuples_are_decoded_by_name():
    params = (Parameter(0, "x", "", None), Parameter(1, "args", "", None))
    values = [5, (16, Sizes(2, 1))]
    tokens = tuple(specialise(value)[0] for value in values)
    signature, constexprs, attrs = decode(params, tokens, values)
    assert signature == {"x": "i32", "args": ("i32", Sizes("i32", "constexpr"))}
    assert constexprs == {"args_1_columns": 1}
    assert attrs == {"args_0": [["tt.divisibility", 16]]}


def test_what_a_tuple_is_not_specialised_on():
    specialise_less = parameter_specialiser(Parameter(0, "n", "", None, do_not_specialize=True))
    assert specialise_less((1, 16)) == (("tuple", tuple, "i32", "i32"), (1, 16))


def test_an_item_is_named():
    with pytest.raises(LaunchError, match="item 1: item 0: expected an array or a number"):
        specialise((1, ("text",)))
