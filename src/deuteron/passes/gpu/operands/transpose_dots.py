"""Transposes dots whose second operand is computed, so that it is the first one, and dots of few rows.

    %x = arith.sitofp %w                             %x = arith.sitofp %w
    %d = "tt.dot"(%a, %x, %c)              ->        %t = "tt.dot"(tt.trans %x, tt.trans %a, tt.trans %c)
                                                     %d = tt.trans %t

wgmma reads its second operand from shared memory: what threads compute they would store there, and wait for each other
before they multiply. mma.sync takes four words of the first operand, in the order in which threads compute them, and
two of the second, in which they load them if the first is computed of fewer bits. Transpositions cost nothing: they are
names of registers, or views of shared memory. What a loop carries of the sums it carries transposed.

Done where `place-dot-operands` then leaves the operand in registers, and for wgmma where shared memory has less to do;
not where the other operand is computed too, or the sums become an operand of another dot. Dots of 2 to 8 rows are
columns of an instruction then, which has 16 rows at least: threads would multiply them one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.function import FuncOp, functions_in
from deuteron.ir.tt.shape import TransOp
from deuteron.ir.types import bit_width_of, byte_width_of, element_type_of, num_elements_of, shape_of, tile
from deuteron.layout.wgmma import M
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.gpu.dot_instructions import fewest_columns, type_obstacle, uses_mma, uses_wgmma
from deuteron.passes.gpu.layouts.anchors import mma_warps, reaches_operand
from deuteron.passes.gpu.layouts.computed_operands import ComputedOperand
from deuteron.passes.gpu.operands.origins import is_from_dot
from deuteron.passes.gpu.operands.register_operands import in_registers, is_read_well, loads_in_words
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import replace

ORDER = (1, 0)


@dataclass(frozen=True)
class TransposeDots(Optimisation):
    """Makes computed second operands of dots first ones."""

    name = "transpose-dots"

    config: GPUConfig

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            if dots := nested_ops(func, DotOp):
                info = AxisInfoAnalysis(func, deferred=True)
                self._transpose_in(func, [dot for dot in dots if self._pays(dot, info)])

    def _transpose_in(self, func: FuncOp, chosen: Sequence[DotOp]) -> None:
        for dot in chosen:
            _transpose(dot)
        for loop in nested_ops(func, scf.ForOp) if chosen else ():
            _carry_transposed(loop)

    def _pays(self, dot: DotOp, info: AxisInfoAnalysis) -> bool:
        if self._has_rows_if_transposed(dot):
            return True
        if reaches_operand(dot.result) or is_from_dot(dot.a) or ComputedOperand.of(dot, 0) is not None:
            return False
        if uses_wgmma(dot, self.config):
            computed = in_registers(dot, 1, info, self.config)
            return computed is not None and _cycles(dot, computed) > _cycles_transposed(dot, computed)
        computed = ComputedOperand.of(dot, 1)
        if computed is None or not computed.is_narrower_than(dot.b):
            return False
        return self._pays_by_mma(dot) and is_read_well(dot, 1, computed, info)

    def _has_rows_if_transposed(self, dot: DotOp) -> bool:
        """Whether threads would multiply for want of rows. They round nothing: f32 is not made tf32 for this."""
        shape, unit = shape_of(dot.result.type), self.config.machine.mma
        if unit is None or len(shape) != 2 or not fewest_columns(dot, unit) <= shape[0] < unit.rows <= shape[1]:
            return False
        return bit_width_of(dot.a.type) <= 16 and type_obstacle(dot, unit) is None

    def _pays_by_mma(self, dot: DotOp) -> bool:
        """A thread reads two words of the operand that is loaded at once: those of a second one are neighbours among
        its registers, of a first one not. No more warps may compute the same.
        """
        shape, unit = shape_of(dot.result.type), self.config.machine.mma
        if len(shape) != 2 or not uses_mma(dot, self.config.machine) or shape[1] < unit.rows:
            return False
        rows, _ = mma_warps(shape, unit, self.config.num_warps)
        _, columns = mma_warps(shape[::-1], unit, self.config.num_warps)
        return columns <= rows


def _cycles(dot: DotOp, computed: ComputedOperand) -> float:
    """What shared memory is asked for, in bytes that it could give meanwhile: what is loaded is read, the computed
    operand stored and, with every 64 rows, read.
    """
    loaded = sum(_bytes(load.results[0]) for load in computed.loads)
    return loaded + _bytes(dot.b) + _bytes(dot.a) + _bytes(dot.b) * shape_of(dot.a.type)[0] / M


def _cycles_transposed(dot: DotOp, computed: ComputedOperand) -> float:
    """The operand that was the first is read with every 64 columns; threads load words of what is computed."""
    return _bytes(dot.a) * shape_of(dot.b.type)[1] / M + loads_in_words(dot.b, computed)


def _bytes(value: SSAValue) -> int:
    return num_elements_of(value.type) * byte_width_of(value.type)


def _transpose(dot: DotOp) -> None:
    b = Builder.before(dot)
    a, other, c = (_transposed(b, value) for value in (dot.b, dot.a, dot.c))
    new = DotOp.create(
        operands=[a, other, c], result_types=[c.type], properties=dot.properties, attributes=dot.attributes
    )
    result = b.value(new)
    result.name_hint = dot.result.name_hint
    replace(dot, [b.value(TransOp(result, ORDER))])


def _transposed(b: Builder, value: SSAValue) -> SSAValue:
    """What is transposed twice is as it was; what is the same everywhere has another shape only."""
    op = value.owner
    if isinstance(op, TransOp) and tuple(op.permutation) == ORDER:
        return op.src
    if isinstance(op, arith.ConstantOp) and isinstance(op.value, DenseIntOrFPElementsAttr) and op.value.is_splat():
        type = tile(element_type_of(value.type), shape_of(value.type)[::-1])
        return b.value(arith.ConstantOp(DenseIntOrFPElementsAttr(type, op.value.data), type))
    return b.value(TransOp(value, ORDER))


def _carry_transposed(loop: scf.ForOp) -> None:
    """What a loop carries only to transpose it, and to transpose it back, it carries transposed. What it transposes in
    each iteration stays.
    """
    block = loop.body.block
    for index, argument in enumerate(block.args[1:]):
        following = block.last_op.operands[index].owner
        turned = [use.operation for use in argument.uses]
        if turned and all(map(_is_transposition, [following, *turned])) and following not in turned:
            _carry(loop, index, following, turned)


def _is_transposition(op: object) -> bool:
    return isinstance(op, TransOp) and tuple(op.permutation) == ORDER


def _carry(loop: scf.ForOp, index: int, following: TransOp, turned: Sequence[TransOp]) -> None:
    b, argument, result = Builder.before(loop), loop.body.block.args[1 + index], loop.results[index]
    type = following.src.type
    loop.operands[3 + index] = _transposed(b, loop.iter_args[index])
    loop.body.block.last_op.operands[index] = following.src
    argument = Rewriter.replace_value_with_new_type(argument, type)
    for op in turned:
        replace(op, [argument])
    result = Rewriter.replace_value_with_new_type(result, type)
    after = Builder.before(loop.next_op)
    back = after.value(TransOp(result, ORDER))
    result.replace_uses_with_if(back, lambda use: use.operation is not back.owner)
    back.name_hint = result.name_hint
    if not list(following.result.uses):
        following.detach()
        following.erase()
