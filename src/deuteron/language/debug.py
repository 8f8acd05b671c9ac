"""What a kernel says of itself, at compile time and at run time.

    tl.static_assert(BLOCK % 16 == 0, "BLOCK is a multiple of 16")
    tl.static_print("BLOCK =", BLOCK)
    tl.device_print("row", row)
    tl.device_assert(index < n, "index out of range")

The static ones run while the kernel is compiled, the device ones while it runs.
"""

from __future__ import annotations

from typing import Any, TextIO

from deuteron.language.builtin import builtin
from deuteron.language.tensor import tensor


@builtin
def static_print(
    *values: Any, sep: str = " ", end: str = "\n", file: TextIO | None = None, flush: bool = False
) -> None:
    """Print while the kernel is compiled, like Python's `print`. Runtime values print as their types."""


@builtin
def static_assert(cond: Any, msg: str = "") -> None:
    """Stop the compilation with `msg` unless `cond` holds. Error: a condition that is only known at run time."""


@builtin
def device_print(prefix: str, *args: tensor | float, hex: bool = False) -> None:
    """Print values while the kernel runs, one line for each element; Python's `print` in a kernel is the same.

    A line is `pid (x, y, z) idx (i, ...) prefix: value`, or `pid (x, y, z) prefix` without values.

    :param prefix: printable ASCII text, known at compile time.
    :param args: numbers, scalars and tiles.
    :param hex: whether integers are printed in hexadecimal.

    Errors: a prefix that is no text or not printable.
    """


@builtin
def device_assert(cond: tensor | bool, msg: str = "", mask: tensor | None = None) -> None:
    """Stop the program with `msg` where `cond` does not hold while the kernel runs; Python's `assert` is the same.

    :param cond: int1, or integers that count as true where they are not 0.
    :param msg: text, known at compile time.
    :param mask: where it is false nothing is checked.

    Errors: a condition that is a float or pointer, a message that is no text.
    """


@builtin
def debug_barrier() -> None:
    """Let all threads of the program wait for each other. Without effect on the CPU, where a program is one thread.

    What a program stores and loads is in order without it, unless it goes through different arguments.
    """
