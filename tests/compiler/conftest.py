"""A backend with three stages that needs no compiler, and a cache directory for each test."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from deuteron.backend.metadata import make_param
from deuteron.backend.stage import Made, Stage
from deuteron.errors import IRError


@dataclass(frozen=True)
class FakeOptions:
    num_warps: int = 4


def parse(text: str, file: str) -> str:
    if text.startswith("bad"):
        raise IRError(f"bad text in {file}")
    return text


class FakeBackend:
    """`one` is text, `two` the upper-cased text with a metadata comment, `list` its length on demand, `three` bytes."""

    name = "fake"
    options_class = FakeOptions

    def __init__(self):
        self.calls = []
        self.stages = (
            Stage("one", None, self.record("one", str.strip), parse=parse, describe=self.describe),
            Stage("two", "one", self.record("two", str.upper), parse=parse, comment="#"),
            Stage("list", "two", self.record("list", lambda text: f"{len(text)} characters"), on_demand=True),
            Stage("three", "two", self.record("three", str.encode)),
        )

    def record(self, name, function):
        def run(product, unit):
            self.calls.append(name)
            return Made(function(product), {"scratch_bytes": 64})

        return run

    @staticmethod
    def describe(text):
        return text.split()[0], (make_param("x", "*fp32", 16), make_param("n", "i32"))

    def make_options(self, given):
        return FakeOptions(**given)

    def check(self, target, options):
        pass

    def fingerprint(self, target):
        return "fake cpu"

    def load(self, texts, metadata):
        return lambda grid, values: self.calls.append((texts["three"], grid, tuple(values)))


@pytest.fixture
def backend():
    return FakeBackend()


@pytest.fixture(autouse=True)
def environment(tmp_path, monkeypatch):
    """A cache of its own for each test, and none of the user's settings."""
    for name in ("DUMP_DIR", "OVERRIDE_DIR", "ALWAYS_COMPILE", "TARGET", "INTERPRET"):
        monkeypatch.delenv(f"DEUTERON_{name}", raising=False)
    monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path
