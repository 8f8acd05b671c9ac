"""Random programs in C. `make fuzz ARGS="--executors aot"` runs many more."""

from functools import partial

from tests.fuzz.campaign import Campaign, run
from tests.fuzz.case import Argument, Case
from tests.fuzz.executors import run_case
from tests.fuzz.generator import generate

COUNT = 2
NUMBERS = {"float32": float("-inf"), "float16": -0.5, "int1": True, "uint64": 2**64 - 1, "int64": -(2**63), "int8": -1}


def test_no_difference(tmp_path):
    make = partial(generate, lengths=(3, 6))
    report = run(Campaign(88000, COUNT, ("aot",), folder=tmp_path, timeout=120, shrink_seconds=20, make=make))
    assert not report.signatures, report.table()
    assert report.tally["aot", "ok"] == COUNT, report.table()


def test_numbers_of_every_kind():
    stores = "\n".join(f"    tl.store(out_{dtype}, {dtype})" for dtype in NUMBERS)
    outputs = [Argument(f"out_{dtype}", dtype, 3, "poison") for dtype in NUMBERS]
    numbers = [Argument(dtype, dtype, None, number) for dtype, number in NUMBERS.items()]
    parameters = ", ".join(argument.name for argument in (*outputs, *numbers))
    case = Case(1, f"@triton.jit\ndef kernel({parameters}):\n{stores}\n", (*outputs, *numbers), (1,))
    assert [outcome.kind for outcome in run_case(case, ["aot"], lambda place: None)] == ["ok", "ok"]
