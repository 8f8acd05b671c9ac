"""Ours beside Triton and the vendor's functions on this machine's GPU, in one run; numbers are checked before times.

    python -m benchmarks.gpu                                everything: some minutes
    python -m benchmarks.gpu --quick --only matmul          names of cases that contain this; fewer configurations
    python -m benchmarks.gpu --everyday                     kernels of everyday use instead: two minutes
    python -m benchmarks.gpu --projects                       kernels as other projects write them
    python -m benchmarks.gpu --results wgmma                also benchmarks/results/<date>-wgmma.md
    python -m benchmarks.gpu --peer-cubins build/triton-3.9 also what benchmarks/gpu/peer_cubins.py made there
    python -m benchmarks.gpu --precompile                   only compile ours (DEUTERON_CACHE_DIR) for cuda:90: no GPU

Needs torch and Triton. Ends with 1 where a result was wrong or one side has no configuration that runs.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from benchmarks.gpu import attention, elementwise, everyday, matmul, projects
from benchmarks.gpu.peers import CUBINS, Cases, Failures, precompile

FAMILIES = {"first": (elementwise, matmul, attention), "everyday": everyday.FAMILIES, "projects": projects.FAMILIES}


def select(words: list[str], is_quick: bool, kernels: str = "first") -> Cases:
    """The cases whose family or name contains one of the words, with the configurations to try."""
    cases = [case for family in FAMILIES[kernels] for case in family.cases()]
    named = [case for case in cases if not words or any(word in f"{case.family} {case.name}" for word in words)]
    return [(case, case.configs[: case.num_quick] if is_quick else case.configs) for case in named]


def run(arguments: argparse.Namespace, selected: Cases, peers: tuple[str, ...], failures: Failures) -> int:
    from benchmarks.gpu.measure import EVERYDAY, FULL, QUICK  # deferred: --precompile needs neither torch nor Triton
    from benchmarks.gpu.report import Report
    from benchmarks.gpu.worker import Bench

    start = time.perf_counter()
    is_first = arguments.kernels == "first"
    effort = (QUICK if arguments.quick else FULL) if is_first else EVERYDAY
    bench = Bench(selected, peers, failures, effort)
    report = Report(peers)
    report.print_header()
    for case, row in bench.rows():
        report.copy_rate = bench.copy_rate
        report.add(case, row)
        if arguments.results:
            report.write(arguments.results, time.perf_counter() - start)
    for line in report.summary():
        print(line)
    print(f"measured in {time.perf_counter() - start:.1f} s")
    return int(any(side.wrong or not side.best for _, row in report.rows for side in row.sides.values()))


def main() -> int:
    parser = argparse.ArgumentParser(description="Speed on a GPU beside Triton, cuBLAS, cuDNN and a copy.")
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD", help="families or parts of names of cases")
    sets = parser.add_mutually_exclusive_group()
    for name, meaning in (("everyday", "of everyday use"), ("projects", "as other projects write them")):
        sets.add_argument(
            f"--{name}", dest="kernels", action="store_const", const=name, help=f"kernels {meaning} instead"
        )
    parser.set_defaults(kernels="first")
    parser.add_argument("--quick", action="store_true", help="fewer configurations and rounds")
    parser.add_argument("--results", metavar="NAME", help="write benchmarks/results/<date>-NAME.md")
    parser.add_argument("--peers", nargs="*", default=["deuteron", "triton"], help="default: deuteron triton")
    parser.add_argument("--peer-cubins", metavar="FOLDER", help="also what peer_cubins.py made of another Triton")
    parser.add_argument("--precompile", action="store_true", help="only compile ours, for cuda:90; needs no GPU")
    arguments = parser.parse_args()
    selected = select(arguments.only, arguments.quick, arguments.kernels)
    if arguments.precompile:
        os.environ.setdefault("DEUTERON_TARGET", "cuda:90")
    cubins = [f"{CUBINS}{arguments.peer_cubins}"] if arguments.peer_cubins else []
    peers = ("deuteron",) if arguments.precompile else (*arguments.peers, *cubins)
    start = time.perf_counter()
    failures = precompile(peers, selected)
    print(f"compiled in {time.perf_counter() - start:.1f} s, {len(failures)} configurations could not be", flush=True)
    if arguments.precompile:
        for key, reason in failures.items():
            print(f"{', '.join(key)}: {reason}")
        return int(bool(failures))
    return run(arguments, selected, peers, failures)


if __name__ == "__main__":
    sys.exit(main())
