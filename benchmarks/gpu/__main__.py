"""Ours beside Triton and the vendor's functions on this machine's GPU, in one run; numbers are checked before times.

    python -m benchmarks.gpu                                everything: some minutes
    python -m benchmarks.gpu --quick --only matmul          names of cases that contain this; fewer configurations
    python -m benchmarks.gpu --results wgmma                also benchmarks/results/<date>-wgmma.md
    python -m benchmarks.gpu --precompile                   only compile ours (DEUTERON_CACHE_DIR) for cuda:90: no GPU

Needs torch and Triton. Ends with 1 where a result was wrong or one side has no configuration that runs.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from benchmarks.gpu import attention, elementwise, matmul
from benchmarks.gpu.case import Case, Config
from benchmarks.gpu.peers import Failures, precompile

Selected = list[tuple[Case, tuple[Config, ...]]]


def select(words: list[str], is_quick: bool) -> Selected:
    """The cases whose family or name contains one of the words, with the configurations to try."""
    cases = [case for family in (elementwise, matmul, attention) for case in family.cases()]
    named = [case for case in cases if not words or any(word in f"{case.family} {case.name}" for word in words)]
    return [(case, case.configs[: case.num_quick] if is_quick else case.configs) for case in named]


def run(selected: Selected, peers: tuple[str, ...], is_quick: bool, results: str | None, failures: Failures) -> int:
    import torch  # deferred: --precompile needs neither torch nor Triton

    from benchmarks.gpu import report
    from benchmarks.gpu.measure import FULL, QUICK, measure
    from benchmarks.gpu.timing import Timer

    start = time.perf_counter()
    print(f"inputs of seed {torch.seed()}", flush=True)
    timer, rows = Timer(), []
    report.print_header()
    for case, configs in selected:
        rows.append(measure(case, configs, peers, timer, failures, QUICK if is_quick else FULL))
        report.print_row(rows[-1])
        torch.cuda.empty_cache()
        if results:
            report.write(results, rows, time.perf_counter() - start)
    return int(any(side.wrong or not side.best for row in rows for side in row.sides.values()))


def main() -> int:
    parser = argparse.ArgumentParser(description="Speed on a GPU beside Triton, cuBLAS, cuDNN and a copy.")
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD", help="families or parts of names of cases")
    parser.add_argument("--quick", action="store_true", help="fewer configurations and rounds")
    parser.add_argument("--results", metavar="NAME", help="write benchmarks/results/<date>-NAME.md")
    parser.add_argument("--peers", nargs="*", default=["deuteron", "triton"], help="default: deuteron triton")
    parser.add_argument("--precompile", action="store_true", help="only compile ours, for cuda:90; needs no GPU")
    arguments = parser.parse_args()
    selected = select(arguments.only, arguments.quick)
    if arguments.precompile:
        os.environ.setdefault("DEUTERON_TARGET", "cuda:90")
    peers = ("deuteron",) if arguments.precompile else tuple(arguments.peers)
    start = time.perf_counter()
    failures = precompile(peers, selected)
    print(f"compiled in {time.perf_counter() - start:.1f} s, {len(failures)} configurations could not be", flush=True)
    if arguments.precompile:
        for key, reason in failures.items():
            print(f"{', '.join(key)}: {reason}")
        return int(bool(failures))
    return run(selected, peers, arguments.quick, arguments.results, failures)


if __name__ == "__main__":
    sys.exit(main())
