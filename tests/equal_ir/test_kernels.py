"""Kernels of tests/kernels, some of their IR rewritten between passes, store what they store as they are."""

import zlib

import pytest

from equal_ir.draws import REWRITES, drawn
from equal_ir.launches import recorded
from tests.kernels.families import CASES


@pytest.mark.share(12)
@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
@pytest.mark.parametrize("name", CASES)
def test_stores_the_same(name, target):
    seed = zlib.crc32(f"{name} {target}".encode())
    for launch in recorded(name, target, 0):
        outcome = launch.outcome(drawn(seed, launch.passes), seed)
        assert not outcome.fault, outcome


def test_each_rewrite_is_done_and_what_is_stored_is_compared():
    launch, *_ = recorded("cross_entropy", "cuda:90", 0)
    names = list(REWRITES)
    for some in (names[0::4], names[1::4], names[2::4], names[3::4]):
        outcome = launch.outcome({-1: [REWRITES[name] for name in some] * 3}, 0)
        assert {done.partition(",")[0] for done in outcome.done} == {*some}
        assert not outcome.fault, outcome
    launch.stored[-1].flat[0] += 1
    assert "off by" in launch.outcome({}, 0).fault
