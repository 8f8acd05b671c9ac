"""Passes from text: every type of option, configurations that a command gives, and what can be wrong."""

from dataclasses import dataclass, field

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from deuteron.errors import UsageError
from deuteron.passes import by_name
from deuteron.passes.by_name import Option, options_of, parse_passes, text_of
from deuteron.passes.optimisation import Optimisation


@dataclass(frozen=True)
class Machine:
    name: str = "fast"


@dataclass(frozen=True)
class Config:
    machine: Machine = field(default_factory=Machine)
    num_warps: int = 4
    is_loud: bool = False


@dataclass(frozen=True)
class Tune(Optimisation):
    """Tunes."""

    name = "tune"

    config: Config
    max_size: int = 8
    factor: float = 1.0
    is_quick: bool = False
    mode: str = "plain"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise NotImplementedError


@dataclass(frozen=True)
class Needs(ModulePass):
    """Needs a number."""

    name = "needs"

    number: int

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise NotImplementedError


CONFIG = Config(Machine("mine"), 8)
PIPELINES = {"all": [Tune(CONFIG), Needs(1)]}


@pytest.fixture(autouse=True)
def passes(monkeypatch):
    monkeypatch.setattr(by_name, "known_passes", lambda: {"tune": Tune, "needs": Needs})


def parse(text: str, objects=(CONFIG,)):
    return parse_passes(text, PIPELINES, objects)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("tune", [Tune(CONFIG)]),
        (" needs{number=3} , tune ,", [Needs(3), Tune(CONFIG)]),
        ("all,needs{number=2}", [*PIPELINES["all"], Needs(2)]),
        ("tune{}", [Tune(CONFIG)]),
        ("tune{max-size=2 factor=0.5,mode=a.b is-quick}", [Tune(CONFIG, 2, 0.5, True, "a.b")]),
        ("tune{is-quick=false num-warps=2 is-loud=true}", [Tune(Config(Machine("mine"), 2, True))]),
    ],
)
def test_texts(text, expected):
    assert parse(text) == expected


def test_the_text_of_a_pass_makes_it():
    one = Tune(Config(Machine("mine"), 2, True), 2, 0.5, mode="a.b")
    assert text_of(one) == "tune{num-warps=2 is-loud=true max-size=2 factor=0.5 is-quick=false mode=a.b}"
    assert parse(text_of(one)) == [one]


def test_options_are_the_fields_and_those_of_the_configuration():
    assert options_of(Tune) == [
        Option("num-warps", int, "num_warps", "config"),
        Option("is-loud", bool, "is_loud", "config"),
        Option("max-size", int, "max_size"),
        Option("factor", float, "factor"),
        Option("is-quick", bool, "is_quick"),
        Option("mode", str, "mode"),
    ]


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("tuen", 1, "unknown pass 'tuen': did you mean 'tune'?"),
        ("tune,al", 6, "unknown pass 'al': did you mean 'all'?"),
        ("needs", 1, "pass 'needs' needs the option 'number'"),
        ("tune{is-quick=1}", 15, "option 'is-quick' is true or false, got '1'"),
        ("tune{factor=x}", 13, "option 'factor' is a number, got 'x'"),
        ("needs{number=-3}", 14, "option 'number' is a whole number, 0 or more, got '-3'"),
        ("tune{mode}", 6, "option 'mode' needs a value"),
        ("tune{machine=x}", 6, "unknown option of tune 'machine'"),
        ("tune{=}", 6, "expected an option"),
        ("tune needs", 1, "expected a pass"),
        ("tune,,tune", 6, "expected a pass"),
        ("all{x}", 1, "'all' is a pipeline, which has no options of its own"),
    ],
)
def test_mistakes_have_their_place(text, column, message):
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert message in caught.value.message and caught.value.location.column == column
    assert f"\n    {text}\n    {' ' * (column - 1)}^" in str(caught.value)


def test_a_configuration_that_is_not_there():
    with pytest.raises(UsageError, match="pass 'tune' needs a Config: give a target that has one"):
        parse("tune", ())


def test_passes_left_out():
    assert by_name.without(PIPELINES["all"], ["tune"]) == [Needs(1)]
    with pytest.raises(UsageError, match="pass 'needs' cannot be disabled"):
        by_name.without(PIPELINES["all"], ["needs"])
