"""A process that compiles what its parent gives it: `ahead.py` starts it.

    stdin     a pickled Begun after the other; at its end the process ends
    stdout    pickled READY, then for each an Entry, or the DeuteronError that it raised

It imports Deuteron alone, nothing of the program that started it.
"""

from __future__ import annotations

import pickle
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from deuteron.backend import get_backend
from deuteron.backend.stage import Unit
from deuteron.compiler.cache import Entry
from deuteron.compiler.driver import begin_walk, completed
from deuteron.compiler.source import IRSource
from deuteron.compiler.stages import Walk
from deuteron.errors import DeuteronError

READY = "ready"


@dataclass(frozen=True)
class Begun:
    """A compile that has begun: tile IR on which no pass has run, of whose kernel `unit` says what the source did, or
    the text of a later stage. Into the `folder`, if there is one, goes what each stage makes.
    """

    given: str | IRSource
    unit: Unit
    folder: Path | None = None


def serve() -> None:
    """Compile what comes until nothing comes any more."""
    given, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # what anything prints is no answer
    _answer(answers, READY)
    while True:
        try:
            begun = pickle.load(given)
        except EOFError:
            return
        _answer(answers, _outcome(begun))


def _answer(stream: BinaryIO, answer: object) -> None:
    pickle.dump(answer, stream)
    stream.flush()


def _outcome(begun: Begun) -> Entry | DeuteronError:
    try:
        return compile_begun(begun)
    except DeuteronError as error:
        return error


def compile_begun(begun: Begun) -> Entry:
    backend, given = get_backend(begun.unit.target), begun.given
    if isinstance(given, IRSource):
        return completed(begin_walk(backend, given, begun.unit, begun.folder))
    walk = Walk(backend.stages, begun.unit, begun.folder)
    walk.begin(lambda: backend.stages[0].parse(given, "<ttir>"))
    return completed(walk)
