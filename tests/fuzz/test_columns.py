"""Programs of columns. `make fuzz ARGS=--columns` runs many more."""

from xdsl.context import Context

from deuteron.backend import get_backend
from deuteron.compiler.driver import resolve_target
from deuteron.passes.tile.group_programs import GroupPrograms
from tests.fuzz.campaign import Campaign, run
from tests.fuzz.columns import columns
from tests.fuzz.validity import lowered

COUNT = 3


def test_no_difference(tmp_path):
    report = run(Campaign(0, COUNT, ("cpu",), folder=tmp_path, timeout=120, shrink_seconds=20, make=columns))
    assert not report.signatures, report.table()
    assert report.tally["cpu", "ok"] == COUNT, report.table()


def test_some_run_in_step():
    target = resolve_target("cpu")
    backend = get_backend(target)
    passes = backend.pipelines(target, backend.make_options({}))["tile"]
    module = lowered(columns(0))
    for one in passes[: [one.name for one in passes].index(GroupPrograms.name)]:
        one.apply(Context(), module)
    before = str(module)
    GroupPrograms().apply(Context(), module)
    assert str(module) != before
