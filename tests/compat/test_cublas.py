"""`CublasLt` of torch's: rows of both along the summed axis."""

import pytest

from deuteron.compat.cublas import CublasLt
from deuteron.errors import UsageError

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float8_e4m3fn"])
def test_products(name):
    torch.manual_seed(3)
    dtype = getattr(torch, name)
    a, b = (torch.randint(-2, 3, shape).to(dtype) for shape in ((32, 64), (16, 64)))
    c, d = torch.empty(32, 16, dtype=torch.float32), torch.empty(32, 16, dtype=torch.float32)
    cublas = CublasLt(torch.empty(1024, dtype=torch.int8))
    cublas.matmul(a, b, c)
    expected = a.float() @ b.float().T
    assert torch.equal(c, expected)
    cublas.gemm(a, b, c, d, 2.0, -1.0)
    assert torch.equal(d, expected)


def test_products_of_fp8_accumulate_fast(monkeypatch):
    """As Triton's do: otherwise one of 200 results of its own test is another fp8 on Hopper, and the time is longer."""
    asked, product = [], torch._scaled_mm
    monkeypatch.setattr(torch, "_scaled_mm", lambda *args, **kwargs: asked.append(kwargs) or product(*args, **kwargs))
    a = torch.ones(16, 16).to(torch.float8_e4m3fn)
    CublasLt(None).matmul(a, a, torch.empty(16, 16))
    assert asked[0]["use_fast_accum"]


def test_what_it_does_not_take():
    a = torch.zeros(4, 8)
    with pytest.raises(UsageError, match=r"got float32\[4, 8\] and float32\[8, 4\]"):
        CublasLt(None).matmul(a, a.T, a)
