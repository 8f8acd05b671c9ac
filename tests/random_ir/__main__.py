"""PYTHONPATH=src:tests:. python -m random_ir [--first 0] [--count 100] [--minutes 10] [--costs] [--targets cuda:90]

Says what fails; `--show 7` prints a kernel. Ends with 1 where something does.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator

from random_ir.programs import Program


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Random tile IR: what the emulator stores is what the interpreter does."
    )
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--costs", action="store_true", help="passes decide by lot where they weigh costs")
    parser.add_argument("--targets", nargs="+", default=["cuda:80", "cuda:90"])
    parser.add_argument("--show", type=int, metavar="SEED")
    given = parser.parse_args()
    if given.show is not None:
        print(Program.of(given.show).text)
        return 0
    os.environ.setdefault("DEUTERON_EMULATOR_SEED", "1")
    faults = [print(fault, flush=True) for fault in _faults(given)]
    print(f"{len(faults)} failed")
    return int(bool(faults))


def _faults(given: argparse.Namespace) -> Iterator[str]:
    end = time.monotonic() + 60 * given.minutes
    for seed in range(given.first, given.first + given.count):
        for target in given.targets if time.monotonic() < end else ():
            try:
                fault = Program.of(seed).fault(target, given.costs)
            except Exception as error:
                fault = f"{type(error).__name__}: {error}"
            if fault:
                yield f"seed {seed}, {target}: {fault}"


if __name__ == "__main__":
    sys.exit(main())
