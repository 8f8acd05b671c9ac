"""python -m tests.fuzz [--seed 0] [--count 1000] [--executors cpu,cuda:80,cuda:90] [--folder build/fuzz] ...

Ends with 1 if there is a finding. `--show SEED` prints a program and does not run it.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from tests.fuzz import triton
from tests.fuzz.campaign import Campaign, run
from tests.fuzz.case import Case
from tests.fuzz.columns import columns
from tests.fuzz.control_flow import control_flow
from tests.fuzz.edited_programs import edit
from tests.fuzz.generator import generate
from tests.fuzz.mutator import mutate
from tests.fuzz.rewrites import rewrite


def main() -> int:
    parser = argparse.ArgumentParser(description="Random kernels on every executor, compared with the interpreter.")
    parser.add_argument("--seed", type=int, default=0, help="of the first program; the others follow")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--minutes", type=float, help="stop after so long")
    parser.add_argument(
        "--executors", default="cpu,cuda:80,cuda:90", help="also cuda:90/early, /late, /costs, jit, aot, gpu, triton"
    )
    parser.add_argument("--triton-python", help="a Python that has Triton; default: that of build/triton, made for it")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz"), help="where reproducers are written")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for an executor; longer is a finding")
    parser.add_argument("--shrink-seconds", type=float, default=60)
    parser.add_argument("--shrunk-alike", type=int, default=8, help="programs of one signature that are shrunk")
    parser.add_argument("--families", default="", help="of statements, or edits, that there are many of: dot,shape")
    parser.add_argument("--mutants", action="store_true", help="of real kernels, instead of programs made from nothing")
    parser.add_argument("--control-flow", action="store_true", help="programs of Python's statements, for `python` too")
    parser.add_argument("--edited-ir", action="store_true", help="programs whose tile IR is changed by edits")
    parser.add_argument("--columns", action="store_true", help="programs of a column each, which the CPU runs in step")
    parser.add_argument("--rewritten", action="store_true", help="programs and mutants, written another way")
    parser.add_argument("--show", type=int, metavar="SEED", help="print this program")
    given = parser.parse_args()
    executors = tuple(given.executors.split(","))
    make = _maker(given, executors)
    if given.show is not None:
        print(make(given.show).text(f"seed {given.show}"))
        return 0
    if given.triton_python:
        os.environ[triton.PYTHON_VARIABLE] = given.triton_python
    print(f"seeds {given.seed} to {given.seed + given.count - 1} on {', '.join(executors)}", flush=True)
    campaign = Campaign(
        first_seed=given.seed,
        count=given.count,
        executors=executors,
        jobs=given.jobs,
        folder=given.folder,
        timeout=given.timeout,
        shrink_seconds=given.shrink_seconds,
        shrunk_alike=given.shrunk_alike,
        minutes=given.minutes,
        make=make,
    )
    report = run(campaign, lambda text: print(text, flush=True))
    print(report.table())
    return int(bool(report.signatures))


def _maker(given: argparse.Namespace, executors: Sequence[str]) -> Callable[[int], Case]:
    """What makes a program of a seed."""
    if given.control_flow:
        return control_flow
    if given.edited_ir:
        return edit
    families = tuple(filter(None, given.families.split(",")))
    if given.columns:
        return columns
    if given.rewritten:
        return partial(rewrite, families=families)
    if given.mutants:
        return partial(mutate, families=families)
    return partial(generate, families=families, **(triton.OF_BOTH if "triton" in executors else {}))


if __name__ == "__main__":
    sys.exit(main())
