"""From a compiled kernel to all that is known of it.

    exploration = explore_kernel(kernel)
    exploration.to_dict()

Texts that the compile kept are read, tile IR is taken through its passes once more: a compile does nothing for this.
"""

from __future__ import annotations

from collections.abc import Iterator

import deuteron
from deuteron.compiler.kernel import CompiledKernel
from deuteron.compiler.source import IRSource
from deuteron.explorer.layouts import LayoutReader
from deuteron.explorer.loops import read_loops
from deuteron.explorer.model import Exploration, Layouts, Parameter, Table, Text
from deuteron.explorer.passes import pass_results
from deuteron.explorer.pipeline import read_pipeline
from deuteron.explorer.profile import Run, read_profile
from deuteron.explorer.sources import Sources
from deuteron.explorer.texts import language_of, located
from deuteron.explorer.tile_ir import LocatedModule
from deuteron.explorer.variant import variant


def explore_kernel(kernel: CompiledKernel, run: Run | None = None) -> Exploration:
    """What became of every line of a kernel; with what each cost in a launch, where one is given."""
    metadata, source = kernel.metadata, kernel.src
    sources = Sources({source.file: source.text} if isinstance(source, IRSource) else {})
    passes = pass_results(kernel.passes(), sources)  # first: it says the paths of files, and others their names
    stages = tuple(_stages(kernel, sources))
    cost = None if run is None else read_profile(kernel, sources, run)
    loops = read_loops(kernel, sources)
    ttgir = LocatedModule(kernel.asm["ttgir"]) if "ttgir" in kernel.asm else None
    return Exploration(
        deuteron=deuteron.__version__,
        kernel=metadata.name,
        target=str(metadata.target),
        options=dict(metadata.options),
        parameters=tuple(Parameter(p.name, p.type, p.divisibility) for p in metadata.runtime_params),
        constants=_constants(kernel),
        files=sources.files(),
        places=sources.places,
        stages=stages,
        passes=passes,
        report=tuple(_report(kernel)),
        layouts=_layouts(kernel, ttgir),
        pipeline=ttgir and read_pipeline(ttgir),
        profile=cost,
        loops=loops,
    )


def _stages(kernel: CompiledKernel, sources: Sources) -> Iterator[Text]:
    texts = _with_lines(kernel).asm
    for name in texts:
        language = language_of(name)
        if language is not None:
            text = located(name, texts[name])
            yield Text(name, language, text.lines, sources.at(text))


def _with_lines(kernel: CompiledKernel) -> CompiledKernel:
    """The kernel compiled with line tables, where it has none and there is an option for them: code is the same."""
    return kernel if kernel.metadata.options.get("line_info", True) else variant(kernel, {"line_info": True})


def _layouts(kernel: CompiledKernel, located: LocatedModule | None) -> Layouts:
    if located is None:
        return Layouts()
    ptx = kernel.asm.get("ptx", "")
    matrices = {"load": "ldmatrix" in ptx, "store": "stmatrix" in ptx}
    return LayoutReader(located, matrices).read()


def _constants(kernel: CompiledKernel) -> dict[str, str]:
    """The values of constexprs as Python writes them."""
    if isinstance(kernel.src, IRSource):
        return {}
    return {name: str(value) for name, value in kernel.src.constexprs.items()}


def _report(kernel: CompiledKernel) -> Iterator[Table]:
    for table in kernel.report().tables():
        if table.rows:
            yield Table(table.title, table.columns, table.rows, table.is_warning)
