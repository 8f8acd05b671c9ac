"""What kernels take, by which a launch passes it: numbers, and pointers to what memory holds.

tt.func public @k(%x: !tt.ptr<f32>, %n: i32)
tt.func public @k(%x: tensor<4xf32>)              an error, with the place of the kernel
"""

from __future__ import annotations

from deuteron.errors import CompilationError
from deuteron.ir.location import from_attribute
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.types import is_block_pointer, is_scalar, is_tile


def check_parameters(func: FuncOp) -> None:
    """Raise CompilationError unless all that a kernel takes can be passed by a launch."""
    for argument in func.args:
        type = argument.type
        if is_scalar(type) and not is_block_pointer(type):
            continue
        name, what = argument.name_hint or f"arg{argument.index}", "a tile" if is_tile(type) else f"a {type}"
        message = f"parameter '{name}' of kernel '{func.sym_name.data}' is {what}: a kernel takes numbers and pointers"
        raise CompilationError(message, *from_attribute(func.location))
