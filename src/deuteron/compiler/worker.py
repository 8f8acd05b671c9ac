"""A process that compiles tile IR, given by its parent: `ahead.py` starts it.

    stdin     pickled (text, unit), one after the other; at its end the process ends
    stdout    pickled READY, then for each an Entry, or the DeuteronError that it raised

It imports Deuteron alone, nothing of the program that started it.
"""

from __future__ import annotations

import pickle
import sys
from typing import BinaryIO

from deuteron.backend import get_backend
from deuteron.backend.stage import Unit
from deuteron.compiler.cache import Entry
from deuteron.compiler.driver import completed
from deuteron.compiler.stages import Walk
from deuteron.errors import DeuteronError

READY = "ready"


def serve() -> None:
    """Compile what comes until nothing comes any more."""
    given, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # what anything prints is no answer
    _answer(answers, READY)
    while True:
        try:
            text, unit = pickle.load(given)
        except EOFError:
            return
        _answer(answers, _outcome(text, unit))


def _answer(stream: BinaryIO, answer: object) -> None:
    pickle.dump(answer, stream)
    stream.flush()


def _outcome(text: str, unit: Unit) -> Entry | DeuteronError:
    try:
        return compile_text(text, unit)
    except DeuteronError as error:
        return error


def compile_text(text: str, unit: Unit) -> Entry:
    """Compile tile IR on which no pass has run; `unit` says of its kernel what the source did."""
    stages = get_backend(unit.target).stages
    walk = Walk(stages, unit, None)
    walk.begin(lambda: stages[0].parse(text, "<ttir>"))
    return completed(walk)
