"""Programs that are written another way. `make fuzz ARGS=--rewritten` runs many more."""

import pytest

from tests.fuzz.campaign import Campaign, run
from tests.fuzz.case import Argument, Case
from tests.fuzz.executors import run_case
from tests.fuzz.rewrites import rewrite
from tests.fuzz.rewrites.same_values import FUNCTIONS, HEAD, MAPPED, SCRATCH_BYTES

SEED, COUNT = 1000, 2
DTYPES = ("int8", "uint8", "int16", "int32", "uint32", "int64", "float16", "bfloat16", "float32", "float64", "float8e5")


def test_no_difference(tmp_path):
    report = run(Campaign(SEED, COUNT, ("cpu",), folder=tmp_path, timeout=120, shrink_seconds=20, make=rewrite))
    assert not report.signatures, report.table()
    assert report.tally["original", "ok"] == COUNT, report.table()


def test_a_seed_gives_one_program():
    case = rewrite(1)
    assert case == rewrite(1)
    assert case.original and case.source != case.original.source


@pytest.mark.share(11)
@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_give_back_what_they_are_given(dtype):
    calls = [f"tl.store(out + {64 * n} + i, {name}(v, two, scratch))" for n, name in enumerate(FUNCTIONS)]
    plain = [f"tl.store(out + {64 * n} + i, v)" for n in range(len(FUNCTIONS))]
    x, out = Argument("x", dtype, 64, "special", 3), Argument("out", dtype, 64 * len(FUNCTIONS), "poison")
    original = Case(1, _kernel("x, out", plain), (x, out), (1,))
    more = Argument("two", "int32", None, 2), Argument("scratch", "int64", SCRATCH_BYTES // 8, "zeros")
    source = "\n\n".join([HEAD, MAPPED, *FUNCTIONS.values(), _kernel("x, out, two, scratch", calls)])
    case = Case(1, source, (x, out, *more), (1,), original=original)
    outcomes = list(run_case(case, ["cpu"], announce=lambda place: None, runs=2))
    assert [(o.executor, o.kind) for o in outcomes] == [("interpreter", "ok"), ("original", "ok"), ("cpu", "ok")], (
        outcomes
    )


def _kernel(parameters: str, lines: list[str]) -> str:
    body = "\n    ".join(["i = tl.arange(0, 64)", "v = tl.load(x + i)", *lines])
    return f"@triton.jit\ndef kernel({parameters}):\n    {body}\n"
