"""PYTHONPATH=src:tests python -m equal_ir [CASE ...] [--targets cuda:80 cuda:90] [--seeds 4] [--first 0] [--only NAME]

Rewrites the kernels of all cases, or of those that are named, and says what fails. Ends with 1 where something does.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator

from equal_ir.draws import REWRITES, drawn
from equal_ir.launches import recorded
from tests.kernels.families import CASES


def main() -> int:
    parser = argparse.ArgumentParser(description="Equal IR between passes: kernels store the same.")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--targets", nargs="+", default=["cuda:80", "cuda:90"])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", nargs="+", default=list(REWRITES), choices=REWRITES)
    parser.add_argument("--slow", type=float, default=4.0, help="seconds of a case that is left out unless it is named")
    given = parser.parse_args()
    os.environ.setdefault("DEUTERON_EMULATOR_SEED", "1")
    faults = [print(fault, flush=True) for name in given.cases or CASES for fault in _faults(given, name)]
    print(f"{len(faults)} failed")
    return int(bool(faults))


def _faults(given: argparse.Namespace, name: str) -> Iterator[str]:
    for target in given.targets:
        begin = time.perf_counter()
        launches = recorded(name, target, 0)
        if time.perf_counter() - begin > given.slow and not given.cases:
            continue
        for number, launch in enumerate(launches):
            for seed in range(given.first, given.first + given.seeds):
                outcome = launch.outcome(drawn(seed, launch.passes, given.only), seed)
                if outcome.fault:
                    yield f"{name} {target}, launch {number}, seed {seed}: {outcome.done}\n{outcome.fault}"


if __name__ == "__main__":
    sys.exit(main())
