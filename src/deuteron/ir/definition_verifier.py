"""What the definition of an op's class says of the op: verified by a function that is made of it once.

    class AddPtrOp:                            def verify(op):
        ptr = operand_def(Type)                    two operands, one result, no properties
        offset = operand_def(Attribute)     ->     the type of `ptr` is a Type; that of the offset may be any
        result = result_def(Type)                  the type of the result is the same Type

xDSL reads the definition anew for each op that it verifies, which was a tenth of a compile. Where the function does not
hold xDSL says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import AnyAttr, OpDef, OptAttributeDef, OptPropertyDef, RangeOf, VariadicDef, VarIRConstruct
from xdsl.irdl.constraints import AnyRange, RangeConstraint, RangeLengthConstraint, VerificationContext
from xdsl.irdl.operations import irdl_op_verify_regions, verify_variadic_size
from xdsl.traits import IsolatedFromAbove, OpTrait
from xdsl.utils.exceptions import VerifyException

Check = Callable[[Operation, VerificationContext], None]
# That what is inside uses nothing from around is seen in the order of values (verifier.py), at no further cost.
_VERIFIED_ELSEWHERE = (OpTrait.verify, IsolatedFromAbove.verify)


@cache
def prepare(op_class: type[Operation]) -> None:
    """Let ops of a class be verified in that way."""
    definition = op_class.get_irdl_definition()
    if definition is not None and not definition.successors:
        definition.verify = _verifier(definition)


def _verifier(definition: OpDef) -> Callable[[Operation], None]:
    verify_by_reading, checks = definition.verify, _checks(definition)
    optional = frozenset(name for name, one in definition.properties.items() if isinstance(one, OptPropertyDef))
    required = definition.properties.keys() - optional
    needed = frozenset(name for name, one in definition.attributes.items() if not isinstance(one, OptAttributeDef))
    traits = [trait.verify for trait in definition.traits if type(trait).verify not in _VERIFIED_ELSEWHERE]
    num_operands, num_results = _count_of(definition.operands), _count_of(definition.results)

    def holds(op: Operation) -> bool:
        if op.properties.keys() - optional != required or not op.attributes.keys() >= needed or op._successors:
            return False
        if num_operands not in (None, len(op._operands)) or num_results not in (None, len(op.results)):
            return False
        if not definition.regions and op.regions:
            return False
        context = VerificationContext()
        try:
            for check in checks:
                check(op, context)
        except VerifyException:
            return False
        return True

    def verify(op: Operation) -> None:
        if not holds(op):
            verify_by_reading(op)
            return
        for verify_trait in traits:
            verify_trait(op)

    return verify


def _checks(definition: OpDef) -> list[Check]:
    """In xDSL's order, for constraints may name what others have found."""
    operands, results = VarIRConstruct.OPERAND, VarIRConstruct.RESULT
    return [
        *_checks_of(definition, operands, definition.operands, lambda op: op._operands),
        *_checks_of(definition, results, definition.results, lambda op: op.results),
        *([lambda op, context: irdl_op_verify_regions(op, definition, context)] if definition.regions else ()),
        *_checks_by_name(definition.properties, lambda op: op.properties),
        *_checks_by_name(definition.attributes, lambda op: op.attributes),
    ]


def _checks_of(
    definition: OpDef,
    construct: VarIRConstruct,
    arguments: Sequence[tuple[str, Any]],
    values_of: Callable[[Operation], Sequence[SSAValue]],
) -> list[Check]:
    """Those of the types of operands, or results, that may not be any; how many there are, where that may differ."""
    if _count_of(arguments) is None:
        return [
            lambda op, context: verify_variadic_size(op, definition, construct),
            *(_check_of_named(name, one.constr) for name, one in arguments if not _may_be_any(one)),
        ]
    return [_check_at(place, one.constr, values_of) for place, (_, one) in enumerate(arguments) if not _may_be_any(one)]


def _count_of(arguments: Sequence[tuple[str, Any]]) -> int | None:
    """How many values there are; None where the definition does not say it."""
    return None if any(isinstance(argument, VariadicDef) for _, argument in arguments) else len(arguments)


def _check_at(place: int, range_: RangeConstraint, values_of: Callable[[Operation], Sequence[SSAValue]]) -> Check:
    one = _constraint_of_each(range_)
    if one is None:
        return lambda op, context: range_.verify((values_of(op)[place].type,), context)
    return lambda op, context: one.verify(values_of(op)[place].type, context)


def _check_of_named(name: str, range_: RangeConstraint) -> Check:
    return lambda op, context: range_.verify(_types_of(getattr(op, name)), context)


def _types_of(found: SSAValue | Sequence[SSAValue] | None) -> Sequence[Attribute]:
    """Of an operand or result by its name: one, several, or one that is not there."""
    if found is None:
        return ()
    return (found.type,) if isinstance(found, SSAValue) else [value.type for value in found]


def _may_be_any(argument: Any) -> bool:
    """Whether each of its types may be any; one that is not variadic is there once."""
    range_ = argument.constr
    if isinstance(argument, VariadicDef) and isinstance(range_, RangeLengthConstraint):
        return False
    return isinstance(range_, AnyRange) or isinstance(_constraint_of_each(range_), AnyAttr)


def _constraint_of_each(range_: RangeConstraint) -> Any:
    """The constraint for each type of a range, if that is what it asks, beside how many there are."""
    inner = range_.constraint if isinstance(range_, RangeLengthConstraint) else range_
    return inner.constr if isinstance(inner, RangeOf) else None


def _checks_by_name(
    definitions: Mapping[str, Any], attributes_of: Callable[[Operation], Mapping[str, Attribute]]
) -> list[Check]:
    found = ((name, definition.constr) for name, definition in definitions.items())
    return [
        _check_of_attribute(name, constraint.verify, attributes_of)
        for name, constraint in found
        if not isinstance(constraint, AnyAttr)
    ]


def _check_of_attribute(
    name: str,
    verify: Callable[[Attribute, VerificationContext], None],
    attributes_of: Callable[[Operation], Mapping[str, Attribute]],
) -> Check:
    def check(op: Operation, context: VerificationContext) -> None:
        found = attributes_of(op).get(name)
        if found is not None:
            verify(found, context)

    return check
