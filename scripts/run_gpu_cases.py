"""Runs every launch of the numeric tests and of the examples on a GPU, and compares with the interpreter.

    python scripts/run_gpu_cases.py record build/gpu-cases         where Deuteron is: no GPU needed
    python scripts/run_gpu_cases.py run build/gpu-cases            where the GPU is: NumPy, torch and cuda-bindings
    python scripts/run_gpu_cases.py all build/gpu-cases            both, where everything is

`record` runs the tests of `tests/run` and the kernels of `tests/kernels` in the interpreter and keeps, for each launch,
the memory before and after, and the kernel compiled for some number of warps (1 to 16, another one for each launch) and
of blocks in a cluster (1, 2 or 4; 1 where they cannot share the program). Each file of tests has a process, of which
`--jobs` run at a time, a folder, and there a log of pytest's. `run` launches what was kept on copies in the
GPU's memory (or, with `--on emulator`, in the emulator), prints a line for each kernel that differs and a table, and
ends with 1 if any does. What only one of the two needs is imported where it is used, and not on the other machine.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import os
import pickle
import sys
import time
import types
import zlib
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

CASES = "cases.pickle.gz"
WARPS, CTAS = (1, 2, 4, 8, 16), (1, 2, 4)
# Launches whose memory says nothing about a GPU, by what is in their names.
NOT_COMPARED = {
    "test_addresses_in_memory": "addresses in arrays are the host's",
    "test_another_type_of_pointer": "addresses in arrays are the host's",
    "test_facts": "stores the number of warps, which is another one here",
    "test_what_functions_ask_of_the_kernel": "stores the number of warps and the target, which are others here",
    "test_functions[interpreter-float32": "fast_sinf and fast_dividef promise nothing for large numbers",
    "test_the_clock": "another one there",
    "test_a_negative_size_is_that_of_nothing": "TMA has no tensors of such sizes: an error of the launch",
    "mixture_of_experts": "the order within an expert is that of atomics",
    "test_every_fp8_is_copied[interpreter-float8_e5m2": "the interpreter keeps no payload of a NaN",
    "test_null_and_an_offset_may_be_the_address": "the offset is an address of the host",
    "test_functions_that_make_tiles": "functions of reductions that make tiles are refused for GPUs",
    "test_floats_of_four_bits": "instructions of sm_100",
    "test_floats_of_six_bits": "instructions of sm_100",
    "test_extremes_of_three": "instructions of sm_100",
    "test_any_of_equal_elements": "which of equal elements is found is another one in another order",
    "test_with_nan_one_of_the_elements": "which element is found beside a NaN is another one in another order",
    "test_long_sums_of_narrow_floats[interpreter-bfloat16": "products of 1,024 numbers, rounded in another order",
}
# Of the largest magnitude expected; products in tf32 have ten bits.
TOLERANCE = {"float64": 1e-12, "float32": 2e-5, "float16": 2e-3, "bfloat16": 1.6e-2}
DOT_TOLERANCE = {"float64": 1e-12, "float32": 2e-3, "float16": 4e-3, "bfloat16": 1.6e-2}


@dataclass
class Memory:
    """A whole array in memory, as bytes before and after the launch, and the type of its elements."""

    before: bytes
    after: bytes
    dtype: str


@dataclass
class Case:
    """A launch: arguments are numbers, or pairs of a memory's number and an offset in bytes."""

    test: str
    kernel: str
    metadata: str
    cubin: bytes
    ptx: str
    grid: tuple[int, int, int]
    arguments: list[Any] = field(default_factory=list)
    memories: list[Memory] = field(default_factory=list)
    has_dot: bool = False


# -- recording ---


class Recorder:
    """Stands in for the way of launches into the interpreter."""

    def __init__(self, target: str, limit: int, seed: int):
        self.cases: list[Case] = []
        self.failures: list[str] = []
        self.test = ""
        self._target, self._limit, self._seed, self._kernels = target, limit, seed, {}

    def wrap(self, interpret):
        def recording(simulation, bound, grid):
            values = bound.runtime_values()
            arrays = [value if isinstance(value, np.ndarray) else None for value in values]
            is_kept = len(self.cases) < self._limit and all(_is_plain(value) for value in values)
            is_kept = is_kept and not any(part in self.test for part in NOT_COMPARED)
            owners, before = _owners(arrays), [owner.tobytes() for owner in _owners(arrays)]
            interpret(simulation, bound, grid)
            if is_kept and 0 not in grid:
                self._keep(simulation.fn, bound, grid, values, owners, before)

        return recording

    def _keep(self, function, bound, grid, values, owners, before) -> None:
        drawn = zlib.crc32(f"{self._seed} {self.test} {len(self.cases)}".encode())
        num_warps, num_ctas = WARPS[drawn % len(WARPS)], CTAS[drawn // len(WARPS) % len(CTAS)]
        try:
            kernel = self._compiled_for(function, bound, num_warps, num_ctas)
        except Exception as error:
            self.failures.append(f"{self.test}: {function.__name__} with {num_warps} warps: {error}")
            return
        asm = kernel.asm
        case = Case(self.test, kernel.name, kernel.metadata.to_json(), asm["cubin"], asm["ptx"], grid)
        case.has_dot = "tt.dot " in asm["ttir"]
        case.arguments = [_argument(value, owners) for value in values]
        case.memories = [
            Memory(bytes_before, owner.tobytes(), owner.dtype.name)
            for owner, bytes_before in zip(owners, before, strict=True)
        ]
        self.cases.append(case)

    def _compiled_for(self, function, bound, num_warps: int, num_ctas: int):
        """The kernel that a launch would take: another one where arrays overlap that it takes to be apart."""
        from deuteron.backend.overlaps import overlap_of

        kernel = self._compiled(function, bound, num_warps, num_ctas)
        if overlap_of(kernel.metadata, bound.flat_values(), bound.runtime_values()) is None:
            return kernel
        return self._compiled(function, bound.for_overlapping(), num_warps, num_ctas)

    def _compiled(self, function, bound, num_warps: int, num_ctas: int):
        from deuteron.backend import get_backend, parse_target
        from deuteron.compiler.driver import compile_with
        from deuteron.errors import UsageError

        key = (function, bound.tokens, tuple(bound.options.items()), num_warps, num_ctas)
        if key not in self._kernels:
            target = parse_target(self._target)
            backend = get_backend(target)
            options = backend.make_options({**bound.options, "num_warps": num_warps, "num_ctas": num_ctas})
            try:
                self._kernels[key] = compile_with(backend, function.source_of(bound), target, options)
            except UsageError:
                if num_ctas == 1:
                    raise
                self._kernels[key] = self._compiled(function, bound, num_warps, 1)
        return self._kernels[key]


def _is_plain(value) -> bool:
    return isinstance(value, (np.ndarray, bool, int, float, np.generic))


def _owner(array: np.ndarray) -> np.ndarray:
    """The array whose memory another one is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _owners(arrays) -> list[np.ndarray]:
    found: dict[int, np.ndarray] = {}
    for array in arrays:
        if array is not None:
            owner = _owner(array)
            if not (owner.flags.c_contiguous or owner.flags.f_contiguous):
                raise ValueError("an array that owns its memory is contiguous")
            found.setdefault(id(owner), owner.T if not owner.flags.c_contiguous else owner)
    return list(found.values())


def _argument(value, owners: list[np.ndarray]):
    if not isinstance(value, np.ndarray):
        return value.item() if isinstance(value, np.generic) else value
    address = value.ctypes.data
    for number, owner in enumerate(owners):
        if owner.ctypes.data <= address <= owner.ctypes.data + owner.nbytes:
            return (number, address - owner.ctypes.data)
    raise AssertionError("every array has an owner")


def record(folder: Path, jobs: int, names: str, *how) -> int:
    """Record each file of tests that has such a name in a folder of its own, the largest first."""
    files = [*(ROOT / "tests" / "run").glob("test_*.py"), ROOT / "tests" / "kernels" / "test_results.py"]
    files = [file for file in files if file.match(names)]
    files.sort(key=lambda file: file.stat().st_size, reverse=True)
    os.environ["DEUTERON_CACHE_DIR"] = str(folder / "cache")
    found = []
    with ProcessPoolExecutor(jobs, get_context("spawn"), max_tasks_per_child=1) as pool:
        for recorded in pool.map(_record_file, files, [folder] * len(files), [how] * len(files)):
            print("\n".join(recorded.problems), end="\n" * bool(recorded.problems), flush=True)
            found.append(recorded)
    for part, reason in NOT_COMPARED.items():
        print(f"not compared: {part}: {reason}")
    problems = sum(len(recorded.problems) for recorded in found)
    print(f"{sum(recorded.launches for recorded in found)} launches in {folder}; {problems} problems")
    return int(problems > 0)


class Recorded(NamedTuple):
    """Of a file of tests."""

    launches: int
    problems: list[str]


def _record_file(file: Path, folder: Path, how: tuple[str, str, int, int]) -> Recorded:
    import pytest

    from deuteron.runtime.simulation import Simulation

    target, select, limit, seed = how
    recorder = Recorder(target, limit, seed)
    Simulation.interpret = recorder.wrap(Simulation.interpret)

    class Plugin:
        def pytest_runtest_setup(self, item):
            recorder.test = item.nodeid.removeprefix("tests/").removeprefix("run/")

    place = folder / file.stem
    place.mkdir(parents=True, exist_ok=True)
    selected = f"interpreter and ({select})" if select else "interpreter"
    arguments = ["-q", "-x", "-p", "no:xdist", "-p", "no:cacheprovider", "-k", selected, str(file)]
    with (place / "pytest.log").open("w") as log, redirect_stdout(log):
        status = pytest.main(arguments, plugins=[Plugin()])
    with gzip.open(place / CASES, "wb", compresslevel=3) as cases:
        pickle.dump([vars(case) | {"memories": [vars(m) for m in case.memories]} for case in recorder.cases], cases)
    problems = [f"NOT COMPILED {failure}" for failure in recorder.failures]
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        problems.append(f"NOT RECORDED {file.name}: {place / 'pytest.log'}")
    return Recorded(len(recorder.cases), problems)


# -- running ---


def load_cases(folder: Path) -> list[Case]:
    found = []
    for file in sorted(folder.glob(f"*/{CASES}")):
        with gzip.open(file, "rb") as cases:
            found += pickle.load(cases)
    return [Case(**{**case, "memories": [Memory(**memory) for memory in case["memories"]]}) for case in found]


def _without_platformdirs() -> None:
    """The GPU machine may lack this one dependency; only the place of the cache is asked of it."""
    if importlib.util.find_spec("platformdirs") is None:
        module = types.ModuleType("platformdirs")
        module.user_cache_dir = lambda name: f"/tmp/{name}"
        sys.modules["platformdirs"] = module


class GPU:
    """Launches on copies in torch's memory."""

    def __init__(self) -> None:
        import torch

        from deuteron.backend.cuda.launch.driver import load_kernel
        from deuteron.backend.metadata import KernelMetadata

        self._torch, self._load, self._read = torch, load_kernel, KernelMetadata.from_json
        self.name = torch.cuda.get_device_name()

    def launch(self, case: Case) -> list[bytes]:
        torch = self._torch
        copies = [torch.frombuffer(bytearray(m.before or b"\0"), dtype=torch.uint8).cuda() for m in case.memories]
        values = [copies[a[0]].data_ptr() + a[1] if isinstance(a, tuple) else a for a in case.arguments]
        self._load(case.cubin, self._read(case.metadata))(case.grid, values)
        torch.cuda.synchronize()
        return [copy.cpu().numpy().tobytes()[: len(m.before)] for copy, m in zip(copies, case.memories, strict=True)]


class Emulated:
    """Launches in the PTX emulator."""

    name = "emulator"

    def launch(self, case: Case) -> list[bytes]:
        from deuteron.backend.metadata import KernelMetadata
        from deuteron.emulator import EmulatorOptions, run_kernel

        metadata = KernelMetadata.from_json(case.metadata)
        copies = [_aligned_copy(memory.before) for memory in case.memories]
        values = [_pointer(copies[a[0]], a[1]) if isinstance(a, tuple) else a for a in case.arguments]
        run_kernel(case.ptx, metadata, case.grid, values, EmulatorOptions(print=lambda text: None))
        return [copy.tobytes() for copy in copies]


def _pointer(memory: np.ndarray, offset: int) -> np.ndarray:
    """A view that begins at an offset and reaches the whole memory, on both sides of it."""
    if not offset:
        return memory
    return np.lib.stride_tricks.as_strided(memory[offset:], (2, max(memory.size - offset, 1)), (-offset, 1))


def _aligned_copy(data: bytes) -> np.ndarray:
    """The bytes at an address that is a multiple of 256, as in a GPU's memory."""
    space = np.zeros(len(data) + 256, np.uint8)
    begin = -space.ctypes.data % 256
    space[begin : begin + len(data)] = np.frombuffer(data, np.uint8)
    return space[begin : begin + len(data)]


def _difference(case: Case, results: list[bytes]) -> str | None:
    """What is wrong with the memory after a launch; None if nothing."""
    for number, (memory, result) in enumerate(zip(case.memories, results, strict=True)):
        got, expected = (_decoded(data, memory.dtype) for data in (result, memory.after))
        if memory.dtype not in TOLERANCE:
            if not np.array_equal(got, expected):
                return f"memory {number} ({memory.dtype}): {_first(got != expected, got, expected)}"
            continue
        tolerance = (DOT_TOLERANCE if case.has_dot else TOLERANCE)[memory.dtype]
        finite = np.isfinite(expected)
        same = np.where(finite, True, (got == expected) | (np.isnan(got) & np.isnan(expected)))
        scale = np.abs(expected[finite]).max(initial=1e-30)
        distance = np.abs(np.where(finite, got, 0) - np.where(finite, expected, 0))
        wrong = ~same | ~(distance <= tolerance * scale)
        if wrong.any():
            return f"memory {number} ({memory.dtype}): {_first(wrong, got, expected)}"
    return None


def _decoded(data: bytes, dtype: str) -> np.ndarray:
    if dtype == "bfloat16":
        return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype.startswith("float8"):
        return np.frombuffer(data, np.uint8)
    found = np.frombuffer(data, dtype)
    return found.astype(np.float64) if found.dtype.kind == "f" else found


def _first(wrong: np.ndarray, got: np.ndarray, expected: np.ndarray) -> str:
    index = int(np.argmax(wrong))
    return f"{wrong.sum()} of {wrong.size} wrong, the first at {index}: got {got[index]}, expected {expected[index]}"


def run(folder: Path, where: str, select: str) -> int:
    _without_platformdirs()
    machine = GPU() if where == "gpu" else Emulated()
    table, failures, begin = Counter(), 0, time.perf_counter()
    for case in load_cases(folder):
        if select and select not in case.test:
            continue
        file = case.test.partition("::")[0]
        try:
            problem = _difference(case, machine.launch(case))
        except Exception as error:
            problem = f"{type(error).__name__}: {str(error)[:300]}"
        table[file, problem is None] += 1
        if problem:
            failures += 1
            print(
                f"WRONG {case.test} {case.kernel} {case.metadata.partition('num_warps')[2][:6]} {problem}", flush=True
            )
    print(f"\n{'test file':28} right wrong      on {machine.name}, {time.perf_counter() - begin:.0f} s")
    for file in sorted({file for file, _ in table}):
        print(f"{file:28} {table[file, True]:5} {table[file, False]:5}")
    print(f"{'all':28} {sum(table.values()) - failures:5} {failures:5}")
    return int(failures > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("action", choices=("record", "run", "all"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="cuda:90")
    parser.add_argument("--on", choices=("gpu", "emulator"), default="gpu")
    parser.add_argument("--select", default="", help="only tests with this in their names")
    parser.add_argument("--files", default="test_*.py", help="only files of tests with such names are recorded")
    parser.add_argument("--limit", type=int, default=2000, help="launches of a file of tests")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="files that are recorded at a time")
    parser.add_argument("--seed", type=int, default=0, help="other numbers of warps for each launch")
    options = parser.parse_args()
    status = 0
    if options.action in ("record", "all"):
        status = record(
            options.folder, options.jobs, options.files, options.target, options.select, options.limit, options.seed
        )
    if options.action in ("run", "all"):
        status |= run(options.folder, options.on, options.select)
    return status


if __name__ == "__main__":
    sys.exit(main())
