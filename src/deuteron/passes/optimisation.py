"""Passes that may be left out: without one a kernel computes the same, only slower.

    class Fold(Optimisation): ...

What does not say that it is one has to run: the passes after it and the lowering build on what it makes.
"""

from __future__ import annotations

from xdsl.passes import ModulePass


class Optimisation(ModulePass):
    """A pass without which all still works."""
