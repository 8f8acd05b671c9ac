"""The IR of a compiled kernel between its passes: the stages of tile IR run again, and each pass hands over its text.

    replay_passes(backend, kernel.src, kernel.metadata)
        [PassText("ttir", "", "module { ..."), PassText("ttir", "fold", "module { ..."), ...]

A compile keeps none of this, so that looking into one costs the others nothing. The first text of a stage, whose pass
has no name, is what it is given. What starts later than tile IR has no passes of ours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from deuteron.backend import Backend
from deuteron.backend.metadata import KernelMetadata
from deuteron.backend.stage import Unit
from deuteron.compiler.driver import begin_walk
from deuteron.compiler.source import ASTSource, IRSource
from deuteron.settings import settings


@dataclass(frozen=True)
class PassText:
    """The text of the IR after a pass of a stage, with locations; of no pass (""): before the first."""

    stage: str
    name: str
    text: str


def replay_passes(backend: Backend, source: ASTSource | IRSource, metadata: KernelMetadata) -> list[PassText]:
    """The IR of a kernel before and after each pass, in order."""
    options = backend.make_options(metadata.options)
    unit = Unit("", metadata.symbol, metadata.target, options, disabled=settings.disabled_passes)
    walk, texts = begin_walk(backend, source, unit), []
    for stage in walk.stages:
        if stage.describe is None or stage.input not in walk.products or stage.name in walk.products:
            continue
        texts.append(PassText(stage.name, "", stage.text(walk.products[stage.input])))
        walk.unit = replace(walk.unit, dump=lambda name, text, s=stage.name: texts.append(PassText(s, name, text)))
        walk.run_stage(stage)
    return texts
