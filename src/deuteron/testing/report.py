"""Benchmarks over a range of sizes: a table for each, as text, CSV and plot.

                n   Deuteron      NumPy
             4096       1.23       1.20
             8192       2.51       2.22

`perf_report` wraps a function that measures one place of the table; `run` fills it. The table needs nothing; a data
frame needs pandas and a plot matplotlib, which come with the extra `deuteron[plot]`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from deuteron.errors import UsageError
from deuteron.tracebacks import api_boundary


@api_boundary
class Benchmark:
    """What is measured: `x_vals` along `x_names`, and for each of them one line for every value of `line_arg`."""

    def __init__(
        self,
        x_names: Sequence[str] | str,
        x_vals: Sequence[Any],
        line_arg: str,
        line_vals: Sequence[Any],
        line_names: Sequence[str],
        plot_name: str,
        args: Mapping[str, Any],
        xlabel: str = "",
        ylabel: str = "",
        x_log: bool = False,
        y_log: bool = False,
        styles: Sequence[tuple[str, str]] | None = None,
    ):
        """`x_vals` holds one value for all of `x_names`, or a tuple with one for each."""
        self.x_names = [x_names] if isinstance(x_names, str) else list(x_names)
        self.x_vals = list(x_vals)
        self.line_arg, self.line_vals, self.line_names = line_arg, list(line_vals), list(line_names)
        self.plot_name, self.args = plot_name, dict(args)
        self.xlabel, self.ylabel, self.x_log, self.y_log = xlabel, ylabel, x_log, y_log
        self.styles = styles
        if len(self.line_vals) != len(self.line_names):
            counts = f"{len(self.line_vals)} line_vals and {len(self.line_names)} line_names"
            raise UsageError(f"benchmark '{plot_name}': {counts}: each line has a value and a name")

    def x_values(self, value: Any) -> tuple[Any, ...]:
        """The values of all x names at one place; raises UsageError where their number is another."""
        values = tuple(value) if isinstance(value, tuple | list) else (value,) * len(self.x_names)
        if len(values) != len(self.x_names):
            raise UsageError(f"benchmark '{self.plot_name}': expected {len(self.x_names)} values, got {value!r}")
        return values


class Table:
    """The numbers of one benchmark: a row for each x, the x values first, then a column for each line.

    A measurement that gives a range `(value, low, high)` fills `ranges` too.
    """

    def __init__(self, bench: Benchmark):
        self.bench = bench
        self.columns = [*bench.x_names, *(f"{n}{_unit(bench)}" for n in bench.line_names)]
        self.rows: list[list[Any]] = []
        self.ranges: list[list[tuple[float, float] | None]] = []

    def add(self, x: tuple[Any, ...], measured: Sequence[Any]) -> None:
        numbers = [m if isinstance(m, tuple | list) else (m, None, None) for m in measured]
        self.rows.append([*x, *(value for value, _, _ in numbers)])
        self.ranges.append([None if low is None else (low, high) for _, low, high in numbers])

    def line(self, index: int) -> list[Any]:
        return [row[len(self.bench.x_names) + index] for row in self.rows]

    def __str__(self) -> str:
        cells = [self.columns, *([_cell(value) for value in row] for row in self.rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.columns))]
        return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in cells)

    def write_csv(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{self.bench.plot_name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            writer.writerows(self.rows)


def _unit(bench: Benchmark) -> str:
    return f" ({bench.ylabel})" if bench.ylabel else ""


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


class Mark:
    """A measuring function together with its benchmarks."""

    def __init__(self, fn: Callable[..., Any], benchmarks: Benchmark | Sequence[Benchmark]):
        self.fn = fn
        self.benchmarks = benchmarks

    @api_boundary
    def run(
        self,
        show_plots: bool = False,
        print_data: bool = False,
        save_path: str | Path = "",
        return_df: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Measure everything; `kwargs` are given to the function.

        Args:
            show_plots: show each plot in a window. print_data: print each table.
            save_path: a folder for `<plot_name>.csv` and `.png` of each, and `results.html` with all plots.
            return_df: return pandas data frames, one for each benchmark (one alone: itself).
        """
        is_single = isinstance(self.benchmarks, Benchmark)
        tables = [self.measure(bench, kwargs) for bench in _listed(self.benchmarks)]
        for table in tables:
            if print_data:
                print(f"{table.bench.plot_name}:\n{table}")
            if save_path:
                table.write_csv(Path(save_path))
        if show_plots or save_path:
            _plot_all(tables, Path(save_path) if save_path else None, show_plots)
        if not return_df:
            return None
        frames = [_data_frame(table) for table in tables]
        return frames[0] if is_single else frames

    def measure(self, bench: Benchmark, kwargs: Mapping[str, Any]) -> Table:
        table = Table(bench)
        for place in bench.x_vals:
            x = bench.x_values(place)
            fixed = {**dict(zip(bench.x_names, x, strict=True)), **bench.args, **kwargs}
            table.add(x, [self.fn(**fixed, **{bench.line_arg: value}) for value in bench.line_vals])
        return table


@api_boundary
def perf_report(benchmarks: Benchmark | Sequence[Benchmark]) -> Callable[[Callable[..., Any]], Mark]:
    """Decorator of a function that measures one place: it takes the x names, the line argument and `args`."""
    _listed(benchmarks)
    return lambda fn: Mark(fn, benchmarks)


def _listed(benchmarks: Any) -> Sequence[Benchmark]:
    """One benchmark, or some, as a list; raises UsageError for what is neither."""
    listed = benchmarks if isinstance(benchmarks, list | tuple) else [benchmarks]
    for each in listed:
        if not isinstance(each, Benchmark):
            raise UsageError(f"perf_report takes a Benchmark(x_names=[...], ...), or a list of some, got {each!r}")
    return listed


def _plot_all(tables: Sequence[Table], folder: Path | None, show: bool) -> None:
    for table in tables:
        _plot(table, folder / f"{table.bench.plot_name}.png" if folder else None, show)
    if folder is not None:
        images = "\n".join(f'<image src="{table.bench.plot_name}.png"/>' for table in tables)
        (folder / "results.html").write_text(f"<html><body>\n{images}\n</body></html>\n")


def _plot(table: Table, path: Path | None, show: bool) -> None:
    plt = _import_for("plots", "matplotlib.pyplot")
    bench = table.bench
    x = [row[0] for row in table.rows]
    figure, axes = plt.subplots()
    for index, name in enumerate(bench.line_names):
        color, style = bench.styles[index] if bench.styles else (None, None)
        axes.plot(x, table.line(index), label=name, color=color, linestyle=style)
        ranges = [row[index] for row in table.ranges]
        if None not in ranges:
            axes.fill_between(x, [low for low, _ in ranges], [high for _, high in ranges], alpha=0.15, color=color)
    axes.legend()
    axes.set_xlabel(bench.xlabel or bench.x_names[0])
    axes.set_ylabel(bench.ylabel)
    axes.set_xscale("log" if bench.x_log else "linear")
    axes.set_yscale("log" if bench.y_log else "linear")
    if path is not None:
        figure.savefig(path)
    if show:
        plt.show()
    plt.close(figure)


def _data_frame(table: Table) -> Any:
    return _import_for("data frames", "pandas").DataFrame(table.rows, columns=table.columns)


def _import_for(what: str, module: str) -> Any:
    import importlib  # deferred with what it imports: matplotlib and pandas take most of a second

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(f"{what} need {module.partition('.')[0]}: pip install 'deuteron[plot]'") from error
