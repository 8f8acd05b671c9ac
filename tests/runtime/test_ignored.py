"""What is given and can have no effect is an error or a warning: names, masks, attributes, variables, knobs."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron import knobs
from deuteron.compiler import ASTSource
from deuteron.errors import LaunchError, UsageError
from deuteron.settings import PREFIX, VARIABLES, settings, truth
from deuteron.testing import Benchmark


def body(x_ptr, n, B: tl.constexpr):
    offsets = tl.arange(0, B)
    tl.store(x_ptr + offsets, offsets, mask=offsets < n)


kernel = deuteron.jit(body)


@pytest.mark.parametrize("option", ["do_not_specialize", "do_not_specialize_on_alignment"])
@pytest.mark.parametrize("listed", ["nn", 3, -1])
def test_parameters_that_there_are_not(option, listed):
    with pytest.warns(
        UserWarning, match=f"{option} of 'body' lists {listed!r}, which is ignored: .* x_ptr, n, B"
    ) as told:
        deuteron.jit(**{option: ["x_ptr", 1, listed]})(body)
    assert [warning.filename for warning in told] == [__file__]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"do_not_specialize": "n"},
            r"do_not_specialize of 'body' is a list of names. Write do_not_specialize=\['n'\]",
        ),
        ({"repr": "name"}, "repr= of 'body' is a function that gives a name, got 'name'"),
        ({"launch_metadata": 3}, "launch_metadata of 'body' is a function, got 3"),
        ({"debug": "no"}, "debug of 'body' is True or False, got 'no'"),
    ],
)
def test_options_of_other_kinds(options, message):
    with pytest.raises(UsageError, match=message):
        deuteron.jit(**options)(body)


def test_masks_of_masked_arrays():
    x = np.ma.masked_array(np.zeros(8, np.int32), mask=[True] * 8)
    with pytest.raises(LaunchError, match="argument 'x_ptr' of kernel 'body': a kernel sees no mask of a masked array"):
        kernel[(1,)](x, 8, B=8)
    kernel[(1,)](x.data, 8, B=8)
    assert list(x.data) == list(range(8))


def test_attributes_of_arguments():
    types = {"x_ptr": "*i32", "n": "i32", "B": "constexpr"}
    with pytest.raises(UsageError, match="'x_ptr' has no attribute 'tt.divisibilty'. Did you mean 'tt.divisibility'?"):
        ASTSource(kernel, types, {"B": 8}, {(0,): [["tt.divisibilty", 16]]})
    assert ASTSource(kernel, types, {"B": 8}, {(0,): [["tt.pointer_range", 32]]})


def test_what_autotuners_are_given():
    configs = [deuteron.Config({"B": 8}), deuteron.Config({"B": 16, "BB": 3})]
    with pytest.warns(UserWarning, match="no parameter 'BB', for which no .* can be launched"):
        deuteron.autotune(configs, key=[])(kernel)
    with pytest.warns(UserWarning, match="top_k is ignored: it takes a perf_model"):
        deuteron.autotune(configs[:1], key=[], prune_configs_by={"top_k": 1})(kernel)


def test_a_key_that_is_an_array_is_its_type():
    configs = [deuteron.Config({"B": 8}), deuteron.Config({"B": 16})]
    tuned = deuteron.autotune(configs, key=["x_ptr"], warmup=1, rep=1)(kernel)
    x = np.zeros(16, np.int32)
    tuned[(1,)](x, 8)
    tuned[(1,)](x.copy(), 8)
    assert list(x[:8]) == list(range(8)) and len(tuned.cache) == 1


def test_lines_of_a_benchmark_without_a_name():
    with pytest.raises(UsageError, match="benchmark 'b': 2 line_vals and 1 line_names"):
        Benchmark(["n"], [1], "line", ["a", "b"], ["A"], "b", {})


def test_knobs_that_there_are_not():
    with pytest.warns(UserWarning, match="no knob 'interpet': it is ignored. Did you mean 'interpret'?"):
        knobs.runtime.interpet = True
    del knobs.runtime.interpet


def test_texts_that_mean_neither_yes_nor_no(monkeypatch):
    assert truth("Yes", "V") and truth("on", "V") and not truth("OFF", "V") and not truth("", "V")
    monkeypatch.setenv("DEUTERON_INTERPRET", "flase")
    with pytest.raises(UsageError, match="DEUTERON_INTERPRET must be 1 or 0, got 'flase'"):
        kernel[(1,)](np.zeros(8, np.int32), 8, B=8)
    monkeypatch.setenv("DEUTERON_INTERPRET", "")
    monkeypatch.setenv("TRITON_DEBUG", "perhaps")
    with pytest.raises(UsageError, match="TRITON_DEBUG must be 1 or 0, got 'perhaps'"):
        kernel[(1,)](np.zeros(8, np.int32), 8, B=8)


def test_a_folder_of_overrides_that_is_none(monkeypatch, tmp_path):
    monkeypatch.setenv("DEUTERON_OVERRIDE_DIR", str(tmp_path / "none"))
    with pytest.raises(UsageError, match="DEUTERON_OVERRIDE_DIR must be a folder, got '.*none', which is none"):
        deuteron.compile(ASTSource(kernel, {"x_ptr": "*i32", "n": "i32", "B": "constexpr"}, {"B": 8}))
    (tmp_path / "none").mkdir()
    assert settings.override_dir == tmp_path / "none"


def test_variables_that_there_are_not(tmp_path):
    """Said once, by the first compile."""
    program = "import deuteron, k, numpy as np\nfor n in (8, 16): k.body[(1,)](np.zeros(16, np.int32), n, B=n)"
    (tmp_path / "k.py").write_text(
        "import deuteron, deuteron.language as tl\n@deuteron.jit\ndef body(x_ptr, n, B: tl.constexpr):\n"
        "    tl.store(x_ptr + tl.arange(0, B), n)\n"
    )
    paths = f"{Path(deuteron.__file__).parents[1]}:{tmp_path}"
    environment = {**os.environ, "PYTHONPATH": paths, "DEUTERON_NUM_THREAD": "2", "DEUTERON_TEST_SEED": "1"}
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert found.returncode == 0, found.stderr
    message = "Deuteron knows no variable DEUTERON_NUM_THREAD, which is ignored. Did you mean 'NUM_THREADS'?"
    assert found.stderr.count(message) == 1 and found.stderr.count("knows no variable") == 1


def test_every_variable_that_is_read_is_known():
    text = (Path(deuteron.__file__).parent / "settings.py").read_text()
    for name in VARIABLES:
        assert f'"{PREFIX}{name}"' in text, name
    documented = {line.split()[0].strip('":') for line in text.splitlines() if line.strip().startswith('"""DEUTERON_')}
    assert documented and documented <= {f"{PREFIX}{name}" for name in VARIABLES}
