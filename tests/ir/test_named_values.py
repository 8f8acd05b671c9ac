"""Operands and results of our ops are those that xDSL gives by their names."""

from __future__ import annotations

import itertools

import pytest
from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.irdl import AttrSizedOperandSegments, OptionalDef, VariadicDef
from xdsl.irdl.operations import VarIRConstruct, irdl_op_arg_definition
from xdsl.utils.test_value import create_ssa_value

from deuteron.ir.tt import TT
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.ttg import TTG
from deuteron.ir.ttng import TTNG

OURS = [op_class for dialect in (TT, TTG, TTNG) for op_class in dialect.operations]


def counts_of(definition) -> list[tuple[int, ...]]:
    """How many values each operand may be, in all combinations."""
    most = [
        (0, 1) if isinstance(one, OptionalDef) else (2,) if isinstance(one, VariadicDef) else (1,)
        for _, one in definition.operands
    ]
    return list(itertools.product(*most))


@pytest.mark.parametrize("op_class", OURS, ids=lambda op_class: op_class.name)
def test_values_by_their_names(op_class):
    definition = op_class.get_irdl_definition()
    readers: dict = {}
    for construct in (VarIRConstruct.OPERAND, VarIRConstruct.RESULT):
        irdl_op_arg_definition(readers, construct, definition)
    is_sized = any(isinstance(option, AttrSizedOperandSegments) for option in definition.options)
    for counts in counts_of(definition):
        sizes = {AttrSizedOperandSegments.attribute_name: DenseArrayBase.from_list(i32, counts)}
        op = op_class.create(
            operands=[create_ssa_value(i32) for _ in range(sum(counts))],
            result_types=[i32] * len(definition.results),
            properties=sizes if is_sized else {},
        )
        for name, reader in readers.items():
            assert getattr(op, name) == reader.__get__(op), (name, counts)


def test_it_is_not_read_by_xdsl():
    assert all(isinstance(vars(LoadOp)[name], property) for name in ("ptr", "mask", "other", "result"))
