"""The stage loop: order, times, texts on demand, dumps, overrides, errors."""

import pytest

from deuteron.backend.stage import Made, Stage, Unit
from deuteron.compiler.stages import Walk, find_stage
from deuteron.errors import AssemblerError, CompilationError, InternalError, IRError, Location, UsageError
from deuteron.options import Target


def make_walk(backend, folder=None, stages=None, name="add"):
    unit = Unit(name, "add", Target("fake", 0), backend.make_options({}))
    return Walk(stages or backend.stages, unit, folder)


def failing(error):
    def run(product, unit):
        raise error

    return (Stage("one", None, lambda product, unit: Made(product)), Stage("two", "one", run))


def test_stages_run_in_order_and_those_on_demand_do_not(backend):
    walk = make_walk(backend)
    walk.begin(lambda: " add it ")
    walk.run()
    assert backend.calls == ["one", "two", "three"]
    assert walk.products["three"] == b"ADD IT"


def test_facts_of_a_stage_are_there_for_those_after_it(backend):
    stages = (
        Stage("one", None, lambda product, unit: Made(product, {"shared": 64})),
        Stage("two", "one", lambda product, unit: Made(product, {"scratch_bytes": 2 * unit.facts.shared})),
    )
    walk = make_walk(backend, stages=stages)
    begun = walk.unit
    walk.begin(lambda: "add")
    walk.run()
    found = walk.unit.metadata({})
    assert (found.shared, found.scratch_bytes) == (64, 128)
    assert begun.facts.shared == 0, "nothing that a stage was given has changed"


def test_a_fact_of_an_unknown_name_is_a_defect(backend):
    walk = make_walk(backend, stages=(Stage("one", None, lambda product, unit: Made(product, {"scratch": 1})),))
    walk.begin(lambda: "add")
    with pytest.raises(InternalError, match="scratch"):
        walk.run()


def test_every_stage_that_ran_is_timed(backend):
    walk = make_walk(backend)
    walk.begin(lambda: "add")
    walk.run()
    assert list(walk.times) == ["source", "one", "two", "three"]
    assert all(seconds >= 0 for seconds in walk.times.values())


def test_starting_at_a_text_skips_what_comes_before(backend):
    walk = make_walk(backend)
    walk.begin_at(find_stage(backend.stages, "two"), "TEXT", "add.two")
    walk.run()
    assert backend.calls == ["three"]
    assert walk.products["three"] == b"TEXT"


def test_a_stage_that_cannot_be_the_input_is_refused(backend):
    with pytest.raises(UsageError, match=r"cannot start from '.three': it can from .one, .two"):
        find_stage(backend.stages, "three")


def test_a_dump_holds_every_stage(backend, tmp_path):
    walk = make_walk(backend, tmp_path / "dump")
    walk.begin(lambda: "add")
    walk.run()
    found = {path.name: path.read_bytes() for path in (tmp_path / "dump").iterdir()}
    assert set(found) == {"add.one", "add.two", "add.list", "add.three"}
    assert found["add.one"] == b"add" and found["add.two"].endswith(b"}\nADD")


def test_a_dump_that_cannot_be_written_is_told_once(backend, tmp_path):
    (tmp_path / "taken").write_text("a file")
    walk = make_walk(backend, tmp_path / "taken" / "dump")
    walk.begin(lambda: "add")
    with pytest.warns(RuntimeWarning, match="stages are not dumped: cannot write '.*taken.*': Not a directory") as told:
        walk.run()
    assert len(told) == 1


def test_a_dump_into_a_full_folder_names_the_file(backend, tmp_path):
    (tmp_path / "add.one").symlink_to("/dev/full")
    walk = make_walk(backend, tmp_path)
    walk.begin(lambda: "add")
    with pytest.warns(RuntimeWarning, match="cannot write '.*add.one': No space left on device"):
        walk.run()


def test_an_override_replaces_what_the_stage_made(backend, tmp_path, monkeypatch):
    monkeypatch.setenv("DEUTERON_OVERRIDE_DIR", str(tmp_path))
    (tmp_path / "add.two").write_text(f"# deuteron kernel {make_walk(backend).unit.metadata({}).to_json()}\nmine")
    walk = make_walk(backend)
    walk.begin(lambda: "add")
    walk.run()
    assert walk.products["three"] == b"mine"


def test_an_override_that_does_not_parse_names_its_file(backend, tmp_path, monkeypatch):
    monkeypatch.setenv("DEUTERON_OVERRIDE_DIR", str(tmp_path))
    (tmp_path / "add.two").write_text("bad")
    walk = make_walk(backend)
    walk.begin(lambda: "add")
    with pytest.raises(IRError, match="add.two"):
        walk.run()


@pytest.mark.parametrize("error", [CompilationError("shapes differ", Location("k.py", 3)), UsageError("no")])
def test_errors_of_the_user_pass_through(backend, error):
    walk = make_walk(backend, stages=failing(error))
    walk.begin(lambda: "text")
    with pytest.raises(type(error)) as caught:
        walk.run()
    assert caught.value is error


def test_a_failure_names_stage_kernel_and_the_dumped_input(backend, tmp_path):
    walk = make_walk(backend, tmp_path, failing(KeyError("tt.load")))
    walk.begin(lambda: "the input")
    with pytest.raises(InternalError, match="stage 'two' of kernel 'add': KeyError: 'tt.load'") as caught:
        walk.run()
    assert (tmp_path / "add.failed-two").read_text() == "the input"
    assert str(tmp_path / "add.failed-two") in caught.value.message
    assert isinstance(caught.value.__cause__, KeyError)


def test_an_internal_error_is_wrapped_once_and_keeps_its_place(backend, tmp_path):
    inner = InternalError("tt.dot is not lowered", Location("k.py", 9, 5))
    walk = make_walk(backend, tmp_path, failing(inner))
    walk.begin(lambda: "text")
    with pytest.raises(InternalError) as caught:
        walk.run()
    assert caught.value.location == Location("k.py", 9, 5)
    assert caught.value.message.count("Deuteron failed") == 1 and "tt.dot is not lowered" in caught.value.message


def test_the_kind_of_an_internal_error_is_kept(backend, tmp_path):
    walk = make_walk(backend, tmp_path, failing(AssemblerError("no such instruction")))
    walk.begin(lambda: "text")
    with pytest.raises(AssemblerError, match="stage 'two' of kernel 'add': no such instruction"):
        walk.run()


def test_a_failure_of_the_first_stage_dumps_what_it_was_given(backend, tmp_path):
    stages = (Stage("one", None, lambda product, unit: 1 // 0),)
    walk = make_walk(backend, tmp_path, stages)
    walk.begin(lambda: "from the frontend")
    with pytest.raises(InternalError, match="stage 'one'"):
        walk.run()
    assert (tmp_path / "add.failed-one").read_text() == "from the frontend"


def test_a_failure_of_the_frontend_is_wrapped_too(backend):
    with pytest.raises(InternalError, match="stage 'source' of kernel 'add': ZeroDivisionError"):
        make_walk(backend).begin(lambda: 1 // 0)


def test_a_kernel_name_from_text_stays_in_the_dump_folder(backend, tmp_path):
    walk = make_walk(backend, tmp_path / "dump", name="../../escaped")
    walk.begin(lambda: "add")
    walk.run()
    assert {path.parent.name for path in tmp_path.rglob("*.one")} == {"dump"}
