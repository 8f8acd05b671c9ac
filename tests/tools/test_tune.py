"""`deuteron tune`: what is measured is shown, and merged."""

import json

import pytest
from click.testing import CliRunner

from deuteron.runtime.autotuning.tuned_file import Choice, Outcome, merge_into, read_tuned
from deuteron.tools.main import main


def choice(n, **ms):
    outcomes = {json.dumps({"BLOCK": int(name[1:])}): outcome for name, outcome in ms.items()}
    return Choice("cpu:znver3, 2 threads", "6f1c", "0.1.0 91ab", {"n": n}, {"x": "fp32"}, outcomes)


@pytest.fixture
def folder(tmp_path):
    outcomes = {"b16": Outcome([0.5, 0.4, 0.6]), "b32": Outcome([0.75]), "b64": Outcome(failure="it spills 8 bytes")}
    merge_into(tmp_path / "a.json", "m.scale", [choice(64, **outcomes), choice(128, b16=Outcome(9.0, True))])
    return tmp_path


def run(*arguments, status=0):
    result = CliRunner().invoke(main, ["tune", *map(str, arguments)])
    assert result.exit_code == status, result.output
    return result.output


def test_the_fastest_of_each_choice(folder):
    title, first, second = (line for line in run("show", folder).splitlines() if "m.scale" in line or "n: " in line)
    assert title.strip() == "m.scale"
    assert "n: 64" in first and "BLOCK: 16" in first and "0.5" in first
    assert "the next of 2: 1.50 times, 1 failed" in first and "n: 128" in second


def test_all_timings_with_reasons(folder):
    printed = run("show", folder / "a.json", "--all")
    assert "it spills 8 bytes" in printed and "stopped early" in printed and printed.count("BLOCK:") == 4


def test_timings_as_json(folder):
    ((tuned),) = json.loads(run("show", folder, "--json"))
    assert tuned["kernel"] == "m.scale" and len(tuned["choices"]) == 2


def test_merging(folder):
    merge_into(folder / "b.json", "m.scale", [choice(64, b16=Outcome(0.25)), choice(256, b16=Outcome(1.0))])
    run("merge", folder / "a.json", folder / "b.json")
    merged = read_tuned(folder / "a.json").choices
    assert sorted(found.key["n"] for found in merged) == [64, 128, 256]
    assert {found.outcomes[found.best].time for found in merged} == {0.25, 9.0, 1.0}


def test_what_cannot_be_merged(folder):
    merge_into(folder / "b.json", "m.other", [choice(64, b16=Outcome(0.25))])
    assert "is of kernel m.other, and" in run("merge", folder / "a.json", folder / "b.json", status=1)


def test_where_nothing_is(tmp_path):
    assert "there are no timings in" in run("show", tmp_path, status=1)
    assert "cannot read the timings" in run("show", tmp_path / "none.json", status=1)
