"""Processes that compile the same kernels into one cache folder and are killed at random: what is in the folder then?

    PYTHONPATH=src:tests python -m compiler.killed_processes --processes 8 --kernels 200 --rounds 50 --seed 7

In every round a part of the entries is removed; then each process launches all kernels in an order of its own, compares
what they compute, and says of each that it is done, until it has done all or is killed. After it every entry there
is whole, and one is there of every kernel that was done. Anything else is an AssertionError, with round and seed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import selectors
import signal
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import deuteron
import deuteron.language as tl
from deuteron.compiler import cache
from deuteron.errors import DeuteronError

HASH_BYTES = 32
MOST_SECONDS = 0.03  # of a launch that compiles


@deuteron.jit
def scaled(out, FACTOR: tl.constexpr):
    i = tl.arange(0, 16)
    tl.store(out + i, FACTOR * i + 1)


def launch_all(num_kernels: int, seed: int, done: int) -> None:
    """What a process does; it writes the hash of each kernel that is done."""
    order = list(range(num_kernels))
    random.Random(seed).shuffle(order)
    for factor in order:
        out = np.full(16, -1, np.int32)
        kernel = scaled[(1,)](out, FACTOR=factor)
        assert (out == factor * np.arange(16) + 1).all(), f"kernel {factor} gave {out}"
        os.write(done, bytes.fromhex(kernel.hash))


@dataclass
class Worker:
    """A process, what it has said to be done, and how much is done when it is killed; None: it is not."""

    process: Any
    reader: int
    killed_at: int | None
    said: bytes = b""

    @property
    def done(self) -> list[str]:
        return [self.said[begin : begin + HASH_BYTES].hex() for begin in range(0, len(self.said), HASH_BYTES)]


def start(num_kernels: int, draw: random.Random) -> Worker:
    reader, writer = os.pipe()
    context = multiprocessing.get_context("fork")
    process = context.Process(target=launch_all, args=(num_kernels, draw.getrandbits(32), writer))
    process.start()
    os.close(writer)
    return Worker(process, reader, draw.randrange(num_kernels) if draw.random() < 0.8 else None)


def run_round(folder: Path, num_processes: int, num_kernels: int, draw: random.Random) -> tuple[int, int]:
    """One round; returns how many processes were killed, and how many launches were done."""
    _remove_some(folder, draw)
    workers = [start(num_kernels, draw) for _ in range(num_processes)]
    _watch(workers, draw)
    codes = [worker.process.exitcode for worker in workers]
    assert set(codes) <= {0, -signal.SIGKILL}, f"processes ended with {codes}"
    done = [key for worker in workers for key in worker.done]
    _check(folder, set(done))
    return codes.count(-signal.SIGKILL), len(done)


def _remove_some(folder: Path, draw: random.Random) -> None:
    for path in sorted(folder.rglob("*.kernel")) + sorted(folder.rglob("*.code")):
        if draw.random() < 0.5:
            path.unlink()


def _watch(workers: list[Worker], draw: random.Random) -> None:
    """Hear what is done, and kill each process somewhere in the launch that comes after its last one, until all end."""
    with selectors.DefaultSelector() as selector:
        for worker in workers:
            selector.register(worker.reader, selectors.EVENT_READ, worker)
        while selector.get_map():
            for key, _ in selector.select():
                _hear(selector, key.data, draw)
    for worker in workers:
        worker.process.join()
        os.close(worker.reader)


def _hear(selector: selectors.BaseSelector, worker: Worker, draw: random.Random) -> None:
    heard = os.read(worker.reader, 1 << 16)
    worker.said += heard
    if not heard:
        selector.unregister(worker.reader)
    elif worker.killed_at is not None and len(worker.done) > worker.killed_at:
        time.sleep(draw.uniform(0, MOST_SECONDS))
        worker.process.kill()


def _check(folder: Path, done: set[str]) -> None:
    there = {path.stem for path in folder.rglob("*.kernel")}
    half = [key for key in there if cache.load(folder, key) is None]
    assert not half, f"entries that are not whole: {half}"
    assert done <= there, f"entries that are lost: {done - there}"


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, default in (("processes", 8), ("kernels", 200), ("rounds", 50), ("seed", random.getrandbits(32))):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    draw = random.Random(given.seed)
    killed = launched = 0
    with tempfile.TemporaryDirectory(prefix="deuteron-") as folder:
        os.environ |= {"DEUTERON_CACHE_DIR": folder, "DEUTERON_TARGET": "cpu"}
        deuteron.compile(deuteron.ASTSource(scaled, {"out": "*i32"}, {"FACTOR": -1}))  # imports, before processes fork
        for number in range(given.rounds):
            try:
                more_killed, more = run_round(Path(folder), given.processes, given.kernels, draw)
            except (AssertionError, DeuteronError) as error:
                raise AssertionError(f"round {number} of --seed {given.seed}: {error}") from error
            killed, launched = killed + more_killed, launched + more
    print(json.dumps({"seed": given.seed, "rounds": given.rounds, "killed": killed, "launched": launched}))


if __name__ == "__main__":
    main()
