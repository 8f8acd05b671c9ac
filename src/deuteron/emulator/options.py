"""How a launch is emulated.

EmulatorOptions(asynchronous="random", seed=3, blocks_at_once=1)
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from deuteron.errors import UsageError
from deuteron.settings import settings


def _write(text: str) -> None:
    sys.stdout.write(text)


@dataclass(frozen=True)
class EmulatorOptions:
    """`asynchronous`: when an asynchronous copy or wgmma happens: `random` (at some moment, by `seed`, which is that of
    DEUTERON_EMULATOR_SEED unless it is given), `late` (at the wait for it) or `early` (at once). `check_shared`: races,
    unwritten data and data in flight in shared memory; `check_global`, besides: races of a block's threads in arrays.
    `blocks_at_once`: resident blocks; None: as many as make 512
    threads. `shared_limit`: bytes of shared memory a block may have; None: that of the `.target`."""

    asynchronous: str = "random"
    seed: int = field(default_factory=lambda: settings.emulator_seed)
    check_shared: bool = True
    check_global: bool = True
    blocks_at_once: int | None = None
    shared_limit: int | None = None
    print: Callable[[str], object] = _write

    def __post_init__(self) -> None:
        if self.asynchronous not in ("random", "late", "early"):
            raise UsageError(f"asynchronous must be 'random', 'late' or 'early', got '{self.asynchronous}'")
