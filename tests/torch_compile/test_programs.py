"""Programs by torch.compile for the CPU, with Deuteron in the place of Triton, beside eager mode in float64."""

import pytest

pytest.importorskip("torch")

import torch  # noqa: E402
from torch._inductor import config  # noqa: E402
from torch_compile import programs  # noqa: E402, F401
from torch_compile.declaration import ALL  # noqa: E402
from torch_compile.running import check  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module", autouse=True)
def compiled_here(tmp_path_factory: pytest.TempPathFactory):
    """Nothing is taken from a cache, and no C++ compiler is needed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("inductor")))
        patch.setattr(config.cpp, "cxx", ("no-compiler-is-needed",))
        patch.setattr(config, "autotune_num_choices_displayed", 0)
        yield


@pytest.mark.parametrize("name", ALL)
def test_program_gives_what_eager_mode_gives(name: str, seed: int):
    check(ALL[name], seed)


def test_there_are_many_programs():
    assert len(ALL) >= 120
    assert torch.__version__
