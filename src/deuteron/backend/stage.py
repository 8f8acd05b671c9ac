"""Stages of a compile, and what is known of the kernel on its way through them: nothing is set, all is returned.

A backend lists its stages in order; `compiler.stages` walks them. On the CPU:

    Stage("ttir", None, ...)             tile IR, from what the source gives
    Stage("llir", "ttir", ...)           LLVM IR, from the product of `ttir`
    Stage("asm", "llir", on_demand=True) assembly, made when somebody asks for it
    Stage("obj", "llir", ...)            object code

A product is what a stage hands to the next (a module of tile IR, a text, bytes); its text is what is cached and dumped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from deuteron.backend.metadata import Facts, KernelMetadata, Param
from deuteron.options import Target


@dataclass(frozen=True)
class Unit:
    """One kernel being compiled, as a stage sees it: what was asked for, and the facts of the stages before.

    `path_of` is what a source file is called in the product: as it is, or as Python imports it. `disabled` names passes
    that are left out. `dump(suffix, text)` keeps the IR between two passes, where somebody asked for it.
    """

    name: str
    symbol: str
    target: Target
    options: Any
    params: tuple[Param, ...] = ()
    facts: Facts = Facts()
    path_of: Callable[[str], str] = str
    disabled: tuple[str, ...] = ()
    dump: Callable[[str, str], None] | None = None

    def of_kernel(self, name: str, params: tuple[Param, ...]) -> Unit:
        """The unit when it is known which kernel is compiled."""
        from deuteron.backend.symbols import symbol_of  # deferred: of compiles only

        return replace(self, name=name, params=params, symbol=self.symbol or symbol_of(name))

    def with_facts(self, found: Mapping[str, Any]) -> Unit:
        """The unit after a stage that found these out."""
        return replace(self, facts=replace(self.facts, **found))

    def metadata(self, stage_times: dict[str, float]) -> KernelMetadata:
        known = (self.name, self.symbol, self.target, vars(self.options), self.params, stage_times)
        return KernelMetadata(*known, **self.facts.facts)


@dataclass(frozen=True)
class Made:
    """What a stage gives: its product, and what it found out, fields of `Facts` by name."""

    product: Any
    facts: Mapping[str, Any] = field(default_factory=dict)


def _as_is(product: Any) -> Any:
    return product


def _nothing(product: Any) -> None:
    return None


@dataclass(frozen=True)
class Stage:
    """A named step: `run(product, unit)` on the product of the stage `input` (None: on what the source gives).

    `text` prints a product, `verify` raises InternalError on a broken one. `parse(text, file)`, where there is one,
    reads a text that is the input of a compile or overrides the stage; the kernel's name and parameters then come
    from `describe(product)`, or, where the text does not say them, from a comment line led by `comment` that holds
    the metadata, and `defines` finds the function of a symbol. An `on_demand` stage feeds no other.
    """

    name: str
    input: str | None
    run: Callable[[Any, Unit], Made]
    text: Callable[[Any], str | bytes] = _as_is
    verify: Callable[[Any], None] = _nothing
    parse: Callable[[str, str], Any] | None = None
    describe: Callable[[Any], tuple[str, tuple[Param, ...]]] | None = None
    comment: str | None = None
    defines: str | None = None
    on_demand: bool = False
