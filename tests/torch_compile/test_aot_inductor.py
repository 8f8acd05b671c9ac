"""AOTInductor packs kernels of a user's, compiled for the CPU by Deuteron; a C++ program without Python loads them.

Of a model for the CPU, torch compiles what the user wrote in Triton's language so, and the rest by a C++ compiler.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import deuteron.compat  # noqa: F401  (makes `import triton` work in this process)

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from torch import nn  # noqa: E402
from torch_compile.user_kernels import Gelu, LayerNorm  # noqa: E402

PROGRAM = r"""
#include <ATen/ATen.h>
#include <cstdio>
#include <exception>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

int main(int, char **argv) {
  torch::inductor::AOTIModelPackageLoader loader(argv[1]);
  const int64_t rows = std::atoi(argv[2]), columns = std::atoi(argv[3]);
  for (float first : {-1.0f, 1e9f}) {
    at::Tensor x = at::arange(rows * columns, at::kFloat).reshape({1, rows, columns}) / 40 - 1;
    x[0][0][0] = first;
    try {
      const at::Tensor result = loader.run({x})[0].contiguous();
      for (int64_t i = 0; i < result.numel(); i++)
        std::printf("%.9g ", result.data_ptr<float>()[i]);
      std::printf("\n");
    } catch (const std::exception &) {
      std::printf("an exception\n");
    }
  }
}
"""


class Block(nn.Module):
    """A transformer block."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.first, self.second = LayerNorm(width), LayerNorm(width)
        self.project, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), Gelu(), nn.Linear(2 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        heads = self.project(self.first(x)).reshape(batch, length, 3, self.heads, width // self.heads)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        weights = torch.softmax(query @ key.transpose(-1, -2) * (width // self.heads) ** -0.5, -1)
        x = x + self.merge((weights @ value).transpose(1, 2).reshape(x.shape))
        return x + self.feed(self.second(x))


MODELS = {
    "perceptron": (lambda: nn.Sequential(nn.Linear(16, 64), Gelu(), nn.Linear(64, 8), nn.Softmax(-1)), (5, 16)),
    "transformer block": (lambda: Block(32, 4), (10, 32)),
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Loads a package, and prints what it gives for numbers of its own and, the second time, for too large a one."""
    folder, root = tmp_path_factory.mktemp("program"), Path(torch.__file__).parent
    (folder / "main.cpp").write_text(PROGRAM)
    include = [f"-I{root}/include", f"-I{root}/include/torch/csrc/api/include"]
    libraries = [f"-L{root}/lib", "-ltorch", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{root}/lib"]
    command = ["g++", "-std=c++20", "-O0", *include, folder / "main.cpp", "-o", folder / "program", *libraries]
    subprocess.run(command, check=True)
    return folder / "program"


@pytest.mark.parametrize("name", MODELS)
def test_loaded_without_python(program: Path, name: str, tmp_path: Path):
    torch.manual_seed(0)
    build, shape = MODELS[name]
    model = build().eval()
    x = (torch.arange(shape[0] * shape[1], dtype=torch.float32).reshape(1, *shape) / 40) - 1
    # Otherwise torch compiles kernels for doubles where it passes floats, which is refused.
    options = torch._inductor.config.patch(_use_fp64_for_unbacked_floats=False, compile_threads=1)
    with torch.no_grad(), options:
        expected = model(x)
        exported = torch.export.export(model, (x,))
        package = torch._inductor.aoti_compile_and_package(exported, package_path=str(tmp_path / "model.pt2"))
    result = subprocess.run([program, package, *map(str, shape)], capture_output=True, text=True, env={}, check=True)
    given, failed = result.stdout.splitlines()
    numbers = torch.tensor([float(number) for number in given.split()])
    torch.testing.assert_close(numbers, expected.flatten(), rtol=1e-4, atol=1e-5)
    assert failed == "an exception"  # of a tl.device_assert
    assert "numbers are not huge" in result.stderr
