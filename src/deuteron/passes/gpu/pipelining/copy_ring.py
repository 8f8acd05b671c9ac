"""Buffers in shared memory that take turns: copies fill them iterations ahead of what reads them.

    ^bb0(%k: i32, %freed: i32):                       a ring of 3 buffers, copied 2 iterations ahead
      %use = "ttg.ring_next"(%freed) <{slots = 3}>     the buffer of this iteration
      ... wait for it
      ... copy iteration k + 2 into %freed            that of the iteration before
      %m = "ttg.memdesc_index"(%buffers, %use)        in the place of the load
      "scf.yield"(%use)

It is part of `pipeline-loads`. How a kind of ring copies and waits is its own affair: by cp.async (pipeline_loads.py),
by TMA (pipeline_descriptor_loads.py). A ring that lags is read by products of the next iteration: it copies one
iteration less ahead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.ir import SSAValue

from deuteron.ir.builder import Builder
from deuteron.ir.tt.descriptor import DescriptorLoadOp
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.ttg.convert import ConvertLayoutOp
from deuteron.ir.ttg.memdesc_index import MemDescIndexOp, buffers_type
from deuteron.ir.ttg.shared import LocalAllocOp, LocalDeallocOp, LocalLoadOp
from deuteron.ir.types import i32
from deuteron.passes.carried_values import new_argument
from deuteron.passes.gpu.pipelining.pipelined_loads import PipelinedLoad
from deuteron.passes.gpu.pipelining.run_ahead import Ahead, Values, addresses_of, comes, lead_of
from deuteron.passes.rewrite import erase, replace

Place = tuple[SSAValue, ...]  # in a ring: the index of a buffer, and what else its kind has to know


class CopyRing(ABC):
    """The buffers of some loads. `lag`: how many iterations after their own the loads are read.

    What a loop carries is the place to fill, that which was read in the iteration before.
    """

    PLACE = ("freed",)  # the names of what makes a place

    def __init__(self, b: Builder, loop: scf.ForOp, loads: Sequence[PipelinedLoad], num_buffers: int, lag: int):
        self._loop, self._loads, self._num_buffers, self.lag = loop, loads, num_buffers, lag
        self._ahead = Ahead(loop, [value for one in loads for value in addresses_of(one.load)])
        self._buffers = [b.value(LocalAllocOp(buffers_type(one.buffer, num_buffers))) for one in loads]
        for buffer, one in zip(self._buffers, loads, strict=True):
            buffer.name_hint = one.load.result.name_hint
        self._entering = self._ahead.entering(loop)
        self.following: list[SSAValue] = []

    @property
    def _distance(self) -> int:
        """How many iterations ahead copies are."""
        return self._num_buffers - 1 - self.lag

    def fill(self, b: Builder, iterations: Sequence[SSAValue]) -> list[SSAValue]:
        """Copy for the last of the first iterations, or for the one before that where the ring lags."""
        index = len(iterations) - 1 - self.lag
        if index < 0:
            return []
        values = self._ahead.clone(b, iterations[index], self._entering)
        self._entering = self._ahead.following(values)
        b.location = self._loop.location
        return self._copy(b, values, b.constant(index, i32), comes(b, iterations[index], self._loop.ub))

    def enter(self, b: Builder) -> list[SSAValue]:
        """What enters the loop: that which is carried ahead of its iteration, and the place to fill."""
        return [*self._entering, *self._first_place(b)]

    def find_places(self, top: Builder) -> None:
        """The place to fill, and the one to read, at the top of an iteration.

        The second is steps from the first, also in a ring that lags: so the analysis of hazards tells them apart, and
        one barrier orders the copies of all rings.
        """
        self._carried = self._ahead.new_arguments(self._loop)
        self._freed: Place = tuple(new_argument(self._loop, i32, name) for name in self.PLACE)
        self._next = self._read = self._next_place(top, self._freed)
        for _ in range(self.lag):
            self._read = self._next_place(top, self._read)
        self._ready = [top.value(MemDescIndexOp(buffer, self._read[0])) for buffer in self._buffers]

    def copy_ahead(self, before: Builder, b: Builder) -> list[SSAValue]:
        """Copy into the buffers to fill; gives the tokens of the copies."""
        iteration, runs = lead_of(self._loop, before, b, self._distance)
        values = self._ahead.clone(b, iteration, self._carried)
        self.following = [*self._ahead.following(values), *self._next]
        b.location = self._loop.location
        return self._copy(b, values, self._freed[0], runs)

    def read(self) -> None:
        """Let the users of the loads read the buffers that are ready."""
        for one, buffer in zip(self._loads, self._ready, strict=True):
            read_from(buffer, one.load, Builder.before(one.load))

    def leave(self, b: Builder) -> None:
        """Behind the loop, when all copies are done."""
        for buffer in self._buffers:
            b.insert(LocalDeallocOp(buffer))

    @abstractmethod
    def _first_place(self, b: Builder) -> Place:
        """What the first iteration finds to fill."""

    @abstractmethod
    def _next_place(self, b: Builder, place: Place) -> Place: ...

    @abstractmethod
    def _copy(self, b: Builder, values: Values, index: SSAValue, runs: SSAValue | None) -> list[SSAValue]:
        """Copy for an iteration, if it comes, into the buffers of that index; gives the tokens of the copies."""


def read_from(buffer: SSAValue, load: LoadOp | DescriptorLoadOp, b: Builder) -> None:
    """Let the users of a load read the buffer instead: itself, where they want it in shared memory as it is there, else
    the tile that is loaded from it at `b`.
    """
    for use in list(load.result.uses):
        user = use.operation
        if isinstance(user, LocalAllocOp) and user.result.type == buffer.type:
            replace(user, [buffer])
        elif isinstance(user, ConvertLayoutOp):
            replace(user, [Builder.before(user).value(LocalLoadOp(buffer, user.result.type))])
    if list(load.result.uses):
        replace(load, [b.value(LocalLoadOp(buffer, load.result.type))])
    else:
        erase(load)
