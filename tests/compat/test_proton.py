"""`triton.profiler`: what is launched within scopes, in the file that `finalize` writes."""

import json

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron import knobs
from deuteron.compat import proton, proton_viewer
from deuteron.errors import UsageError


def say(grid, kernel, args):
    return {
        "name": f"double_{args['BLOCK']}",
        "flops32": 10**6 * args["BLOCK"],
        "bytes": 8 * args["BLOCK"],
        "text": "no number",
    }


@deuteron.jit(launch_metadata=say)
def double(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, 2 * tl.load(x_ptr + i))


@pytest.fixture
def launch(monkeypatch):
    monkeypatch.setenv("DEUTERON_TARGET", "cpu")
    yield lambda block=16: double[(1,)](np.ones(block, np.float32), BLOCK=block)
    proton._sessions.clear()
    proton._place.path = ()
    knobs.runtime.launch_enter_hook.clear()
    knobs.runtime.launch_exit_hook.clear()


def read(path):
    return json.loads(path.with_suffix(".hatchet").read_text())


def children(node):
    return {child["frame"]["name"]: child for child in node["children"]}


def test_kernels_are_below_their_scopes(tmp_path, launch):
    proton.start(str(tmp_path / "p"))
    with proton.scope("outer", {"tokens": 3}):
        launch()
        with proton.scope("inner"):
            launch()
            launch()
    launch()
    proton.finalize()
    root, devices = read(tmp_path / "p")
    outer = children(root)["outer"]
    assert root["frame"]["name"] == "ROOT" and outer["metrics"] == {"tokens": 3}
    kernel = children(children(outer)["inner"])["double"]["metrics"]
    assert kernel["count"] == 2 and kernel["time (ns)"] > 0 and kernel["device_type"] == "CPU"
    assert children(outer)["double"]["metrics"]["count"] == children(root)["double"]["metrics"]["count"] == 1
    assert devices["CPU"]["0"]["num_sms"] >= 1
    assert not knobs.runtime.launch_enter_hook and not knobs.runtime.launch_exit_hook


def test_the_hook_brings_what_the_author_says(tmp_path, launch):
    proton.start(str(tmp_path / "p"), hook="triton")
    launch()
    launch(32)
    launch(32)
    proton.finalize()
    kernels = children(read(tmp_path / "p")[0])
    assert set(kernels) == {"double_16", "double_32"}
    assert kernels["double_32"]["metrics"]["flops32"] == 64 * 10**6 and "text" not in kernels["double_32"]["metrics"]


def test_sessions_record_while_they_are_active(tmp_path, launch):
    first, second = proton.start(str(tmp_path / "a")), proton.start(str(tmp_path / "b"))
    proton.deactivate(first)
    launch()
    proton.activate()
    launch()
    proton.finalize(first)
    launch()
    proton.finalize()
    assert [children(read(tmp_path / name)[0])["double"]["metrics"]["count"] for name in "ab"] == [1, 3]
    with pytest.raises(UsageError, match=f"There is no session {second}"):
        proton.finalize(second)


def test_decorators_and_scopes_of_the_cpu(tmp_path, launch):
    @proton.scope("decorated")
    def inner():
        launch()

    @proton.profile(name=str(tmp_path / "p"))
    def outer():
        inner()
        with proton.cpu_timed_scope("timed"), proton.state("state"):
            launch()

    outer()
    inner()
    proton.finalize()
    names = children(read(tmp_path / "p")[0])
    assert children(names["decorated"])["double"]["metrics"]["count"] == 1
    assert names["timed"]["metrics"]["cpu_time (ns)(exc)"] > 0 and "double" in children(
        children(names["timed"])["state"]
    )


def test_scopes_are_left_in_their_order(launch):
    proton.enter_scope("a")
    with pytest.raises(UsageError, match=r"open are \['a'\]"):
        proton.exit_scope("b")
    proton.exit_scope()


@pytest.mark.parametrize("option", [{"data": "trace"}, {"backend": "instrumentation"}, {"context": "python"}])
def test_what_there_is_not_is_refused(launch, option):
    with pytest.raises(UsageError, match=f"Of Proton's {next(iter(option))} there is"):
        proton.start("p", **option)


def test_it_can_be_turned_off(monkeypatch, launch, tmp_path):
    monkeypatch.setenv("PROTON_DISABLE", "1")
    assert proton.start(str(tmp_path / "p")) is None
    launch()
    proton.finalize()
    assert not list(tmp_path.iterdir())


def test_the_viewer_prints_rates_and_times(tmp_path, launch, capsys):
    proton.start(str(tmp_path / "p"), hook="triton")
    with proton.scope("layer"):
        launch()
        launch(32)
    proton.finalize()
    tree, metrics = proton_viewer.parse(["gflop32/s", "gbyte/s", "avg_time/us", "time/ms"], tmp_path / "p.hatchet")
    proton_viewer.print_tree(tree, metrics)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines] == ["gflop32/s", "ROOT", "layer", "double_16", "double_32"]
    assert float(lines[1][1]) == float(lines[2][1]) > 0 and len(lines[3]) == 5
    with pytest.raises(UsageError, match="The profile has no metric 'util'"):
        proton_viewer.parse(["util"], tmp_path / "p.hatchet")
