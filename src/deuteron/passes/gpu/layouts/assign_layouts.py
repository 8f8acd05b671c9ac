"""Gives every tile a layout: tile IR becomes ttgir.

Anchors (memory accesses, dots, reductions) have layouts of their own, and values computed from them a home
(see `homes`). Each use demands a layout; demands are collected backwards, so that they are complete where a value is
made. Shape ops, and elementwise ops without a home, are made anew for each layout demanded; any other value that is
demanded in another layout than its home is converted right after it is made:

    %x = "tt.load"(%p) ...                          %x = "tt.load"(%p) ... -> tensor<64x64xf16, coalesced>
                                             ->     %x1 = "ttg.convert_layout"(%x) -> tensor<64x64xf16, operand of mma>
    %d = "tt.dot"(%x, %y, %c)                       %d = "tt.dot"(%x1, %y1, %c)

What is widened only for other layouts is converted before it is widened, half of the bytes.

Loads that are needed in another layout only are done in that one, where this costs less (loads_in_place.py), and
stores in that in which they find what they store (stores_in_place.py); what is scanned is loaded in columns
(scanned_loads.py), small matrices whole (reduced_loads.py), single elements as what is computed of them is stored
(gathered_loads.py).
It does not look for cheaper places for conversions; later passes do.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, ModuleOp, NoneAttr, StringAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.errors import CompilationError, IRError
from deuteron.ir.builder import Builder
from deuteron.ir.kernel_parameters import check_parameters
from deuteron.ir.location import from_attribute
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import FuncOp, functions_in
from deuteron.ir.ttg.convert import ConvertLayoutOp
from deuteron.ir.ttg.inference import operand_layouts
from deuteron.ir.ttg.layout import with_layout
from deuteron.ir.types import i32, is_tile
from deuteron.layout.linear import REGISTER, LinearLayout
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.gpu.dot_instructions import remark_dots
from deuteron.passes.gpu.layouts.gathered_loads import gathered_loads
from deuteron.passes.gpu.layouts.homes import Homes, Layouts
from deuteron.passes.gpu.layouts.loads_in_place import loads_in_place
from deuteron.passes.gpu.layouts.reduced_loads import reduced_loads
from deuteron.passes.gpu.layouts.scanned_loads import scanned_loads
from deuteron.passes.gpu.layouts.stores_in_place import stores_in_place

ROUNDS = 2
WIDENING = frozenset({"arith.extf", "arith.extsi", "arith.extui"})


def _control_flow_blocks(op: Operation) -> list[Block]:
    """The blocks of an `scf` op; the regions of reductions hold scalars only."""
    return [block for region in op.regions for block in region.blocks] if op.name.startswith("scf.") else []


class _Demands:
    """In which layouts each value is needed, and each op's operands, before anything is changed."""

    def __init__(self, func: FuncOp, homes: Homes):
        self._homes = homes
        self._layouts: dict[SSAValue, list[LinearLayout]] = {}
        self._widened_late: set[Operation] = set()
        self.needs: dict[Operation, Layouts] = {}
        self._collect_block(func.body.block)

    def of(self, value: SSAValue) -> list[LinearLayout]:
        return self._layouts.get(value, [])

    def by(self, op: Operation, value: SSAValue) -> list[LinearLayout]:
        """In which layouts an op needs one of its operands."""
        is_remade = self.is_remade(op)
        needs = [operand_layouts(op, layout) for layout in self.of(op.results[0])] if is_remade else [self.needs[op]]
        return [one for layouts in needs for o, one in zip(op.operands, layouts, strict=True) if o is value and one]

    def is_remade(self, op: Operation) -> bool:
        """Whether an op is made anew for each layout in which it is needed."""
        return op in self._widened_late or self._homes.is_remade(op)

    def _collect_block(self, block: Block) -> None:
        for op in reversed(list(block.ops)):
            self._collect(op)

    def _collect(self, op: Operation) -> None:
        if self._is_widened_for_others(op):
            self._widened_late.add(op)
        if self.is_remade(op):
            for layout in self.of(op.results[0]):
                self._demand(op, operand_layouts(op, layout))
            return
        for block in reversed(_control_flow_blocks(op)):
            self._collect_block(block)
        self.needs[op] = self._homes.operands_of(op)
        self._demand(op, self.needs[op])

    def _is_widened_for_others(self, op: Operation) -> bool:
        """Whether an op widens a tile that is needed only elsewhere, by threads that hold no more of it."""
        if op.name not in WIDENING or not is_tile(op.results[0].type):
            return False
        home, wanted = self._homes.get(op.results[0]), self.of(op.results[0])
        if home is None or not wanted or home in wanted:
            return False
        return all(layout.in_size(REGISTER) <= home.in_size(REGISTER) for layout in wanted)

    def _demand(self, op: Operation, layouts: Layouts) -> None:
        for operand, layout in zip(op.operands, layouts, strict=True):
            if layout is not None and is_tile(operand.type):
                found = self._layouts.setdefault(operand, [])
                if layout not in found:
                    found.append(layout)


class _Rewrite:
    """Sets types, clones what is remade, inserts conversions. `_variants` has each value in each layout."""

    def __init__(self, func: FuncOp, homes: Homes, demands: _Demands):
        self._homes = homes
        self._demands = demands
        self._variants: dict[tuple[SSAValue, LinearLayout], SSAValue] = {}
        self._remade: list[Operation] = []
        self._block(func.body.block)
        for op in reversed(self._remade):
            op.detach()
            op.erase()

    def _block(self, block: Block) -> None:
        ops = list(block.ops)  # without the conversions that settling puts between them
        for argument in list(block.args):
            self._settle(argument, InsertPoint.at_start(block), block.first_op.location)
        for op in ops:
            self._op(op)

    def _op(self, op: Operation) -> None:
        if self._demands.is_remade(op):
            self._remake(op)
            return
        self._rewire(op, self._demands.needs[op])
        for block in _control_flow_blocks(op):
            self._block(block)
        for result in list(op.results):
            self._settle(result, InsertPoint.after(op), op.location)

    def _remake(self, op: Operation) -> None:
        self._remade.append(op)
        result = op.results[0]
        for layout in self._demands.of(result):
            clone = op.clone()
            clone.location = op.location
            op.parent.insert_op_before(clone, op)
            self._rewire(clone, operand_layouts(op, layout))
            made = Rewriter.replace_value_with_new_type(clone.results[0], with_layout(result.type, layout))
            if isinstance(clone, ConstantOp):
                clone.properties["value"] = DenseIntOrFPElementsAttr(made.type, clone.value.data)
            self._variants[result, layout] = made

    def _rewire(self, op: Operation, layouts: Layouts) -> None:
        for index, (operand, layout) in enumerate(zip(list(op.operands), layouts, strict=True)):
            if layout is not None and is_tile(operand.type):
                op.operands[index] = self._variants[operand, layout]

    def _settle(self, value: SSAValue, after: InsertPoint, location) -> None:
        home = self._homes.get(value)
        if home is None or not is_tile(value.type):
            return
        demanded = self._demands.of(value)
        settled = Rewriter.replace_value_with_new_type(value, with_layout(value.type, home))
        self._variants[settled, home] = settled
        builder = Builder(after, location)
        for layout in demanded:
            if layout != home:
                converted = builder.value(ConvertLayoutOp(settled, with_layout(settled.type, layout)))
                converted.name_hint = settled.name_hint
                self._variants[settled, layout] = converted


def _find_layouts(func: FuncOp, config: GPUConfig) -> tuple[Homes, _Demands]:
    """Once more where accesses are to be done in the layouts in which they turn out to be needed.

    Stores first: a load that is narrowed could go where its store is, but would then read with gaps between lanes.
    Loads twice: what is computed with a load that moves may be wanted where it moved to.
    """
    info = AxisInfoAnalysis(func)
    placed: dict[Operation, LinearLayout | None] = {}
    for choose in (gathered_loads, reduced_loads, scanned_loads):
        placed |= choose(func, info, config)
    homes = Homes(func, info, config, placed)
    stores = stores_in_place(func, homes, info)
    if stores:
        placed |= stores
        homes = Homes(func, info, config, placed)
    demands = _Demands(func, homes)
    for _ in range(ROUNDS):
        loads = loads_in_place(func, homes, demands.by, info)
        if not loads:
            break
        placed |= loads
        homes = Homes(func, info, config, placed)
        demands = _Demands(func, homes)
    return homes, demands


def _check_has_no_layouts(func: FuncOp) -> None:
    for op in nested_ops(func):
        if any(is_tile(result.type) and result.type.encoding != NoneAttr() for result in op.results):
            raise IRError(
                "the tiles have layouts already: this is ttgir, for passes that come after assign-layouts. Begin with "
                "the ttir.",
                *from_attribute(op.location),
            )


def _check_element_regions(func: FuncOp) -> None:
    """Raise for a tile in the region of a reduction, scan or map, which a thread runs on elements of its own."""
    for op in nested_ops(func):
        if not op.regions or op is func or _control_flow_blocks(op):
            continue
        inner = (inner for region in op.regions for inner in region.walk())
        tile = next(
            (each for each in inner if any(is_tile(value.type) for value in (*each.results, *each.operands))), None
        )
        if tile is not None:
            kind = op.name.rpartition(".")[2]
            raise CompilationError(
                f"on a GPU the function of tl.{kind} is given single elements, and cannot make a tile of them. Compute "
                "with numbers in it, and with tiles before or after.",
                *from_attribute(tile.location),
            )


@dataclass(frozen=True)
class AssignLayouts(ModulePass):
    """Makes ttgir of tile IR."""

    name = "assign-layouts"

    config: GPUConfig

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        op.attributes["ttg.num-warps"] = IntegerAttr(self.config.num_warps, i32)
        op.attributes["ttg.threads-per-warp"] = IntegerAttr(self.config.machine.warp_size, i32)
        op.attributes["ttg.num-ctas"] = IntegerAttr(self.config.num_ctas, i32)
        op.attributes["ttg.target"] = StringAttr(self.config.machine.name)
        for func in functions_in(op):
            _check_has_no_layouts(func)
            check_parameters(func)
            _check_element_regions(func)
            remark_dots(func, self.config)
            homes, demands = _find_layouts(func, self.config)
            _Rewrite(func, homes, demands)
