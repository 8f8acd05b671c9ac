"""On a GPU: rows of which no hint says that they go forwards. Where torch finds no GPU this is skipped."""

import pytest
from runtime.test_plain_loads import of_heads

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


def test_rows_that_go_either_way():
    """By TMA where they go forwards, also when the compiled launcher launches; by another kernel where they do not."""
    x, y = (torch.randn(rows, 64, device="cuda", dtype=torch.float16) for rows in (400, 128))
    for first, heads in ((0, 3), (0, 3), (16, 1), (384, -3), (0, 2), (384, -3), (208, -1)):
        out = torch.full((64, 64), float("nan"), device="cuda")
        of_heads[(1,)](x, y, out, first, heads, 128)
        rows = x[first + heads * torch.arange(128, device="cuda")].double()
        expected = rows[:64] @ y[:64].double() + rows[64:] @ y[64:].double()
        torch.testing.assert_close(out.double(), expected, rtol=1e-3, atol=1e-2)
