"""Cubins of another Triton for what the benchmark measures, for its `--peer-cubins`; made without a GPU.

    python -m benchmarks.gpu.peer_cubins build/triton-3.9                        of all kernels
    python -m benchmarks.gpu.peer_cubins build/triton-3.9 --only norm --python environment/bin/python

Triton is that of the environment, by default the newest release in build/triton, which is made where there is none.
The folder's name is that of the column.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.gpu.__main__ import select
from benchmarks.gpu.case import Config, Descriptor, Parameter
from benchmarks.gpu.cubins import file_name
from benchmarks.gpu.peers import describe, group_by_code, load_kernels
from benchmarks.triton_environment import triton_python

ROOT = Path(__file__).resolve().parents[2]
INSIDE = "DEUTERON_PEER_CUBINS_INSIDE"
Work = tuple[Path, str, str, tuple[Parameter, ...], Config]


def make(work: Work) -> str:
    """Write the cubin and its facts, or why there is none."""
    from triton.backends.compiler import GPUTarget  # deferred: only the environment of the peer has it
    from triton.compiler import ASTSource, compile

    path, source, kernel, parameters, config = work
    function = getattr(load_kernels("triton", source), kernel)
    signature, constants, attributes = specialise(function.arg_names, parameters, dict(config.constants))
    options = {"num_warps": config.num_warps, "num_stages": config.num_stages}
    try:
        compiled = compile(ASTSource(function, signature, constants, attributes), GPUTarget("cuda", 90, 32), options)
    except Exception as error:  # noqa: BLE001  whatever a compiler raises, the others are still to be made
        path.with_suffix(".json").write_text(json.dumps({"error": describe(error)}))
        return f"{kernel} {config.label}: {describe(error)}"
    facts = {name: getattr(compiled.metadata, name) for name in ("name", "shared", "num_warps", "global_scratch_size")}
    path.with_suffix(".cubin").write_bytes(compiled.asm["cubin"])
    path.with_suffix(".json").write_text(json.dumps(facts))
    return ""


def specialise(
    names: list[str], parameters: tuple[Parameter, ...], constants: dict[str, Any]
) -> tuple[dict[str, str], dict[str, Any], dict[tuple[int], list[Any]]]:
    """What a launch would: arrays and multiples of 16 are divisible by 16, and 1 is a constant."""
    signature, known, attributes = dict.fromkeys(names, "constexpr"), dict(constants), {}
    for index, (name, parameter) in enumerate(zip(names, parameters, strict=False)):
        if parameter == 1:
            known[name] = 1
            continue
        signature[name] = _type(parameter, constants)
        if isinstance(parameter, str) or (isinstance(parameter, int) and parameter % 16 == 0):
            attributes[index,] = [["tt.divisibility", 16]]
    return signature, known, attributes


def _type(parameter: Parameter, constants: dict[str, Any]) -> str:
    if isinstance(parameter, Descriptor):
        return f"tensordesc<{parameter.element}[{', '.join(str(constants[name]) for name in parameter.block)}]>"
    if isinstance(parameter, str):
        return parameter
    if isinstance(parameter, float):
        return "fp32"
    return "i64" if parameter.bit_length() > 31 else "i32"


def works(folder: Path, words: list[str]) -> Iterator[Work]:
    selected = select(words, False, "everyday") + select(words, False, "projects") + select(words, True)
    for key, ((case, config), *_) in group_by_code(selected).items():
        yield folder / file_name(key), case.source, case.kernel, case.parameters, config


def main() -> None:
    parser = argparse.ArgumentParser(description="Cubins of another Triton for what the benchmark measures.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD", help="families or parts of names of cases")
    parser.add_argument("--python", type=Path, help="of an environment with Triton")
    arguments = parser.parse_args()
    if INSIDE not in os.environ:
        python = arguments.python or triton_python()
        paths = os.pathsep.join((str(ROOT), str(ROOT / "src")))
        environment = {**os.environ, INSIDE: "1", "PYTHONPATH": paths, "TRITON_DEFAULT_FP_FUSION": "1"}
        sys.exit(
            subprocess.run([python, "-m", "benchmarks.gpu.peer_cubins", *sys.argv[1:]], env=environment).returncode
        )
    arguments.folder.mkdir(parents=True, exist_ok=True)
    work = list(works(arguments.folder, arguments.only))
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        for message in pool.map(make, work):
            if message:
                print(message, flush=True)
    print(f"{len(work)} kernels in {arguments.folder}")


if __name__ == "__main__":
    main()
