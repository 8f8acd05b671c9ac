"""The `tt` dialect, one file per op family. Names, operands and attributes are those of Triton's dialect."""

from xdsl.ir import Dialect

from deuteron.ir.named_values import read_by_name
from deuteron.ir.tt import (
    apart,
    atomic,
    block_pointer,
    convert,
    debug,
    descriptor,
    dot,
    extern,
    function,
    indexing,
    inline_asm,
    map_elementwise,
    memory,
    program,
    reduce,
    shape,
)
from deuteron.ir.types import Float8E4M3B15Type, PointerType

TT = Dialect(
    "tt",
    [
        *function.OPS,
        *program.OPS,
        *memory.OPS,
        *block_pointer.OPS,
        *atomic.OPS,
        *descriptor.OPS,
        *shape.OPS,
        *reduce.OPS,
        *indexing.OPS,
        *inline_asm.OPS,
        *map_elementwise.OPS,
        *dot.OPS,
        *convert.OPS,
        *extern.OPS,
        *debug.OPS,
    ],
    [PointerType, Float8E4M3B15Type, *descriptor.TYPES, *memory.ATTRIBUTES, *apart.ATTRIBUTES],
)
read_by_name(TT)
