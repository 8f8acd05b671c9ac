"""A call of a function of a library on each element: those of libdevice, which are pure.

%y = "tt.extern_elementwise"(%x) <{libname = "", libpath = "", symbol = "__nv_tanhf", pure = true}>
    : (tensor<64xf32>) -> tensor<64xf32>
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from xdsl.dialects.builtin import BoolAttr, StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.types import shape_of, with_element_type


def is_libdevice(path: str) -> bool:
    """Whether a library that is named by its path, or not at all, is libdevice, whose functions are known."""
    return not path or PurePath(path).name.startswith("libdevice")


@irdl_op_definition
class ExternElementwiseOp(IRDLOperation):
    """The function that `symbol` names, of each element; all tiles have one shape.

    Only pure functions are known here, and an op that says that it is not pure does not verify.
    """

    name = "tt.extern_elementwise"
    srcs = var_operand_def()
    libname = prop_def(StringAttr)
    libpath = prop_def(StringAttr)
    symbol = prop_def(StringAttr)
    pure = prop_def(BoolAttr)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, srcs: Sequence[SSAValue], element_type: Attribute, symbol: str):
        super().__init__(
            operands=[srcs],
            result_types=[with_element_type(srcs[0].type, element_type)],
            properties={
                "libname": StringAttr(""),
                "libpath": StringAttr(""),
                "symbol": StringAttr(symbol),
                "pure": BoolAttr.from_bool(True),
            },
        )

    def verify_(self) -> None:
        if not is_libdevice(self.libpath.data):
            raise VerifyException(f"{self.libpath.data} is not libdevice, and is not linked")
        if not self.pure.value.data:
            raise VerifyException(f"'{self.symbol.data}' is not pure. Only pure functions are known")
        for src in self.srcs:
            if shape_of(src.type) != shape_of(self.result.type):
                raise VerifyException(f"tt.extern_elementwise keeps the shape, got {src.type} and {self.result.type}")


OPS = [ExternElementwiseOp]
