"""The state of lowering one kernel, and how a tile's value at an index is computed.

    ctx.evaluate(%y, (i, j))        computes arith.addf at (i, j) from its operands there, once
    ctx.evaluate(%x, (i, j))        where %x is kept: loads it from its place
    ctx.scalar(%n)                  a scalar, as an LLVM value

Only here are rules looked up, the debug location set, and op and location added to an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, SSAValue

from deuteron.backend.cpu.countdown import Countdown
from deuteron.backend.cpu.emitter import Emitter
from deuteron.backend.cpu.fragment import Axis, Fragment, Uniform
from deuteron.backend.cpu.plan import ops
from deuteron.backend.cpu.plan.items import Dot
from deuteron.backend.cpu.plan.programs.streams import Streams
from deuteron.backend.cpu.plan.region import Region
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.backend.cpu.plan.slots import Place, Slot
from deuteron.backend.cpu.plan.vectors.axes import ELEMENTS, Vectorisation
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import Value
from deuteron.backend.rule_errors import guarded, unsupported
from deuteron.errors import InternalError
from deuteron.ir.location import user_location
from deuteron.ir.types import is_tile
from deuteron.machine.cpu import CPU
from deuteron.options import CPUOptions

AxisIndex = tuple[Axis | None, ...]
Rule = Callable[..., Fragment]


@dataclass(frozen=True)
class LoopStep:
    """Of a loop that keeps operands of several steps: the number of this one among them, and whether it is the last of
    them or of the loop; `level` is the loop's. `is_first`: whether these are the loop's first ones, if that counts.
    """

    number: Value
    is_last: Value
    level: int
    is_first: Value | None = None


@dataclass(frozen=True)
class Runs:
    """Where elements along a dimension lie, if `holds`: `count` one after the other, and all others `jump` bytes from
    where they would be if they went on so.
    """

    holds: Value
    count: Value
    jump: Value


@dataclass(frozen=True)
class Row:
    """The only row of a product that is needed: where A and C begin. It is added to what C has, or 0 if it `begins`."""

    a: Value
    c: Value
    begins: Value


@dataclass(frozen=True)
class Stops:
    """Where a program may stop before its end: in loops that wait for others (`waiting`), where it, or another one,
    `asserts` what does not hold, and where the launch is to end, for which loops look by a `countdown`.
    """

    waiting: Collection[Operation] = ()
    asserts: bool = False
    countdown: Countdown | None = None


@dataclass(eq=False)
class Checks:
    """What is checked when a program runs: `assertions`, with their numbers; `limits` and `last_spans` are known of
    the memory that accesses are checked against.
    """

    assertions: dict[Operation, int] = field(default_factory=dict)
    limits: dict[tuple[int, int, int], tuple[Value, Value]] = field(default_factory=dict)
    last_spans: dict[Operation, Value] = field(default_factory=dict)


@dataclass(eq=False)
class Products:
    """What is known of matrix products. `repeated`: kinds that are functions. `group_offsets` says where in their slots
    operands are that are found packed, and at which level that is known (`rules/reused.py`). `read_directly`: whether
    one needs no copies of A, where only the loop's beginning knows. `computed_before`: whether an iteration of it has
    been computed before its loop, or its only row; `row`: that of a product, while it is emitted.
    """

    repeated: Collection[Hashable] = ()
    group_offsets: dict[Slot, tuple[Value, int]] = field(default_factory=dict)
    reused_steps: dict = field(default_factory=dict)
    read_directly: dict[Dot, Value] = field(default_factory=dict)
    computed_before: dict[Dot, Value] = field(default_factory=dict)
    row: Row | None = None


@dataclass(eq=False)
class NestState:
    """Of the nest that is emitted: the `level` outside of its loops, the tiles that are computed, by index, and how it
    is vectorised. `lanes_on`: which lanes of its vectors count, if not all; `runs`: how its loads lie, if in two runs.
    """

    level: int = 0
    vectorisation: Vectorisation = ELEMENTS
    runs: Mapping[Operation, Runs] = field(default_factory=dict)
    lanes_on: Fragment | None = None
    tiles: dict[tuple[SSAValue, AxisIndex], Fragment] = field(default_factory=dict)


@dataclass(eq=False)
class Context:
    """What the rules see: where code goes, what is known, and what it is compiled for. `emit_region` emits the items of
    a block at the innermost level. `streams`: the stores that may bypass the caches. `step` is that of the innermost
    loop.
    """

    module: Module
    emitter: Emitter
    plan: Plan
    target: CPU
    options: CPUOptions
    rules: Mapping[str, Rule]
    emit_region: Callable[[Context, Region, Block], None]
    program: Mapping[str, Value]
    stops: Stops
    products: Products
    streams: Streams
    checks: Checks = field(default_factory=Checks)
    scalars: dict[SSAValue, Uniform] = field(default_factory=dict)
    totals: dict[SSAValue, Uniform] = field(default_factory=dict)
    regions: dict[Block, int] = field(default_factory=dict)
    step: LoopStep | None = None
    nest_state: NestState = field(default_factory=NestState)
    lane_functions: set[str] = field(default_factory=set)
    _computed: Collection[SSAValue] = ()
    _debug: dict = field(default_factory=dict)

    def bind(self, scalar: SSAValue, value: Value) -> None:
        """Say what a scalar is that an item made."""
        self.scalars[scalar] = Uniform(value, self.regions[self._block_of(scalar)])

    def bind_block(self, block: Block) -> None:
        """Say that the innermost level is where the code of this block goes."""
        self.regions[block] = self.emitter.depth

    def scalar(self, value: SSAValue) -> Value:
        return self.evaluate(value, ()).value

    def evaluate(self, value: SSAValue, index: AxisIndex) -> Fragment:
        """The elements of a tile at an index, or a scalar at the index ()."""
        pending = [(value, index)]
        while pending:
            current = pending[-1]
            if self._known(*current) is None:
                missing = [part for part in self._parts(*current) if self._known(*part) is None]
                if missing:
                    pending.extend(missing)
                    continue
                self._remember(*current, self._compute(*current))
            pending.pop()
        return self._known(value, index)

    @contextmanager
    def evaluating_afresh(self) -> Iterator[None]:
        """What is known of tiles outside is not used inside, and the other way round."""
        self.nest_state.tiles.clear()
        yield
        self.nest_state.tiles.clear()

    @contextmanager
    def evaluating_apart(self) -> Iterator[None]:
        """What is bound and evaluated inside, of an iteration that is only looked at, is forgotten afterwards."""
        scalars, totals = dict(self.scalars), dict(self.totals)
        with self.evaluating_afresh():
            yield
        self.scalars, self.totals = scalars, totals

    def leave_nest(self) -> None:
        """Between nests nothing is known of tiles, and nothing is vectorised."""
        self.nest_state = NestState(self.nest_state.level)

    def evaluate_before(self, kept: Collection[SSAValue], value: SSAValue, index: AxisIndex) -> Fragment:
        """The elements of a tile before this very nest has put the tiles that it keeps into their places."""
        self._computed = kept
        try:
            return self.evaluate(value, index)
        finally:
            self._computed = ()

    def apply(self, op: Operation, *fragments: Fragment) -> Fragment:
        """What the rule for an op makes of its operands."""
        rule = self.rules.get(op.name)
        if rule is None:
            raise unsupported(op, "CPU")
        self.locate(op)
        return guarded(op, rule, self, op, *fragments)

    def locate(self, op: Operation) -> None:
        """Give the code that follows the location of an op, where line tables are asked for."""
        if not self.options.has_lines:
            return
        attribute = op.location
        if attribute not in self._debug:
            location = user_location(attribute)
            builder = self.emitter.innermost()
            self._debug[attribute] = location and self.module.debug_location(
                builder, location.file, location.line, location.column
            )
        self.emitter.set_debug_location(self._debug[attribute])

    def _known(self, value: SSAValue, index: AxisIndex) -> Fragment | None:
        return self.nest_state.tiles.get((value, index)) if is_tile(value.type) else self.scalars.get(value)

    def _remember(self, value: SSAValue, index: AxisIndex, fragment: Fragment) -> None:
        if is_tile(value.type):
            self.nest_state.tiles[value, index] = fragment
        else:
            self.scalars[value] = fragment

    def _parts(self, value: SSAValue, index: AxisIndex) -> list[tuple[SSAValue, AxisIndex]]:
        """What has to be known before a value is computed."""
        if self._place(value) is not None:
            return []
        induction = self.plan.storage.inductions.get(value)
        if induction is not None:
            return [(induction.initial, index)]
        op = value.owner
        return ops.declared(op).operands_at(op, index) if isinstance(op, Operation) else []

    def _compute(self, value: SSAValue, index: AxisIndex) -> Fragment:
        place = self._place(value)
        if place is not None:
            return self.rules["place"](self, value, place, index)
        parts = [self._known(*part) for part in self._parts(value, index)]
        if value in self.plan.storage.inductions:
            return self.rules["induction"](self, value, *parts)
        op = value.owner
        if not isinstance(op, Operation):
            raise InternalError(f"an argument of a block has no value when it is read: {value}")
        if ops.declared(op).forwards:
            return parts[0]
        if op.name == "tt.make_range":
            return self.rules["tt.make_range"](self, op, index)
        return self.apply(op, index, *parts) if op.name == "tt.load" else self.apply(op, *parts)

    def _place(self, value: SSAValue) -> Place | None:
        """Where to read a tile; None where it is computed."""
        return None if value in self._computed else self.plan.places.get(value)

    def _block_of(self, value: SSAValue) -> Block:
        owner = value.owner
        return owner.parent_block() if isinstance(owner, Operation) else owner
