"""What Triton's ttir may have and ours has not, made into ours: branches between blocks, descriptors as arguments,
polls (polls.py), hints of loops (loop_hints.py).

tt.func public @k(%x: !tt.tensordesc<64x32xf16>,           tt.func public @k(%x: !tt.ptr<f16>, %x.shape.0: i32,
        %x.shape.0: i32, %x.shape.1: i32,            ->            %x.shape.1: i32, %x.stride.0: i64) {
        %x.stride.0: i64, %x.stride.1: i64) {                %d = tt.make_tensor_descriptor %x, ...
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp
from xdsl.ir import Attribute, Block, BlockArgument
from xdsl.rewriter import InsertPoint

from deuteron.ir.builder import Builder
from deuteron.ir.loop_hints import take_hints
from deuteron.ir.polls import expand_polls
from deuteron.ir.structured import structure
from deuteron.ir.tt.descriptor import ALIGNMENT, MakeTensorDescriptorOp, TensorDescType
from deuteron.ir.tt.function import FuncOp, divisibility
from deuteron.ir.types import PointerType, byte_width_of, i32, i64, shape_of


def make_native(module: ModuleOp) -> None:
    """Make our tile IR of Triton's, in place. Raises VerifyException for branches that are a loop."""
    for function in module.ops:
        if isinstance(function, FuncOp) and function.body.blocks:
            structure(function)
            _take_descriptors_apart(function)
    expand_polls(module)
    take_hints(module)


def _take_descriptors_apart(function: FuncOp) -> None:
    """Let a kernel have a pointer, sizes and strides for each descriptor that they follow, the last stride being 1."""
    block = function.body.blocks[0]
    found = [argument for argument in block.args if isinstance(argument.type, TensorDescType) and _parts(argument)]
    if not found:
        return
    function.verify_()  # that what it says of its arguments is as many
    given = function.arg_attrs.data if function.arg_attrs is not None else [DictionaryAttr({}) for _ in block.args]
    attributes = {argument: dict(given.data) for argument, given in zip(block.args, given, strict=True)}
    for argument in found:
        _take_apart(argument, block, attributes)
    function.properties["function_type"] = FunctionType.from_lists(block.arg_types, function.function_type.outputs.data)
    function.properties["arg_attrs"] = ArrayAttr([DictionaryAttr(attributes[argument]) for argument in block.args])


def _parts(argument: BlockArgument) -> Sequence[BlockArgument]:
    """The sizes and strides that follow a descriptor as arguments; empty where it has none."""
    rank = len(shape_of(argument.type.tile))
    parts = argument.block.args[argument.index + 1 : argument.index + 1 + 2 * rank]
    return parts if [part.type for part in parts] == [i32] * rank + [i64] * rank else ()


def _take_apart(argument: BlockArgument, block: Block, attributes: dict[BlockArgument, dict[str, Attribute]]) -> None:
    type, parts = argument.type, _parts(argument)
    sizes, strides = parts[: len(parts) // 2], parts[len(parts) // 2 :]
    builder = Builder(InsertPoint.at_start(block), block.parent_op().location)
    one = builder.constant(1, i64)
    strides[-1].replace_all_uses_with(one)
    base = block.insert_arg(PointerType(type.tile.element_type), argument.index, argument.location)
    op = builder.insert(MakeTensorDescriptorOp(base, sizes, [*strides[:-1], one], type))
    argument.replace_all_uses_with(op.result)
    base.name_hint = argument.name_hint
    steps = max(ALIGNMENT // byte_width_of(type.tile), 1)
    attributes |= {base: divisibility(ALIGNMENT), **{stride: divisibility(steps) for stride in strides[:-1]}}
    block.erase_arg(argument)
    block.erase_arg(strides[-1])
