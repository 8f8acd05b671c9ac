"""Operands and results of our ops by the names that their definitions give them, in one call.

    class LoadOp:
        ptr = operand_def(...)          op.ptr     op._operands[0]
        mask = opt_operand_def(...)     op.mask    op._operands[1], or None, as `operandSegmentSizes` says
        result = result_def(...)        op.result  op.results[0]

By xDSL each takes nine calls, of which one makes a view of all operands: a twentieth of a compile. Those that may be
there several times are read by xDSL, and so are those behind them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate, takewhile

from xdsl.ir import Dialect, Operation, SSAValue
from xdsl.irdl import AttrSizedOperandSegments, OperandDef, OptionalDef, ResultDef, VariadicDef

_SIZES = AttrSizedOperandSegments.attribute_name
_at = tuple.__getitem__  # that of SSAValues calls twice


def read_by_name(dialect: Dialect) -> None:
    """Let the ops of a dialect be read in that way."""
    for op_class in dialect.operations:
        definition = op_class.get_irdl_definition()
        operands, results = definition.operands, definition.results
        readers = {name: _operand_at(place) for place, name in enumerate(_names_in_front(operands))}
        readers |= {name: _result_at(place) for place, name in enumerate(_names_in_front(results))}
        if AttrSizedOperandSegments(as_property=True) in definition.options:
            for segment, (name, operand) in enumerate(operands):
                if isinstance(operand, OptionalDef):
                    readers[name] = _operand_of_segment(segment)
        for name, read in readers.items():
            setattr(op_class, name, property(read))


def _names_in_front(defined: Sequence[tuple[str, OperandDef | ResultDef]]) -> list[str]:
    """Of those that are before any which may be there several times, or not at all."""
    return [name for name, _ in takewhile(lambda one: not isinstance(one[1], VariadicDef), defined)]


def _operand_at(place: int) -> Callable[[Operation], SSAValue]:
    return lambda op: _at(op._operands, place)


def _result_at(place: int) -> Callable[[Operation], SSAValue]:
    return lambda op: _at(op.results, place)


def _operand_of_segment(segment: int) -> Callable[[Operation], SSAValue | None]:
    def read(op: Operation) -> SSAValue | None:
        begins = _begins(op.properties[_SIZES].data.data)
        return _at(op._operands, begins[segment]) if begins[segment] < begins[segment + 1] else None

    return read


@cache
def _begins(sizes: bytes) -> tuple[int, ...]:
    """Where each segment begins, and the last ends: sizes are numbers of 32 bits."""
    return (0, *accumulate(struct.unpack(f"<{len(sizes) // 4}i", sizes)))
