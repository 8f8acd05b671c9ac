"""A progress bar on a terminal, for what compiles or times many kernels.

with ProgressBar("norms") as bar:
    bar.start(40)                            there are 40; without a terminal nothing is shown
    bar.advance("layer_norm for cuda:90")    one is done
    bar.say("skipped ...")                   a line that stays
"""

from __future__ import annotations

import sys


class ProgressBar:
    """It is there once there is something to do."""

    def __init__(self, name: str):
        self.name, self.bar, self.task, self.total = name, None, None, 0

    def __enter__(self) -> ProgressBar:
        return self

    def start(self, total: int) -> None:
        """Show the bar, where there is a terminal and something to do."""
        self.total = total
        if not total or not sys.stderr.isatty():
            return
        from rich.console import Console  # deferred: without a terminal, or work, there is no bar
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.fields[name]}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        text = TextColumn("{task.description}", markup=False)
        self.bar = Progress(*columns, text, console=Console(stderr=True), transient=True)
        self.task = self.bar.add_task("", total=total, name=self.name)
        self.bar.start()

    def add(self, count: int) -> None:
        """There is more to do."""
        self.total += count
        if self.bar is not None:
            self.bar.update(self.task, total=self.total)

    def advance(self, what: str) -> None:
        """One more is done."""
        if self.bar is not None:
            self.bar.update(self.task, advance=1, description=what)

    def say(self, text: str) -> None:
        """A line above the bar."""
        if self.bar is not None:
            self.bar.console.print(text, markup=False, highlight=False)

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.stop()
