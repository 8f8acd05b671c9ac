"""CTAs on a multiprocessor: by warps, CTAs, registers, shared memory."""

import pytest

from deuteron.backend.cuda.assembler.occupancy import occupancy
from deuteron.backend.cuda.target import architecture

CASES = [
    # capability, threads, registers, shared bytes -> ctas, what limits them
    (90, 256, 32, 0, 8, ("warps", "registers")),
    (90, 32, 16, 0, 32, ("CTAs",)),
    (90, 256, 255, 0, 1, ("registers",)),
    (90, 128, 168, 0, 3, ("registers",)),
    (90, 128, 32, 96 * 1024, 2, ("shared memory",)),
    (90, 128, 32, 227 * 1024, 1, ("shared memory",)),
    (86, 128, 32, 0, 12, ("warps",)),
    (89, 32, 16, 0, 24, ("CTAs",)),
    (80, 1024, 64, 0, 1, ("registers",)),
    (80, 33, 32, 0, 32, ("warps", "CTAs", "registers")),
]


@pytest.mark.parametrize(("capability", "threads", "registers", "shared", "ctas", "limited_by"), CASES)
def test_what_limits_the_ctas(capability, threads, registers, shared, ctas, limited_by):
    found = occupancy(architecture(capability).machine, threads, registers, shared)
    assert (found.ctas, found.limited_by) == (ctas, limited_by)
    assert found.warps == ctas * -(-threads // 32) <= found.max_warps
