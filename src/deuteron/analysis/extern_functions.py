"""Which function of libdevice an op calls, checked: what is read as text may be wrong.

name_of("tt.extern_elementwise"(%x) <{symbol = "__nv_tanhf", ...}> : (tensor<64xf32>) -> tensor<64xf32>)      "tanh"
"""

from __future__ import annotations

from xdsl.ir import Attribute

from deuteron.errors import CompilationError
from deuteron.ir.tt.extern import ExternElementwiseOp
from deuteron.ir.types import element_type_of, f32, f64, i32, i64
from deuteron.language.extra.libdevice import SYMBOLS
from deuteron.language.types import dtype

_TYPES = {"fp32": f32, "fp64": f64, "int32": i32, "uint32": i32, "int64": i64, "uint64": i64}


def name_of(op: ExternElementwiseOp) -> str:
    """The name in `language/extra/libdevice.py`. Error: a symbol that is not known, or not with these types."""
    symbol = op.symbol.data
    if symbol not in SYMBOLS:
        raise CompilationError(
            f"There is no function '{symbol}'. Those of libdevice are known, as in deuteron.language.extra.libdevice; "
            "what another library has is to be written in the language."
        )
    name, overload = SYMBOLS[symbol]
    found = [element_type_of(value.type) for value in (*op.srcs, op.result)]
    if found != [_ir_type(type) for type in (*overload.parameters, overload.result)]:
        raise CompilationError(f"'{symbol}' is {overload}, got {', '.join(map(str, found[:-1]))} -> {found[-1]}.")
    return name


def _ir_type(type: dtype) -> Attribute:
    return _TYPES[type.name]
