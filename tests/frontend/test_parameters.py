"""What of a kernel's parameters becomes an argument, what is known, and signatures that do not fit."""

from __future__ import annotations

import pytest
from ir_text import generic_text

import deuteron.language as tl
from deuteron.errors import UsageError
from deuteron.frontend import lower_function
from deuteron.language.functions.function import Function as jit


@jit
def kernel(x_ptr, n, flag, BLOCK: tl.constexpr, KIND: tl.constexpr = "a"):
    tl.static_print(BLOCK, KIND, n)


TYPES = {"x_ptr": "*fp16", "n": "i32", "flag": "i1", "BLOCK": "constexpr"}


def header(signature: dict[str, str], constexprs: dict[str, object], attrs=None) -> str:
    return generic_text(lower_function(kernel, signature, constexprs, attrs or {}), locations=False).splitlines()[1]


def test_runtime_parameters_are_arguments_with_their_promises(capsys):
    text = header(TYPES, {"BLOCK": 64}, {"x_ptr": (("tt.divisibility", 16),), "n": (("tt.divisibility", 16),)})
    assert "function_type = (!tt.ptr<f16>, i32, i1) -> ()" in text
    assert "arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}]" in text
    assert capsys.readouterr().out == "64 a int32\n"


def test_parameter_with_a_given_value_is_no_argument(capsys):
    text = header({"x_ptr": "*fp16", "flag": "i1"}, {"BLOCK": tl.constexpr(32), "n": 1, "KIND": None})
    assert "function_type = (!tt.ptr<f16>, i1) -> ()" in text
    assert capsys.readouterr().out == "32 None 1\n"


@pytest.mark.parametrize(
    ("signature", "constexprs", "message"),
    [
        (TYPES, {}, "The constexpr parameter 'BLOCK' of 'kernel' has no value."),
        (
            {"x_ptr": "*fp16", "flag": "i1"},
            {"BLOCK": 1},
            "The signature of 'kernel' has no type for its parameter 'n'.",
        ),
        (
            TYPES | {"m": "i32"},
            {"BLOCK": 1},
            "The signature of 'kernel' names 'm', but its parameters are (x_ptr, n, flag, BLOCK, KIND).",
        ),
        (
            TYPES,
            {"BLOK": 1},
            "The constexprs of 'kernel' names 'BLOK', but its parameters are (x_ptr, n, flag, BLOCK, KIND)."
            " Did you mean 'BLOCK'?",
        ),
    ],
)
def test_signature_that_does_not_fit(signature, constexprs, message):
    with pytest.raises(UsageError) as raised:
        lower_function(kernel, signature, constexprs, {})
    assert str(raised.value) == message


def test_misspelt_type_names_the_parameter():
    with pytest.raises(UsageError, match="The signature of 'kernel', parameter 'n': .*'i23'.*'i32'"):
        lower_function(kernel, TYPES | {"n": "i23"}, {"BLOCK": 1}, {})
