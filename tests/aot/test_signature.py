"""The text of `-s`: types, hints, constexpr values of every kind, and what is wrong with others."""

import pytest

import deuteron.language as tl
from deuteron.aot.signature import parse_signature
from deuteron.errors import UsageError


class Param:
    def __init__(self, name: str, is_constexpr: bool = False):
        self.name, self.is_constexpr = name, is_constexpr


X, N, BLOCK = Param("x"), Param("n"), Param("BLOCK", True)


def one(text: str, param: Param = X):
    return parse_signature(text, [param], "k").arguments[0]


def test_types_and_hints():
    signature = parse_signature("*fp16:16, i32:16,\n  fp32 , i32:1, u8", [Param(c) for c in "abcde"], "k")
    assert [(arg.type, arg.hint) for arg in signature.arguments] == [
        ("*fp16", 16),
        ("i32", 16),
        ("fp32", None),
        ("i32", 1),
        ("u8", None),
    ]
    assert signature.types == {"a": "*fp16", "b": "i32", "c": "fp32", "d": "constexpr", "e": "u8"}
    assert signature.constexprs == {"d": 1}
    assert signature.attrs == {"a": [["tt.divisibility", 16]], "b": [["tt.divisibility", 16]]}


@pytest.mark.parametrize(
    "text, value",
    [
        ("128", 128),
        ("-3", -3),
        ("007", 7),
        ("0.5", 0.5),
        ("-1e-5", -1e-5),
        ("True", True),
        ("False", False),
        ("None", None),
        ("'relu'", "relu"),
        ('"a, b"', "a, b"),
        ("tl.float16", tl.float16),
        ("fp16", tl.float16),
        ("bfloat16", tl.bfloat16),
        ("(1, (2, tl.int8, None), 'a')", (1, (2, tl.int8, None), "a")),
    ],
)
def test_constexpr_values(text: str, value: object):
    arg = one(text, BLOCK)
    assert (type(arg.value), arg.value) == (type(value), value)
    assert arg.is_constexpr
    assert arg.text == text


def test_a_value_makes_a_constexpr_of_any_parameter():
    assert one("64").is_constexpr
    assert one("tl.float16").value == tl.float16
    assert one("fp16").type == "fp16"


@pytest.mark.parametrize(
    "text, params, message",
    [
        (
            "*fp32",
            [X, N, BLOCK],
            "has 1 element, kernel 'k' has 3 parameters: nothing is given for 'n', 'BLOCK'. Elements are",
        ),
        ("(*fp32, (i32, 64), i32", [X, N], "--signature:1:1: error: this ( is not closed"),
        ("tensordesc<fp32[16,32], i32", [X, N], "--signature:1:11: error: this < is not closed"),
        ("*fp32, 'relu, i32", [X, N], "--signature:1:8: error: this ' is not closed"),
        ("*fp32, i32, 64", [X, N], "has 3 elements, kernel 'k' has 2 parameters (x, n): this is one too many"),
        ("*ftp16", [X], "parameter 'x': Unknown type 'ftp16'. Did you mean 'fp16'?"),
        ("*fp16:8", [X], "parameter 'x': the hint is '8', and only :16"),
        ("i32:", [X], "the hint is ''"),
        ("*fp16:1", [X], "only integers can be hinted :1"),
        ("fp32:16", [X], "only pointers, integers and descriptors can be hinted :16"),
        ("*fp32,, 64", [X, N, BLOCK], "--signature:1:7: error: a type or a value is missing here, or there is a comma"),
        (
            "*fp32, i32,",
            [X, N],
            "--signature:1:12: error: a type or a value is missing here, or there is a comma too many",
        ),
        (
            ",*fp32, i32",
            [X, N],
            "--signature:1:1: error: a type or a value is missing here, or there is a comma too many",
        ),
        (
            "*fp32, (i32,, i32)",
            [X, N],
            "--signature:1:13: error: a type or a value is missing here, or there is a comma",
        ),
        (
            "*fp32, (,)",
            [X, N],
            "--signature:1:9: error: a type or a value is missing here, or there is a comma too many",
        ),
        ("i32:16", [BLOCK], "it is a tl.constexpr and takes a value"),
        ("relu", [BLOCK], "or a quoted string), got relu"),
    ],
)
def test_errors_point_at_the_element(text: str, params: list[Param], message: str):
    with pytest.raises(UsageError) as caught:
        parse_signature(text, params, "k")
    assert message in str(caught.value)
    assert caught.value.location.file == "--signature"
    assert "^" in str(caught.value)


def test_a_kernel_without_parameters_has_an_empty_signature():
    assert parse_signature(" ", [], "k").arguments == ()
    with pytest.raises(UsageError, match="the signature has 0 elements, kernel 'k' has 2 parameters"):
        parse_signature("", [X, N], "k")


def test_the_caret_is_under_the_element_of_a_later_line():
    with pytest.raises(UsageError) as caught:
        parse_signature("*fp32,\n  i23", [X, N], "k")
    head, line, caret = str(caught.value).splitlines()
    assert head.startswith("--signature:2:3: error: parameter 'n': Unknown type 'i23'. Did you mean 'i32'?")
    assert (line, caret) == ("    i23", "    ^~~")
