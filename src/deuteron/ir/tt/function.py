"""Functions: `tt.func`, `tt.return`, `tt.call`.

    "tt.func"() <{sym_name = "add", function_type = (!tt.ptr<f32>, i32) -> (), sym_visibility = "public",
                  arg_attrs = [{tt.divisibility = 16 : i32}, {}]}> ({ ^bb0(%x: !tt.ptr<f32>, %n: i32): ... }) : () -> ()

A kernel is a public function without results. `arg_attrs` holds what a specialisation promises of each argument.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FlatSymbolRefAttr,
    FunctionType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

_NOTHING = IntegerAttr(1, i32)


@irdl_op_definition
class FuncOp(IRDLOperation):
    """A function of tile IR; one block, structured control flow only."""

    name = "tt.func"
    body = region_def()
    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    sym_visibility = opt_prop_def(StringAttr)
    arg_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    res_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    def __init__(
        self,
        name: str,
        input_types: Sequence[Attribute],
        result_types: Sequence[Attribute] = (),
        arg_attrs: Sequence[dict[str, Attribute]] | None = None,
        visibility: str = "public",
    ):
        properties: dict[str, Attribute] = {
            "sym_name": StringAttr(name),
            "function_type": FunctionType.from_lists(input_types, result_types),
            "sym_visibility": StringAttr(visibility),
        }
        if arg_attrs is not None and any(arg_attrs):
            properties["arg_attrs"] = ArrayAttr([DictionaryAttr(attrs) for attrs in arg_attrs])
        super().__init__(regions=[Region(Block(arg_types=input_types))], properties=properties)

    @property
    def args(self) -> Sequence[SSAValue]:
        return self.body.blocks[0].args

    @property
    def is_private(self) -> bool:
        """Whether it is there to be called only; else it is a kernel."""
        return self.sym_visibility is not None and self.sym_visibility.data == "private"

    def arg_divisibility(self, index: int) -> int:
        """What `tt.divisibility` promises of an argument (of a pointer: its address in bytes), 1 if nothing."""
        if self.arg_attrs is None:
            return 1
        attr = self.arg_attrs.data[index].data.get("tt.divisibility")
        return attr.value.data if isinstance(attr, IntegerAttr) else 1

    def verify_(self) -> None:
        blocks = self.body.blocks
        if len(blocks) != 1:
            raise VerifyException(f"tt.func @{self.sym_name.data} needs exactly one block, got {len(blocks)}")
        if tuple(blocks[0].arg_types) != tuple(self.function_type.inputs.data):
            raise VerifyException(f"tt.func @{self.sym_name.data}: block arguments differ from the function type")
        if self.arg_attrs is not None and len(self.arg_attrs.data) != len(self.function_type.inputs.data):
            raise VerifyException(f"tt.func @{self.sym_name.data}: arg_attrs needs one entry for each argument")
        for attributes in self.arg_attrs.data if self.arg_attrs is not None else ():
            promised = attributes.data.get("tt.divisibility", _NOTHING)
            if not isinstance(promised, IntegerAttr) or promised.value.data < 1:
                raise VerifyException(
                    f"tt.func @{self.sym_name.data}: tt.divisibility is a positive integer, got {promised}"
                )


def divisibility(value: int) -> dict[str, Attribute]:
    """The argument attributes that promise divisibility by `value`."""
    return {"tt.divisibility": IntegerAttr(value, i32)}


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """Ends a function."""

    name = "tt.return"
    arguments = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())

    def __init__(self, *values: SSAValue | Operation):
        super().__init__(operands=[list(values)])


@irdl_op_definition
class CallOp(IRDLOperation):
    """Calls another function of the module. The frontend inlines; only IR that comes as text has calls."""

    name = "tt.call"
    callee = prop_def(SymbolRefAttr)
    arguments = var_operand_def()
    res = var_result_def()

    def __init__(self, callee: str, arguments: Sequence[SSAValue], result_types: Sequence[Attribute]):
        super().__init__(
            operands=[arguments], result_types=[result_types], properties={"callee": FlatSymbolRefAttr(callee)}
        )


def functions_in(module: ModuleOp) -> list[FuncOp]:
    """In order; it is a list, so that some may be replaced or erased on the way."""
    return [op for op in module.body.block.ops if isinstance(op, FuncOp)]


def function_of(op: Operation) -> FuncOp:
    """The function that an op is in."""
    while not isinstance(op, FuncOp):
        op = op.parent_op()
    return op


OPS = [FuncOp, ReturnOp, CallOp]
