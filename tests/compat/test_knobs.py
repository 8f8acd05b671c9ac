"""triton.knobs: settings under Triton's names."""

import pytest

from deuteron.compat.knobs import knobs
from deuteron.options import settings


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    monkeypatch.setenv("DEUTERON_INTERPRET", "0")
    monkeypatch.setenv("DEUTERON_DUMP_DIR", "")


def test_a_knob_sets_the_setting():
    knobs["runtime"].interpret = True
    assert settings.interpret and knobs["runtime"].interpret
    knobs["runtime"].interpret = False
    assert not settings.interpret


def test_a_path(tmp_path):
    assert knobs["cache"].dump_dir is None
    knobs["cache"].dump_dir = tmp_path
    assert settings.dump_dir == tmp_path


def test_a_scope_undoes_what_is_set_within():
    with knobs["runtime"].scope():
        knobs["runtime"].interpret = True
        knobs["runtime"].debug = True
        assert settings.interpret and knobs["runtime"].debug
    assert not settings.interpret and not knobs["runtime"].debug


def test_none_takes_a_setting_away(monkeypatch):
    monkeypatch.setenv("DEUTERON_CACHE_DIR", "/somewhere")
    knobs["cache"].dir = None
    assert knobs["cache"].dir != "/somewhere"


def test_a_knob_that_has_no_use_here_is_kept():
    with knobs["nvidia"].scope():
        knobs["nvidia"].disable_ptxas_opt = True
        assert knobs["nvidia"].disable_ptxas_opt
    with pytest.raises(AttributeError, match="no knob 'disable_ptxas_opt'"):
        knobs["nvidia"].disable_ptxas_opt  # noqa: B018
