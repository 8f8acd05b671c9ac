"""What must hold at a stage, beyond what each op verifies of itself.

At every stage of tile IR: one module of `tt.func`s, each tile's extents powers of two and at most 2^20 elements,
only ops of the stage, every location known, every value computed before it is used. In ttgir every tile has a layout
that reaches each of its elements, for as many warps as the module says, and the layouts of an op's operands are those
that its result's asks for: tile_layouts.py. What holds of rings of buffers is in ring_rules.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation, Region, SSAValue
from xdsl.traits import IsTerminator, NoTerminator
from xdsl.utils.exceptions import VerifyException

from deuteron.errors import InternalError, IRError, Location
from deuteron.ir.arith import constant_value
from deuteron.ir.definition_verifier import prepare
from deuteron.ir.hints import check_promises
from deuteron.ir.location import from_attribute, is_unknown
from deuteron.ir.nested import nested_ops
from deuteron.ir.region_rules import check_regions
from deuteron.ir.ring_rules import ring_faults
from deuteron.ir.tile_layouts import check_layouts
from deuteron.ir.ttg.warp_specialize import WarpSpecializeOp
from deuteron.ir.types import check_type

_INTEGERS = frozenset(("tt.num_stages", "tt.loop_unroll_factor", "tt.most_programs"))
WARP_SIZE = 32  # where a text does not say it
TTIR_DIALECTS = frozenset({"builtin", "tt", "ttg", "ttng", "arith", "math", "scf"})


def verify_ttir(module: ModuleOp, after: str, ops: Sequence[Operation] | None = None) -> None:
    """Raise InternalError, naming the pass or frontend step `after` which the module broke.

    With `ops` only these are looked at: all that have changed since it was verified, and the ops that they are in. But
    for the order: an op that was moved has not changed, and which others use what it computes is not asked.
    """
    checked = nested_ops(module) if ops is None else ops
    for op_class in set(map(type, checked)):
        prepare(op_class)
    op: Operation = module
    try:
        for op in checked:
            check_regions(op)
        if ops is None:
            op = module
            _verify_all(checked)
        _check_order(module, set())
        known: set[int] = set()
        for op in checked:
            if ops is not None:
                op.verify(verify_nested_ops=False)
            _check_op(op, known)
    except VerifyException as error:
        place = from_attribute(op.location)
        raise InternalError(f"tile IR does not verify after {after}: {error}", *place) from error


def _verify_all(ops: Sequence[Operation]) -> None:
    """What `verify` of a module, the first of its ops, verifies: it says what is wrong, where something is. It calls
    five times for each op, and once for each operand.
    """
    if not all(map(_holds, ops)):
        ops[0].verify()


def _holds(op: Operation) -> bool:
    """Whether an op is as its class asks, and its blocks end as they have to."""
    try:
        op.verify_()
    except VerifyException:
        return False
    return not op.regions or op.has_trait(NoTerminator) or all(map(_ends, op.regions))


def _ends(region: Region) -> bool:
    ends = (block.last_op for block in region.blocks)
    return all(op is not None and op.has_trait(IsTerminator) for op in ends)


def verify_ttgir(module: ModuleOp, after: str, ops: Sequence[Operation] | None = None) -> None:
    """As `verify_ttir`, and for the layouts."""
    verify_ttir(module, after, ops)
    num_warps = module.attributes.get("ttg.num-warps")
    if not isinstance(num_warps, IntegerAttr):
        raise InternalError(f"ttgir after {after} does not say its number of warps")
    lanes, known = warp_size_of(module), {}

    def num_threads(op: Operation) -> int:
        return lanes * _num_warps_in(op.parent_region(), num_warps.value.data, known)

    for op, fault in ring_faults(module, num_threads) if ops is None or ops else ():
        raise InternalError(f"ttgir does not verify after {after}: {fault}", *from_attribute(op.location))
    for op in nested_ops(module) if ops is None else ops:
        try:
            check_layouts(op, lanes, _num_warps_in(op.parent_region(), num_warps.value.data, known))
        except VerifyException as error:
            location, call_chain = from_attribute(op.location)
            raise InternalError(f"ttgir does not verify after {after}: {error}", location, call_chain) from error


def verify_ir(module: ModuleOp, after: str, ops: Sequence[Operation] | None = None) -> None:
    """Verify what is tile IR until its tiles have layouts, and ttgir from then on."""
    verify = verify_ttgir if "ttg.num-warps" in module.attributes else verify_ttir
    verify(module, after, ops)


def check_input(module: ModuleOp, file: str, verify: Callable[[ModuleOp, str], None] = verify_ir) -> None:
    """Verify a module that came as text; raises IRError, for it is not ours."""
    try:
        verify(module, "parsing")
    except InternalError as error:
        raise IRError(error.message, error.location or Location(file, 1)) from error
    for func in module.ops:
        _check_integers(func)
    for loop in nested_ops(module, scf.ForOp):
        _check_loop(loop)


def _check_loop(loop: scf.ForOp) -> None:
    """What a step and hints may be; a pass may find out that a step is not positive."""
    step, place = constant_value(loop.step), from_attribute(loop.location)
    if step is not None and step < 1:
        raise IRError(f"the step of scf.for is positive, got {step}", *place)
    _check_integers(loop)


def _check_integers(op: Operation) -> None:
    for name in _INTEGERS & op.attributes.keys():
        if not isinstance(op.attributes[name], IntegerAttr):
            message = f"{name} of {op.name} is an integer, got {op.attributes[name]}"
            raise IRError(message, *from_attribute(op.location))


def warp_size_of(module: ModuleOp) -> int:
    """The threads of a warp that ttgir is for."""
    found = module.attributes.get("ttg.threads-per-warp")
    return found.value.data if isinstance(found, IntegerAttr) else WARP_SIZE


def _num_warps_in(region: Region | None, num_warps: int, known: dict[Region, int]) -> int:
    """How many warps execute the ops of a region: those of the partition that it is in, else those of the program."""
    if region is None or region.parent is None:
        return num_warps
    if region not in known:
        parent = region.parent
        is_partition = isinstance(parent, WarpSpecializeOp) and region is not parent.default
        outer = num_warps if is_partition else _num_warps_in(parent.parent_region(), num_warps, known)
        known[region] = parent.num_warps[parent.partitions.index(region)] if is_partition else outer
    return known[region]


def _check_order(op: Operation, known: set[SSAValue]) -> None:
    """Every operand is of the values known here: of ops before, and arguments of blocks around. So functions use
    nothing from around: a module has functions only, and what is in one is not known in the next.
    """
    for region in op.regions:
        for block in region.blocks:
            inside = {*block.args}
            known |= inside
            for inner in block.ops:
                if not known.issuperset(inner._operands):  # `operands` would make a view
                    raise VerifyException(f"{inner.name} uses a value before it is computed")
                if inner.regions:
                    _check_order(inner, known)
                inside.update(inner.results)
                known.update(inner.results)
            known -= inside


def _check_op(op: Operation, known: set[int]) -> None:
    """With the types that are known to be right by their ids: ops have few, and keep them."""
    if op.name.partition(".")[0] not in TTIR_DIALECTS:
        raise InternalError(f"{op.name} does not belong into ttir", *from_attribute(op.location))
    if is_unknown(op.location) and not isinstance(op, ModuleOp):
        raise InternalError(f"{op.name} has no location")
    if op.attributes:
        check_promises(op)
    for value in (*op._operands, *op.results):  # `operands` would make a view
        if id(value.type) not in known:
            check_type(value.type)
            known.add(id(value.type))
