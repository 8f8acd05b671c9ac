"""What each function and operator of the language means: types are checked and promoted, shapes broadcast, ops built.

    RULES[tl.load](ctx, pointer, mask=None, ...)    keyed by the stub, an operator of Python's `operator`, or a builtin
    METHODS["exp"](ctx, x)                          what `x.exp` is: a semantic function, or one written in the language
    ATTRIBUTES["dtype"](ctx, x)                     what `x.dtype` is

One file per family of ops, of the same name as in `language/`. A semantic function takes the context and the parameters
of its stub; compile-time arguments are plain Python values, runtime ones Tensors. It returns a Tensor, a tuple of them
or a compile-time value, or raises `ctx.error`. At least one operand of an operator is a Tensor: the frontend computes
operators on compile-time values itself.
"""

from deuteron.frontend.semantics import (
    arithmetic,
    atomic,
    bitwise,
    block_pointer,
    compare,
    convert,
    creation,
    debug,
    dot,
    dot_scaled,
    extern_elementwise,
    hints,
    indexing,
    inline_asm,
    iterators,
    libdevice,
    map_elementwise,
    math,
    members,
    memory,
    program,
    python,
    reduce,
    select,
    shape,
    target_info,
    tensor_descriptor,
)
from deuteron.frontend.semantics.members import reflected
from deuteron.language.traced import OPERATORS, REFLECTED

RULES = {
    **program.RULES,
    **creation.RULES,
    **convert.RULES,
    **arithmetic.RULES,
    **compare.RULES,
    **bitwise.RULES,
    **select.RULES,
    **math.RULES,
    **libdevice.RULES,
    **shape.RULES,
    **memory.RULES,
    **atomic.RULES,
    **block_pointer.RULES,
    **tensor_descriptor.RULES,
    **reduce.RULES,
    **indexing.RULES,
    **extern_elementwise.RULES,
    **inline_asm.RULES,
    **map_elementwise.RULES,
    **dot.RULES,
    **dot_scaled.RULES,
    **hints.RULES,
    **debug.RULES,
    **iterators.RULES,
    **python.RULES,
    **target_info.RULES,
}
ATTRIBUTES = members.ATTRIBUTES
METHODS = {name: RULES.get(function, function) for name, function in members.FUNCTIONS.items()}
METHODS |= {name: RULES[operation] for name, operation in OPERATORS.items()}
METHODS |= {name: reflected(RULES[operation]) for name, operation in REFLECTED.items()}
BLOCK_POINTER_ATTRIBUTES = block_pointer.ATTRIBUTES
BLOCK_POINTER_METHODS = {name: RULES.get(function, function) for name, function in block_pointer.METHODS.items()}
DESCRIPTOR_ATTRIBUTES = tensor_descriptor.ATTRIBUTES
DESCRIPTOR_METHODS = tensor_descriptor.METHODS

__all__ = [
    "ATTRIBUTES",
    "BLOCK_POINTER_ATTRIBUTES",
    "BLOCK_POINTER_METHODS",
    "DESCRIPTOR_ATTRIBUTES",
    "DESCRIPTOR_METHODS",
    "METHODS",
    "RULES",
]
