"""`deuteron tune NAME`: a library's kernels are measured on this machine, and the library chooses by it."""

import ctypes
import json
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from click.testing import CliRunner
from library.project import Project

from deuteron.aot.targets.cpu_features import runs_here
from deuteron.backend.llvm.targets import machine
from deuteron.errors import UsageError
from deuteron.library import measure as measured
from deuteron.library import read_project
from deuteron.library.device_arrays import _ProcessorArrays, arrays_for
from deuteron.library.measure import MeasureOptions, measure_library
from deuteron.library.measuring_turn import measuring_turn
from deuteron.options import Target
from deuteron.runtime.autotuning.tuned_file import read_tuned
from deuteron.tools.main import main

TUNE = """host_parameters = { n_rows = "i32" }
tuned = "tuned/rms_norm.json"
[library.norms.kernel.tune]
sizes = { n = [50, 100], n_rows = 2 }
arguments = { X = "n * n_rows", Y = "n * n_rows" }
"""
TYPES = "[library.norms.kernel.types]"


@pytest.fixture
def declared(project: Project) -> Project:
    """Its kernels are compiled for this machine in this process; `tune` comes after the other keys."""
    project.edit("deuteron.toml", f'host_parameters = {{ n_rows = "i32" }}\n{TYPES}', f"{TUNE}{TYPES}")
    return project


class Bench:
    """The first algorithm is the fastest for few numbers in a row, the last for many."""

    def __init__(self):
        self.launched = 0

    def __call__(self, fn, quantiles):
        fn()
        self.launched += 1
        return [float(self.launched % 4 if self.launched % 4 < 3 else 0.5)] * 3


def measure(project: Project, **options) -> list:
    library = read_project(project.file)["norms"]
    return list(measure_library(library, MeasureOptions(**options)))


def test_all_algorithms_of_all_functions_for_all_sizes(declared: Project):
    bench = Bench()
    found = measure(declared, bench=bench)
    assert [(one.function, dict(one.choice.key), one.num_new) for one in found] == [
        (f"rms_norm_{type}", {"n": n, "n_rows": 2}, 2) for type in ("fp16", "fp32") for n in (50, 100)
    ]
    assert bench.launched == 8
    tuned = read_tuned(declared.folder / "tuned" / "rms_norm.json")
    assert (
        tuned.kernel == "norms.rms_norm" and [dict(c.types)["X"] for c in tuned.choices] == ["fp16"] * 2 + ["fp32"] * 2
    )
    assert json.loads(next(iter(tuned.choices[0].outcomes))) == {
        "BLOCK": 64,
        "eps": 1e-5,
        "num_warps": 1,
        "num_stages": 3,
        "num_ctas": 1,
    }


def test_processors_are_measured_as_calls_take_them(declared: Project, monkeypatch: pytest.MonkeyPatch):
    """Of several levels the best that the processor has, whatever the order, and none of another architecture."""
    ours = ["cpu:x86-64-v2", "cpu:x86-64"] if machine() == "x86_64" else ["cpu:generic"]
    other = "cpu:cortex-a72" if machine() == "x86_64" else "cpu:x86-64-v3"
    declared.edit("deuteron.toml", '["cpu"]', json.dumps([other, *reversed(ours), "cpu:diamondrapids"]))
    compiled = []
    plain = measured.compile_with
    monkeypatch.setattr(
        measured, "compile_with", lambda *job: compiled.append(f"cpu:{job[2].arch}") or plain(*job), raising=True
    )
    found = measure(declared, bench=Bench(), sizes={"n": [50]})
    best = "cpu:diamondrapids" if runs_here("diamondrapids") else ours[0]
    assert set(compiled) == {best} and {one.choice.target for one in found} == {best}
    declared.edit("deuteron.toml", json.dumps([other, *reversed(ours), "cpu:diamondrapids"]), json.dumps([other]))
    with pytest.raises(UsageError, match="none of the targets of kernel 'rms_norm' is a device of this machine"):
        measure(declared, bench=Bench())


def test_what_is_known_is_not_measured_again(declared: Project):
    measure(declared, bench=Bench())
    bench = Bench()
    found = measure(declared, bench=bench, sizes={"n": [100, 200]})
    assert [one.num_new for one in found] == [0, 2, 0, 2] and bench.launched == 4
    measure(declared, bench=bench, sizes={"n": [100]}, again=True)
    assert bench.launched == 8


def test_the_library_chooses_by_it(declared: Project):
    measure(declared, bench=Bench())
    declared.build()
    source = (declared.out / "norms.c").read_text()
    assert "deuteron_tuned_rms_norm_fp16[][6]" in source and "deuteron_tuned_rms_norm_fp32[][6]" in source
    assert "by n, n_rows" in (declared.out / "norms.h").read_text()


def test_the_command(declared: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("deuteron.testing.do_bench", Bench())
    monkeypatch.setattr("deuteron.runtime.autotuning.trial_timing.shortest", lambda fn, enough: 0.0)
    command = ["tune", "norms", "-f", str(declared.file), "--size", "n=64"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    assert "rms_norm_fp32 on cpu:" in result.output and "n: 64, n_rows: 2: 2 of 2 measured, best " in result.output
    for arguments, message in (
        (["nroms"], "declares no library 'nroms'. Did you mean 'norms'?"),
        (["norms", "--size", "n"], "--size n: expected a name and whole numbers, such as n=1024,4096"),
        (["norms", "--size", "m=1"], "'m' is none of the sizes of kernel 'rms_norm': n, n_rows"),
    ):
        result = CliRunner().invoke(main, ["tune", *arguments, "-f", str(declared.file)])
        assert result.exit_code == 1 and message in result.output


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "sizes = { n = [50, 100], n_rows = 2 }",
            'sizes = { n = "many" }',
            "the sizes of 'n' are whole numbers, got 'many'",
        ),
        ("arguments = {", "argument = {", "'tune' has no 'argument'. Did you mean 'arguments'?"),
        ("arguments = {", 'reset_to_zero = "Y"\narguments = {', """is a list of arrays, ["counter"], got 'Y'"""),
        (
            "arguments = {",
            'reset_to_zero = ["n"]\narguments = {',
            "'n' is no array of kernel 'rms_norm'. There are X, Y",
        ),
        ('X = "n * n_rows", ', "", "'tune' says neither in 'sizes' nor in 'arguments' what 'X' is"),
        ("n_rows = 2 }", "n_rows = 2, m = 3 }", "'m' is no parameter of the functions of 'rms_norm'"),
        ('X = "n * n_rows"', 'X = "n * rows"', "rows"),
        ('X = "n * n_rows"', 'X = "n - 200"', "'tune' gives the array 'X' -150 elements"),
        ('X = "n * n_rows"', "X = 1.5", "'tune' gives the array 'X' 1.5 elements"),
        ('X = "n * n_rows"', 'X = "n * 1000000000000000"', "no memory for the array 'X' of 50,000,000,000,000,000 ele"),
        ("[50, 100]", "3000000000", "'tune' gives 'n', which is i32, the value 3000000000"),
        ("n_rows = 2 }", "n_rows = 2147483648 }", "'tune' gives 'n_rows', which is i32, the value 2147483648"),
        ('"tuned/rms_norm.json"', '"deuteron.toml/x.json"', "deuteron.toml/x.json': "),
        ('"tuned/rms_norm.json"', '"deuteron.toml"', "cannot read the timings"),
        ('Y = "n * n_rows"', "Y = 64", "Out-of-bounds store: lane"),
        ('X = "n * n_rows"', 'X = "n"', "for {'n': 50, 'n_rows': 2} are not what it accesses"),
        ('tuned = "tuned/rms_norm.json"\n', "", "'tuned' names the file that is written by what 'tune' says"),
    ],
)
def test_mistakes(declared: Project, old: str, new: str, message: str):
    declared.edit("deuteron.toml", old, new)
    with pytest.raises(UsageError) as caught:
        measure(declared, bench=Bench())
    assert message in str(caught.value) and "deuteron.toml:" in str(caught.value)


COOPERATIVE = """
[library.sums]
targets = ["cpu"]
[[library.sums.kernel]]
source = "sums.py"
name = "total"
grid = "programs"
tuned = "tuned.json"
types = { x = "*fp32", counter = "*i32", n = "i32", programs = "i32" }
constexprs = { BLOCK = [64, 128] }
options = { launch_cooperative_grid = true }
[library.sums.kernel.tune]
sizes = { n = 50, programs = 3 }
arguments = { x = "n * programs", counter = 1 }
reset_to_zero = ["counter"]
"""
SUMS = """
import triton
import triton.language as tl


@triton.jit
def total(x, counter, n, programs, BLOCK: tl.constexpr):
    own = x + tl.program_id(0) * n
    i = tl.arange(0, BLOCK)
    tl.store(own + i, tl.load(own + i, mask=i < n) * 2, mask=i < n)
    tl.atomic_add(counter, 1)
    while tl.atomic_add(counter, 0) % programs != 0:
        pass
"""


def content(address: int, type: type, count: int) -> np.ndarray:
    return np.ctypeslib.as_array((type * count).from_address(address)).copy()


def test_programs_that_wait_for_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Every launch finds the counter at zero, the first one of each algorithm the other arrays as they were made."""
    (tmp_path / "sums.py").write_text(SUMS)
    (tmp_path / "deuteron.toml").write_text(COOPERATIVE)
    made, seen = {}, []
    make = _ProcessorArrays.make
    monkeypatch.setattr(_ProcessorArrays, "make", lambda arrays, *of: made.setdefault(of, make(arrays, *of)))

    def bench(launch: Callable[[], None], quantiles: object) -> list[float]:
        for _ in range(3):
            launch()
            assert content(made["i32", 1], ctypes.c_int32, 1) == 3
            seen.append(content(made["fp32", 150], ctypes.c_float, 150))
        return [1.0] * 3

    library = read_project(tmp_path / "deuteron.toml")["sums"]
    (found,) = measure_library(library, MeasureOptions(bench=bench))
    assert [outcome.ms for outcome in found.choice.outcomes.values()] == [[1.0] * 3] * 2
    assert np.array_equal(seen[0], seen[3]) and np.array_equal(seen[0] * 4, seen[2])


def test_one_process_at_a_time(declared: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    turns = []
    with measuring_turn(Target("cpu", "native", 1), lambda: turns.append("first waits")):
        other = Thread(
            target=measure, args=[declared], kwargs={"bench": Bench(), "on_wait": lambda: turns.append("waits")}
        )
        other.start()
        while not turns:
            time.sleep(0.01)
        assert not (declared.folder / "tuned").exists()
    other.join()
    assert turns[0] == "waits" and read_tuned(declared.folder / "tuned" / "rms_norm.json").choices


def test_a_gpu_is_known_by_its_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    driver = FakeDriver()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("deuteron.library.measuring_turn.cuda_driver", lambda: driver)
    monkeypatch.setattr("deuteron.library.measuring_turn.current_device", lambda driver: 0)
    with measuring_turn(Target("cuda", 90), lambda: None):
        assert [path.name for path in tmp_path.iterdir()] == ["deuteron-measures-gpu-0000-1b-00.0"]


def test_a_library_that_says_nothing(project: Project):
    with pytest.raises(UsageError, match="no kernel of library 'norms' has a table 'tune'"):
        measure(project)


def test_arrays_are_aligned_and_hold_numbers(monkeypatch: pytest.MonkeyPatch):
    with arrays_for(Target("cpu", "native", 1)) as arrays:
        for type, size in (("fp16", 2), ("bf16", 2), ("fp32", 4), ("fp64", 8), ("i1", 1), ("i32", 4), ("fp8e5", 1)):
            address = arrays.make(type, 7)
            assert address % 64 == 0
            content = np.ctypeslib.as_array((np.ctypeslib.ctypes.c_uint8 * (7 * size)).from_address(address))
            assert content.any() == type.startswith(("fp", "bf"))


class FakeDriver:
    """Its memory is a number."""

    def __init__(self):
        self.calls = []

    def call(self, name, *args):
        self.calls.append((name, *args[-1:]))
        return {"cuMemAlloc": 4096, "cuDeviceGetPCIBusId": b"0000:1b:00.0\0\0\0\0"}.get(name)

    def context_of(self, device):
        from contextlib import nullcontext

        return nullcontext()


def test_arrays_of_a_gpu_are_freed(monkeypatch: pytest.MonkeyPatch):
    driver = FakeDriver()
    monkeypatch.setattr("deuteron.library.device_arrays.cuda_driver", lambda: driver)
    monkeypatch.setattr("deuteron.library.device_arrays.current_device", lambda driver: 0)
    with arrays_for(Target("cuda", 90)) as arrays:
        assert arrays.make("fp16", 8) == 4096
        arrays.restore()
        arrays.zero(4096)
    copy = ("cuMemcpyHtoD", 16)
    assert driver.calls == [("cuMemAlloc", 16), copy, copy, ("cuMemsetD8", 16), ("cuMemFree", 4096)]
