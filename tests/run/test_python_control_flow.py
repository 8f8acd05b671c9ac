"""Random control flow gives what CPython gives for the same text."""

import importlib.util

import numpy as np
import pytest

from tests.run.control_flow_programs import MAX_FLOATS, ControlFlowProgram, run_by_python

HEADER = "import deuteron as triton\nimport deuteron.language as tl\n\n\n"


def check_program(seed: int, folder) -> None:
    source = ControlFlowProgram(seed).source
    path = folder / f"program{seed}.py"
    path.write_text(HEADER + source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for n, m in ((2, 3), (0, 5), (5, 1)):
        expected, got = ((np.full(2, -7, np.int32), np.full(MAX_FLOATS, -7, np.float32)) for _ in range(2))
        run_by_python(source, *expected, n, m)
        module.kernel[(1,)](*got, n, m)
        for ours, theirs in zip(got, expected, strict=True):  # of floats the bits: zeros have signs
            message = f"seed {seed}, n = {n}, m = {m}\n{source}"
            np.testing.assert_array_equal(ours.view(np.int32), theirs.view(np.int32), message)


@pytest.mark.parametrize("seed", range(3))
def test_as_python_does(seed, tmp_path):
    check_program(seed, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3, 100))
def test_as_python_does_in_many_programs(seed, tmp_path):
    check_program(seed, tmp_path)
