"""Ends what LLVM's code generation looks through before a loop, in a function that has many.

    end.7:                                   end.7:
      br label %loop.8                         br label %loop.8.apart
                                       ->    loop.8.apart:
                                               br i1 true, label %loop.8.entry, label %loop.8.entry
                                             loop.8.entry:
                                               br label %loop.8
    loop.8:                                  loop.8:
      %i = phi i32 [ 0, %end.7 ], ...          %i = phi i32 [ 0, %loop.8.entry ], ...

Loop strength reduction asks of each loop what the branches before it have made known, and goes from a block to the one
that leads to it for as long as there is a single edge: 300 loops one after the other took 2.9 s, where they take 1.4.
Where an edge is there twice it ends; that branch is folded later, and the machine code of such kernels was the same. Up
to seven loops before another are looked through as before, and functions that are not long stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

LONG = 256  # blocks of a function: more than any example has
TOGETHER = 8  # loops that see what is before the first of them

_BLOCK = re.compile(r"^([\w.$-]+)(?=:)", re.MULTILINE)
_TARGET = re.compile(r"\blabel %([\w.$-]+)")


def keep_loops_apart(llir: str) -> str:
    """The text with some loops behind an edge that is there twice."""
    functions = llir.split("\ndefine ")
    return "\ndefine ".join(_apart(text) if _is_long(text) else text for text in functions)


def _is_long(function: str) -> bool:
    """Whether it has many blocks, none of whose names is in quotes, as in texts that others wrote."""
    return len(_BLOCK.findall(function)) > LONG and 'label %"' not in function


def _apart(function: str) -> str:
    begin, *blocks = _BLOCK.split(function)  # what is before the first label, then labels and texts by turns
    texts = dict(zip(blocks[::2], blocks[1::2], strict=True))
    loops = [(header, before[0]) for header, before in _ways_into_loops(texts) if len(before) == 1]
    for header, before in loops[TOGETHER - 1 :: TOGETHER]:
        texts[before] = _renamed(f"label %{header}", f"label %{header}.apart", texts[before])
        texts[header] = _renamed(f", %{before} ]", f", %{header}.entry ]", texts[header])
    cut = {header for header, _ in loops[TOGETHER - 1 :: TOGETHER]}
    return begin + "".join((_edge(name) if name in cut else "") + name + text for name, text in texts.items())


def _ways_into_loops(texts: dict[str, str]) -> Iterator[tuple[str, list[str]]]:
    """Each block that a later one, or it itself, leads to, with the edges from earlier ones."""
    number = {name: n for n, name in enumerate(texts)}
    into: dict[str, list[str]] = {name: [] for name in texts}
    for name, text in texts.items():
        for target in _TARGET.findall(text):
            into[target].append(name)
    for name, sources in into.items():
        before = [source for source in sources if number[source] < number[name]]
        if len(before) < len(sources):
            yield name, before


def _renamed(old: str, new: str, text: str) -> str:
    return re.sub(re.escape(old) + r"(?![\w.$-])", new, text)


def _edge(header: str) -> str:
    twice = f"{header}.apart:\n  br i1 true, label %{header}.entry, label %{header}.entry\n"
    return f"{twice}{header}.entry:\n  br label %{header}\n"
