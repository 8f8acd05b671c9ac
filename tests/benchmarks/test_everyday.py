"""Kernels of the GPU benchmark, everyday and as projects have them, at small sizes on the CPU; needs torch."""

import pytest

from benchmarks.gpu import everyday, projects

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

FAMILIES = (*everyday.FAMILIES, *projects.FAMILIES)
SMALL = {case.name: case for family in FAMILIES for case in family.cases(is_small=True)}


@pytest.mark.parametrize("name", SMALL)
def test_it_is_right(name):
    from benchmarks.gpu.peers import load_peer

    case = SMALL[name]
    problem = case.make()
    problem.poison()
    problem.prepare()
    load_peer("deuteron").launcher(case, case.configs[0], problem)()
    error, is_right = case.error(problem)
    assert is_right, f"relative error {error:.1e}"


def test_names_are_different():
    names = [case.name for family in FAMILIES for case in family.cases()]
    assert len(set(names)) == len(names)
