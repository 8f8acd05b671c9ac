"""Triton's names for CPUs, on every target.

b = tl.extra.cpu.vnni_decode(packed)         [16, 128] of int8 is [64, 32]
"""

from deuteron.language.constant import constexpr
from deuteron.language.debug import static_assert
from deuteron.language.extra import libdevice as libdevice
from deuteron.language.functions.function import Function
from deuteron.language.shape import permute, reshape


@Function
def vnni_decode(arg0):
    """The matrix [K, N] of which `arg0` has the rows of a word, two of 16 bits or four of 8, next to each other:
    `arg0[k // 4, 4 * n + k % 4]` is its `[k, n]`."""
    static_assert(len(arg0.shape) == 2 and arg0.dtype.primitive_bitwidth in (8, 16), "a matrix of 8 or 16 bits")
    rows: constexpr = 32 // arg0.dtype.primitive_bitwidth
    static_assert(arg0.shape[1] % rows == 0, "a row has whole words")
    words = reshape(arg0, (arg0.shape[0], arg0.shape[1] // rows, rows))
    return reshape(permute(words, (0, 2, 1)), (arg0.shape[0] * rows, arg0.shape[1] // rows))
