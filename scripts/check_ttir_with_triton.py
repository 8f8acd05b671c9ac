"""Feeds our ttir of every example to Triton's own parser and verifier, in an environment made for it under build/.

    .venv/bin/python scripts/check_ttir_with_triton.py

Needs the network the first time (`pip install triton`, about 1 GB on disk); not part of `make test`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "build" / "ttir"
sys.path.insert(0, str(ROOT))

import deuteron  # noqa: E402
from benchmarks.programs import PROGRAMS  # noqa: E402
from benchmarks.triton_environment import triton_python  # noqa: E402
from deuteron.backend import parse_target  # noqa: E402

# Runs in Triton's environment, a process for each file because its parser may abort; its own words go to stderr.
PARSE = """
import sys
from triton._C.libtriton import ir

context = ir.context()
ir.load_dialects(context)
module = ir.parse_mlir_module(sys.argv[1], context)
module.context = context
sys.exit(0 if module.verify() else "the verifier refused it")
"""


def write_ttir() -> list[Path]:
    OUTPUT.mkdir(parents=True, exist_ok=True)
    paths = []
    for program in PROGRAMS:
        paths.append(OUTPUT / f"{program.example}.ttir")
        kernel = deuteron.compile(program.source(), target=parse_target("cpu"))
        paths[-1].write_text(kernel.asm["ttir"])
    return paths


def main() -> int:
    python = triton_python()
    table = Table("ttir", "lines", "Triton's parser and verifier", title="Our ttir in Triton")
    refused = 0
    for path in write_ttir():
        result = subprocess.run([python, "-c", PARSE, path], capture_output=True, text=True)
        refused += result.returncode != 0
        verdict = "accepted" if result.returncode == 0 else f"refused: {result.stderr.strip()[:400]}"
        table.add_row(str(path.relative_to(ROOT)), str(len(path.read_text().splitlines())), verdict)
    Console().print(table)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
