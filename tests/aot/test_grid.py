"""Grid expressions: what is accepted, what it comes to, and errors that point at what is not."""

from types import SimpleNamespace

import pytest

from deuteron.aot.grid import Scope, grid_scope, parse_grid
from deuteron.aot.grid_code import grid_value, launchable_grid
from deuteron.aot.signature import parse_signature
from deuteron.errors import UsageError

SCOPE = Scope(
    {"M", "N"}, {"BLOCK": 128, "CAUSAL": 1}, {"x": "'x' is of type *fp32, and a grid is made of whole numbers"}
)


@pytest.mark.parametrize(
    "text, value",
    [
        ("1", (1, 1, 1)),
        ("cdiv(M, BLOCK)", (8, 1, 1)),
        ("(M + 127) / 128, N", (8, 6, 1)),
        ("M // BLOCK, N % 4, max(N, 9) - min(M, 3)", (7, 2, 6)),
        ("-(-M) * 2 - 3 * (4 + 5)", (1973, 1, 1)),
        ("0x10, 007, +1", (16, 7, 1)),
        ("2 * CAUSAL", (2, 1, 1)),
        ("M - 1000, N", (0, 0, 0)),
        ("N, M - 2000", (0, 0, 0)),
        ("\n cdiv( M ,\n BLOCK )", (8, 1, 1)),
        ("(0 - 7) / 2 + 4, (0 - 7) // 2 + 5, (0 - 7) % 4", (1, 1, 1)),
    ],
)
def test_value(text: str, value: tuple[int, int, int]):
    assert grid_value(parse_grid(text, SCOPE), {"M": 1000, "N": 6}) == value


@pytest.mark.parametrize(
    "text, place, message",
    [
        ("cdiv(M, BLOK)", "1:9", "unknown name 'BLOK': the kernel's whole parameters are BLOCK, CAUSAL, M, N"),
        ("M,\n  system(1)", "2:3", "'system' cannot be called in a grid"),
        ("x", "1:1", "'x' is of type *fp32, and a grid is made of whole numbers"),
        ("1, 1, 1, 1", "1:8", "a grid has one to three parts"),
        ("", "1:1", "the grid ends where a value was expected"),
        ("1,", "1:3", "the grid ends where a value was expected"),
        ("M << 2", "1:3", "'<<' is not expected here"),
        ("M ** 2", "1:3", "'**' is not expected here"),
        ("M if N else 1", "1:3", "'if' is not expected here"),
        ("M.x", "1:2", "'.' is not expected here"),
        ("triton.cdiv(M, N)", "1:1", "'triton' is not expected here: a grid has whole numbers, the kernel's"),
        ("M, lambda meta: 1", "1:4", "'lambda' is not expected here: a grid has whole numbers"),
        ("M[0]", "1:2", "'[' is not expected here"),
        ("0.5", "1:1", "'0.5' is not expected here"),
        ("128u", "1:1", "'128u' is not expected here"),
        ("'a'", "1:1", "''a'' is not expected here"),
        ("M; system()", "1:2", "';' is not expected here"),
        ("(M", "1:3", "the grid ends where ')' was expected"),
        ("M)", "1:2", "')' is not expected here"),
        ("(M, N)", "1:3", "',' is not expected here"),
        ("cdiv(M)", "1:1", "cdiv takes two values, got 1"),
        ("min(M, N, 1)", "1:1", "min takes two values, got 3"),
        ("M // 0", "1:3", "'//' divides by zero"),
        ("cdiv(M, BLOCK", "1:14", "the grid ends where ')' was expected"),
        ("99999999999999999999", "1:1", "does not fit into 64 bits"),
        ("(" * 200 + "1" + ")" * 200, "1:101", "nested deeper than 100 levels"),
    ],
)
def test_errors_point_into_the_text(text: str, place: str, message: str):
    with pytest.raises(UsageError) as caught:
        parse_grid(text, SCOPE)
    assert caught.value.message.startswith(message) or message in caught.value.message
    assert str(caught.value.location) == f"--grid:{place}"


@pytest.mark.parametrize(
    "values, message",
    [
        ({"M": 1, "N": 0}, "the grid divides 2 by zero"),
        ({"M": 2**62, "N": 1}, "does not fit into 64 bits"),
        ({"M": 2**31, "N": 2}, "the grid's x is 2147483648, and the most is 2147483647"),
        ({"M": 65536, "N": 1}, "the grid's y is 65536, and the most is 65535"),
    ],
)
def test_grids_that_cannot_be_launched(values: dict[str, int], message: str):
    with pytest.raises(UsageError, match=message):
        grid_value(parse_grid("M * 2 // N, M", SCOPE), values)


@pytest.mark.parametrize(
    "text, message",
    [
        ("2147483647 + BLOCK", "the grid's x is 2147483775, and the most is 2147483647"),
        ("M, BLOCK * 512", "the grid's y is 65536, and the most is 65535"),
        ("M, 1, 65536", "the grid's z is 65536, and the most is 65535"),
        ("cdiv(7, BLOCK - 128)", "the grid divides 7 by zero"),
        ("M, 9223372036854775807 * 2", "does not fit into 64 bits"),
    ],
)
def test_a_part_that_is_wrong_whatever_the_arguments_are(text: str, message: str):
    with pytest.raises(UsageError, match=message) as caught:
        launchable_grid(text, SCOPE)
    assert str(caught.value.location) == "--grid:1:1"


@pytest.mark.parametrize("text", ["0", "-1, 65535, 65535", "M // (N - N), 65536 + M"])
def test_a_part_that_is_empty_or_depends_on_arguments_may_be_right(text: str):
    assert launchable_grid(text, SCOPE) == parse_grid(text, SCOPE)


def test_a_constant_that_is_too_large_for_a_grid():
    signature = parse_signature(f"{10**30}", [SimpleNamespace(name="BLOCK", is_constexpr=True)], "k")
    with pytest.raises(UsageError, match="'BLOCK' is 10+, which does not fit into 64 bits"):
        parse_grid("BLOCK", grid_scope(signature))
