"""The executors that each case runs on; in `make test` one GPU of two."""

from __future__ import annotations

import pytest

GPUS = ("cuda:80", "cuda:90")
INTERPRETER = pytest.param("interpreter", marks=pytest.mark.always)
EXECUTORS = (INTERPRETER, "cpu", *(pytest.param(gpu, marks=pytest.mark.lot(n, 2)) for n, gpu in enumerate(GPUS)))


@pytest.fixture(params=EXECUTORS)
def executor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Launches run on the executor of this name; those for a GPU on the emulator."""
    is_gpu = request.param.startswith("cuda")
    monkeypatch.setenv("DEUTERON_INTERPRET", "1" if request.param == "interpreter" else "0")
    monkeypatch.setenv("DEUTERON_EMULATE", "1" if is_gpu else "0")
    monkeypatch.setenv("DEUTERON_TARGET", request.param if is_gpu else "cpu")
    return request.param
