"""Assembly in a kernel, for each element.

y = tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)
"""

from __future__ import annotations

from collections.abc import Sequence

from deuteron.language.builtin import builtin
from deuteron.language.tensor import tensor
from deuteron.language.types import dtype as _dtype


@builtin
def inline_asm_elementwise(
    asm: str, constraints: str, args: Sequence[tensor], dtype: _dtype | Sequence[_dtype], is_pure: bool, pack: int
) -> tensor | tuple[tensor, ...]:
    """PTX, run for each `pack` elements.

    GPUs run it as it is; the CPU and the interpreter know what docs/inline_asm.md lists of it, and refuse the rest.

    :param asm: the template; operands are $0, $1 ..., outputs first.
    :param constraints: for each operand its kind of register, separated by commas: h (16 bits), r (32), l (64), f
        (fp32), d (fp64); of outputs with "=" (or "=&": written before all inputs are read). Also "~{memory}".
    :param args: tiles, scalars and pointers, broadcast to one shape; their types stay. Elements narrower than 32 bits
        share registers, as many as are in a pack, the first in the lowest bits. A bool has 8 bits.
    :param dtype: the type of the result, or a sequence of types of several. Of a pointer "=r" writes the lower bits.
    :param is_pure: whether it does nothing but give its results: it may then be left out, repeated and moved.
    :param pack: how many elements the assembly is given at a time. Which ones is open; where they are too few, some are
        given twice.
    :returns: a tile of that shape, or a tuple where `dtype` is a sequence. Scalars, if all of `args` are.

    Errors: constraints that are none, or too few or small for the elements; operands that are not there; no dtype.
    """
