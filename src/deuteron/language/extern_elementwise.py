"""Functions of libdevice by the names that it gives them, as projects' own wrappers call them.

@core.extern
def tanh(x, _semantic=None):
    table = {(core.dtype("fp32"),): ("__nv_tanhf", core.dtype("fp32"))}
    return core.extern_elementwise("libdevice", "", [x], table, is_pure=True, _semantic=_semantic)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deuteron.language.builtin import builtin
from deuteron.language.tensor import tensor
from deuteron.language.types import dtype


@builtin
def extern_elementwise(
    lib_name: str,
    lib_path: str,
    args: Sequence[tensor],
    arg_type_symbol_dict: Mapping[tuple[dtype, ...], tuple[str, dtype]],
    is_pure: bool,
) -> tensor:
    """A function of CUDA's libdevice, of each element; `triton.language.extra.libdevice` has them by better names.

    :param lib_name: not looked at: nothing is linked.
    :param lib_path: none, or that of libdevice.
    :param args: tiles, scalars and numbers, broadcast to one shape.
    :param arg_type_symbol_dict: for each combination of types the function's symbol, `__nv_...`, and its result's type.
    :param is_pure: not looked at: these functions are.
    :returns: a tile of that shape, or a scalar.

    Errors: symbols that are not libdevice's; types that are not the symbol's; arguments for which there is no entry.
    """
