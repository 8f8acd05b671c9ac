"""PTX programs for each instruction family, run by the emulator in CI and by a GPU with `compare_with_gpu.py`."""

from emulator.cases import bulk, floating, integer, matrix, warp, wgmma

ALL_CASES = [*integer.CASES, *floating.CASES, *warp.CASES, *matrix.CASES, *wgmma.CASES, *bulk.CASES]
