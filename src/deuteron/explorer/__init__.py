"""See a kernel: one page that shows what became of every line, and the same as data.

    page = explore(kernel)                   a Page: .save(path), .open(), shows itself in a notebook
    page = explore(kernel, grid=(8,), args=(x, out, 1000))      with what each line costs, on the emulator
    page = explore(kernel, against=other)    two configurations, or versions, side by side
    page.exploration.to_dict()               the data, whose schema is model.py

    texts/       the lines of each stage, with the places in the source that made them
    sources.py   the source files and places; passes.py: the IR after each pass, with differences
    layouts.py, pipeline/   tiles of ttgir, and the timeline of its loops; tile_ir.py: ops and the lines they are in
    profile.py   what each line costs; variant.py: the kernel in another configuration
    build.py     all of it put together; model.py: what it is put into
    page/        the page's HTML, style and scripts, which page.py assembles

It is made from what a compile keeps, and from running the passes once more: compiles do nothing for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deuteron.explorer.build import explore_kernel as explore_kernel
from deuteron.explorer.page import Page as Page
from deuteron.explorer.profile import Run

if TYPE_CHECKING:
    from deuteron.compiler.kernel import CompiledKernel


def explore(
    kernel: CompiledKernel,
    against: CompiledKernel | None = None,
    grid: Sequence[int] | None = None,
    args: Sequence[object] = (),
) -> Page:
    """What became of a kernel, as a page; beside another one, where there is one to compare it with.

    With a grid it is launched on the emulator, on copies of the arrays in `args`, and the page has what each line cost.
    """
    run = None if grid is None else Run(grid, args)
    kernels = (kernel,) if against is None else (kernel, against)
    return Page(tuple(explore_kernel(one, run) for one in kernels))
