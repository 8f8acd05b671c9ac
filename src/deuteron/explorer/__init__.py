"""See a kernel: one page that shows what became of every line, and the same as data.

    page = explore(kernel)                   a Page: .save(path), .open(), shows itself in a notebook
    page = explore(kernel, against=other)    two configurations, or versions, side by side
    page.exploration.to_dict()               the data, whose schema is model.py

    texts/       the lines of each stage, with the places in the source that made them
    sources.py   the source files and places; passes.py: the IR after each pass, with differences
    build.py     all of it put together; model.py: what it is put into
    page/        the page's HTML, style and scripts, which page.py assembles

It is made from what a compile keeps, and from running the passes once more: compiles do nothing for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deuteron.explorer.build import explore_kernel as explore_kernel
from deuteron.explorer.page import Page as Page

if TYPE_CHECKING:
    from deuteron.compiler.kernel import CompiledKernel


def explore(kernel: CompiledKernel, against: CompiledKernel | None = None) -> Page:
    """What became of a kernel, as a page; beside another one, where there is one to compare it with."""
    kernels = (kernel,) if against is None else (kernel, against)
    return Page(tuple(map(explore_kernel, kernels)))
