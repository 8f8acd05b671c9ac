"""The executor `triton`, with our own frontend in Triton's place: what they take otherwise is found, and only that."""

import json

import pytest

from deuteron.compiler import IRSource
from deuteron.errors import UsageError
from deuteron.ir.text import print_module
from tests.fuzz import executors, triton
from tests.fuzz.case import Argument, Case
from tests.fuzz.executors import run_case
from tests.fuzz.generator import generate

SOURCE = """@triton.jit
def kernel(x_ptr, out_ptr):
    i = tl.arange(0, 8)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, {value})
"""


def case(value: str) -> Case:
    arrays = Argument("x_ptr", "int32", 8, "arange"), Argument("out_ptr", "int32", 8, "poison")
    return Case(0, SOURCE.format(value=value), arrays, (1,))


def kinds(monkeypatch: pytest.MonkeyPatch, ours: str, theirs: str) -> list[str]:
    """Of the outcomes, where Triton takes what is stored for something else."""

    def read_otherwise(given: Case, source: object) -> IRSource:
        return IRSource.from_text(print_module(executors._lower(executors.source_of(case(theirs)))), "ttir")

    monkeypatch.setattr(executors, "triton_source", read_otherwise)
    return [outcome.kind for outcome in run_case(case(ours), ["triton"], announce=lambda place: None)]


@pytest.mark.parametrize(
    ("ours", "theirs", "kind"),
    [
        ("x + 1", "1 + x", "ok"),
        ("x + 1", "x + 2", "wrong"),
        ("x // x", "tl.where(x == 0, 5, 1)", "ok"),  # 0 // 0 is not defined in MLIR
        ("x // x", "tl.where(x == 0, 1, 2)", "wrong"),
        ("x << x * 8", "tl.where(x < 4, x << x * 8, 3)", "ok"),
    ],
)
def test_what_frontends_take_otherwise_is_found(monkeypatch, ours, theirs, kind):
    assert kinds(monkeypatch, ours, theirs) == ["ok", kind]


def test_what_triton_refuses_is_no_finding(monkeypatch):
    def refuse(given: Case, source: object) -> IRSource:
        raise UsageError("Triton: no")

    monkeypatch.setattr(executors, "triton_source", refuse)
    outcomes = list(run_case(case("x"), ["triton"], announce=lambda place: None))
    assert [outcome.kind for outcome in outcomes] == ["ok", "refused"]


def test_a_text_that_is_refused_here_is_a_finding(monkeypatch):
    monkeypatch.setattr(executors, "triton_source", lambda case, source: IRSource.from_text("module { what }", "ttir"))
    outcomes = list(run_case(case("x"), ["triton"], announce=lambda place: None))
    assert [outcome.kind for outcome in outcomes] == ["ok", "error"]


def test_a_request_names_the_program_and_its_types(tmp_path):
    drawn = generate(3, **triton.OF_BOTH)
    request = json.loads(json.dumps(triton.request_of(drawn, executors.source_of(drawn), tmp_path)))
    assert list(request["signature"]) == [argument.name for argument in drawn.arguments]
    assert "def kernel(" in (tmp_path / "kernel.py").read_text()
