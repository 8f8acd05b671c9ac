"""Knobs as they are where nothing was set, for a test's time."""

import os

from deuteron import knobs
from deuteron.compat.internal_testing import fresh_knobs_functions


def test_what_is_set_is_taken_back_and_set_again(monkeypatch):
    monkeypatch.setenv("TRITON_KERNEL_DUMP", "1")
    monkeypatch.setenv("DEUTERON_CACHE_DIR", "/somewhere")
    monkeypatch.setattr(knobs, "propagate_env", False)
    with knobs.runtime.scope():
        knobs.runtime.debug = True
        fresh, reset = fresh_knobs_functions()
        assert fresh() is knobs
        assert not knobs.runtime.debug and not knobs.compilation.dump_ir and knobs.cache.dir != "/somewhere"
        knobs.language.default_fp_fusion = False
        assert os.environ["TRITON_DEFAULT_FP_FUSION"] == "0"
        reset()
        assert knobs.runtime.debug and knobs.compilation.dump_ir and knobs.cache.dir == "/somewhere"
        assert knobs.language.default_fp_fusion and "TRITON_DEFAULT_FP_FUSION" not in os.environ
        assert not knobs.propagate_env


def test_groups_that_are_skipped_stay(monkeypatch):
    monkeypatch.setenv("DEUTERON_CACHE_DIR", "/somewhere")
    fresh, reset = fresh_knobs_functions({"cache"})
    assert fresh().cache.dir == "/somewhere"
    reset()
