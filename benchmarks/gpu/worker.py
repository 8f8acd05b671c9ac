"""Cases measured in a process of its own, so that one that hangs or faults on the GPU costs its row and nothing else.

    bench = Bench(selected, peers, failures, effort)
    for case, row in bench.rows(): ...

A configuration during which the process ended, or had nothing to say for a minute, is skipped with that reason, and
the case is measured again by a new process without it.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection

import torch

from benchmarks.gpu.case import Case, Config
from benchmarks.gpu.measure import Effort, Row, Side, measure
from benchmarks.gpu.peers import Failures, describe
from benchmarks.gpu.timing import Timer

SILENCE_SECONDS = 60.0
Selected = list[tuple[Case, tuple[Config, ...]]]


@dataclass
class Bench:
    """What is to be measured, and what is known to fail. This process never touches the GPU: it forks those that do."""

    selected: Selected
    peers: tuple[str, ...]
    failures: Failures
    effort: Effort
    copy_rate: float = float("nan")

    def rows(self) -> Iterator[tuple[Case, Row]]:
        index = 0
        while index < len(self.selected):
            connection, worker = self._start(index)
            try:
                for row in self._answers(connection, index):
                    yield self.selected[index][0], row
                    index += 1
            finally:
                worker.kill()
                worker.join()
                connection.close()

    def _start(self, index: int) -> tuple[Connection, multiprocessing.process.BaseProcess]:
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        worker = context.Process(target=self._work, args=(theirs, index), daemon=True)
        worker.start()
        theirs.close()
        return ours, worker

    def _answers(self, connection: Connection, index: int) -> Iterator[Row]:
        """Rows until the worker ends; what ended it is known from then on, or the row where it was no configuration."""
        during = ("", "")
        while index < len(self.selected):
            kind, answer = self._receive(connection)
            if kind == "copy rate":
                self.copy_rate = answer
            elif kind == "during":
                during = answer
            elif kind == "row":
                yield answer
                index, during = index + 1, ("", "")
            elif during[0]:
                self.failures[during[0], self.selected[index][0].name, during[1]] = answer
                return
            else:
                yield Row({peer: Side() for peer in self.peers}, failure=answer)
                return

    @staticmethod
    def _receive(connection: Connection) -> tuple[str, object]:
        if not connection.poll(SILENCE_SECONDS):
            return "ended", f"no answer in {SILENCE_SECONDS:.0f} s"
        try:
            return connection.recv()
        except EOFError:
            return "ended", "its process ended"

    def _work(self, connection: Connection, index: int) -> None:
        """In the forked process: measure all cases from this one on."""
        try:
            timer = Timer()
            connection.send(("copy rate", timer.copy_rate()))
            for case, configs in self.selected[index:]:
                row = measure(
                    case,
                    configs,
                    self.peers,
                    timer,
                    self.failures,
                    self.effort,
                    lambda *during: connection.send(("during", during)),
                )
                connection.send(("row", row))
                torch.cuda.empty_cache()
        except Exception as error:  # noqa: BLE001  of any kind: a fault on the GPU, or an input that does not fit
            connection.send(("ended", describe(error)))
