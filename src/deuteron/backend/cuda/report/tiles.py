"""What ttgir says of a kernel: why an access is narrow, what is pipelined, where dots are read from, conversions.

    facts = tile_facts(module)
    facts.limits["load", k.py:84]        "the mask is only known to be the same for 2 elements"

Facts that instructions are needed for as well are joined with them by source line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from deuteron.analysis.addresses.access_vectors import copy_limit, width_limit
from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.analysis.shared_memory.scratch import buffer_bytes, route_of, shared_conversion_of
from deuteron.backend.cuda.report.model import Conversion, PipelinedLoad, PlainLoad
from deuteron.backend.report import line_of
from deuteron.errors import Location
from deuteron.ir.around import loops_around
from deuteron.ir.location import user_location
from deuteron.ir.nested import nested_ops
from deuteron.ir.remarks import Kind, remark_of
from deuteron.ir.tt.function import functions_in
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.ttg.async_copy import AsyncCopyGlobalToLocalOp
from deuteron.ir.ttg.convert import ConvertLayoutOp
from deuteron.ir.ttg.layout import MemDescType, layout_of
from deuteron.ir.ttg.memdesc_index import MemDescIndexOp, num_buffers
from deuteron.ir.ttng.tma import AsyncTMACopyGlobalToLocalOp
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp, tile_of
from deuteron.ir.types import byte_width_of, element_type_of, is_tile, num_elements_of, pointee_of, shape_of
from deuteron.layout.conversion import SharedRoute, ShuffleRoute
from deuteron.machine.gpu import GPU
from deuteron.passes.gpu.layouts.anchors import AnyDot

INSTRUCTIONS = {Kind.NO_MMA: "mma.sync", Kind.NO_WGMMA: "wgmma"}


@dataclass(frozen=True)
class DotFact:
    """A dot, before it is known which instructions it became."""

    place: Location | None
    tile: str
    operands: str
    is_async: bool
    remark: str | None


@dataclass(frozen=True)
class TileFacts:
    """`limits`: by kind of access and line, what keeps it from taking 16 bytes; absent where nothing does."""

    limits: dict[tuple[str, Location | None], str]
    dots: tuple[DotFact, ...]
    pipelined: tuple[PipelinedLoad, ...]
    not_pipelined: tuple[PlainLoad, ...]
    conversions: tuple[Conversion, ...]


def tile_facts(module: ModuleOp, machine: GPU) -> TileFacts:
    """The facts of a module of ttgir."""
    func = functions_in(module)[0]
    info, ops = AxisInfoAnalysis(func), nested_ops(func)
    return TileFacts(
        _limits(ops, info, machine),
        _merged(_dot(op) for op in ops if isinstance(op, AnyDot)),
        _unique(_pipelined(ops)),
        _unique(_not_pipelined(ops)),
        tuple(_conversions(ops)),
    )


def _unique(facts: Iterator) -> tuple:
    """Without repeats: a load before a loop and in it is one of the source."""
    return tuple(dict.fromkeys(facts))


def _merged(dots: Iterable[DotFact]) -> tuple[DotFact, ...]:
    """Those of one line as one, since their instructions are: it runs on if each of them does."""
    found: dict[DotFact, DotFact] = {}
    for dot in dots:
        key = replace(dot, is_async=False)
        found[key] = replace(dot, is_async=dot.is_async and found.get(key, dot).is_async)
    return tuple(found.values())


def _place(op: Operation) -> Location | None:
    return line_of(user_location(op.location))


def _limits(ops: list[Operation], info: AxisInfoAnalysis, machine: GPU) -> dict[tuple[str, Location | None], str]:
    limits = {}
    for op in ops:
        found = _limit(op, info, machine)
        if found is not None:
            limits.setdefault((_ACCESSES[type(op)], _place(op)), found)
    return limits


_ACCESSES = {LoadOp: "load", StoreOp: "store", AsyncCopyGlobalToLocalOp: "copy"}


def _limit(op: Operation, info: AxisInfoAnalysis, machine: GPU) -> str | None:
    if type(op) not in _ACCESSES:
        return None
    pointer = op.operands[0]
    if not is_tile(pointer.type):
        return "a scalar"
    mask = info.of_mask(op.mask)
    layout, size = layout_of(pointer.type), byte_width_of(pointee_of(pointer.type))
    if isinstance(op, AsyncCopyGlobalToLocalOp):
        return copy_limit(layout, layout_of(op.dst.type), info.of(pointer), mask, size, machine.async_copy_bytes)
    return width_limit(layout, info.of(pointer), mask, size)


def _dot(op: AnyDot) -> DotFact:
    (m, n), k = shape_of(op.result.type)[-2:], shape_of(tile_of(op.a.type))[-1]
    types = f"{element_type_of(tile_of(op.a.type))} x {element_type_of(tile_of(op.b.type))}"
    tile = f"{m}x{n}x{k} {types} -> {element_type_of(op.result.type)}"
    if isinstance(op, WarpGroupDotOp):
        return DotFact(_place(op), tile, _operand_places(op), bool(op.is_async.value.data), None)
    remarks = {name: remark_of(op, kind) for kind, name in INSTRUCTIONS.items()}
    said = [f"no {name}: {remark.reason}" for name, remark in remarks.items() if remark]
    return DotFact(_place(op), tile, _operand_places(op), False, "; ".join(said) or None)


def _operand_places(op: AnyDot) -> str:
    in_shared = [name for name, value in (("a", op.a), ("b", op.b)) if isinstance(value.type, MemDescType)]
    if len(in_shared) == 2:
        return "a and b in shared memory"
    return "a in registers, b in shared memory" if in_shared else "a and b in registers"


def _in_loops(ops: list[Operation]) -> list[Operation]:
    return [op for op in ops if any(loops_around(op))]


def _pipelined(ops: list[Operation]) -> Iterator[PipelinedLoad]:
    for op in _in_loops(ops):
        if isinstance(op, AsyncCopyGlobalToLocalOp):
            yield _copied(op, "cp.async", op.dst)
        elif isinstance(op, AsyncTMACopyGlobalToLocalOp):
            yield _copied(op, "TMA", op.buffer)
        elif isinstance(op, LoadOp) and (into_registers := remark_of(op, Kind.INTO_REGISTERS)):
            size = num_elements_of(op.result.type) * byte_width_of(op.result.type)
            ahead = into_registers.values.get("iterations", 1)
            reason = f"{_iterations(ahead)} ahead, into registers: {into_registers.reason}"
            yield PipelinedLoad(_place(op), "registers", ahead, size, reason)


def _iterations(count: int) -> str:
    return "one iteration" if count == 1 else f"{count} iterations"


def _copied(op: Operation, how: str, buffer: SSAValue) -> PipelinedLoad:
    buffers = _indexed(buffer).type
    return PipelinedLoad(_place(op), how, num_buffers(buffers), buffer_bytes(buffers))


def _indexed(descriptor: SSAValue) -> SSAValue:
    """What a descriptor is one buffer of."""
    owner = descriptor.owner
    return owner.src if isinstance(owner, MemDescIndexOp) else descriptor


def _not_pipelined(ops: list[Operation]) -> Iterator[PlainLoad]:
    for op in _in_loops(ops):
        if isinstance(op, LoadOp) and is_tile(op.result.type) and not remark_of(op, Kind.INTO_REGISTERS):
            stays = remark_of(op, Kind.NOT_AHEAD)
            yield PlainLoad(_place(op), stays.reason if stays else "`pipeline-loads` did not look at it")


def _conversions(ops: list[Operation]) -> Iterator[Conversion]:
    for op in ops:
        if not isinstance(op, ConvertLayoutOp):
            continue
        route, tile = route_of(op), f"{_extents(op)} {element_type_of(op.src.type)}"
        if isinstance(route, ShuffleRoute):
            yield Conversion(_place(op), tile, f"{route.num_shuffles} shuffles", 0)
        elif isinstance(route, SharedRoute):
            plan = shared_conversion_of(op)
            size = plan.num_elements * byte_width_of(op.src.type)
            how = "shared memory" if plan.num_parts == 1 else f"shared memory, in {plan.num_parts} parts"
            yield Conversion(_place(op), tile, how, size)


def _extents(op: ConvertLayoutOp) -> str:
    return "x".join(map(str, shape_of(op.src.type)))
