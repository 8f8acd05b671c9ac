"""Why a group is blocked, and when which of its threads may go on.

group.wait = Wait("bar.sync 0", pc, ready=lambda group: mask, describe=lambda: "64 of 128 threads arrived")
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from deuteron.emulator.faults import Fault
from deuteron.emulator.machine.group import Group


@dataclass(frozen=True)
class Wait:
    """`ready` gives the threads that may go on; `describe` says in a deadlock report what is missing;
    `pc` is the instruction that waits; `finish` is called with the threads that go on; `fault` is what it is where
    the threads that are `missing` never come, since they wait for others in this way."""

    kind: str
    pc: int
    ready: Callable[[Group], np.ndarray]
    describe: Callable[[Group], str]
    finish: Callable[[Group], None] | None = None
    fault: Fault | None = None
    missing: np.ndarray | None = None
