"""Compares our ttir with Triton's, both ways, for the kernels of examples/ and tests/kernels.

    .venv/bin/python scripts/check_ttir_with_triton.py [--python PYTHON] [NAME ...]

Triton's parser and verifier read our ttir; and the ttir that Triton makes of the same kernel, for the same types and
constants, is compiled here for the CPU and for cuda:90, and gives on the CPU what ours gives. Texts are in build/ttir.
Triton lives in an environment of its own under build/, which is made the first time: that needs the network
(`pip install triton`, about 1 GB on disk). `--python` names a Python that has another version. Not part of `make test`.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ["DEUTERON_TARGET"] = "cpu"

import numpy as np
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "build" / "ttir"
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import deuteron  # noqa: E402
from benchmarks.programs import EXAMPLES, load_example  # noqa: E402
from benchmarks.triton_environment import triton_python  # noqa: E402
from deuteron import knobs  # noqa: E402
from deuteron.compiler import ASTSource, CompiledKernel  # noqa: E402
from deuteron.errors import DeuteronError  # noqa: E402
from deuteron.language.types import dtype  # noqa: E402
from deuteron.runtime.grid import evaluate_grid  # noqa: E402
from deuteron.runtime.jit import JITFunction  # noqa: E402
from tests.kernels.families import CASES  # noqa: E402

OPTIONS = ("num_warps", "num_stages", "num_ctas")
TEXTS = ("deuteron.ttir", "triton.ttir")
COLUMNS = ("Triton reads ours", "Triton makes it", "for the CPU", "for cuda:90", "same results")
MARKS = {"": "[green]ok[/]", None: "-"}
# How far results may be from each other, of the largest number: ops are done in another order.
TOLERANCES = {"float64": 1e-9, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}
FP8_TOLERANCE = 0.15


@dataclass
class Record:
    """A launch of a kernel that was compiled for it, with its arguments as they were, and what came of both texts."""

    name: str
    kernel: CompiledKernel
    source: ASTSource
    grid: tuple[int, int, int]
    args: list[Any]
    verdicts: dict[str, str] = field(default_factory=dict)

    def path(self, suffix: str) -> Path:
        return OUTPUT / f"{self.name}.{suffix}"


@contextlib.contextmanager
def recorded(records: dict[str, Record], prefix: str) -> Iterator[None]:
    """Within, the first launch of each compiled kernel is kept in `records`."""
    run, sources = JITFunction.run, []
    knobs.compilation.listener = lambda src, **_: sources.append(src)

    def spy(self: JITFunction, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        sources.clear()
        kernel = run(self, *args, grid=grid, warmup=True, **kwargs)
        if sources and kernel.hash not in records:
            given = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}
            extents = evaluate_grid(grid, self.__name__, lambda: given)
            passed = [given[name] for name, type in sources[0].signature.items() if type != "constexpr"]
            name = f"{prefix}.{len(records)}.{self.__name__}"
            records[kernel.hash] = Record(name, kernel, sources[0], extents, copy.deepcopy(passed))
        return run(self, *args, grid=grid, warmup=warmup, **kwargs)

    JITFunction.run = spy
    try:
        yield
    finally:
        JITFunction.run, knobs.compilation.listener = run, None


def record_all(names: Sequence[str]) -> list[Record]:
    """Run the examples and the cases of tests/kernels whose names are given, or all."""
    records: dict[str, Record] = {}
    for example in sorted(path.stem for path in EXAMPLES.glob("*.py") if "benchmark" not in path.stem):
        if not names or example in names:
            with recorded(records, example), contextlib.redirect_stdout(io.StringIO()):
                load_example(example).main()
    for name, make in CASES.items():
        if not names or name in names:
            with recorded(records, name):
                for step in make(np.random.default_rng(0)).steps:
                    step()
    return list(records.values())


def request_of(record: Record) -> dict[str, Any]:
    """What Triton has to know to make the ttir of a kernel."""
    source, names = record.source, list(record.source.signature)
    function = source.fn
    return {
        "file": function.fn.__code__.co_filename,
        "kernel": function.fn.__name__,
        "signature": {name: as_list(type) for name, type in source.signature.items()},
        "constexprs": {name: as_json(value) for name, value in source.constexprs.items()},
        "attrs": [[[names.index(name)], pairs] for name, pairs in source.attrs.items() if name in names],
        "options": options_of(record),
    }


def options_of(record: Record) -> dict[str, Any]:
    return {name: value for name, value in record.kernel.metadata.options.items() if name in OPTIONS}


def as_list(type: Any) -> Any:
    return [as_list(item) for item in type] if isinstance(type, tuple) else type


def as_json(value: Any) -> Any:
    return {"dtype": value.name} if isinstance(value, dtype) else value


def ask_triton(
    python: str | Path, command: str, records: Sequence[Record], suffix: str, requests: Sequence[dict[str, Any]]
) -> list[str]:
    """What Triton answers to requests about texts, each one line."""
    answers = [record.path(f"{suffix}.answer") for record in records]
    asked = [
        {**request, "path": str(record.path(suffix)), "answer": str(answer)}
        for record, request, answer in zip(records, requests, answers, strict=True)
    ]
    path = OUTPUT / f"{command}.json"
    path.write_text(json.dumps(asked, indent=1))
    script = Path(__file__).with_name("triton_ttir.py")
    subprocess.run([python, script, command, path], check=True, capture_output=True)
    return [answer.read_text().strip().split("\n")[-1] for answer in answers]


def compile_text(record: Record, target: str) -> CompiledKernel:
    return deuteron.compile(str(record.path("triton.ttir")), target=target, options=options_of(record))


def compare(record: Record) -> None:
    """Raise AssertionError where Triton's text gives other results on the CPU than ours."""
    ours, theirs = copy.deepcopy(record.args), copy.deepcopy(record.args)
    record.kernel[record.grid](*ours)
    compile_text(record, "cpu")[record.grid](*theirs)
    for got, expected in zip(theirs, ours, strict=True):
        for one, other in zip(arrays_in(got), arrays_in(expected), strict=True):
            check_close(one, other)


def arrays_in(value: Any) -> list[np.ndarray]:
    if isinstance(value, tuple):
        return [array for item in value for array in arrays_in(item)]
    value = getattr(value, "base", None) if hasattr(value, "block_shape") else value
    return [value] if isinstance(value, np.ndarray) else []


def check_close(got: np.ndarray, expected: np.ndarray) -> None:
    if got.dtype.kind in "iub":
        assert np.array_equal(got, expected), "integers differ"
        return
    tolerance = TOLERANCES.get(got.dtype.name, FP8_TOLERANCE)
    got, expected = got.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(expected)
    assert np.array_equal(got[~finite], expected[~finite], equal_nan=True), "infinities or NaN differ"
    error = np.abs(got[finite] - expected[finite]).max(initial=0) / max(np.abs(expected[finite]).max(initial=0), 1e-30)
    assert error <= tolerance, f"relative error {error:.1e}"


def verdict(do: Any, *args: Any) -> str:
    """ "", or what went wrong."""
    try:
        do(*args)
    except (DeuteronError, AssertionError) as error:
        return str(error).strip().split("\n")[0] or "an assertion failed"
    return ""


def check(python: str | Path, records: Sequence[Record]) -> None:
    """Fill in the verdicts of all records: an empty text where all is well."""
    for record in records:
        record.path("deuteron.ttir").write_text(record.kernel.asm["ttir"])
    read = ask_triton(python, "parse", records, "deuteron.ttir", [{} for _ in records])
    made = ask_triton(python, "make", records, "triton.ttir", [request_of(record) for record in records])
    for record, was_read, was_made in zip(records, read, made, strict=True):
        record.verdicts = {"Triton reads ours": was_read, "Triton makes it": was_made}
        if was_made == "":
            record.verdicts["for the CPU"] = verdict(compile_text, record, "cpu")
            record.verdicts["for cuda:90"] = verdict(compile_text, record, "cuda:90")
            if record.verdicts["for the CPU"] == "":
                record.verdicts["same results"] = verdict(compare, record)


def main() -> int:
    parser = argparse.ArgumentParser(description="Compares our ttir with Triton's, both ways.")
    parser.add_argument("--python", help="a Python that has Triton; default: that of build/triton")
    parser.add_argument("names", nargs="*", help="examples and cases of tests/kernels; default: all")
    asked = parser.parse_args()
    OUTPUT.mkdir(parents=True, exist_ok=True)
    records = record_all(asked.names)
    check(asked.python or triton_python(), records)
    table = Table("kernel", "lines", "Triton's", *COLUMNS, title="ttir, ours and Triton's")
    for record in records:
        lines = [str(len(path.read_text().splitlines())) for path in map(record.path, TEXTS) if path.is_file()]
        verdicts = [record.verdicts.get(column) for column in COLUMNS]
        table.add_row(record.name, *(lines + ["-"])[:2], *(MARKS.get(verdict, "[red]no[/]") for verdict in verdicts))
    Console().print(table)
    for column in COLUMNS:
        counted = [record for record in records if column in record.verdicts]
        print(f"{column}: {sum(record.verdicts[column] == '' for record in counted)} of {len(counted)}")
        for record in counted:
            if record.verdicts[column]:
                print(f"    {record.name}: {record.verdicts[column]}")
    return int(
        any(text for record in records for column, text in record.verdicts.items() if column != "Triton makes it")
    )


if __name__ == "__main__":
    sys.exit(main())
