"""What the text of a stage was made for, against what is asked for: a compile of it, or one that it overrides.

    ; deuteron kernel {"name": "add", "options": {"num_warps": 8, ...}, "params": [...], "shared": 1024, ...}
    define void @add(...)

LLVM IR and PTX do not say how many warps, which shared memory and which arguments they rely on. Their first line
does: it comes with a dump, and is taken for what the text is. Tile IR says its parameters itself, and ttgir its warps,
which are looked at when it is lowered.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from deuteron.backend.metadata import METADATA_MARK, Facts, KernelMetadata, Param
from deuteron.backend.stage import Stage, Unit
from deuteron.errors import IRError, Location, UsageError, counted
from deuteron.options import Target


def with_embedded(unit: Unit, stage: Stage, text: str, file: str) -> Unit:
    """The unit of a text with metadata: the name, the facts, and the options on which its code relies; raises
    UsageError where others were asked for.
    """
    found, place = _embedded_metadata(stage, text, file), Location(file, 1)
    _check_target(stage, found.target, unit.target, place)
    _check_definition(stage, found.symbol, text, place)
    kept = {name: found.options[name] for name in getattr(unit.options, "of_code", ()) if name in found.options}
    for name, made in kept.items():
        asked = getattr(unit.options, name)
        if asked is not None and (asked or None) != (made or None):
            raise UsageError(f"the {stage.name} is for {name}={made!r}, and {name}={asked!r} was asked for", place)
    options = replace(unit.options, **kept) if kept else unit.options
    named = replace(unit, name=found.name, symbol=found.symbol, params=found.params, options=options)
    return named.with_facts(found.facts)


def as_overridden(unit: Unit, stage: Stage, text: str, product: Any, file: str) -> Unit:
    """The unit of a compile in which a text replaces what a stage made. Its parameters are passed as they were, and its
    facts are what it says, or unknown; raises UsageError where it is for another launch.
    """
    if stage.describe is not None:
        params = stage.describe(product)[1]
        _check_params(stage, params, unit.params, file)
        return replace(unit, facts=Facts())
    found = with_embedded(unit, stage, text, file)
    _check_params(stage, _of_launch(found.params), unit.params, file)
    if found.symbol != unit.symbol:
        message = f"the {stage.name} defines '{found.symbol}', and '{unit.symbol}' was asked for"
        raise UsageError(message, Location(file, 1))
    return replace(found, name=unit.name, params=unit.params)


def without_metadata(stage: Stage, text: str) -> str:
    return text.partition("\n")[2] if _has_metadata(stage, text) else text


def _embedded_metadata(stage: Stage, text: str, file: str) -> KernelMetadata:
    """The metadata in the first line of a text that needs it."""
    if not _has_metadata(stage, text):
        mark = f"{stage.comment} {METADATA_MARK}"
        message = f"the first line of a .{stage.name} input must be the comment '{mark}{{...}}' of a dump"
        raise UsageError(message, Location(file, 1))
    return KernelMetadata.from_json(text.partition("\n")[0].partition(METADATA_MARK)[2])


def _has_metadata(stage: Stage, text: str) -> bool:
    return stage.comment is not None and text.startswith(f"{stage.comment} {METADATA_MARK}")


def _check_target(stage: Stage, made: Target, asked: Target, place: Location) -> None:
    """LLVM aborts at instructions that a GPU does not have; of PTX ptxas says so. For a CPU LLVM makes code of what
    another has, but for intrinsics, which are refused then.
    """
    is_for_one = stage.name == "llir" and made.warp_size > 1
    if made.backend != asked.backend or (is_for_one and made.arch != asked.arch):
        raise UsageError(f"the {stage.name} is for {made}, and {asked} was asked for", place)


def _check_definition(stage: Stage, symbol: str, text: str, place: Location) -> None:
    if stage.defines and not re.search(stage.defines % re.escape(symbol), text, re.MULTILINE):
        raise IRError(f"the {stage.name} has no function '{symbol}', which its first line says is the kernel", place)


def _check_params(stage: Stage, made: tuple[Param, ...], asked: tuple[Param, ...], file: str) -> None:
    """Whether a launch that passes, and promises, what was asked for does what the text needs."""
    passed = _of_launch(asked)
    if len(made) != len(passed):
        raise UsageError(
            f"the {stage.name} has {counted(len(made), 'argument')}, the kernel {len(passed)}", Location(file, 1)
        )
    for index, (own, given) in enumerate(zip(made, passed, strict=True)):
        if not given.is_read_as(own):
            words = f"argument {index} of the {stage.name} is {own.in_words}, and '{given.name}' of the kernel "
            raise UsageError(f"{words}{given.in_words}", Location(file, 1))


def _of_launch(params: tuple[Param, ...]) -> tuple[Param, ...]:
    return tuple(param for param in params if param.kind != "constexpr")
