"""What regions hold, take and give, which the classes of modules, functions, `scf.if` and `scf.while` do not verify.

module { tt.func ... }               a module has functions, and nothing else; what it is for are powers of two
%v = scf.if %c -> (i32) {            a region yields what the op gives, and has no arguments
  scf.yield %n : i32
} else { ... }
tt.func public @k(%n: i32) {         a kernel returns nothing
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.tt.function import FuncOp, ReturnOp
from deuteron.ir.types import check_type

_COUNTS = frozenset(("ttg.num-warps", "ttg.num-ctas", "ttg.threads-per-warp"))
_TARGET, _NO_TARGET = "ttg.target", StringAttr("")


def check_regions(op: Operation) -> None:
    """Raise VerifyException where a region of the op takes or gives something else than the op says."""
    rule = _RULES.get(op.__class__)
    if rule is not None:
        rule(op)


def _check_module(op: ModuleOp) -> None:
    for name, attribute in op.attributes.items():
        if name in _COUNTS and not _is_power_of_two(attribute):
            raise VerifyException(f"{name} of a module is an integer, a power of two, got {attribute}")
    if not isinstance(op.attributes.get(_TARGET, _NO_TARGET), StringAttr):
        raise VerifyException(f"{_TARGET} of a module is a text, got {op.attributes[_TARGET]}")
    for inner in op.ops:
        if not isinstance(inner, FuncOp):
            raise VerifyException(f"a module has functions only, got {inner.name}")


def _is_power_of_two(attribute: Attribute) -> bool:
    return isinstance(attribute, IntegerAttr) and attribute.value.data.bit_count() == 1 and attribute.value.data > 0


def _check_function(op: FuncOp) -> None:
    inputs, outputs = op.function_type.inputs.data, op.function_type.outputs.data
    for type in (*inputs, *outputs):
        check_type(type)
    for block in op.body.blocks:
        if isinstance(block.last_op, ReturnOp):
            _compare("tt.return gives", block.last_op.operands, f"@{op.sym_name.data}", outputs)
    if outputs and not op.is_private:
        raise VerifyException(f"a kernel returns nothing, @{op.sym_name.data} returns {_listed(outputs)}")


def _check_if(op: scf.IfOp) -> None:
    results = op.result_types
    for region in op.regions:
        block = _only_block(op, region) if region.blocks or results else None
        if block is None:
            continue
        _compare("a region takes", block.args, "scf.if", ())
        _compare("a region yields", _ends_with(op, block, scf.YieldOp), "scf.if", results)


def _check_while(op: scf.WhileOp) -> None:
    before, after = (_only_block(op, region) for region in op.regions)
    given, results = [value.type for value in op.operands], op.result_types
    _compare("the condition's region takes", before.args, "scf.while", given)
    _compare("scf.condition passes on", _ends_with(op, before, scf.ConditionOp)[1:], "scf.while", results)
    _compare("the body takes", after.args, "scf.while", results)
    _compare("the body yields", _ends_with(op, after, scf.YieldOp), "scf.while", given)


def _only_block(op: Operation, region: Region) -> Block:
    if len(region.blocks) != 1:
        raise VerifyException(f"a region of {op.name} has one block, got {len(region.blocks)}")
    return region.blocks[0]


def _ends_with(op: Operation, block: Block, kind: type[Operation]) -> Sequence[SSAValue]:
    """The operands of the op that ends a block."""
    if not isinstance(block.last_op, kind):
        found = "nothing" if block.last_op is None else block.last_op.name
        raise VerifyException(f"a region of {op.name} ends with {kind.name}, got {found}")
    return block.last_op.operands


def _compare(what: str, values: Sequence[SSAValue], of: str, wanted: Sequence[Attribute]) -> None:
    found = [value.type for value in values]
    if found != list(wanted):
        raise VerifyException(f"{what} {_listed(found)}, {of} {_listed(wanted)}")


def _listed(types: Sequence[Attribute]) -> str:
    return f"({', '.join(map(str, types))})"


_RULES: dict[type[Operation], Callable] = {
    ModuleOp: _check_module,
    FuncOp: _check_function,
    scf.IfOp: _check_if,
    scf.WhileOp: _check_while,
}
