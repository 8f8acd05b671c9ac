"""What a nest reads and writes: how wide its elements are, and by how much their addresses move along each dimension.

x = load(p + i[:, None] * stride + j[None, :])      Access(num_bytes=4, steps=(UNKNOWN, 1), index=(0, 1), read=x)
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from deuteron.backend.cpu.memory.elements import register_type
from deuteron.backend.cpu.plan.indices import Index, identity_index, running
from deuteron.backend.cpu.plan.items import Nest
from deuteron.backend.cpu.plan.ops.declaration import Step
from deuteron.backend.cpu.plan.reads import VIEWED
from deuteron.backend.cpu.plan.roots import Keep, Root, ScanRoot, StoreRoot
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.backend.cpu.plan.slots import Place
from deuteron.backend.cpu.plan.vectors.steps import Steps
from deuteron.backend.llvm.types import byte_width


@dataclass(frozen=True)
class Access:
    """Elements of so many bytes at addresses that move by `steps` (in elements) along the dimensions.

    `place`: of a kept tile; `index`: the dimensions of the nest that run along its dimensions. `read`: what is read;
    None of a write. `num_vectors`: how many hold the elements of all lanes, where these are at known distances.
    """

    num_bytes: int
    steps: tuple[Step, ...]
    place: Place | None = None
    index: Index = ()
    read: SSAValue | None = None
    num_vectors: int = 0


def is_close(step: Step, lanes: int) -> bool:
    """Whether lanes are so few elements apart that whole vectors, each of them shuffled, take less than each lane."""
    return isinstance(step, int) and 2 <= step <= lanes // 2


def is_by_lane(access: Access, axis: int, lanes: int) -> bool:
    """Whether there is an instruction for each lane along an axis already, so that several vectors at a time are only
    more code. What is written there may be close or not: not all processors have the masks that takes.
    """
    step = access.steps[axis]
    return isinstance(step, int) and step not in (0, 1) and (access.read is None or not is_close(step, lanes))


def accesses_of(plan: Plan, nest: Nest, steps: Steps | None = None) -> list[Access]:
    """What a nest reads and writes at an index, by these steps."""
    steps = steps or Steps(plan)
    return [access for root in nest.roots for access in _accesses(plan, steps, nest, root)]


def _accesses(plan: Plan, steps: Steps, nest: Nest, root: Root) -> list[Access]:
    axes = range(len(nest.shape))

    def through(pointer: SSAValue, index: Index) -> tuple[Step, ...]:
        return tuple(steps.along(pointer, index, axis) for axis in axes)

    def at(place: Place, index: Index, value: SSAValue, read: SSAValue | None = None) -> Access:
        runs = running(index)
        along = tuple(place.strides[runs.index(axis)] if axis in runs else 0 for axis in axes)
        return Access(_width(value), along, place, index, read if runs == index else None)

    identity, reads = identity_index(nest.shape), plan.reader.reads(root)
    found = [
        Access(_width(load.result), through(load.ptr, index), index=index, read=load.result)
        for load, index in reads.loads
    ]
    for value, indices in reads.tiles.items():  # of what loops carry some are in registers
        if value in plan.places:
            found += [at(plan.places[value], index, value, read=value) for index in indices if index != VIEWED]
    if isinstance(root, StoreRoot):
        found.append(Access(_width(root.op.value), through(root.op.ptr, identity)))
    if isinstance(root, Keep):
        found.append(at(root.place, identity, root.sources[0]))
    if isinstance(root, ScanRoot):
        found += [at(plan.places[result], identity, result) for result in root.produced()]
    return found or [Access(_width(root.sources[0]), (0,) * len(nest.shape))]


def _width(value: SSAValue) -> int:
    return byte_width(register_type(value.type))
