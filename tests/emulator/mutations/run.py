"""Runs mutants of a launch.

trial = Trial(launch)
trial.outcome(mutant, seeds=range(3))        "race", "wrong result", ..., SURVIVES, or NOT_EXECUTED
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from emulator.mutations.launches import Launch
from emulator.mutations.mutants import Mutant, mutants

from deuteron.emulator import EmulatorError
from deuteron.errors import DeuteronError

SURVIVES = "survives"
NOT_EXECUTED = "not executed"


class Trial:
    """A launch and its right result."""

    def __init__(self, launch: Launch):
        self.launch = launch
        self.expected = [array.tobytes() for array in launch.run(launch.ptx, 0)]

    def mutants(self) -> Iterator[Mutant]:
        return mutants(self.launch.ptx, self.launch.metadata.num_threads)

    def outcome(self, mutant: Mutant, seeds: Iterable[int]) -> str:
        """How it is caught, by the first seed that does it."""
        for seed in seeds:
            try:
                found = self.launch.run(mutant.ptx, seed)
            except EmulatorError as error:
                return error.kind
            except DeuteronError as error:
                return type(error).__name__
            if [array.tobytes() for array in found] != self.expected:
                return "wrong result"
        return SURVIVES if self._is_executed(mutant.line) else NOT_EXECUTED

    def _is_executed(self, line: int) -> bool:
        """Whether the launch comes to a line at all: it ends there where that is a trap."""
        lines = self.launch.ptx.splitlines()
        lines[line - 1] = "trap;"
        try:
            self.launch.run("\n".join(lines), 0)
        except EmulatorError:
            return True
        return False
