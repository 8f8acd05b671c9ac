"""Runs the groups of a wave until every thread has exited.

A group runs until it blocks, diverges, exits or has used its turn. When nothing can run, in this order: joins let
complete warps go on, an asynchronous copy is delivered, joins let single threads go on; then it is a deadlock. A kernel
that spins without blocking gets the same treatment after some turns in which nothing was written, or in which threads
wait at a join for others, which may be spinning until these go on: a lock that its owner has to release.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from deuteron.emulator.faults import EmulatorError, Fault, Place, make_error
from deuteron.emulator.machine.group import Group, concatenate
from deuteron.emulator.machine.join import Join
from deuteron.emulator.machine.wait import Wait
from deuteron.emulator.program import Program
from deuteron.emulator.step import STOP
from deuteron.errors import DeuteronError, InternalError

TURN = 512
IDLE_LIMIT = 3_000_000
PATIENCE = 32  # turns of each group; fewer make groups smaller than they need to be, more make locks slow


class Scheduler:
    """`deliver` completes one pending asynchronous operation and says whether there was one."""

    def __init__(self, program: Program, deliver: Callable[[], bool]):
        self.program = program
        self.deliver = deliver
        self.ready: deque[Group] = deque()
        self.blocked: list[Group] = []
        self.joins: list[Join] = []
        self.idle = 0
        self.turns_apart = 0

    def run(self, group: Group) -> None:
        self.ready.append(group)
        while self.ready or self.blocked or self.joins:
            if not self.ready:
                self._find_work()
            self._run_turn(self.ready.popleft())
            self._wake()

    def _find_work(self) -> None:
        """Make a group ready where none is."""
        if not self._unstick():
            raise self._deadlock()

    def _run_turn(self, group: Group) -> None:
        wave = group.wave
        self._drift(group)
        before = wave.num_events
        count = self._execute(group)
        self.idle = 0 if wave.num_events != before else self.idle + count
        if self.idle > TURN * (len(self.ready) + 1):
            self._unstick()
        self.turns_apart += 1
        if self.turns_apart > PATIENCE * (len(self.ready) + 1):
            self.turns_apart = 0
            self._release_joins()
        if self.idle > IDLE_LIMIT:
            raise self._fault_at(Fault("no progress", _SPINS, group.threads), group)

    def _drift(self, group: Group) -> None:
        """What is in flight may happen while threads go on."""
        with self.reporting(group):
            group.wave.asynchronous.drift()

    @contextmanager
    def reporting(self, group: Group) -> Iterator[None]:
        """What a late copy does wrong is reported at a group that waits, or runs."""
        try:
            yield
        except Fault as fault:
            raise self._fault_at(fault, group) from None

    def _execute(self, group: Group) -> int:
        """Run instructions until the group stops or its turn is over; gives how many."""
        steps = self.program.steps
        pc = group.pc
        stop = group.join.pc if group.join else -1
        recorder = group.wave.recorder
        try:
            for number in range(1, TURN + 1):
                step = steps[pc]
                if group.unwritten or group.in_flight:
                    step.check_registers(group)
                if recorder is not None:
                    recorder.count(pc, group)
                result = step.run(group)
                pc = pc + 1 if result is None else result
                if pc == STOP:
                    return number
                if pc == stop:
                    group.pc = pc
                    self._arrive(group)
                    return number
        except Fault as fault:
            group.pc = pc
            raise self._fault_at(fault, group) from None
        except DeuteronError:
            raise
        except Exception as error:
            group.pc = pc
            raise self._explain(error, group) from error
        group.pc = pc
        self.ready.append(group)
        return TURN

    def diverge(self, group: Group, mask: np.ndarray, taken: int, pc: int) -> None:
        """Split a group at the branch `pc`: threads of `mask` go to `taken`, the others on."""
        meet, other = self.program.meet_of(pc), pc + 1
        if meet is not None and (group.join is None or group.join.pc != meet):
            group.join = Join(meet, group.join, group.threads)
            self.joins.append(group.join)
        for part_mask, pc in ((mask, taken), (~mask, other)):
            part = group.take(part_mask, self.program.live_at(pc))
            self.start_at(part, pc)

    def block(self, group: Group, pc: int, wait: Wait) -> int:
        """Stop a group until `wait` lets its threads go on, at `pc`."""
        group.pc, group.wait = pc, wait
        self.blocked.append(group)
        return STOP

    def exit(self, group: Group, mask: np.ndarray | None, pc: int) -> None:
        """Threads are done at the instruction `pc`; those that the mask leaves out go on."""
        leaving = group if mask is None else group.take(mask, ())
        leaving.wave.exit(leaving.threads)
        self.leave_joins(leaving, None)
        if mask is not None:
            self.start_at(group.take(~mask, self.program.live_at(pc + 1)), pc + 1)

    def leave_joins(self, group: Group, last: Join | None) -> None:
        """The threads of a group will not arrive at its joins up to `last`."""
        join = group.join
        while join is not last:
            join.leave(group.threads)
            if join.arrived and join.is_complete:
                self._complete(join)
            join = join.parent
        self.joins = [j for j in self.joins if j.members]
        group.join = last

    def _arrive(self, group: Group) -> None:
        join = group.join
        join.arrived.append(group)
        if join.is_complete:
            self._complete(join)

    def _complete(self, join: Join) -> None:
        self.joins.remove(join)
        self._continue(join, concatenate(join.take_all(), self.program.live_at(join.pc)))
        join.members.clear()

    def _continue(self, join: Join, group: Group) -> None:
        """A group goes on from a join."""
        self.turns_apart = 0
        group.join = join.parent
        group.pc = join.pc
        self._start(group)

    def start_at(self, group: Group, pc: int) -> None:
        group.pc = pc
        self._start(group)

    def _start(self, group: Group) -> None:
        """Let a group run from its program counter, unless that is where it joins others."""
        if group.join is not None and group.join.pc == group.pc:
            self._arrive(group)
        else:
            self.ready.append(group)

    def _wake(self) -> None:
        """Let blocked groups go on where what they wait for has happened; those that wake together run together."""
        woken: dict[int, list[Group]] = {}
        still: list[Group] = []
        for group in self.blocked:
            mask = group.wait.ready(group)
            if not mask.any():
                still.append(group)
                continue
            if not mask.all():
                still.append(self._part(group, ~mask))
                group = self._part(group, mask)
            if group.wait.finish is not None:
                group.wait.finish(group)
            group.wait = None
            woken.setdefault(group.pc, []).append(group)
        self.blocked = still
        for pc, groups in woken.items():
            join = common_join(groups)
            for group in groups:
                self.leave_joins(group, join)
            self._start(concatenate(groups, self.program.live_at(pc)))

    def _part(self, group: Group, mask: np.ndarray) -> Group:
        part = group.take(mask, self.program.live_at(group.pc))
        part.wait = group.wait
        return part

    def _unstick(self) -> bool:
        """Do what may let a group go on; False where there is nothing left to do."""
        return self._release(Join.complete_warps) or self._deliver() or self._release(_arrived)

    def _release_joins(self) -> None:
        """Threads that wait at a join go on: whole warps, and where there are none, single threads."""
        if not self._release(Join.complete_warps):
            self._release(_arrived)

    def _deliver(self) -> bool:
        waiting = [*self.blocked, *(group for join in self.joins for group in join.arrived), *self.ready]
        with self.reporting(waiting[0]):
            if not self.deliver():
                return False
        self._wake()
        return bool(self.ready) or self._unstick()

    def _release(self, choose: Callable[[Join], np.ndarray]) -> bool:
        for join in reversed(self.joins):
            threads = choose(join) if join.arrived else np.empty(0, np.int64)
            if len(threads):
                self._release_threads(join, threads)
                return True
        return False

    def _release_threads(self, join: Join, threads: np.ndarray) -> None:
        """Let these threads, which have arrived, go on without the others."""
        live = self.program.live_at(join.pc)
        whole = concatenate(join.take_all(), live)
        mask = np.isin(whole.threads, threads)
        if not mask.all():
            join.arrived.append(whole.take(~mask, live))
        join.leave(threads)
        if not join.members:
            self.joins.remove(join)
        self._continue(join, whole if mask.all() else whole.take(mask, live))

    def _deadlock(self) -> EmulatorError:
        diverged = self._diverged()
        if diverged is not None:
            return self._fault_at(diverged.wait.fault, diverged)
        lines = []
        for group in self.blocked:
            place = self._place(group, group.wait.pc, group.threads)
            lines.append(f"\n    {group.wait.kind}: {group.wait.describe(group)}{place.describe()}")
        message = "no thread can go on:" + "".join(lines)
        first = self.blocked[0] if self.blocked else self.joins[0].arrived[0]
        return self._fault_at(Fault("deadlock", message), first)

    def _diverged(self) -> Group | None:
        """A group that waits for others of its warp to come to the same instruction, which wait likewise elsewhere."""
        apart = [group for group in self.blocked if group.wait.fault is not None]
        stuck = np.concatenate([group.threads for group in apart]) if apart else np.empty(0, np.int64)
        faulty = (group for group in apart if np.isin(group.wait.missing, stuck).all())
        return next((group for group in faulty if group.wait.fault.kind != "deadlock"), None)

    def _fault_at(self, fault: Fault, group: Group) -> EmulatorError:
        threads = fault.threads if len(fault.threads) else group.threads
        return make_error(fault, self._place(group, group.pc, np.sort(threads)))

    def _place(self, group: Group, pc: int, threads: np.ndarray) -> Place:
        return group.wave.place(self.program.function.name, self.program.steps[pc].instruction, threads)

    def _explain(self, error: Exception, group: Group) -> DeuteronError:
        """An exception of Python: a register that was never written, or a defect of the emulator."""
        step = self.program.steps[group.pc]
        unwritten = [name for index, name in step.named_sources() if group.registers[index] is None]
        if unwritten:
            message = f"reads register {', '.join(unwritten)}, which was never written"
            return self._fault_at(Fault("unwritten register", message, group.threads), group)
        place = self._place(group, group.pc, group.threads)
        return InternalError(f"the emulator failed: {type(error).__name__}: {error}{place.describe()}")


def _arrived(join: Join) -> np.ndarray:
    return np.concatenate([group.threads for group in join.arrived])


def common_join(groups: Sequence[Group]) -> Join | None:
    """The innermost join that all groups are under."""
    chains = [list(_chain(group.join)) for group in groups]
    return next((join for join in chains[0] if all(join in chain for chain in chains)), None)


def _chain(join: Join | None) -> Iterator[Join]:
    while join is not None:
        yield join
        join = join.parent


_SPINS = (
    "runs without an end and without writing anything. Does it wait for another block that is not resident? "
    "Then raise `blocks_at_once`."
)
