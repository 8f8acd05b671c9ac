"""Names of files and functions: those that users type and build systems expect."""

from pathlib import Path

import pytest

from deuteron.aot.naming import check_function_name, file_base, hash_parts, parameter_names, signature_hash, suffix
from deuteron.aot.signature import parse_signature
from deuteron.errors import UsageError


class Param:
    def __init__(self, name: str, is_constexpr: bool = False):
        self.name, self.is_constexpr = name, is_constexpr


FLASH = """
    *fp16, *fp16, *fp16, *fp16, *fp32, *fp32,
    fp32,
    i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32,
    i1, i1, i1, 1, 64, 128, 128
"""


def named(text: str, count: int):
    return parse_signature(text, [Param(f"p{i}") for i in range(count)], "k").arguments


def test_the_flash_attention_signature_over_several_lines():
    arguments = named(FLASH, 32)
    hash = signature_hash(hash_parts([arg.text for arg in arguments], 4, 1, 1))
    base = file_base(Path("aot/fp16/fmha_kernel_d64_fp16"), hash, suffix(arguments))
    assert str(base) == ("aot/fp16/fmha_kernel_d64_fp16.6979ce4b_0123456789101112131415161718192021222324252627")


def test_suffix_has_the_hints():
    assert suffix(named("*fp32:16, i32:1, 64, i32", 4)) == "0d1c3"


def test_what_is_asked_for_besides_changes_the_hash():
    hashes = {
        signature_hash(hash_parts(["i32"], 4, 3, 1, extras)) for extras in ((), ("cpu:native",), ("opt_level=2",))
    }
    assert len(hashes) == 3


def test_more_than_one_block_a_program_changes_the_hash():
    parts = [hash_parts(["i32"], 4, 3, num_ctas) for num_ctas in (1, 2)]
    assert parts == [["i32", "warps4xstages3"], ["i32", "warps4xstages3xctas2"]]


def test_parameters_get_names_that_c_and_cxx_have():
    names = ["class", "stream", "n", "n_", "größe", "linux", "deuteron_x"]
    assert parameter_names(names, ["stream"]) == (
        "class_",
        "stream_",
        "n",
        "n_",
        "gruf6udfe",
        "linux_",
        "pdeuteron_x",
    )
    assert parameter_names(["a", "int", "int_"], []) == ("a", "int_", "int__")
    assert parameter_names(["int32_t", "_Bool"], []) == ("int32_t_", "p_Bool")
    assert parameter_names(["typeof", "SIZE_MAX", "NAN", "EPS"], []) == ("typeof_", "SIZE_MAX_", "NAN_", "EPS")


# `exp` would be called by whatever of the program calls that of the C library.
@pytest.mark.parametrize(
    "name", ["a-b", "3d", "class", "", "größe", "exp", "sqrtf", "memcpy", "bzero", "_Bool", "size_t", "stream", "NAN"]
)
def test_a_name_that_no_function_can_have(name: str):
    with pytest.raises(UsageError, match="give another one with --out-name"):
        check_function_name(name)


@pytest.mark.parametrize("name", ["deuteron_stream", "deuteron_set_executor", "DEUTERON_SUCCESS", "deuteron_mine"])
def test_names_that_headers_have_or_may_get(name: str):
    with pytest.raises(UsageError, match="give another one with --out-name"):
        check_function_name(name)
