"""Runs programs on the emulator in the place of a GPU, and compares what they give with eager mode.

    python -m torch_compile.cuda 90 [PROGRAM...] [--every N [--first K]] [--json FILE]

A line for each: name, kernels that were compiled and launched, the seconds of a processor that the slowest one took to
compile (ptxas included, as on a machine of known speed), and `right`, or what went wrong; in the file the whole of it.
Programs that torch cannot compile for the CPU, or for such a GPU, are left out.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from pathlib import Path
from typing import Any

from torch_compile.cuda import fake_gpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("capability", type=int)
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--every", type=int, default=1, help="take every N-th program")
    parser.add_argument("--first", type=int, default=0, help="begin with the K-th of them")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)  # torch logs what is raised as well
    fake_gpu.pretend(given.capability)

    from torch_compile import programs  # noqa: F401  (deferred, all of them: torch looks for devices when imported)
    from torch_compile.cuda.outcomes import outcome_of
    from torch_compile.declaration import ALL

    possible = [name for name, one in ALL.items() if not one.refusal and one.capability <= given.capability]
    names = given.programs or possible[given.first :: given.every]
    found = []
    for name in names:
        found.append(outcome_of(ALL[name], given.capability))
        print(_line(found[-1]), flush=True)
        if given.json:
            given.json.write_text(json.dumps(found))
    sys.exit(any(outcome["error"] for outcome in found))


def _line(outcome: dict[str, Any]) -> str:
    seconds = [max(times) for times in outcome["seconds"].values()]
    raised = [line for line in outcome["error"].splitlines() if line[:1].strip() and "Error" in line]
    verdict = raised[-1][:300] if raised else "right"
    counts = f"{len(seconds):3} kernels {outcome['launches']:3} launches {max(seconds, default=0):5.2f} s"
    return f"{outcome['program']:32} {counts}  {verdict}"


if __name__ == "__main__":
    main()
