"""Tiles that a thread has in its memory, loaded whole, of which as much is known as before they went there.

    %w = ttg.private_load %m {tt.contiguity = ..., tt.divisibility = ...}

Copies that run on need neighbours at addresses of which this is known, and other accesses are wider by it.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from deuteron.analysis.axis_analysis import AxisInfoAnalysis
from deuteron.analysis.axis_info import unknown
from deuteron.ir.builder import Builder
from deuteron.ir.hints import CONSTANCY, CONTIGUITY, DIVISIBILITY, promise
from deuteron.ir.ttg.private import PrivateLoadOp


def load_whole(b: Builder, memory: SSAValue, value: SSAValue, infos: AxisInfoAnalysis) -> SSAValue:
    """All of a tile that is in memory now."""
    load, info = PrivateLoadOp(memory), infos.of(value)
    if info != unknown(value):
        for name, numbers in (
            (DIVISIBILITY, info.divisibility),
            (CONTIGUITY, info.contiguity),
            (CONSTANCY, info.constancy),
        ):
            promise(load, name, numbers)
    whole = b.value(load)
    whole.name_hint = value.name_hint
    infos.visit(load)
    return whole
