"""How a launch is emulated.

EmulatorOptions(asynchronous="random", seed=3, blocks_at_once=1)
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from deuteron.errors import UsageError


def _write(text: str) -> None:
    sys.stdout.write(text)


@dataclass(frozen=True)
class EmulatorOptions:
    """`asynchronous`: when the data of an asynchronous copy or wgmma becomes visible: `late` (only at the wait that
    guarantees it), `early` (at once) or `random` (either, by `seed`). `check_shared`: races, unwritten data and data in
    flight in shared memory. `blocks_at_once`: resident blocks; None: as many as make 512 threads. `shared_limit`:
    bytes of shared memory a block may have; None: that of the `.target`."""

    asynchronous: str = "late"
    seed: int = 0
    check_shared: bool = True
    blocks_at_once: int | None = None
    shared_limit: int | None = None
    print: Callable[[str], object] = _write

    def __post_init__(self) -> None:
        if self.asynchronous not in ("late", "early", "random"):
            raise UsageError(f"asynchronous must be 'late', 'early' or 'random', got '{self.asynchronous}'")
