"""perf_report: tables, files, data frames, plots."""

import sys

import pytest

from deuteron.errors import UsageError
from deuteron.testing import Benchmark, perf_report

COMMON = {"line_arg": "provider", "line_vals": ["a", "b"], "line_names": ["First", "Second"], "args": {"scale": 10}}


def measure(n, provider, scale):
    return n * scale + (provider == "b")


def make(fn=measure, **options):
    bench = Benchmark(**{"x_names": ["n"], "x_vals": [1, 2], "plot_name": "numbers", **COMMON, **options})
    return perf_report(bench)(fn)


def test_the_table_is_printed(capsys):
    make().run(print_data=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "numbers:"
    assert [line.split() for line in lines[1:]] == [["n", "First", "Second"], ["1", "10", "11"], ["2", "20", "21"]]


def test_csv(tmp_path, monkeypatch):
    """It is written, whether or not there is matplotlib for the plot."""
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(UsageError, match="plots need matplotlib"):
        make(ylabel="GB/s").run(save_path=tmp_path / "new")
    assert (tmp_path / "new" / "numbers.csv").read_text().splitlines() == [
        "n,First (GB/s),Second (GB/s)",
        "1,10,11",
        "2,20,21",
    ]


@pytest.mark.parametrize(("x_vals", "first"), [([(3, 4)], [3, 4]), ([5], [5, 5])])
def test_several_x_names(x_vals, first):
    mark = make(lambda m, n, provider, scale: m * n, x_names=["m", "n"], x_vals=x_vals)
    table = mark.measure(mark.benchmarks, {})
    assert table.columns == ["m", "n", "First", "Second"]
    assert table.rows == [[*first, first[0] * first[1], first[0] * first[1]]]


def test_a_wrong_number_of_x_values():
    with pytest.raises(UsageError, match="benchmark 'numbers': expected 2 values, got"):
        make(x_names=["m", "n"], x_vals=[(1, 2, 3)]).run()


def test_ranges_are_kept_beside_the_values():
    mark = make(lambda n, provider, scale: (2.0, 1.0, 3.0))
    table = mark.measure(mark.benchmarks, {})
    assert table.rows[0] == [1, 2.0, 2.0] and table.ranges[0] == [(1.0, 3.0)] * 2


def test_further_arguments_reach_the_function():
    make(lambda n, provider, scale, extra: extra).run(extra=5)


def test_data_frames():
    pytest.importorskip("pandas")
    frame = make().run(return_df=True)
    assert list(frame["Second"]) == [11, 21]
    [frame] = perf_report([make().benchmarks])(measure).run(return_df=True)
    assert list(frame["n"]) == [1, 2]


def test_plots(tmp_path):
    pytest.importorskip("matplotlib").use("agg")
    make(lambda n, provider, scale: (2.0, 1.0, 3.0), styles=[("red", "-"), ("blue", "--")], x_log=True).run(
        save_path=str(tmp_path)
    )
    assert (tmp_path / "numbers.png").read_bytes()[:4] == b"\x89PNG"
    assert "numbers.png" in (tmp_path / "results.html").read_text()


@pytest.mark.parametrize(
    ("module", "options"), [("matplotlib.pyplot", {"show_plots": True}), ("pandas", {"return_df": True})]
)
def test_a_missing_extra_says_how_to_get_it(monkeypatch, module, options):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError, match=r"pip install 'deuteron\[plot\]'"):
        make().run(**options)
