"""The IR after each pass as lines, with the differences to the IR before it.

    pass_results(replay_passes(...), sources)
        PassResult("ttir", "fold", True, lines, at, edits=((12, 14, 12, 13),)): lines 12 and 13 became line 12

Values have numbers in the order of the text, so that one op more renumbers all that follow: such lines count as equal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from deuteron.compiler.replay import PassText
from deuteron.explorer.model import PassResult
from deuteron.explorer.sources import Sources
from deuteron.explorer.texts.mlir import read_mlir

_NUMBER = re.compile(r"(%(?:[A-Za-z]\w*?)?)_?\d+\b")
_LAYOUT = re.compile(r"(#(?:linear|shared))\d*\b")

Edits = tuple[tuple[int, int, int, int], ...]


def pass_results(texts: Sequence[PassText], sources: Sources) -> tuple[PassResult, ...]:
    """The IR after each pass, with what it changed."""
    results, before, before_text = [], None, None
    for text in texts:
        if text.text == before_text and text.name:
            results.append(PassResult(text.stage, text.name, False, (), (), ()))
            continue
        located = read_mlir(text.text)
        edits = differences(before, located.lines) if before is not None and text.name else ()
        results.append(PassResult(text.stage, text.name, True, located.lines, sources.at(located), edits))
        before, before_text = located.lines, text.text
    return tuple(results)


def differences(before: Sequence[str], after: Sequence[str]) -> Edits:
    """The ranges of lines that differ."""
    matcher = SequenceMatcher(None, _unnumbered(before), _unnumbered(after), autojunk=False)
    return tuple(tuple(span) for tag, *span in matcher.get_opcodes() if tag != "equal")


def _unnumbered(lines: Sequence[str]) -> list[str]:
    return [_LAYOUT.sub(r"\1", _NUMBER.sub(r"\1", line)) for line in lines]
