"""What the passes on tile IR have to know of a processor and of a program on it.

GPUConfig(nvidia_gpu, num_warps=8).tile         TileConfig(tma_bytes=..., split_rows=64, num_threads=256)
TILES_OF_CPU                                    TileConfig(loads_ahead=False, has_ptx=False)
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TileConfig:
    """`tma_bytes`: the largest block of a tensor that it copies by itself. `loads_ahead`: whether it loads for later
    iterations of a loop. A CPU does not: there a branch costs less than the masks that stand for it. `has_ptx`:
    whether it takes inline assembly as it is. `split_rows`: loops of dots of at least so many rows are split where
    masks hold for whole tiles, as is measured for those of wgmma: attention by mma.sync for sm_120 spilled by it, and
    paged decode, of 16 rows, took 1 % more time for the second loop to begin. `num_threads`: of a program.
    `groups_programs`: whether it runs neighbouring programs one after the other. `splits_accesses`: whether two
    accesses of neighbours under masks cost it less than one at places that are chosen lane by lane.
    """

    tma_bytes: int = 0
    loads_ahead: bool = True
    has_ptx: bool = True
    split_rows: int | None = 1
    num_threads: int = 128
    groups_programs: bool = False
    splits_accesses: bool = False


TILES_OF_GPU = TileConfig()  # one that has no more than what all have
TILES_OF_CPU = TileConfig(loads_ahead=False, has_ptx=False)
